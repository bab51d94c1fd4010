#!/usr/bin/env bash
# release-test.sh makes two releases of the current commit, one of them twice, and tries them as people would: in a clean Debian that
# debootstrap makes. It needs root, and installs lintian, rpm, debootstrap and zip where they are missing.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ "$(id -u)" = 0 ] || { echo "make release-test needs root, for debootstrap and chroot" >&2; exit 1; }
missing=()
for tool in lintian rpm debootstrap zip unzip curl jq; do command -v $tool >/dev/null || missing+=($tool); done
if [ ${#missing[@]} -gt 0 ]; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
umask 022
work=$(mktemp -d)
root=$work/root
gateway=
cleanup() {
  [ -z "$gateway" ] || kill "$gateway" 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
fail() { echo "release-test: $*" >&2; exit 1; }
step() { echo "- $*"; }

step "the same bytes under another umask, time zone and directory"
old=0.2.0 new=0.3.0
commit=$(git rev-parse HEAD)
git clone -q . "$work/elsewhere"
git -C "$work/elsewhere" checkout -q "$commit"
mkdir "$work/once" "$work/old"
(cd "$work/elsewhere" && umask 077 && TZ=Pacific/Auckland LC_ALL=C.UTF-8 internal/tools/release.sh $new >/dev/null)
git clone -q . "$work/a directory"
git -C "$work/a directory" checkout -q "$commit"
(cd "$work/a directory" && internal/tools/release.sh $new >/dev/null)
diff "$work/elsewhere/dist/SHA256SUMS" "$work/a directory/dist/SHA256SUMS" || fail "two releases differ"
dist="$work/elsewhere/dist"
(cd "$dist" && sha256sum -c --quiet SHA256SUMS)
for system in linux darwin windows; do for architecture in amd64 arm64; do
  ls "$dist/switchyard_${new}_${system}_$architecture".* >/dev/null || fail "no archive for $system/$architecture"
done; done
cp -r "$work/a directory" "$work/before"
(cd "$work/before" && PLATFORMS=linux/amd64 internal/tools/release.sh $old >/dev/null)

step "archives"
tar -C "$work/once" -xf "$dist/switchyard_${new}_linux_$(go env GOARCH).tar.gz"
unpacked="$work/once/switchyard_${new}_linux_$(go env GOARCH)"
grep -q "^switchyard $new (${commit:0:12})" <<<"$("$unpacked/switchyard" version)" || fail "$("$unpacked/switchyard" version)"
for file in LICENSE NOTICE README.md contrib/work-on-stories.sh completions/switchyard.bash man/switchyard.1.gz; do [ -s "$unpacked/$file" ] || fail "the archive lacks $file"; done
windows=$(unzip -qql "$dist/switchyard_${new}_windows_amd64.zip")
grep -q 'switchyard\.exe$' <<<"$windows" || fail "the archive for Windows lacks the program"
! grep -q '/man/' <<<"$windows" || fail "the archive for Windows has man pages"
sbom=$dist/switchyard_${new}_sbom.cdx.json
[ "$(jq -r .bomFormat "$sbom")" = CycloneDX ] || fail "no SBOM"
for system in linux darwin windows; do # the modules of every archive's program are in it
  GOOS=$system CGO_ENABLED=0 go list -deps -tags nethttpomithttp2,nopgxregisterdefaulttypes -f '{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}' ./cmd/switchyard
done | sort -u >"$work/modules"
jq -r '.components[].name' "$sbom" | sort -u | comm -23 "$work/modules" - >"$work/lacking"
[ ! -s "$work/lacking" ] || fail "the SBOM lacks $(tr '\n' ' ' <"$work/lacking")"
grep -q . "$dist/switchyard_${new}_notes.md" || fail "no notes"
[ "$(grep -cx '### Added' "$work/before/dist/switchyard_${old}_notes.md")" = 1 ] || fail "the notes of $old are not of that release alone"

step "lintian and rpm"
lintian --fail-on error "$dist"/*_amd64.deb "$dist"/*_arm64.deb
for package in "$dist"/*.rpm; do
  files=$(rpm -qpl "$package")
  for file in /usr/bin/switchyard /usr/lib/systemd/system/switchyard.service /usr/lib/systemd/system/switchyard-project@.service \
    /etc/switchyard/switchyard.toml /usr/share/man/man1/switchyard.1.gz /usr/share/switchyard/work-on-stories.sh; do
    grep -qx "$file" <<<"$files" || fail "$package lacks $file"
  done
  [ "$(rpm -qp --configfiles "$package")" = /etc/switchyard/switchyard.toml ] || fail "$package: $(rpm -qp --configfiles "$package")"
done

step "a clean root"
debootstrap --variant=minbase bookworm "$root" >"$work/log" 2>&1 || { tail "$work/log" >&2; fail debootstrap; }
deb() { cp "$1" "$root/tmp/switchyard.deb"; chroot "$root" dpkg -i --force-confold /tmp/switchyard.deb >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "dpkg -i $1"; }; }
port=$((20000 + RANDOM % 10000))
start() { # the gateway as the unit starts it
  mapfile -t settings < <(sed -n 's/^Environment=//p' "$root/usr/lib/systemd/system/switchyard.service" | sed 's#%S#/var/lib#; s#%E#/etc#')
  local program
  program=$(sed -n 's/^ExecStart=//p' "$root/usr/lib/systemd/system/switchyard.service")
  # shellcheck disable=SC2086
  chroot --userspec=switchyard:switchyard "$root" /usr/bin/env -i "${settings[@]}" SWITCHYARD_LISTEN=127.0.0.1:$port $program >"$work/gateway.log" 2>&1 &
  gateway=$!
  for _ in $(seq 100); do
    if curl -sf "http://127.0.0.1:$port/readyz" >/dev/null; then return; fi
    kill -0 $gateway 2>/dev/null || break
    sleep 0.1
  done
  cat "$work/gateway.log" >&2
  fail "the gateway does not start"
}
stop() { kill "$gateway" && wait "$gateway"; gateway=; }
running() { grep -q "^switchyard_build_info.*version=\"$1\"" <<<"$(curl -s "http://127.0.0.1:$port/metrics")" || fail "it is not version $1 that runs"; }

step "install and start $old"
deb "$dist/../../before/dist/switchyard_${old}_amd64.deb"
start
running $old
curl -sf -H 'Content-Type: application/json' -d '{"name":"alpha","url":"http://127.0.0.1:1"}' "http://127.0.0.1:$port/api/gateway/projects" >/dev/null
stop
echo '# edited' >>"$root/etc/switchyard/switchyard.toml"

step "upgrade to $new, which keeps what was edited, and the data"
deb "$dist/switchyard_${new}_amd64.deb"
grep -qx '# edited' "$root/etc/switchyard/switchyard.toml" || fail "the upgrade has overwritten the configuration"
[ -x "$root/usr/share/switchyard/work-on-stories.sh" ] || fail "the package lacks the agent in shell"
start
running $new
grep -q alpha <<<"$(curl -s "http://127.0.0.1:$port/api/gateway")" || fail "the data is gone"
checkup() { # as docs/install.md does
  chroot --userspec=switchyard:switchyard "$root" /usr/bin/env -i "${settings[@]}" SWITCHYARD_LISTEN=127.0.0.1:$port switchyard doctor >"$work/log" ||
    { cat "$work/log" >&2; fail "the doctor finds something bad"; }
}
checkup
chroot "$root" env SWITCHYARD_LISTEN=127.0.0.1:$port switchyard doctor >"$work/log" || { cat "$work/log" >&2; fail "the doctor as root finds something bad"; }
grep -q "^disk .* free for /var/lib/switchyard$" "$work/log" || fail "as root the doctor looks elsewhere: $(cat "$work/log")"
checkup
grep -q "^addresses .* has this gateway" "$work/log" || fail "$(cat "$work/log")"
stop
checkup

step "remove keeps configuration and data, purge deletes them"
chroot "$root" dpkg -r switchyard >/dev/null 2>&1
[ ! -e "$root/usr/bin/switchyard" ] || fail "the program is still there"
[ -s "$root/var/lib/switchyard/switchyard.db" ] && [ -s "$root/etc/switchyard/switchyard.toml" ] || fail "removing has deleted data or configuration"
chroot "$root" dpkg -P switchyard >/dev/null 2>&1
[ ! -e "$root/var/lib/switchyard" ] && [ ! -e "$root/etc/switchyard" ] || fail "purging has left something"
! chroot "$root" dpkg -s switchyard >/dev/null 2>&1 || fail "dpkg still knows it"
echo "The release can be made again, installed, upgraded, removed and purged."
