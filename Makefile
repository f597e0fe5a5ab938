# Each target sets up what it needs in .venv and is quick when it is there.
#   make run                the main job: no GPU, no key
#   make test               all tests
#   make check              format, lint, types, fast tests
#   make soak               MINUTES of honest and hostile candidates through one judge, then what they left
#   make golden             write the golden files anew (read the diff before you commit it)
#   make TORCH=system ...   build on the torch and triton of $(PYTHON) (ROCm, CUDA) and change neither

PYTHON ?= python3
TORCH ?= cpu
VENV ?= .venv
PROBLEM ?= amd/fp8-mm
ATTEMPTS ?= 24
SEED ?= 1
MINUTES ?= 20
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: run test check soak golden setup clean

setup:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 ...")'
	@$(PYTHON) kernelwright/install.py --venv $(VENV) --torch $(TORCH) --system-packages bubblewrap g++

run: setup
	@$(BIN)/kernelwright run $(PROBLEM) --attempts $(ATTEMPTS) --seed $(SEED)

test: setup
	@$(PYTHON) kernelwright/install.py --venv $(VENV) --torch $(TORCH) --system-packages bubblewrap g++ chromium podman runc
	@$(BIN)/python -m pytest

check: setup
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not slow" -n 2

soak: setup
	@$(BIN)/python -m tests.soak --minutes $(MINUTES) --seed $(SEED)

golden: setup
	@$(BIN)/python -m tests.golden

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache build *.egg-info
