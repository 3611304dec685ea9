# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
BLENDER_PYTHON ?= python3.11  # Blender's module is built for this one only
VENV ?= .venv
BIN := $(VENV)/bin
WORKERS ?= 2
export OMP_NUM_THREADS ?= 1

.PHONY: demo test lint docs package bench test-blender clean

demo: $(VENV)/.core  ## Three characters, three sentences: GLB, BVH, films and reports behind one page, out/demo/index.html.
	$(BIN)/jigdoll batch examples/demo.csv --out out/demo --runner pool

# Two processes of one thread each; they take tests from each other, so that both end together.
test: $(VENV)/.dev tests/validator/node_modules lint docs package  ## Style, types, layers, manual, wheel, all tests.
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

docs: $(VENV)/.docs  ## The manual as web pages in site/; a broken link or reference fails.
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

package: $(VENV)/.dev  ## The wheel, built, installed into an empty environment and tried from another folder.
	$(BIN)/python tools/package.py

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/pyright

bench: $(VENV)/.dev  ## The quick form of every benchmark.
	$(BIN)/pip install -q -r requirements-bench.txt -c requirements-dev.lock
	for file in $(wildcard benchmarks/*.py); do echo "== $$file"; $(BIN)/python $$file --quick || exit 1; done

test-blender: $(VENV)/.dev .venv-blender/.done  ## Blender as the judge of what we read and write.
	JIGDOLL_BLENDER_PYTHON=$(CURDIR)/.venv-blender/bin/python $(BIN)/python -m pytest tests/formats

# torch first and alone, by its exact version: a looser wish would fetch the newest build with its CUDA packages.
$(VENV)/.core: requirements.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q torch==2.13.0
	$(BIN)/pip install -q -r requirements.lock
	$(BIN)/pip install -q --no-deps -e .
	touch $@

$(VENV)/.dev: $(VENV)/.core requirements-dev.lock
	$(BIN)/pip install -q -r requirements-dev.lock
	touch $@

$(VENV)/.docs: $(VENV)/.dev requirements-docs.lock
	$(BIN)/pip install -q -r requirements-docs.lock
	touch $@

# The Khronos validator is optional: without npm its tests skip and say so.
tests/validator/node_modules:
	-cd tests/validator && npm install --silent --no-audit --no-fund --no-package-lock

.venv-blender/.done:
	$(BLENDER_PYTHON) -m venv .venv-blender
	.venv-blender/bin/pip install -q bpy==5.0.1
	touch $@

clean:
	rm -rf out runs site .pytest_cache .ruff_cache .hypothesis
