#!/usr/bin/env bash
# Installs what the tests need beyond Go, git, make and Node 18 or newer (a browser, PostgreSQL, jq, a C compiler for the race detector; axe-core, the
# tools of boards, coding agents, a mail server) where that is missing and can be installed. Where it cannot, one line says what to
# install, before anything else is done.
set -euo pipefail
cd "$(dirname "$0")/.."

missing=()
browser=
for name in chromium chromium-browser google-chrome; do
  if command -v "$name" >/dev/null; then browser=$name; break; fi
done
[ -n "$browser" ] || [ -n "${CHROMIUM-}" ] || missing+=(chromium)
compgen -G "/usr/lib/postgresql/*/bin/postgres" >/dev/null || command -v postgres >/dev/null || missing+=(postgresql)
command -v gcc >/dev/null || command -v clang >/dev/null || missing+=(gcc libc6-dev)
for tool in curl git jq npm setpriv; do
  command -v $tool >/dev/null || missing+=("${tool/setpriv/util-linux}")
done
if command -v node >/dev/null && ! node -e 'process.exit(parseInt(process.versions.node) < 18 ? 1 : 0)'; then
  echo "The tests need Node 18 or newer, and this is $(node --version)." >&2
  exit 1
fi
if [ ${#missing[@]} -gt 0 ]; then
  root=()
  [ "$(id -u)" = 0 ] || root=(sudo -n)
  if ! command -v apt-get >/dev/null || ! "${root[@]}" true 2>/dev/null; then
    echo "The tests need: ${missing[*]}. Please install them (Debian, Ubuntu: apt-get install ${missing[*]})." >&2
    exit 1
  fi
  echo "Installing for the tests: ${missing[*]}" >&2
  "${root[@]}" apt-get update -qq
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
# Without windows the browser takes little more than half of the processor time; where there is no such package, it has to do without.
if ! command -v chromium-headless-shell >/dev/null && [ -z "${CHROMIUM-}" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends --no-remove --no-upgrade \
    -o Acquire::Retries=0 -o Acquire::http::Timeout=20 chromium-headless-shell >/dev/null 2>&1 || true
fi

# npm ci refuses where the registry does not have the tools' programs for other systems.
for tools in browsertest:ci receivers:ci boardtools:install codingagents:install; do
  how=${tools#*:} tools=${tools%:*}
  if ! cmp -s "$tools/package-lock.json" "$tools/node_modules/installed"; then
    npm "$how" --prefix "$tools" --no-save --loglevel=error --no-audit --no-fund >&2
    # OpenSpec's tool and Gemini CLI need a newer Node than Debian's.
    if [[ $tools = boardtools || $tools = codingagents ]] && ! node -e 'process.exit(process.versions.node.localeCompare("20.19", "en", {numeric: true}) < 0 ? 1 : 0)'; then
      system=$(node -p '`${process.platform}-${process.arch}`')
      npm install --prefix "$tools" --no-save --no-package-lock --loglevel=error --no-audit --no-fund "node-$system@22.23.5" >&2
      ln -sf "../node-$system/bin/node" "$tools/node_modules/.bin/node"
    fi
    cp "$tools/package-lock.json" "$tools/node_modules/installed"
  fi
done

mailpit=v1.33.1
if ! grep -qsx "$mailpit" receivers/bin/installed; then
  GOBIN=$PWD/receivers/bin go install "github.com/axllent/mailpit@$mailpit"
  echo "$mailpit" >receivers/bin/installed
fi
