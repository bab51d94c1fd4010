#!/bin/sh
# Stops the services, unless this is an upgrade.
set -e
case "$1" in
remove | 0)
	[ -d /run/systemd/system ] || exit 0
	systemctl disable --now switchyard.service
	systemctl stop 'switchyard-project@*.service'
	;;
esac
