#!/bin/sh
# Removing keeps configuration and data; dpkg --purge deletes both.
set -e
case "$1" in
purge) rm -rf /etc/switchyard /var/lib/switchyard /var/lib/switchyard-project ;;
esac
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
