# Everything is installed into .venv and node_modules of this folder; only `test-deps` touches the system.

PYTHON ?= python3
BIN := .venv/bin
MARKETS ?= 400

# A package is installed only if its hash is in requirements/. The project builds with the hatchling of tools.txt.
INSTALL := $(BIN)/uv pip install --quiet --compile-bytecode --require-hashes
INSTALL_PROJECT := $(BIN)/uv pip install --quiet --compile-bytecode --no-deps --no-build-isolation
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --custom-compile-command "make lock"
# Each package.json has an .npmrc beside it that keeps download addresses out of the lock file.
NODE_PROGRAMS := tests/node/node_modules/ready clients/typescript/node_modules/ready
LOCK_NPM := npm install --package-lock-only --ignore-scripts --silent --no-audit --no-fund

# Tests wait for disks, servers and clocks, so there are more of them at work than processors.
JOBS ?= $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN) * 3 / 2 )))

# The tests make and delete some hundred thousand small files. A disk makes that take minutes: use memory if it has room.
SHARED_MEMORY := $(shell df --output=avail -k /dev/shm 2>/dev/null | tail -n 1)
ifeq ($(TMPDIR)$(shell test 0$(SHARED_MEMORY) -gt 6000000 && echo roomy),roomy)
export TMPDIR := /dev/shm
endif

# Set where images are built; it would have Python compile every library at every start.
unexport PYTHONDONTWRITEBYTECODE

# A bare Debian, and a registry; its package would start it at every boot, for the whole network.
DEBIAN := /var/cache/public-markets-tests/debian.tar
REGISTRY := /var/cache/public-markets-tests/usr/bin/docker-registry

.DEFAULT_GOAL := help
.PHONY: help demo serve test test-all lint types tests campaigns structure schema coverage bless bench bench-deps test-deps lock wheel client-python client-typescript notes image clean

help:  ## Show the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

demo: .venv/run  ## Make up a database of markets and build every answer of the read API into output/
	@$(BIN)/public-markets demo --markets $(MARKETS)

serve: .venv/run  ## Serve output/ on http://127.0.0.1:8000 through the router that is deployed
	@$(BIN)/public-markets serve

test: lint types tests  ## Check style, types and behaviour in some minutes: all but the long tests

test-all: campaigns  ## Run the long tests at full length: kills, races, second-opinion stores

lint: .venv/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/test
	$(BIN)/mypy

tests: .venv/test $(NODE_PROGRAMS)
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile

