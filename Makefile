# Two commands on a fresh machine: `make demo` and `make test`. Both create .venv and install into it once.

VENV := .venv
PY := $(VENV)/bin/python
PYTHON ?= $(shell command -v python3.13 || command -v python3.12 || command -v python3.11 || command -v python3)
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: demo test test-slow lint studio clean

demo: $(VENV)/.installed  ## train a small model on the built-in corpus: two minutes on a laptop's CPU
	@$(VENV)/bin/tui-transformer run --preset demo

studio: $(VENV)/.installed  ## open the studio
	@$(VENV)/bin/tui-transformer

test: $(VENV)/.installed-dev lint  ## everything that CI runs
	$(PY) -m pytest -n auto -m "not slow"

test-slow: $(VENV)/.installed-dev  ## the long proofs
	$(PY) -m pytest -m slow

lint: $(VENV)/.installed-dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
		|| { echo "Python 3.11 or newer is needed; name one with: make PYTHON=/path/to/python3 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.installed: $(VENV)/.python pyproject.toml constraints.txt
	$(PY) -m pip install --quiet --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(PY) -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	@touch $@

clean:
	rm -rf $(VENV)
