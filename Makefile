PYTHON ?= python3.11
VENV ?= .venv
BIN := $(VENV)/bin
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test test-slow soak lint bench clean

demo: $(VENV)/.core
	$(BIN)/tempernet sweep

test: $(VENV)/.test
	$(BIN)/python -m pytest -m "not slow" --numprocesses auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

test-slow: $(VENV)/.test
	$(BIN)/python -m pytest -m slow

soak: $(VENV)/.test
	$(BIN)/python -m pytest -m slow -s --durations=0 tests/e2e/test_faults.py tests/e2e/test_task_faults.py tests/e2e/test_processes.py tests/e2e/test_soak.py

lint: $(VENV)/.test $(VENV)/.lint
	$(BIN)/ruff check src tests bench scripts
	$(BIN)/ruff format --check src tests bench scripts
	$(BIN)/mypy

bench: $(VENV)/.bench
	$(BIN)/python bench/run.py

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache build

$(VENV)/.core: pyproject.toml constraints.txt
	command -v $(PYTHON) >/dev/null || { echo "Python 3.11 is needed; set PYTHON=... to its command" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) -e .
	touch $@

$(VENV)/.test $(VENV)/.lint $(VENV)/.bench: $(VENV)/.%: $(VENV)/.core
	$(INSTALL) -e '.[$*]'
	touch $@
