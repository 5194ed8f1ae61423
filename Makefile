# Two commands do the main things: `make run` and `make test`. `make help` lists the others.
# Needs Python 3.11+ and make; everything else goes into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
INSTALLED_BENCH := $(VENV)/.installed-bench
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# What is handed to `powercut run`, to pytest and to the benchmarks: make run ARGS="--seconds 10"
ARGS ?=
# Tests start hundreds of processes and import the runtime anew for each mutant: without bytecode
# on the disk, every one of them compiles all modules.
unexport PYTHONDONTWRITEBYTECODE
# Processes for the tests. One for each core; ARGS="-n 0" for a debugger.
TESTS := -n auto --dist worksteal
# The disk and the runtime need 95 % of lines and branches, so their tests run under coverage, and
# no others: campaigns would reach lines that no test asserts about, and coverage makes tests slow.
COVERING := $(addprefix tests/,conformance/ litmus/ unit/disk/ unit/durable/ unit/providers/ \
	unit/recording/ unit/system/)
# These take two to three times as long under coverage, and hardly a line is reached by them alone.
UNTRACED := $(addprefix tests/,conformance/test_names.py litmus/test_allowed_outcomes.py \
	litmus/test_beyond_end.py litmus/test_brute_force.py litmus/test_lattice.py \
	litmus/test_lazy.py litmus/test_lazy_mutants.py litmus/test_observed_on_linux.py \
	litmus/test_precision.py litmus/test_recordings.py litmus/test_sensitivity.py \
	unit/recording/test_command_output.py unit/recording/test_every_flip.py \
	unit/system/agents/test_odd_tool_calls.py unit/system/test_barrier_budget.py \
	unit/system/test_idle_runtime.py unit/system/test_open_files.py)
# These run in a copy of the tree without the runtime: tests/meta/test_engine_alone.py.
ALONE := tests/snapshots/ $(addprefix tests/unit/,cli/ fuzz/ world/)
# These fork for each check of a crash image. A fork copies the page tables of the process, so they
# have processes of their own, which have collected few tests.
FORKING := $(addprefix tests/,controls/ unit/explorer/ unit/fuse/ unit/interpose/)
# All other tests, so that the gate runs each test once. The longest are first: no core waits for
# one of them at the end.
OTHERS := tests/meta/ $(UNTRACED) tests/unit/cli/test_calibrate.py \
	$(filter-out %/__pycache__/ tests/meta/ $(COVERING) $(ALONE) $(FORKING) tests/unit/, \
	$(wildcard tests/*/ tests/unit/*/))
PACKAGES := sim faults oracles system powercut crash_tests benchmarks tests

# The length of `make nightly`: make nightly SECONDS=14400
SECONDS ?= 3600

.PHONY: help run test gate lint format cover others bench stress nightly clean

help: ## list the commands
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 10

run: $(INSTALLED) ## crash the whole runtime for about a minute; closes with a table
	$(BIN)/powercut run $(ARGS)

test: $(INSTALLED) ## all tests
	$(BIN)/python -m pytest $(TESTS) $(ARGS)

gate: lint others ## the checks of a pull request, with a sample of the long tests; make -j2 lints meanwhile

others: cover
	$(BIN)/python -m pytest $(TESTS) $(FORKING) $(ARGS)
	$(BIN)/python -m pytest $(TESTS) $(OTHERS) $(ARGS)

lint: $(INSTALLED) ## lint rules, format, types, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(PACKAGES)
	$(BIN)/lint-imports --no-cache

cover: $(INSTALLED) ## lines and branches that tests of the disk and the runtime reach; both need 95 %
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest $(TESTS) $(COVERING) $(addprefix --ignore=,$(UNTRACED)) $(ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --fail-under=95
	$(BIN)/coverage report --include='system/durable/*' --format=total --fail-under=95

bench: $(INSTALLED_BENCH) ## the benchmarks, each beside its peer
	$(BIN)/python -m benchmarks $(ARGS)

stress: $(INSTALLED) ## all tests with the long ones, under the profile nightly
	HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-nightly} \
		$(BIN)/python -m pytest $(TESTS) --run-stress --timeout=0 $(ARGS)

nightly: $(INSTALLED) ## random campaigns for SECONDS, from the corpus of earlier nights
	.ci/nightly $(SECONDS)

format: $(INSTALLED) ## rewrite the files as the linter wants them
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## forget everything that can be made again; examples and failures of campaigns stay
	rm -rf $(VENV) dist build htmlcov .coverage .coverage.* .import_linter_cache .mypy_cache \
		.pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps are newer than the two files that they were installed from, or are made again.
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit( \
		"powercut needs Python 3.11 or newer, and $(PYTHON) is " + sys.version.split()[0] \
		+ "; name another one: make PYTHON=python3.12")'
	@$(BIN)/python -c '' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV)
	@# setuptools builds atomicwrites, which has no wheel.
	$(PIP) install --constraint constraints.txt hatchling setuptools
	$(PIP) install --constraint constraints.txt --no-build-isolation --editable '.[dev]'
	@touch $@

$(INSTALLED_BENCH): $(INSTALLED)
	$(PIP) install --constraint constraints.txt --no-build-isolation --editable '.[dev,bench]'
	@touch $@
