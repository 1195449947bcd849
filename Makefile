# `make demo` and `make test` each do all the set-up on a fresh machine; the second time they start at once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test lint docs format clean

demo: $(VENV)/.demo
	$(BIN)/askwise demo

test: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The site, in build/docs/index.html; every example and every Python block of its pages is run.
docs: $(VENV)/.docs
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -b html docs build/docs
	$(BIN)/python docs/check_site.py build/docs

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build docs/gallery docs/reference/api .pytest_cache .mypy_cache .ruff_cache

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing askwise into $(VENV) (about a minute, once)"
	$(INSTALL) --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml research/pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing askwise, askwise-bench and their test tools into $(VENV) (a few minutes, once)"
	$(INSTALL) --editable '.[dev]' --editable ./research
	@touch $@ $(VENV)/.demo

$(VENV)/.docs: pyproject.toml research/pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing askwise and what builds its site into $(VENV) (a few minutes, once)"
	$(INSTALL) --editable '.[docs]' --editable ./research
	@touch $@
