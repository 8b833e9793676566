# `make` alone lists the targets.
.DEFAULT_GOAL := help
SHELL := /bin/sh

GO ?= go
# Handed to the program: make demo ARGS=--exit
ARGS ?=
# Handed to go test: make test TESTFLAGS='-race -run Kill'
TESTFLAGS ?=
# What make test looks at.
PACKAGES ?= ./...
FUZZTIME ?= 30s

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
GOLANGCI_VERSION := v2.15.0
GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/\1	\2/p' $(MAKEFILE_LIST) | \
		while IFS="$$(printf '\t')" read -r name text; do printf '  %-13s %s\n' "$$name" "$$text"; done

.PHONY: demo
demo: ## show the filter at work on built-in parts; ARGS=--exit ends by itself
	@echo 'building bin/dedup (the first time Go fetches and compiles the libraries: a minute or two)'
	@$(MAKE) --no-print-directory build
	bin/dedup demo $(ARGS)

.PHONY: services
services: ## install what native Kafka, Redis and PostgreSQL need (Debian, as root)
	internal/devservices/install.sh

# Where services are to be found is said by DEDUP_TEST_*; as root on Debian
# without any of them, what is missing is installed first.
.PHONY: services-if-needed
services-if-needed:
	@if [ -z "$$DEDUP_TEST_KAFKA$$DEDUP_TEST_REDIS$$DEDUP_TEST_POSTGRES" ] && [ "$$DEDUP_TEST_SERVICES" != docker ] && \
		[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
		$(MAKE) --no-print-directory services; fi

.PHONY: build
build: ## build the static program bin/dedup
	CGO_ENABLED=0 $(GO) build -buildvcs=false -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/dedup ./cmd/dedup

# One set of services for all test programs. Two programs at a time: the
# integration tests alone keep two cores busy.
.PHONY: test
test: services-if-needed ## run every test against real Kafka, Redis and PostgreSQL
	$(GO) run ./internal/devservices/cmd/with-services -- \
		$(GO) test -p 2 -parallel 6 -timeout 40m $(TESTFLAGS) $(PACKAGES)

.PHONY: lint
lint: ## check format and lint rules
	@unformatted=$$(git ls-files -co --exclude-standard '*.go' | xargs gofmt -l); if [ -n "$$unformatted" ]; then \
		echo "not formatted, run gofmt -w:"; echo "$$unformatted"; exit 1; fi
	@if golangci-lint version 2>/dev/null | grep -q 'version v\?2\.'; then golangci-lint run ./...; \
		else $(GO) run $(GOLANGCI)@$(GOLANGCI_VERSION) run ./...; fi

.PHONY: bench
bench: services-if-needed ## measure throughput against a plain copy, registration and insert
	$(GO) run ./bench $(ARGS)

# No service is needed, but a machine that does nothing else.
BENCHSTAT := golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da
COUNT ?= 6
.PHONY: bench-keys
bench-keys: ## measure keys and hashes per core, and the look-up of a rule, COUNT (6) times
	@out=$$(mktemp); trap 'rm -f "$$out"' EXIT; \
	$(GO) test -run '^$$' -bench . -benchmem -count $(COUNT) ./topics/msgkey ./internal/rules | tee "$$out" >&2; \
	! grep -q '^FAIL' "$$out" && $(GO) run $(BENCHSTAT) -filter '.unit:(B/s OR sec/op OR allocs/op)' "$$out"

# A test of each kind, where services stop, start, are killed, frozen and put
# back, with all of them in containers.
DOCKER_SLICE := TestFirstCopyResendChangedResend|TestKillAndRestart|TestRedisGoesAndComes|TestPostgresDownAndBack|$\
TestPostgresPutBackUnderARunningFilter|TestBrokerRestarts|TestCommitAnsweredWithAnError

.PHONY: docker-slice
docker-slice: ## run a slice of the tests with services in containers
	$(GO) test -tags docker -count=1 ./internal/devservices/docker
	DEDUP_TEST_SERVICES=docker $(GO) run ./internal/devservices/cmd/with-services -- \
		$(GO) test -count=1 -timeout 15m -run '^($(DOCKER_SLICE))$$' ./integration

# Takes a Docker engine with Compose; a project, volumes and ports of its own.
.PHONY: compose-check
compose-check: build ## run docker-compose.yml with its sample, down and up again
	deploy/compose/check.sh

# A campaign of faults: three brokers, a standby, Sentinel, proxies between. Takes
# what make test needs.
SEED ?=
MINUTES ?= 30
.PHONY: chaos
chaos: services-if-needed ## inflict faults on real services for MINUTES (30), drawn from SEED, and judge every record
	@$(GO) run ./integration/chaos -minutes $(MINUTES) $(if $(SEED),-seed $(SEED)) $(ARGS)

# Real Redis and PostgreSQL, a stand-in for Kafka: CRASH_VISITS and CRASH_SEED
# are read by the test.
VISITS ?= 10000
.PHONY: crash
crash: services-if-needed ## break the filter at every step, VISITS times, from SEED
	@GOGC=400 CRASH_VISITS=$(VISITS) CRASH_SEED=$(or $(SEED),$(shell date +%s)) $(GO) run ./internal/devservices/cmd/with-services -- \
		$(GO) test -tags faultpoints -count=1 -v -timeout 30m -run '^TestCrashAtEveryStep$$' ./integration/crash

# What the suite is worth: takes minutes, and needs what make test needs.
.PHONY: controls
controls: services-if-needed ## break each rule of the product and see its test fail
	@$(GO) run ./internal/devservices/cmd/with-services -- $(GO) run ./integration/controls $(ARGS)

.PHONY: fuzz
fuzz: ## run each fuzz test for FUZZTIME (30s)
	@grep -rlE '^func Fuzz' --include='*_test.go' . | sort | while read -r file; do \
		for name in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$$file"); do \
			echo "$$(dirname "$$file") $$name, $(FUZZTIME)"; \
			$(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "$$(dirname "$$file")" </dev/null || exit 1; \
		done; \
	done
