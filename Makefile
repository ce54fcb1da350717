# Every target does its own set-up: once in .venv (.venv-flash for test-flash), again only when what it installs changed.
# PYTHON may name the interpreter; otherwise the first of these that is 3.11 to 3.13 and can make a virtual environment.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	"$$python" -c 'import ensurepip, sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null \
	&& echo "$$python" && break; done)
VENV := .venv
FLASH_VENV := .venv-flash
PIP := -m pip --disable-pip-version-check --quiet
# One more than there are cores, for tests wait for compilers; and a module's tests on one worker, which builds once what they share.
SPREAD := -n $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1) --dist loadscope

.PHONY: demo test test-flash test-cutlass lint corpus web web-check clean
.DELETE_ON_ERROR:

demo: $(VENV)/.ready
	$(VENV)/bin/autostamp demo

test: $(VENV)/.ready
	$(VENV)/bin/python -m pytest $(SPREAD) --ignore=tests/flash --ignore=tests/cutlass

test-flash: $(FLASH_VENV)/.ready
	$(FLASH_VENV)/bin/python -m pytest -n auto tests/flash

test-cutlass: $(VENV)/.ready
	$(VENV)/bin/python -m pytest -n 2 tests/cutlass

lint: $(VENV)/.ready
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

corpus: $(VENV)/.ready
	$(VENV)/bin/python -m tests.corpus

# The report's page. What they install is pinned by web/package-lock.json; node comes from PATH, or else from PyPI.
web: web/node_modules/.ready
	PYTHON=$(abspath $(VENV))/bin/python web/npm.sh run --silent build

web-check: web/node_modules/.ready
	PYTHON=$(abspath $(VENV))/bin/python web/npm.sh run --silent types
	PYTHON=$(abspath $(VENV))/bin/python web/npm.sh run --silent test
	PYTHON=$(abspath $(VENV))/bin/python web/npm.sh run --silent check

clean:
	rm -rf $(VENV) $(FLASH_VENV) web/node_modules build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache

$(VENV)/.ready: pyproject.toml
	@test -n "$(PYTHON)" || { echo "no Python from 3.11 to 3.13 with venv was found; name one with PYTHON=..." >&2; exit 1; }
	@echo "setting up $(VENV)"
	$(PYTHON) -m venv --clear $(VENV)
	$(VENV)/bin/python $(PIP) install -e '.[dev]'
	@touch $@

$(FLASH_VENV)/.ready: pyproject.toml tests/flash/requirements.txt
	@test -n "$(PYTHON)" || { echo "no Python from 3.11 to 3.13 with venv was found; name one with PYTHON=..." >&2; exit 1; }
	@echo "setting up $(FLASH_VENV) (torch and FlashAttention)"
	$(PYTHON) -m venv --clear $(FLASH_VENV)
	$(FLASH_VENV)/bin/python $(PIP) install torch==2.13.0
	$(FLASH_VENV)/bin/python $(PIP) install -r tests/flash/requirements.txt -e '.[dev]'
	@touch $@

web/node_modules/.ready: web/package.json web/package-lock.json $(VENV)/.ready
	@command -v npm >/dev/null || $(VENV)/bin/python $(PIP) install -e '.[web]'
	PYTHON=$(abspath $(VENV))/bin/python web/npm.sh ci --ignore-scripts
	@touch $@
