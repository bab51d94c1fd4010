#!/usr/bin/env bash
# release.sh VERSION makes a release below dist/. Anybody gets the same bytes from the same commit with the Go of contrib/Dockerfile:
# times are the commit's, and neither umask, time zone, directory nor host name matter.
set -euo pipefail
version=${1:?usage: make release VERSION=0.3.0}
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || { echo "VERSION must be like 0.3.0 or 0.3.0-rc.1, not $version" >&2; exit 1; }
cd "$(dirname "$0")/../.."
for tool in gzip zip tar git jq; do command -v $tool >/dev/null || { echo "make release needs $tool" >&2; exit 1; }; done
umask 022
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
commit=$(git rev-parse HEAD)
export SOURCE_DATE_EPOCH TZ=UTC LC_ALL=C VERSION=$version GOFLAGS= GOAMD64=v1 GOARM64=v8.0 CGO_ENABLED=0
[ -z "$(git status --porcelain)" ] || echo "There are changes that are not committed: this is not the release of $commit." >&2

export MAINTAINER=${MAINTAINER:-Switchyard <switchyard@example.org>} # whom the packages name

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
dist=$PWD/dist
rm -rf "$dist"
mkdir -p "$dist" "$work/man" "$work/completions"
tool() { GOFLAGS='' go tool -modfile=internal/tools/release.mod "$@"; }
stamp() { find "$@" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +; }

build() { # SYSTEM ARCHITECTURE FILE
  GOOS=$1 GOARCH=$2 go build -trimpath -buildvcs=false -tags nethttpomithttp2,nopgxregisterdefaulttypes \
    -ldflags="-s -w -buildid= -X main.release=$version -X main.commit=$commit" -o "$3" ./cmd/switchyard
}

# What does not depend on the system.
MAN=$work/man go run -trimpath -buildvcs=false -tags man -ldflags="-X main.release=$version" ./cmd/switchyard
gzip -9n "$work"/man/*
build "$(go env GOOS)" "$(go env GOARCH)" "$work/switchyard"
for shell in bash zsh fish powershell; do "$work/switchyard" completion $shell >"$work/completions/switchyard.$shell"; done
section=Unreleased
! grep -qF "## [$version]" CHANGELOG.md || section=$version
awk -v section="[$section]" '/^## \[/ { on = $2 == section; next } on' CHANGELOG.md >"$dist/switchyard_${version}_notes.md"

archive() { # SYSTEM ARCHITECTURE BINARY
  local name=switchyard_${version}_$1_$2 suffix=''
  local dir=$work/$name
  [ "$1" != windows ] || suffix=.exe
  mkdir -p "$dir/completions" "$dir/contrib"
  install -m 0755 "$3" "$dir/switchyard$suffix"
  install -m 0644 LICENSE NOTICE README.md switchyard.example.toml "$dir"
  install -m 0644 "$work"/completions/* "$dir/completions"
  install -m 0755 contrib/work-on-stories.sh "$dir/contrib"
  if [ "$1" = windows ]; then
    stamp "$dir"
    (cd "$work" && find "$name" -type f | sort | zip -qX9 "$dist/$name.zip" -@)
    return
  fi
  mkdir "$dir/man"
  install -m 0644 "$work"/man/* "$dir/man"
  stamp "$dir"
  tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --format=gnu -cf - "$name" |
    gzip -9n >"$dist/$name.tar.gz"
}

package() { # ARCHITECTURE BINARY
  local stage=$work/package-$1
  local share=$stage/usr/share
  install -D -m 0755 "$2" "$stage/usr/bin/switchyard"
  for unit in switchyard.service switchyard-project@.service switchyard-backup.service switchyard-backup.timer; do # without how to install it
    install -d "$stage/usr/lib/systemd/system"
    sed -n 's#/usr/local/bin/#/usr/bin/#; /^\[Unit\]/,$p' "contrib/$unit" >"$stage/usr/lib/systemd/system/$unit"
  done
  install -D -m 0644 -t "$share/man/man1" "$work"/man/*
  install -D -m 0644 "$work/completions/switchyard.bash" "$share/bash-completion/completions/switchyard"
  install -D -m 0644 "$work/completions/switchyard.zsh" "$share/zsh/site-functions/_switchyard"
  install -D -m 0644 "$work/completions/switchyard.fish" "$share/fish/vendor_completions.d/switchyard.fish"
  install -D -m 0755 -t "$share/switchyard" contrib/work-on-stories.sh
  install -D -m 0644 -t "$share/doc/switchyard" README.md NOTICE switchyard.example.toml
  cat >"$share/doc/switchyard/copyright" <<'END'
Switchyard is licensed under the Apache License 2.0: on Debian, its text is in /usr/share/common-licenses/Apache-2.0.

The program holds the work of others, whose licences are in NOTICE beside this file.
END
  printf "switchyard (%s) unstable; urgency=medium\n\n  * The changes are in NEWS beside this file.\n\n -- %s  %s\n" \
    "${version/-/\~}" "$MAINTAINER" "$(date -Ru -d "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$share/doc/switchyard/changelog.gz"
  install -m 0644 CHANGELOG.md "$share/doc/switchyard/NEWS"
  gzip -9n "$share/doc/switchyard/NEWS"
  install -m 0644 contrib/package/lintian-overrides "$stage/lintian"
  install -m 0644 switchyard.example.toml "$stage/switchyard.toml"
  stamp "$stage"
  for kind in deb rpm; do STAGE=$stage ARCH=$1 tool nfpm package --config contrib/package/nfpm.yaml --packager $kind --target "$dist" >"$work/log" || { cat "$work/log" >&2; exit 1; }; done
}

for system in linux darwin windows; do
  for architecture in amd64 arm64; do
    [[ " ${PLATFORMS:-$system/$architecture} " = *" $system/$architecture "* ]] || continue # make release-test needs few of an old one
    build $system $architecture "$work/binary"
    archive $system $architecture "$work/binary"
    [ $system != linux ] || package $architecture "$work/binary"
    tool cyclonedx-gomod bin -json -noserial -notimestamp -version "$version" -output "$work/sbom-$system-$architecture.json" "$work/binary" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
    echo "$system/$architecture"
  done
done
# One SBOM for all programs: the modules that any of them has.
jq -s '.[0] + {components: (map(.components) | add | unique_by(."bom-ref")),
  dependencies: (map(.dependencies) | add | group_by(.ref) | map({ref: .[0].ref, dependsOn: (map(.dependsOn // []) | add | unique)}))}' \
  "$work"/sbom-*.json >"$dist/switchyard_${version}_sbom.cdx.json"
(cd "$dist" && sha256sum -- * >"$work/SHA256SUMS" && mv "$work/SHA256SUMS" .)

# What needs a key or a registry.
if [ -n "${SIGNING_KEY:-}" ]; then
  gpg --batch --yes --local-user "$SIGNING_KEY" --armor --detach-sign "$dist/SHA256SUMS"
else
  echo "Not signed: SIGNING_KEY names no key of gpg."
fi
if [ -n "${IMAGE:-}" ] && docker buildx version >/dev/null 2>&1; then
  docker buildx build -f contrib/Dockerfile --platform linux/amd64,linux/arm64 --build-arg "VERSION=$version" --build-arg "COMMIT=$commit" \
    --tag "$IMAGE:$version" --push .
else
  echo "No image: IMAGE names no registry and repository, or docker buildx is missing."
fi
