# evenpool: what one types. `make help` lists it.

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
PREFIX  ?= /usr/local
DESTDIR ?=
SYSCONFDIR ?= /etc

# The race detector needs a C compiler. Where there is none, the tests run without it and say so.
RACE = $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)

.DEFAULT_GOAL := build
.PHONY: build demo test lint format-check vet staticcheck bench bench-alloc bench-probe bench-sources promises install clean help
.NOTPARALLEL: # measurements side by side would measure one another

build: ## build bin/evenpool, a static binary
	@echo "building bin/evenpool $(VERSION) (the first time, Go fetches the modules of go.mod)"
	@start=$$(date +%s) && \
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-X main.version=$(VERSION)' -o bin/evenpool ./cmd/evenpool && \
	echo "built bin/evenpool in $$(( $$(date +%s) - start )) s"

demo: build ## daemon, judge, test proxies and store in one go, without a network; ARGS=--exit ends by itself
	@bin/evenpool demo $(ARGS)

test: ## all tests, with the race detector where there is a C compiler; brings a Redis if there is none
	@echo "testing everything: go test $(strip $(RACE) -shuffle=on) ./..."
	@$(if $(RACE),:,echo "WITHOUT the race detector: it needs a C compiler (Debian: apt-get install gcc libc6-dev) and CGO_ENABLED=1")
	@.ci/with-redis.sh go test $(RACE) -vet=off -shuffle=on ./...

lint: format-check vet staticcheck ## gofmt, go vet and staticcheck

format-check:
	@echo "gofmt -l ."
	@unformatted=$$(gofmt -l .) && if [ -n "$$unformatted" ]; then echo "not formatted (gofmt -w FILE):"; echo "$$unformatted"; exit 1; fi

vet:
	CGO_ENABLED=0 go vet ./...

staticcheck:
	CGO_ENABLED=0 go tool staticcheck ./...

bench: bench-alloc bench-probe bench-sources ## all measurements; a line per figure: name, value, unit

bench-alloc: ## allocation through the socket against the classic script run directly, each figure against its bar; fails where one is missed
	@EVENPOOL_TEST_STORE=server .ci/with-redis.sh go run ./alloc/bench $(ARGS)

bench-probe: ## probing beside a bare prober, against a lab of 10,000, each figure against its bar; fails where one is missed
	@go run ./probe/bench $(ARGS)

bench-sources: ## parsing and its memory, offering to Redis, each against its bar; fails where one is missed
	@EVENPOOL_TEST_STORE=server .ci/with-redis.sh go run ./sources/bench $(ARGS)

promises: ## each promise that evenpool makes, with the tests that hold it; fails where one has none
	@.ci/promises.sh

install: ## binary, unit, sysusers, example: PREFIX=/usr/local DESTDIR=; starts nothing
	@[ -x bin/evenpool ] || $(MAKE) build
	install -D -m 0755 bin/evenpool $(DESTDIR)$(PREFIX)/bin/evenpool
	install -D -m 0644 systemd/evenpool.service $(DESTDIR)$(PREFIX)/lib/systemd/system/evenpool.service
	sed -i 's|/usr/local/|$(PREFIX)/|g' $(DESTDIR)$(PREFIX)/lib/systemd/system/evenpool.service
	install -D -m 0644 systemd/evenpool.sysusers.conf $(DESTDIR)$(PREFIX)/lib/sysusers.d/evenpool.conf
	install -D -m 0644 systemd/evenpool.example.yaml $(DESTDIR)$(SYSCONFDIR)/evenpool/evenpool.example.yaml
	install -D -m 0644 systemd/evenpool.acl $(DESTDIR)$(PREFIX)/share/doc/evenpool/evenpool.acl
	install -D -m 0644 systemd/INSTALL.md $(DESTDIR)$(PREFIX)/share/doc/evenpool/INSTALL.md
	@echo "installed $$(bin/evenpool version); systemd/INSTALL.md says what comes next"

clean: ## remove bin/
	rm -rf bin

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
