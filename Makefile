# The same targets for people and for CI. Bare `make` prints them.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=
# Tests mostly wait for processes, so three side by side suit two cores. JOBS=0 runs them one after the other.
JOBS ?= 3
# A thread a core for each small matrix costs more than it brings.
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS := 1

.PHONY: help setup up test check crash-test proto screenshot pictures lock clean

help: ## print these targets
	@grep -hE '^[a-z%-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  make %-14s %s\n", $$1, $$2}'

setup: $(VENV)/.ready ## make the virtual environment and install the locked dependencies and the package (idempotent)

$(VENV)/.ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "XPulse needs Python >= 3.11, this is " + sys.version.split()[0] + "; run: make PYTHON=python3.12")'
	@test -x $(BIN)/python || { echo "making $(VENV) ..."; $(PYTHON) -m venv $(VENV); }
	@echo "installing the locked dependencies ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

up: setup ## run the whole pipeline on this machine with a live view (Ctrl-C stops it); ARGS="--simulate 2x8" passes options
	@exec $(BIN)/xpulse up $(ARGS)

test: setup ## run every test; integration tests skip with a reason where a server cannot run (XPULSE_REQUIRE=kafka,influxdb makes that a failure)
	@# First the whole line, alone: it tells of a leak in time, and a machine that is busy with other tests would be what it measures.
	@if [ -n "$(ARGS)" ]; then exec $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup $(ARGS); fi; \
	line=0; $(BIN)/python -m pytest tests/integration/line || line=$$?; \
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup --ignore tests/integration/line; exit $$line

check: setup ## lint, types, import contracts, generated code and docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m schemas.generate --check
	$(BIN)/python -m docs.generate --check

crash-test: setup ## kill -9 every process in turn against real Kafka and InfluxDB, and print what was lost (nothing)
	@$(BIN)/python -m tests.crash $(ARGS)

bench-%: setup ## run one benchmark (bench-line) and write bench/out/NAME.json
	@mkdir -p bench/out
	@$(BIN)/python -m bench.$* $(ARGS)

proto: setup ## regenerate the protobuf code from schemas/telemetry/v1/*.proto
	@$(BIN)/python -m schemas.generate

screenshot: setup ## make the README's picture from a real run of the simulated fleet
	@$(BIN)/python -m docs.screenshot

pictures: setup ## make the pictures of the guides from the simulated fleet, the shipped detectors and models
	@$(BIN)/python -m docs.pictures $(ARGS)

lock: ## pin every dependency again (needs uv)
	uv pip compile --universal --python-version 3.11 --all-extras --group dev pyproject.toml --no-header \
	  --no-emit-index-url --generate-hashes --custom-compile-command "make lock" --upgrade -o requirements.lock
	bash deploy/lock.sh

clean: ## remove the environment and every cache
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist *.egg-info
