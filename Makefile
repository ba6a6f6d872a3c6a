# One command for each task; `make help` lists them.
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

# Install with uv if it exists: it takes a quarter of the time of pip. Like pip, it uses the certificates of the system,
# because a company's network may have its own (UV_NATIVE_TLS is the name in uv < 0.10).
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

demo: $(if $(wildcard $(READY)),$(READY),$(VENV)/.demo)  ## Install the demonstration, and run it on real data
	$(BIN)/stratal demo

test: $(READY)  ## Run the fast tier of the tests (minutes)
	$(PYTEST) -m "not slow"

test-slow: $(READY)  ## Run all tests in full: engines, long simulations, papers, attacks (hours)
	STRATAL_TESTS=slow $(PYTEST)
	$(MAKE) attack

attack: $(READY)  ## Damage files, kill draws, fuzz calls (SHARE= share of the attempts, default 1)
	$(BIN)/python -m tests.attack $(or $(SHARE),1)

audit: $(READY)  ## Check the installed packages for known vulnerabilities
	$(INSTALL) --group audit
	$(BIN)/pip-audit --skip-editable

coverage: $(READY)  ## Run the fast tier and measure its branch coverage (at least 95 %)
	$(PYTEST) -m "not slow" --cov --cov-report=term:skip-covered

mutants: $(READY)  ## Run mutation tests of the kernels (KERNEL='stratal.strata.*')
	$(INSTALL) --group mutants
	$(BIN)/mutmut run $(KERNEL)
	$(BIN)/mutmut results

lint: $(READY)  ## Check style, format, types and density
	$(BIN)/ruff check src tests benchmarks papers
	$(BIN)/ruff format --check src tests benchmarks papers
	$(BIN)/mypy
	$(BIN)/python -m tests.architecture.density

structure: $(READY)  ## Count subpackages, imports, cycles, lines and calls (SOURCES= other folders to compare)
	$(BIN)/python -m tests.architecture.structure $(SOURCES) src/stratal

papers: $(READY)  ## Reproduce the papers (PAPERS_DATA= a folder of data; writes reproduced-PAPER/ and docs/papers)
	for paper in fogliato kumar-raj stratppi open-questions; do \
	  $(BIN)/python -m papers $$paper --docs docs/papers $(PAPERS_OPTIONS) || exit 1; done

bench: $(READY)  ## Run the benchmarks against other packages (minutes; writes benchmarks/RESULTS.md)
	$(BIN)/python -m benchmarks.run

docs: $(READY)  ## Build the site into build/site, offline; a warning is an error
	$(BIN)/python docs/make_pages.py
	$(BIN)/python docs/build_site.py

figures: $(READY)  ## Draw the figures of the documentation (minutes)
	$(BIN)/python docs/figures.py

build: $(READY)  ## Build wheel and sdist, install the wheel alone, and run it
	rm -rf dist
	$(BIN)/python -m build --quiet
	$(PYTHON) -m venv build/wheel
	build/wheel/bin/pip install --quiet --disable-pip-version-check dist/*.whl
	build/wheel/bin/stratal --help

clean:  ## Remove the files of the other commands
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist mutants
