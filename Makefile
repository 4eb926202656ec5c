# Everything runs in .venv, made here from Python 3.11 or 3.12 (PYTHON=... chooses another interpreter to make it from).

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
# With this set nothing is ever compiled, and every process of Airflow takes twice as long to start.
unexport PYTHONDONTWRITEBYTECODE

SUPPORTED := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))
PYTHON ?= $(firstword $(foreach each,python3 python3.11 python3.12,$(shell $(each) -c '$(SUPPORTED)' 2>/dev/null && echo $(each))) python3)
BIN := .venv/bin
JOB ?= gpu
# Tests wait for processes and timers much of their time, so one more runs than there are cores.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')
WORLD ?=

.PHONY: help install demo ui test check
help:
	@echo 'make install   make .venv with all that is needed'
	@echo 'make demo      backfill three days against a local Google (JOB=gpu, tpu, flex or spark; WORLD=plenty for another world)'
	@echo 'make ui        the same Airflow, left running to be looked at'
	@echo 'make test      all tests'
	@echo 'make check     formatting, lint, types'

install: .venv/installed

.venv/installed: pyproject.toml constraints.txt
	@[ -x $(BIN)/python ] || $(PYTHON) -c '$(SUPPORTED)' || { echo "Python 3.11 or 3.12 is needed; $(PYTHON) is $$($(PYTHON) --version 2>&1). Try: make $(or $(MAKECMDGOALS),install) PYTHON=/path/to/python3.11" >&2; exit 1; }
	[ -x $(BIN)/python ] || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python --compile-bytecode --constraints constraints.txt --editable '.[dev]'
	@touch $@

demo: install
	$(BIN)/python -m demo.run --job $(JOB) --world "$(WORLD)"

ui: install
	$(BIN)/python -m demo.ui --world "$(WORLD)"

test: install
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder

check: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
