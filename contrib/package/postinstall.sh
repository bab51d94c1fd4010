#!/bin/sh
# Makes the account and its directory, and starts the gateway; after an upgrade, starts what ran before again.
set -e
getent passwd switchyard >/dev/null ||
	useradd --system --user-group --home-dir /var/lib/switchyard --no-create-home --shell /usr/sbin/nologin switchyard
if ! [ -d /var/lib/switchyard ]; then
	install -d -m 0700 -o switchyard -g switchyard /var/lib/switchyard
fi
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
# Debian says "configure" and the version before; rpm how many versions there are.
case "$1:$2" in
configure: | 1:) systemctl enable --now switchyard.service ;;
configure:* | [2-9]:) systemctl try-restart switchyard.service 'switchyard-project@*.service' ;;
esac
