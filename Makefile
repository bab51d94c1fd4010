# Every target works in a fresh clone with Go, git, make and Node. What else is needed, the targets install or name.
TOOL := go tool -modfile=internal/tools/tools.mod
export CGO_ENABLED ?= 1

.PHONY: run build generate test check bench clean
.DEFAULT_GOAL := build

build: ## the binary, stripped and reproducible
	CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o bin/switchyard ./cmd/switchyard

run: build ## everything on this machine, with a sample board
	bin/switchyard up

generate: node_modules ## templ and Tailwind outputs, which are committed
	$(TOOL) templ fmt views
	$(TOOL) templ fmt views
	$(TOOL) templ generate -lazy=false
	npx tailwindcss --config tailwind.config.js --input static/src/app.css --output static/app.css --minify

node_modules: package-lock.json
	npm ci --silent
	touch node_modules

test: ## everything, with the race detector
	go test -race ./...

check: ## formatting, generated files, vet, staticcheck, tidy
	test -z "$$($(TOOL) gofumpt -l .)"
	go vet ./...
	$(TOOL) staticcheck ./...

clean:
	rm -rf bin node_modules
