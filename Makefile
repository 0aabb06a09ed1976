# Everything is installed into .venv and node_modules of this folder; only `test-deps` touches the system.

PYTHON ?= python3
# The one tool that is not in uv.lock, because it reads it.
UV_VERSION := 0.13.8
BIN := .venv/bin
MARKETS ?= 400

# Set where images are built; it would have Python compile every library at every start.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo serve test lint types tests coverage bless bench bench-deps test-deps clean

help:  ## Show the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

demo: .venv/run  ## Make up a database of markets and build every answer of the read API into output/
	@$(BIN)/public-markets demo --markets $(MARKETS)

serve: .venv/run  ## Serve output/ on http://127.0.0.1:8000 through the router that is deployed
	@$(BIN)/public-markets serve

test: lint types tests  ## Check style, types and behaviour

lint: .venv/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/test
	$(BIN)/mypy

tests: .venv/test tests/node/node_modules/ready
	$(BIN)/python -m pytest -n logical --dist loadfile

coverage: .venv/test tests/node/node_modules/ready  ## Show which lines no test of this process reaches
	$(BIN)/coverage run -m pytest -q
	$(BIN)/coverage combine -q
	$(BIN)/coverage report

bless: .venv/test  ## Accept what changed in the golden tree and the config schema
	BLESS=1 $(BIN)/python -m pytest -q tests/acceptance/test_golden.py tests/config/test_loader.py

bench: .venv/test .venv-bench/ready tests/bench/node/node_modules/ready  ## Measure beside other ways; ONLY="build publish" picks parts, OPTIONS go along
	$(BIN)/python -m tests.bench $(ONLY) $(OPTIONS)

test-deps:  ## Install the system packages the tests can use (Debian, as root)
	apt-get update -qq
	apt-get install -y -qq --no-install-recommends postgresql util-linux nginx libnginx-mod-http-js njs systemd \
	  radosgw ceph-mon ceph-osd ceph-common chromium fonts-dejavu-core gcc libc6-dev
	command -v npm >/dev/null || apt-get install -y -qq --no-install-recommends nodejs npm

bench-deps: test-deps  ## Install what `make bench` compares with, too (Debian, as root)
	apt-get install -y -qq --no-install-recommends rclone wrk

clean:  ## Remove what was installed, built and made up
	rm -rf .venv .venv-bench .bench tests/node/node_modules tests/bench/node/node_modules output demo.db .mypy_cache .pytest_cache .ruff_cache .hypothesis

.venv/bin/uv:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed; name one with PYTHON=…")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

.venv/run: .venv/bin/uv pyproject.toml uv.lock
	$(BIN)/uv sync --quiet --frozen --compile-bytecode --inexact --no-dev --all-extras
	@touch $@

.venv/test: .venv/bin/uv pyproject.toml uv.lock
	$(BIN)/uv sync --quiet --frozen --compile-bytecode --inexact --all-extras
	@touch $@ .venv/run

# What needs these programs says so and is skipped where there is no npm.
tests/node/node_modules/ready: tests/node/package.json tests/node/package-lock.json
	@if command -v npm >/dev/null; then npm ci --prefix tests/node --silent --no-audit --no-fund; else mkdir -p $(@D); fi
	@touch $@

.venv-bench/ready: .venv/bin/uv tests/bench/requirements.txt
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python .venv-bench
	$(BIN)/uv pip install --quiet --python .venv-bench/bin/python --requirements tests/bench/requirements.txt
	@touch $@

tests/bench/node/node_modules/ready: tests/bench/node/package.json tests/bench/node/package-lock.json
	@if command -v npm >/dev/null; then npm ci --prefix tests/bench/node --silent --no-audit --no-fund; else mkdir -p $(@D); fi
	@touch $@
