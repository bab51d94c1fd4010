# Every target works in a fresh clone on Debian or Ubuntu with Go, git, make and Node 18 or newer. What else is needed, the
# targets install or name.

TOOL := go tool -modfile=internal/tools/tools.mod
GENERATED := git ls-files 'views/*_templ.go' 'static/*.css' | xargs sha256sum
export BROWSERSLIST_IGNORE_OLD_DATA := 1 # the browsers we need are named, not looked up

.PHONY: help build run dev generate test test-fast race fuzz stress bench screenshots check fresh-test release release-test clean
.DEFAULT_GOAL := help

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

# It serves and asks over HTTP/1.1; HTTP/2 would add half a megabyte. Of PostgreSQL's types it knows those that it uses; all that
# there are would add 1.4 MB.
build: ## bin/switchyard: static, stripped, reproducible
	CGO_ENABLED=0 go build -trimpath -tags nethttpomithttp2,nopgxregisterdefaulttypes \
		-ldflags="-s -w -X main.commit=$$(git rev-parse HEAD 2>/dev/null)" -o bin/switchyard ./cmd/switchyard

run: build ## everything on this machine, with a sample
	bin/switchyard up

dev: node_modules ## a gateway with a sample at localhost:7331, built and reloaded on each change
	trap 'kill 0' EXIT; \
	for sheet in app pages overview changes flow logs project wall work yard; do npx tailwindcss --config tailwind.config.js --input static/src/$$sheet.css --output static/$$sheet.css --minify --no-autoprefixer --watch=always & done; \
	$(TOOL) templ generate -watch -watch-pattern='(.+\.go$$)|(.+\.templ$$)|(.+static/[^/]+\.(css|js)$$)' \
		-proxy=http://localhost:3000 -open-browser=false -cmd='go run ./cmd/switchyard up --data bin/dev'

generate: node_modules ## the templ and Tailwind outputs, which are committed
	$(TOOL) templ fmt -log-level=error views
	$(TOOL) templ fmt -log-level=error views
	$(TOOL) templ generate -lazy=false -log-level=error
	for sheet in app pages overview changes flow logs project wall work yard; do npx tailwindcss --config tailwind.config.js --input static/src/$$sheet.css --output static/$$sheet.css --minify --no-autoprefixer || exit 1; done

node_modules: package-lock.json
	npm ci --silent --no-audit --no-fund
	@touch node_modules

# vet, staticcheck, tests and what they build ask for the packages in one way, so that each is compiled once.
FLAGS := CGO_ENABLED=0 GOFLAGS=-tags=nopgxregisterdefaulttypes

# A line for each package as it ends, what failed, and how many passed.
GOTESTSUM = $$($(TOOL) -n gotestsum) --format pkgname --format-hide-empty-pkg --hide-summary=skipped --post-run-command internal/tools/tests-ended.sh

test: ## all tests, in the browser too; installs what is missing
	internal/tools/test-deps.sh
	CI=true $(FLAGS) $(GOTESTSUM) $(RERUN) --packages ./... -- -vet=off -ldflags='-s -w' -p 3 -parallel 4 -timeout 30m

test-fast: ## the tests that need no browser, no PostgreSQL and little time
	$(FLAGS) $(GOTESTSUM) -- -vet=off -short -ldflags='-s -w' -p 4 -parallel 8 ./...

race: ## test-fast of the packages whose goroutines share memory, with the race detector; installs what is missing
	internal/tools/test-deps.sh
	CGO_ENABLED=1 go test -race -tags=nopgxregisterdefaulttypes '-gcflags=modernc.org/...=-race=false -d=checkptr=0' \
		-vet=off -short -ldflags='-s -w' -p 4 -parallel 8 ./handlers ./handlers/mcp ./internal/bot ./internal/feed ./internal/flow \
		./internal/notify ./internal/poll ./internal/service ./internal/store ./internal/supervise ./internal/upstream

fuzz: ## some seconds of each fuzz target
	internal/tools/fuzz.sh 3s

stress: ## up to an hour (SOAK=40m: 40 minutes more) of kill -9, disturbed connections, lying projects and strangers: nothing may be lost, doubled or shut out
	internal/tools/test-deps.sh
	go test -tags stress -count 1 -v -timeout 2h ./internal/cluster ./internal/stress

bench: build ## the benchmarks, and the table of docs/performance.md
	go test -run '^$$' -bench . -benchmem ./...
	go run ./internal/bench -write docs/performance.md

screenshots: ## the pictures of the README, in docs/img
	internal/tools/test-deps.sh
	go test -count 1 ./internal/screenshots -out $(CURDIR)/docs/img

# For other systems the sources of all packages are loaded and their types checked, which takes a quarter of a build's time.
check: ## formatting, generated files, vet, other systems, staticcheck, dead code, tidy, the OpenAPI document
	@found="$$(git ls-files '*.go' ':!*_templ.go' | xargs $(TOOL) gofumpt -l)" && test -z "$$found" || { echo "$$found"; echo 'not formatted: run gofumpt'; exit 1; }
	@before="$$($(GENERATED))"; $(MAKE) -s generate; test "$$before" = "$$($(GENERATED))" || { echo 'generated files were stale: commit what make generate wrote'; exit 1; }
	$(FLAGS) go vet -tags=nopgxregisterdefaulttypes,stress ./...
	$(FLAGS) $$($(TOOL) -n staticcheck) -tags=nopgxregisterdefaulttypes,stress ./...
	@found="$$($(TOOL) deadcode -test ./...)" && test -z "$$found" || { echo "$$found"; echo 'dead code'; exit 1; }
	@deadcode=$$($(TOOL) -n deadcode); for system in windows/amd64 darwin/arm64; do \
		CGO_ENABLED=0 GOOS=$${system%/*} GOARCH=$${system#*/} $$deadcode ./cmd/... >/dev/null || exit 1; done
	go mod tidy -diff
	internal/tools/openapi.sh

release: ## archives, packages, checksums and an SBOM of VERSION for six platforms, below dist/
	internal/tools/release.sh "$(VERSION)"

fresh-test: ## make test in a clean root by a user who is not root, as after a first clone; needs root
	internal/tools/fresh-test.sh

release-test: ## makes releases and installs, starts, upgrades, removes and purges them in a clean root; installs what it needs
	internal/tools/release-test.sh

clean: ## what the other targets made
	rm -rf bin dist node_modules
