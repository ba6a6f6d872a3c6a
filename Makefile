# One command for each thing one does; `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PAPERS_DATA ?= $(wildcard ../shared/data)
PAPERS_OPTIONS = $(if $(PAPERS_DATA),--data $(PAPERS_DATA))
READY := $(VENV)/.ready
PYTEST = $(BIN)/python -m pytest -q -n 2
export OMP_NUM_THREADS := 1

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow attack audit coverage mutants lint structure papers bench docs figures build clean

help:  ## List the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

# What is installed with: uv where it is there, which takes a quarter of pip's time. It trusts what the machine
# trusts, as pip does: a company's network may have a certificate of its own (the first name is that of uv < 0.10).
export UV_NATIVE_TLS := true
export UV_SYSTEM_CERTS := true
UV := $(shell command -v uv)
INSTALL = $(if $(UV),$(UV) pip install --quiet --python $(BIN)/python,$(BIN)/pip install --quiet --disable-pip-version-check)

$(BIN)/python:
	$(if $(UV),$(UV) venv --quiet --seed --python $(PYTHON) $(VENV),$(PYTHON) -m venv $(VENV))

$(READY): pyproject.toml | $(BIN)/python
	$(if $(UV),,$(INSTALL) --upgrade "pip>=25.1")
	$(INSTALL) --editable ".[all,demo,spark,postgres]" --group dev
	@touch $(READY)

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(INSTALL) --editable ".[demo]"
	@touch $(VENV)/.demo

demo: $(if $(wildcard $(READY)),$(READY),$(VENV)/.demo)  ## Set up what the demonstration needs, and run the whole trip on real data
	$(BIN)/stratal demo

test: $(READY)  ## Run the fast tier of the tests (minutes)
	$(PYTEST) -m "not slow"

test-slow: $(READY)  ## Run all tests in full: every engine, long simulations, the papers, attacks (hours)
	STRATAL_TESTS=slow $(PYTEST)
	$(MAKE) attack

attack: $(READY)  ## Damage files, kill draws, fuzz calls (SHARE= of the tries, 1 by default)
	$(BIN)/python -m tests.attack $(or $(SHARE),1)

audit: $(READY)  ## Look for known vulnerabilities of the packages that are installed
	$(INSTALL) --group audit
	$(BIN)/pip-audit --skip-editable

coverage: $(READY)  ## Run the fast tier and measure the branches that it reaches (at least 95 %)
	$(PYTEST) -m "not slow" --cov --cov-report=term:skip-covered

mutants: $(READY)  ## Change the kernels line by line and count what the tests notice (KERNEL='stratal.strata.*')
	$(INSTALL) --group mutants
	$(BIN)/mutmut run $(KERNEL)
	$(BIN)/mutmut results

lint: $(READY)  ## Check style, format and types
	$(BIN)/ruff check src tests benchmarks papers
	$(BIN)/ruff format --check src tests benchmarks papers
	$(BIN)/mypy

structure: $(READY)  ## Count subpackages, imports, cycles, lines and calls (SOURCES= other folders to compare)
	$(BIN)/python -m tests.architecture.structure $(SOURCES) src/stratal

papers: $(READY)  ## Reproduce the papers (PAPERS_DATA= a folder of data; writes reproduced-PAPER/ and docs/papers)
	for paper in fogliato kumar-raj stratppi open-questions; do \
	  $(BIN)/python -m papers $$paper --docs docs/papers $(PAPERS_OPTIONS) || exit 1; done

bench: $(READY)  ## Measure against the peers (minutes; writes benchmarks/RESULTS.md)
	$(BIN)/python -m benchmarks.run

docs: $(READY)  ## Build the site into build/site, offline; a warning ends it
	$(BIN)/python docs/make_pages.py
	$(BIN)/python docs/build_site.py

figures: $(READY)  ## Draw the figures of the documentation again (minutes)
	$(BIN)/python docs/figures.py

build: $(READY)  ## Build wheel and sdist, install the wheel by itself, and run it
	rm -rf dist
	$(BIN)/python -m build --quiet
	$(PYTHON) -m venv build/wheel
	build/wheel/bin/pip install --quiet --disable-pip-version-check dist/*.whl
	build/wheel/bin/stratal --help

clean:  ## Remove what the other commands made
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist mutants
