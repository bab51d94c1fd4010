#!/usr/bin/env bash
# Installs what the tests need beyond Go (axe-core; the tools of boards; coding agents; a browser; PostgreSQL; a C compiler for the race detector) where that is
# missing and can be installed; says what to install where it cannot.
set -euo pipefail

pages=$(dirname "$0")/../browsertest
if ! cmp -s "$pages/package-lock.json" "$pages/node_modules/installed"; then
  npm ci --prefix "$pages" --silent --no-audit --no-fund
  cp "$pages/package-lock.json" "$pages/node_modules/installed"
fi

# npm ci refuses where the registry does not have the tools' programs for other systems.
for tools in "$(dirname "$0")"/../{boardtools,codingagents}; do
  if ! cmp -s "$tools/package-lock.json" "$tools/node_modules/installed"; then
    npm install --prefix "$tools" --no-save --silent --no-audit --no-fund
    cp "$tools/package-lock.json" "$tools/node_modules/installed"
  fi
done

receivers=$(dirname "$0")/../receivers
if ! cmp -s "$receivers/package-lock.json" "$receivers/node_modules/installed"; then
  npm ci --prefix "$receivers" --silent --no-audit --no-fund
  cp "$receivers/package-lock.json" "$receivers/node_modules/installed"
fi
mailpit=v1.33.1
if ! grep -qsx "$mailpit" "$receivers/bin/installed"; then
  GOBIN=$(cd "$receivers" && pwd)/bin go install "github.com/axllent/mailpit@$mailpit"
  echo "$mailpit" >"$receivers/bin/installed"
fi

missing=()
browser=
for name in chromium chromium-browser google-chrome; do
  if command -v "$name" >/dev/null; then browser=$name; break; fi
done
[ -n "$browser" ] || missing+=(chromium)
compgen -G "/usr/lib/postgresql/*/bin/postgres" >/dev/null || command -v postgres >/dev/null || missing+=(postgresql)
command -v gcc >/dev/null || command -v clang >/dev/null || missing+=(gcc libc6-dev)
[ ${#missing[@]} -gt 0 ] || exit 0

root=()
if [ "$(id -u)" != 0 ]; then
  if ! sudo -n true 2>/dev/null; then root=(unavailable); else root=(sudo -n); fi
fi
if [ "${root[*]}" = unavailable ] || ! command -v apt-get >/dev/null; then
  echo "The tests need: ${missing[*]}. Please install them (Debian, Ubuntu: apt-get install ${missing[*]})." >&2
  exit 1
fi
echo "Installing for the tests: ${missing[*]}" >&2
"${root[@]}" apt-get update -qq
DEBIAN_FRONTEND=noninteractive "${root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
