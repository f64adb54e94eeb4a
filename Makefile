# `make` alone lists the targets. PYTHON picks the interpreter .venv is made from.

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3 python3.13 python3.12 python3.11
SPEC_DIR ?= ../shared/spec
LOCK_EXTRAS := --extra aws --extra dev --extra demo --extra docs --extra iceberg --extra server --extra spark

SUPPORTED := -c 'import sys; sys.exit(sys.version_info < (3, 11))'

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help setup java demo tour test test-ui browser pictures docs lint format bench interop torture lock clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(VENV)/.ready ## Create .venv and install what requirements.lock pins
	@$(if $(filter setup,$(MAKECMDGOALS)),echo "$(VENV) is ready",:)

# An existing environment is kept as long as its Python is new enough. uv, at the version and
# hashes of the lock, installs several times faster than pip; pip takes over where it cannot.
$(VENV)/.ready: requirements.lock pyproject.toml
	@if ! $(BIN)/python $(SUPPORTED) 2>/dev/null; then \
		python=; \
		for candidate in $(PYTHON); do \
			if "$$candidate" $(SUPPORTED) 2>/dev/null; then python=$$candidate; break; fi; \
		done; \
		if [ -z "$$python" ]; then \
			echo "error: Python 3.11 or newer is needed (tried: $(PYTHON)); name one with: make setup PYTHON=/path/to/python3" >&2; \
			exit 1; \
		fi; \
		echo "setting up $(VENV) (a minute or two the first time)"; \
		"$$python" -m venv --clear $(VENV); \
	else \
		echo "bringing $(VENV) up to date"; \
	fi
	@awk '/^uv==/ { found = 1 } found { print } found && !/\\$$/ { exit }' requirements.lock > $(VENV)/uv.lock
	@echo "  installing the packages of requirements.lock"
	@$(BIN)/python -m pip install --quiet --require-hashes -r $(VENV)/uv.lock 2>/dev/null || true
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock 2>/dev/null \
		|| $(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	@echo "  installing mooring"
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps -e . 2>/dev/null \
		|| $(BIN)/python -m pip install --quiet --no-deps -e .
	@touch $@

# Spark runs on Java; what is missing is told in one line, before anything begins.
java: setup
	@$(BIN)/python -c 'import sys; from mooring.spark.java import main; sys.exit(main())'

demo: java ## A year of flights as weekly changes: merged, compacted, published (examples/demo.py)
	@$(BIN)/python examples/demo.py

tour: setup ## What a catalog does, step by step, in the terminal (mooring tour)
	@$(BIN)/mooring tour

test: java ## Run the fast tests
	@$(BIN)/pytest tests -q -n 2 --dist loadgroup -m "not torture and not interop and not browser"

# Tests of pages need a browser; where none is there, Debian's is installed if that is allowed.
browser: setup
	@$(BIN)/python -m tests.ui.browser.chromium

test-ui: browser ## Test the pages in Chromium; build/screens keeps a picture of each
	@$(BIN)/pytest tests/ui/browser -q -n 2 --dist loadgroup

lint: setup ## Check style, formatting, types and import boundaries
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: setup ## Format the code and apply the safe fixes
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

pictures: java browser ## Make the pictures of the README from the demo's catalog
	@PYTHONPATH=.:examples $(BIN)/python docs/pictures.py

# The theme's notice to its users on every build is no warning of this one. With --quiet, mkdocs would
# count no warnings, and --strict end nothing.
docs: setup ## Build the site of the documentation into build/site; a warning ends it
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# ONLY="listing tables" measures these anew and renders what is kept of the others;
# FIGURE="words" measures and prints the figures whose name has these words; QUICK=1 takes small sizes.
bench: java ## Run the benchmarks and write bench/report.md (ONLY=... some, FIGURE=... one figure)
	@$(BIN)/python -m bench $(ONLY) $(if $(FIGURE),--figure "$(FIGURE)") $(if $(QUICK),--quick)

# What ran and what did not is kept in build/interop; REPORT=1 makes a page of it, failures too.
# SPEC_DIR holds the texts of the specifications.
interop: java ## Test against official clients and real servers (TESTS=... some, REPORT=1 the page)
	@status=0; \
	SPEC_DIR="$(abspath $(SPEC_DIR))" $(BIN)/python -m pytest $(or $(TESTS),tests) -q -n 2 --dist loadgroup \
		-p tests.interop.gathering -m "interop or peer" || status=$$?; \
	$(if $(REPORT),$(BIN)/python -m tests.interop.matrix,:); exit $$status

# MINUTES is how long random operations go on after the tests, SEED what they begin with; REPORT=1
# makes a page of what they came to.
torture: java ## Run the long tests of concurrency and crashes, then random ones (MINUTES=..., SEED=...)
	@$(BIN)/pytest tests -q -n 2 --dist loadgroup -m torture; tested=$$?; \
	$(BIN)/python -m tests.torture --minutes $(or $(MINUTES),2) $(if $(SEED),--seed $(SEED)) \
		$(if $(REPORT),--report docs/reference/torture.md) && exit $$tested

lock: setup ## Resolve requirements.lock anew from pyproject.toml (UPGRADE=1 takes newer versions)
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header \
		--python-version 3.11 $(if $(UPGRADE),--upgrade) $(LOCK_EXTRAS) -o requirements.lock pyproject.toml

clean: ## Remove caches, build products and the demo's lake (.venv stays)
	@rm -rf build dist site lake bench/results/quick .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +
