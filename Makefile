# On a fresh machine: `make studio` or `make demo`. Each creates .venv and installs into it, once.

VENV := .venv
PY := $(VENV)/bin/python
NEW_ENOUGH := import sys, venv; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$p -c '$(NEW_ENOUGH)' 2>/dev/null && { echo $$p; break; }; done)
export PIP_DISABLE_PIP_VERSION_CHECK = 1
export NO_MKDOCS_2_WARNING = 1

.PHONY: help demo quick test test-slow test-gpu lint studio docs docs-serve pictures clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.installed  ## train a small model on the built-in corpus (a minute or two on a laptop CPU)
	@$(VENV)/bin/tui-transformer run --preset demo

studio: $(VENV)/.installed  ## open the studio
	@$(VENV)/bin/tui-transformer

quick: $(VENV)/.installed-dev  ## ruff, mypy, import contracts and the tests nearest to your change, in 90 seconds
	@$(PY) -m tests.quick

test: $(VENV)/.installed-dev  ## everything that CI runs
	$(PY) -m tests.lint -m pytest -n auto --dist worksteal -m "not slow" -p tests.quick.durations

test-slow: $(VENV)/.installed-dev  ## the slow tests
	$(PY) -m pytest -m "slow and not release"

DEVICE ?= auto
test-gpu: $(VENV)/.installed  ## test everything on a GPU in at most ten minutes; writes gpu-proof.json
	$(VENV)/bin/tui-transformer doctor --gpu --device $(DEVICE)

lint: $(VENV)/.installed-dev  ## ruff, mypy and the import contracts
	@$(PY) -m tests.lint

docs: $(VENV)/.installed-docs  ## build the documentation site into site/
	$(PY) -m mkdocs build --strict

docs-serve: $(VENV)/.installed-docs  ## serve the site at http://127.0.0.1:8000 and reload it as pages change
	$(PY) -m mkdocs serve --livereload

pictures: $(VENV)/.installed-dev  ## redraw docs/*.svg for a release; first trains runs missing from runs/ (half an hour)
	$(PY) -m tests.tui_transformer.draw_pictures
	$(PY) -m pytest -m release tests/e2e

$(VENV)/.python:
	@$(or $(PYTHON),false) -c '$(NEW_ENOUGH)' 2>/dev/null \
		|| { echo "Python 3.11 or newer is needed; name one with: make PYTHON=/path/to/python3 demo" >&2; exit 1; }
	@echo "creating $(VENV) with $(PYTHON)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.installed: $(VENV)/.python pyproject.toml constraints.txt
	@echo "installing what tui-transformer stands on (once; torch is large)"
	@$(PY) -m pip install --quiet --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	@echo "installing what its tests need (once)"
	@$(PY) -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	@touch $@

$(VENV)/.installed-docs: $(VENV)/.installed
	@echo "installing what the documentation site needs (once)"
	@$(PY) -m pip install --quiet --constraint constraints.txt --editable ".[docs]"
	@touch $@

clean:  ## remove .venv
	rm -rf $(VENV)