# Neighbouring tests share servers, so each worker gets a run of them; idle workers then take over from busy ones.
campaigns: .venv/test $(NODE_PROGRAMS)
	TEST_ALL=1 $(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m campaign

structure: .venv/test  ## Count lines of code and arrows, and show which names, functions and modules to look at
	@$(BIN)/python -m tests.support.structure

schema: .venv/config-schema.json  ## Make the schema by which an editor checks config.yaml

coverage: .venv/test $(NODE_PROGRAMS)  ## Show which lines no test reaches
	$(BIN)/coverage run -m pytest -q
	$(BIN)/coverage combine -q
	$(BIN)/coverage report

bless: .venv/test  ## Accept what changed in the golden trees, the API, the types of the clients and the table of settings
	BLESS=1 $(BIN)/python -m pytest -q tests/acceptance/test_golden.py tests/api/test_changelog.py tests/test_docs.py tests/clients/test_models.py

bench: .venv/test .venv-bench/ready  ## Measure beside other ways; ONLY="build publish" picks parts, OPTIONS go along
	$(BIN)/python -m tests.bench $(ONLY) $(OPTIONS)

test-deps:  ## Install the system packages the tests can use (Debian, as root)
	apt-get update -qq
	apt-get install -y -qq --no-install-recommends postgresql pgbouncer util-linux nginx libnginx-mod-http-js njs systemd \
	  radosgw ceph-mon ceph-osd ceph-common chromium fonts-dejavu-core fish zsh gcc libc6-dev git curl jq
	apt-get install -y -qq --no-install-recommends buildah debootstrap
	$(MAKE) $(DEBIAN) $(REGISTRY)
	command -v npm >/dev/null || apt-get install -y -qq --no-install-recommends nodejs npm

$(DEBIAN):
	rm -rf $(@D)/root && mkdir -p $(@D)
	debootstrap --variant=minbase --include=python3,python3-venv bookworm $(@D)/root > $(@D)/log || { tail $(@D)/log; exit 1; }
	tar --create --file $(@D)/part --directory $(@D)/root . && rm -rf $(@D)/root && mv $(@D)/part $@

$(REGISTRY):
	mkdir -p $(@D)
	cd $(@D) && apt-get download -qq -o APT::Sandbox::User=root docker-registry && dpkg-deb --extract docker-registry_*.deb $(dir $(DEBIAN)) && rm docker-registry_*.deb
	touch $@

bench-deps: test-deps  ## Install what `make bench` compares with, too (Debian, as root)
	apt-get install -y -qq --no-install-recommends rclone

lock: .venv/bin/uv  ## Update the lock files from pyproject.toml and package.json; OPTIONS=--upgrade takes the latest versions
	$(LOCK) $(OPTIONS) pyproject.toml --all-extras --output-file requirements/run.txt
	$(LOCK) $(OPTIONS) pyproject.toml --all-extras --group dev --constraints requirements/run.txt --output-file requirements/test.txt
	$(LOCK) $(OPTIONS) --group tools --constraints requirements/test.txt --output-file requirements/tools.txt
	$(LOCK) $(OPTIONS) --group sbom --output-file requirements/sbom.txt
	$(LOCK) $(OPTIONS) --group bench --output-file requirements/bench.txt
	$(LOCK_NPM) --prefix tests/node
	$(LOCK_NPM) --prefix clients/typescript

wheel: .venv/run  ## Build dist/public_markets-*.whl, to install elsewhere, and the sdist
	rm -f dist/public_markets-*
	$(BIN)/python -m hatchling build --directory dist

client-python: .venv/run  ## Build dist/public_markets_client-*.whl, the client for Python, and its sdist
	rm -f dist/public_markets_client-*
	cd clients/python && ../../$(BIN)/python -m hatchling build --directory ../../dist

client-typescript: clients/typescript/node_modules/ready  ## Build clients/typescript/packed/*.tgz, the client for TypeScript and JavaScript
	cd clients/typescript && rm -rf dist packed && mkdir packed && npm run --silent build && npm pack --silent --pack-destination packed

# Health checks are part of Docker's format of images only.
BUILD ?= buildah build --format docker
VERSION = $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' generator/__init__.py)

notes:  ## Print the changelog's section of TAG, such as v0.1.0, which must be this version
	@test "$(TAG)" = "v$(VERSION)" || { echo "the tag is $(TAG), but generator/__init__.py says $(VERSION)" >&2; exit 1; }
	@awk -v title="## $(VERSION)" '/^## / {on = $$0 == title || index($$0, title " ") == 1; next} on {print; n++} END {exit !n}' \
	  CHANGELOG.md || \
	  { echo "CHANGELOG.md has no section ## $(VERSION)" >&2; exit 1; }

REVISION ?= $(shell git rev-parse HEAD)
SOURCE ?= unknown

image: wheel  ## Build the container image public-markets:VERSION; BUILD="docker build" uses another builder
	$(BUILD) --file Containerfile --build-arg VERSION=$(VERSION) --build-arg REVISION=$(REVISION) \
	  --build-arg SOURCE=$(SOURCE) --tag public-markets:$(VERSION) $(OPTIONS) .

clean:  ## Remove what was installed, built and made up
	rm -rf clients/typescript/node_modules clients/typescript/dist clients/typescript/packed
	rm -rf .venv .venv-bench .bench tests/node/node_modules dist output demo.db .mypy_cache .pytest_cache .ruff_cache .hypothesis

.venv/bin/uv: requirements/tools.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed; name one with PYTHON=…")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $<
	@touch $@

.venv/run: .venv/bin/uv pyproject.toml requirements/run.txt
	$(INSTALL) --python $(BIN)/python --requirements requirements/run.txt
	$(INSTALL_PROJECT) --python $(BIN)/python --editable .
	@touch $@

.venv/test: .venv/bin/uv pyproject.toml requirements/test.txt
	$(INSTALL) --python $(BIN)/python --requirements requirements/test.txt
	$(INSTALL_PROJECT) --python $(BIN)/python --editable .
	@touch $@ .venv/run

.venv/config-schema.json: .venv/run $(wildcard generator/config/*.py)
	@$(BIN)/python -c 'import json; from generator.config.settings import Config; print(json.dumps({"$$schema": "http://json-schema.org/draft-07/schema#", **Config.model_json_schema()}, indent=2))' > $@.part
	@mv $@.part $@

# What needs these programs says so and is skipped where there is no npm.
tests/node/node_modules/ready: tests/node/package.json tests/node/package-lock.json
	@if command -v npm >/dev/null; then npm ci --prefix tests/node --silent --no-audit --no-fund; else mkdir -p $(@D); fi
	@touch $@

clients/typescript/node_modules/ready: clients/typescript/package.json clients/typescript/package-lock.json
	@if command -v npm >/dev/null; then npm ci --prefix clients/typescript --ignore-scripts --silent --no-audit --no-fund; else mkdir -p $(@D); fi
	@touch $@

.venv-bench/ready: .venv/bin/uv requirements/bench.txt
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python .venv-bench
	$(INSTALL) --python .venv-bench/bin/python --requirements requirements/bench.txt
	@touch $@
