# Everything that people and CI do here. `make` alone lists it.

# The machine's Go may be older: it fetches the one that the suite is written for.
export GOTOOLCHAIN := go1.27.3+auto
# PostgreSQL's programs, where deploy/tools.sh has put some.
export PATH := $(CURDIR)/.tools/postgres/bin:$(PATH)

MODULES := migrations pkg services/intake services/status services/interaction services/query services/runctl deploy/local deploy/documentdb deploy/bench
SERVICES := ./services/intake ./services/status ./services/interaction ./services/query ./services/runctl
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

.DEFAULT_GOAL := help
.PHONY: help up demo test check build documentdb migrate race fuzz bench bench-quick bench-reading programs tools

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

up: build $(if $(filter on,$(DOCUMENTDB)),documentdb) ## run the whole suite on this machine, play the demo once, stay up until Ctrl-C (PORT_BASE, WORKER=none, DEMO=off, DOCUMENTDB=on)
	@exec .bin/local up

demo: build ## play whole runs of all three generations, on the suite that is up or on one of its own
	@exec .bin/local demo

test: check ## everything that must hold: check, then all tests on real parts, and what stores runs once more without group commit
	go test -timeout 15m work
	GROUP_COMMIT=false go test -timeout 10m $(addprefix framerun.dev/,pkg/store services/intake services/status services/interaction)

check: tools ## vet, staticcheck, formatting, every module alone, tidy and sync without a diff
	@unformatted=$$("$$(go env GOROOT)/bin/gofmt" -l $(MODULES)); test -z "$$unformatted" || { echo "not gofmt-ed:"; echo "$$unformatted"; exit 1; }
	go vet work
	go run $(STATICCHECK) work
	@for m in $(MODULES); do (cd $$m && GOWORK=off go build -o /dev/null ./... && GOWORK=off go mod tidy -diff) \
		|| { echo "module $$m does not stand alone: see above; 'go mod tidy' there mends a diff"; exit 1; }; done
	@before=$$(cat go.work */go.mod */*/go.mod | cksum); go work sync; test "$$before" = "$$(cat go.work */go.mod */*/go.mod | cksum)" \
		|| { echo "'go work sync' has changed go.mod files: commit them"; exit 1; }

build: tools ## build the services and the local stack into .bin
	@test -x .bin/local || echo "building for the first time: a minute or three" >&2
	@go build -o .bin/ $(SERVICES) ./deploy/local ./migrations/migrate

documentdb: ## build the stand-in for DocumentDB into .bin
	@test -x .bin/documentdb || echo "building the stand-in for DocumentDB for the first time: a minute or two"
	@go build -o .bin/ ./deploy/documentdb

migrate: build ## bring the database at DATABASE_URL to this version (PLATFORM=yes makes the platform's stand-in tables first)
	@exec .bin/migrate $(if $(PLATFORM),-platform)

race: tools ## all tests under the race detector
	go test -race -timeout 30m work

fuzz: build ## send a million varied requests to a suite of its own and check every answer (N, SEED, PORT_BASE)
	@exec .bin/local fuzz

bench: programs ## measure everything against pgbench, River and a bare handler, as Markdown, in about forty minutes
	@exec .bin/bench all

bench-quick: programs ## the key ratios, in less than a minute and a half
	@exec .bin/bench quick

bench-reading: programs ## the reading part: GET, lists, waiting
	@exec .bin/bench reading

programs: build
	@go build -o .bin/ ./deploy/bench

tools:
	@sh deploy/tools.sh
