# `make` alone lists the targets. PYTHON=... chooses the Python that .venv is made with.

BIN := .venv/bin
READY := .venv/ready
CONSOLE := src/headgate/service/console_files/index.html

.DEFAULT_GOAL := help
.PHONY: help run test unit check format clean

help:
	@echo "make run     set up, then run a newsroom on this machine, and everything asked of it"
	@echo "make test    set up, then run the tests"
	@echo "make unit    set up, then run the unit tests only, with fewer examples, in a minute and a half"
	@echo "make check   set up, then lint, types, import rules, and the examples in the docs"
	@echo "make format  set up, then format the code and fix what ruff can fix"
	@echo "make clean   remove .venv and everything that was built"

$(READY): pyproject.toml pins.txt
	@PYTHON="$(PYTHON)" scripts/setup

$(CONSOLE): $(READY) scripts/build_console $(shell find console -type f -not -path '*/node_modules/*' -not -name openapi.json -not -name schema.d.ts)
	@scripts/build_console || echo "console: it is not built; the service has no pages" >&2

run: $(READY) $(CONSOLE)
	@JAVA_HOME="$$(dirname "$$(dirname "$$(scripts/find_java)")")" $(BIN)/headgate demo

test: $(READY) $(CONSOLE)
	@scripts/get_test_servers
	$(BIN)/pytest -n 2 --dist worksteal --durations=10 --ignore=tests/docs tests

unit: $(READY)
	HYPOTHESIS_PROFILE=quick $(BIN)/pytest -n 2 -m "not integration and not postgres" --ignore=tests/docs tests

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict src
	$(BIN)/lint-imports
	scripts/build_console check
	$(BIN)/pytest tests/docs

format: $(READY)
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

clean:
	rm -rf .venv build dist console/node_modules src/headgate/service/console_files .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
