# The one list of developer jobs. `make help` prints it.

# A Python that really runs, because a name on the PATH may be an empty promise; the machine's own one first.
FITS   := import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for name in python3 python3.15 python3.14 python3.13 python3.12 python3.11; do \
            $$name -c '$(FITS)' 2>/dev/null && { echo $$name; break; }; done)
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

# Exact versions, for what is installed and for what builds it. No absolute path: pip would split it at its spaces.
export PIP_CONSTRAINT := constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Many tests start the command anew, which would compile all of it each time.
unexport PYTHONDONTWRITEBYTECODE

# Tests that wait for a slow or silent target leave their processor to another one.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 2)')

.DEFAULT_GOAL := help
.PHONY: help setup conformance test check ci format contract coverage prove variants variants-sample foreign served chaos chaos-sample mutate published docs site serve bench \
        wheel pins clean

help: ## list the jobs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer with venv is needed, and none was found on the PATH. (Debian has venv in a package of its own, python3-venv.)"; exit 1; }
	@$(PYTHON) -c '$(FITS)' 2>/dev/null || { echo "$(PYTHON) is not Python 3.11 or newer with venv. Say which to use: make PYTHON=/path/to/python3.12"; exit 1; }
	@echo "Setting up $(VENV) with $(PYTHON) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@$(BIN)/python -m compileall -q -j 0 conformance tests  # or each process of the first run would
	@touch $(READY)

setup: $(READY) ## make the environment with pinned versions

conformance: $(READY) ## hold the embedded reference against the specification
	@$(BIN)/conformance run $(if $(SEED),--seed $(SEED))

test: $(READY) ## run all tests of the engine, the reference and the suite
	@$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadgroup --no-loadscope-reorder selftest

check: $(READY) ## lint, format, types, layers, private names, and the contract's own consistency
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/yamllint --strict .
	@$(BIN)/python -m conformance.contract
	@$(BIN)/python -m pytest --quiet selftest/runner/test_private_names.py

ci: ## all that a change must pass, as .ci/run does on a clean checkout (half an hour)
	@$(MAKE) --no-print-directory check
# One seed, so that a case drawn for the first time stops nobody whose change did not cause it.
	@$(MAKE) --no-print-directory conformance SEED=1
	@$(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory prove
# Other variants with each commit, and other networks: what begins within 20 seconds of each. Both mostly wait.
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target variants-sample chaos-sample SECONDS_FOR_SAMPLE=20

format: $(READY) ## put code into the project's form
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

contract: $(READY) ## check the contract alone
	@$(BIN)/python -m conformance.contract

coverage: $(READY) ## show how many requirements the suite verifies
	@$(BIN)/conformance coverage

prove: $(READY) ## put every fault on the reference and show that each is seen
	@$(BIN)/conformance prove

variants: $(READY) ## show that no variant raises an alarm, with every test: build/published/legal.json (an hour and a half)
	@$(BIN)/python -m conformance.proof.variants build/published/legal.json

variants-sample: $(READY) ## the same for a few minutes, on a sample that changes with the commit
	@$(BIN)/python -m conformance.proof.variants --seconds $(or $(SECONDS_FOR_SAMPLE),200) build/legal-sample.json

foreign: $(READY) ## run the whole suite against each fault that was written without knowledge of the tests (half an hour)
	@$(BIN)/python -m conformance.proof.foreign build/published/foreign.json

served: $(READY) ## look for each written fault on a served reference, as operators meet it (half an hour)
	@$(BIN)/python -m conformance.proof.served build/published/served.json

chaos: $(READY) ## run the whole suite through networks that fail, and look for faults: build/published/chaos.json (half an hour)
	@$(BIN)/python -m conformance.proof.chaos build/published/chaos.json

chaos-sample: $(READY) ## the same for a few minutes, on a sample that changes with the commit (SECONDS_FOR_SAMPLE=200)
	@$(BIN)/python -m conformance.proof.chaos --faults 10 --seconds $(or $(SECONDS_FOR_SAMPLE),200) build/chaos-sample.json

mutate: $(READY) ## let an outside tool alter the reference, and see which the suite notices (SAMPLE=40)
	@$(BIN)/python -m pip install --quiet --editable '.[dev,mutation]'
	@$(BIN)/python -m conformance.proof.mutation --sample $(or $(SAMPLE),40)

published: $(READY) ## renew reports/published: the compliance report of the reference, the figures of the proof, and a page about them
	@$(BIN)/conformance run --seed 1 --corpus none --out build/published
	@$(BIN)/conformance prove --out build/published/proof
	@mkdir -p reports/published && cp build/published/compliance.html reports/published/
	@$(BIN)/python -m conformance.proof.published build/published reports/published/figures.json

docs: $(READY) ## write the documentation that is made from data
	@$(BIN)/python -m conformance.contract.open_places

site: $(READY) ## build the guide as a site with search: build/site/index.html
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "build/site/index.html"

serve: $(READY) ## serve the reference on port 8080, with its profile in target.yaml
	@$(BIN)/conformance serve --profile-out target.yaml

bench: $(READY) ## measure against the peers, in one run
	@for script in benchmarks/*.py; do $(BIN)/python $$script || exit 1; done

wheel: $(READY) ## build the wheel into dist/
	@$(BIN)/python -m build --wheel --outdir dist .

pins: ## renew constraints.txt from the newest versions that fit
	@rm -rf $(VENV) && $(PYTHON) -m venv $(VENV)
	@PIP_CONSTRAINT= $(BIN)/python -m pip install --quiet --editable '.[dev]' hatchling editables
	@$(BIN)/python -m pip freeze --exclude-editable > constraints.txt
	@touch $(READY)

clean: ## remove the environment and everything built
	@rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache
