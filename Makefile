# Everything a user runs; `make help` lists it. Each target sets up what it needs in .venv.

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)

# The environment is remade when the requirements, the project's own metadata or its place change.
SETUP := echo "$(CURDIR)"; cat host_tests/requirements*.txt; sed '/^\[tool.pytest/,$$d' pyproject.toml
STAMP := $(VENV)/made-$(shell { $(SETUP); } | cksum | tr -d ' ')
PIP := $(PY) -m pip -qq --disable-pip-version-check --no-input

.DEFAULT_GOAL := help
.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*## .*/\1/p' Makefile)

help: ## list what can be run
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(STAMP) ## set up the environment all others use (they do so themselves)

$(STAMP):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "Needs Python 3.11 or newer, which '$(PYTHON)' is not. Debian: apt-get install python3; else: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "Needs Python's venv module. Debian: apt-get install python3-venv" >&2; exit 1; }
	@echo "Setting up $(VENV) (once, about half a minute)"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(PIP) install -r host_tests/requirements.txt && \
	 $(PIP) install --no-deps --target $(VENV)/stubs -r host_tests/requirements-stubs.txt && \
	 $(PIP) install --no-deps --no-build-isolation -e . || \
	  { echo "pip could not install what the lines above name; is the package index reachable?" >&2; exit 1; }
	@touch $@

run: $(STAMP) ## play one whole round on a virtual table, in real time, and show it
	@$(PY) host_tests/run.py

test: $(STAMP) ## test everything that needs no hardware
	@$(PY) -m pytest -q

test-long: $(STAMP) ## run whole what `make test` thins out
	@$(PY) -m pytest -q -m long -n auto --dist loadgroup --durations 0 --durations-min 1

explore: $(STAMP) ## visit every state the interlock can reach, some 40 s; a broken rule as scenario: ARGS="--scenario-out DIR"
	@$(PY) host_tests/explore.py $(ARGS)

mutants: $(STAMP) ## put small mistakes into the firmware; the unit tests must notice: ARGS="rules --step 5"
	@$(PIP) install -r host_tests/requirements-mutants.txt
	@$(PY) host_tests/mutants.py $(ARGS)

score: $(STAMP) ## enter the score of build/mutants.json into the README
	@$(PY) tools/score.py

check: $(STAMP) ## formatting, lint, types, cross-compilation, byte budgets, documents
	@$(PY) tools/check.py

scenario: $(STAMP) ## play scenario files on both interpreters: FILES="a.scn b.scn"
	@test -n "$(FILES)" || { echo 'Say which: make scenario FILES="host_tests/scenarios/one_round.scn"' >&2; exit 2; }
	@$(PY) host_tests/play.py $(FILES)

sim: $(STAMP) ## play on a live virtual table in the browser: ARGS="--lever --help"
	@exec $(PY) tools/sim $(ARGS)

picture: $(STAMP) ## remake the README's picture of the running table (needs chromium)
	@$(PY) tools/sim/picture.py

bench: $(STAMP) $(VENV)/bench/made ## measure the figures of SPEC 12, peers included (needs valgrind)
	@$(PY) host_tests/bench

$(VENV)/bench/made: host_tests/bench/requirements.txt host_tests/bench/package.json $(STAMP)
	@$(PIP) install --no-deps --upgrade --target $(VENV)/bench -r host_tests/bench/requirements.txt
	@cp host_tests/bench/package.json $(VENV)/bench/
	@cd $(VENV)/bench && npm install --silent --no-audit --no-fund >/dev/null 2>&1 || \
	  echo "npm is missing or reaches no registry: heap in 32-bit words will not be measured" >&2
	@touch $@

image: $(STAMP) ## make the release artefacts in build/image
	@$(PY) -m shakerctl.image

flash: $(STAMP) ## write MicroPython to a board: PORT=/dev/ttyUSB0 MICROPYTHON=ESP32_GENERIC.bin
	@test -n "$(PORT)" && test -n "$(MICROPYTHON)" || \
	  { echo 'Say where and what: make flash PORT=/dev/ttyUSB0 MICROPYTHON=ESP32_GENERIC.bin' >&2; exit 2; }
	@shakerctl flash --port "$(PORT)" --image "$(MICROPYTHON)" $$(test -t 0 || echo --yes)

deploy: $(STAMP) ## put firmware (and settings) on a board: PORT=/dev/ttyUSB0 [SETTINGS=settings.json]
	@test -n "$(PORT)" || { echo 'Say where: make deploy PORT=/dev/ttyUSB0' >&2; exit 2; }
	@shakerctl deploy --port "$(PORT)" $(if $(SETTINGS),--settings "$(SETTINGS)")

bench-test: $(STAMP) ## prove at the bench that a board is wired right: PORT=/dev/ttyUSB0
	@test -n "$(PORT)" || { echo 'Say where: make bench-test PORT=/dev/ttyUSB0' >&2; exit 2; }
	@shakerctl bench-test --port "$(PORT)" --report build/bench

pins: $(STAMP) ## remake what follows from the pin table in board/
	@$(PY) board/generate.py

docs: $(STAMP) ## remake the pages that follow from the firmware
	@$(PY) tools/docs.py

figures: $(STAMP) ## enter the figures of build/bench.json into the README
	@$(PY) tools/figures.py

clean: ## remove everything that was made
	@rm -rf $(VENV) build .pytest_cache .ruff_cache .hypothesis tools/*.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
