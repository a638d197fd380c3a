# Needs make and Python 3.11 or newer; everything else is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST_FLAGS ?= -n 2 --dist worksteal

# pytest rewrites and compiles every test: 5 seconds at each start, of each worker, unless it is kept
export PYTHONDONTWRITEBYTECODE =

.PHONY: test test-deep test-elsewhere test-gpu test-package lint format bench scale demo picture docs shell clean

test: $(VENV)/.dev
	$(BIN)/python -m pytest -m 'not deep' $(PYTEST_FLAGS)

# what is too long for every change, and with XLA's own options what `make test` runs on NumPy or compiles quickly
test-deep: $(VENV)/.dev
	GRAPHC_TEST_XLA=1 GRAPHC_TEST_SECONDS=5 $(BIN)/python -m pytest -m 'deep or not own_xla' $(PYTEST_FLAGS)

# the whole suite as other processors, thread counts, orders and seeds would run it: tests/settings.py has the table
test-elsewhere: $(VENV)/.dev
	$(BIN)/python -m tests.settings $(SETTINGS) -- $(PYTEST_FLAGS)

# every op, its gradients and a training step on the GPU that JAX has
test-gpu: $(VENV)/.dev
	JAX_PLATFORMS=cuda,cpu $(BIN)/python -m pytest tests/lowering/test_devices.py

# the wheel and the source archive in fresh environments; PYTHONS="python3.12 python3.13" tries others
test-package: $(VENV)/.dev
	$(BIN)/python -m tests.packaging $(PYTHONS)

lint: $(VENV)/.dev
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/imports.py
	$(BIN)/python benchmarks/eager_engine.py
	$(BIN)/python benchmarks/kernels.py
	$(BIN)/python benchmarks/operators.py
	$(BIN)/python benchmarks/lowering.py
	$(BIN)/python benchmarks/capture.py
	$(BIN)/python benchmarks/passes.py
	$(BIN)/python benchmarks/calls.py
	$(BIN)/python benchmarks/parts_of_a_call.py
	$(BIN)/python benchmarks/training_steps.py
	$(BIN)/python benchmarks/sizes.py
	$(BIN)/python benchmarks/linear_algebra.py

# one program on one device, on eight and in two processes: the same losses, and what is exchanged
scale: $(VENV)/.dev
	$(BIN)/python -m benchmarks.scale report
	@echo "open report/scale/index.html"

demo: $(VENV)/.demo
	$(BIN)/python examples/digits.py
	@echo "open report/index.html"

# the site: tutorials and reports are run; build/site/index.html opens without a server
docs: $(VENV)/.docs
	$(BIN)/python -m docs.site

# docs/graph.svg, the picture in README.md
picture: $(VENV)/.dev
	$(BIN)/python examples/chain.py

# a shell in which `python`, `graphc` and `pytest` are those of .venv
shell: $(VENV)/.dev
	PATH="$(abspath $(BIN)):$$PATH" $${SHELL:-sh}

clean:
	rm -rf $(VENV) report build dist *.egg-info .pytest_cache .ruff_cache .benchmarks .hypothesis

# A stamp for each set of extras: pip runs again only when pyproject.toml has changed. It would compile all modules of
# all packages, which takes longer than to install them; most are never imported, the others are compiled then. What it
# leaves beside the packages makes pytest rewrite these, too, as if they were tests.
$(VENV)/.%: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --editable '.[$*]'
	@rm -rf graphc.egg-info
	$(BIN)/python -m compileall -q graphc eager compare
	@touch $@
