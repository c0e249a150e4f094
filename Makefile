# make demo and make test need nothing but Python 3.11 or later (with pip and venv) and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help demo test check format gallery clean

help:
	@echo "make demo    set up, then twist and stretch a block of 32,768 vertices"
	@echo "make test    set up, then run the tests"
	@echo "make check   set up, then check format, style and types"
	@echo "make format  set up, then format the sources"
	@echo "make gallery set up, then solve and draw every scene for docs/gallery"
	@echo "make clean   delete the environment, results and caches"

demo: $(VENV)/.installed
	$(BIN)/supple run scenes/twist.toml --overwrite

# One group of folders after the other: a process keeps the code of all kernels that it has compiled in memory.
GROUPS := "algebra kernels support api model postprocess test_*.py" "collision contact grid" "solvers" \
  "linear ordering problem solve materials terms" "scene meshes gradients" "datasets io runs view" \
  "cli live examples papers"

test: $(VENV)/.installed_dev
	@failed=0; for group in $(GROUPS); do echo "Testing $$group ..."; \
	  $(BIN)/python -m pytest -n auto $$(for part in $$group; do echo tests/$$part; done) || failed=1; \
	done; exit $$failed

check: $(VENV)/.installed_dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/.installed_dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

gallery: $(VENV)/.installed_dev
	$(BIN)/python benchmarks/gallery.py

clean:
	rm -rf $(VENV) results build dist .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(call install,.)
	@touch $@

$(VENV)/.installed_dev: pyproject.toml | $(BIN)/python
	$(call install,.[dev])
	@touch $@ $(VENV)/.installed

define install
@echo "Installing supple and its dependencies into $(VENV) ..."
@if command -v uv >/dev/null; then uv pip install --quiet --python $(BIN)/python -e '$(1)'; \
else $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '$(1)'; fi
endef

$(BIN)/python:
	@if command -v uv >/dev/null; then uv venv --quiet --python '>=3.11' $(VENV); exit; fi; \
	command -v $(PYTHON) >/dev/null || { \
	  echo "There is no $(PYTHON). Install Python 3.11 or later, or name it: make demo PYTHON=/path/to/python3"; exit 1; }; \
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "supple needs Python 3.11 or later; $(PYTHON) is $$($(PYTHON) --version). Name a newer one: make demo PYTHON=python3.12"; exit 1; }; \
	$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "$(PYTHON) cannot create environments. On Debian or Ubuntu: apt-get install python3-venv"; exit 1; }; \
	$(PYTHON) -m venv $(VENV)
