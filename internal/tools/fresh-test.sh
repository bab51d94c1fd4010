#!/usr/bin/env bash
# fresh-test.sh runs make test as a newcomer would: in a clean Debian that debootstrap makes, with Go, git, make and Debian's Node and
# nothing else, by a user who is not root. At first that names in one line what is missing; once that is installed, all tests must pass, RUNS
# times (1). It needs root.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ "$(id -u)" = 0 ] || { echo "make fresh-test needs root, for debootstrap and chroot" >&2; exit 1; }
if [ "${1-}" != within ]; then # mounts of its own, which go with it
  command -v debootstrap >/dev/null || { apt-get update -qq; apt-get install -y -qq --no-install-recommends debootstrap >/dev/null; }
  exec unshare --mount --pid --fork --kill-child "$0" within
fi
unset MAKEFLAGS MAKELEVEL MFLAGS # the newcomer's make is nobody's child
root=$(mktemp -d)
chmod 755 "$root" # it becomes everybody's /
trap 'cd /; umount -l "$root/proc" "$root/dev" 2>/dev/null; rm -rf --one-file-system "$root"' EXIT
step() { echo "- $*"; }
newcomer() { chroot "$root" su newcomer -c "cd ~/switchyard && PATH=\$PATH:/usr/local/go/bin && $*"; }

step "a clean root"
debootstrap --variant=minbase bookworm "$root" >"$root.log" 2>&1 || { tail "$root.log" >&2; exit 1; }
rm "$root.log"
mount -t tmpfs -o mode=755 dev "$root/dev"
for device in null zero full random urandom tty; do touch "$root/dev/$device"; mount --bind "/dev/$device" "$root/dev/$device"; done
mkdir -m 1777 "$root/dev/shm"
mkdir "$root/dev/pts"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
mount -t proc proc "$root/proc"
cp /etc/resolv.conf /etc/hosts "$root/etc/"
export DEBIAN_FRONTEND=noninteractive HOME=/root
chroot "$root" apt-get update -qq
chroot "$root" apt-get install -y -qq --no-install-recommends git make nodejs npm ca-certificates >/dev/null
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/" # where the network has an authority of its own
cp -a "$(go env GOROOT)" "$root/usr/local/go"
chroot "$root" useradd --create-home newcomer
git clone -q . "$root/home/newcomer/switchyard"
chroot "$root" chown -R newcomer: /home/newcomer

step "what is missing is named in one line, before anything runs"
if says=$(newcomer make -s test 2>&1); then echo "make test passed without a browser" >&2; exit 1; fi
named=$(sed -n 's/^The tests need: \(.*\)\. Please install them.*/\1/p' <<<"$says")
[ -n "$named" ] && [ "$(grep -cv '^make: ' <<<"$says")" = 1 ] || { echo "make test said: $says" >&2; exit 1; }
echo "  $named"
# shellcheck disable=SC2086
chroot "$root" apt-get install -y -qq --no-install-recommends $named >/dev/null

for run in $(seq "${RUNS:-1}"); do
  step "make test, run $run of ${RUNS:-1}"
  SECONDS=0
  newcomer "make test && go clean -testcache" # the next run finds what is compiled, but no results
  echo "  green in $((SECONDS / 60)) min $((SECONDS % 60)) s"
done
