# The few things people do. Everything is complete on a machine with Python >= 3.11 and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RECORDS := $(shell grep -l '"kernels"' reports/cpu/*.json reports/h200/*.json)
CODE := gelu_verify reference_kernels tests

.PHONY: help venv verify gate verify-all selftest test lint format schema site bench release-check clean

help: ## Show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 15

venv: $(STAMP) ## Create .venv with the command installed

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "make venv: got $$($(PYTHON) --version), expected Python 3.11 or newer. Set PYTHON=python3.12."; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

verify: venv ## Run the gate, then check the elementwise kernels fully and linear_gelu in short; reports/latest
	@status=0; \
	$(MAKE) gate || status=1; \
	for operator in gelu gelu_backward; do \
	  $(BIN)/gelu-verify check --all --operator $$operator \
	    --json reports/latest/$$operator.json --markdown reports/latest/$$operator.md || status=1; \
	done; \
	$(BIN)/gelu-verify check torch-linear-gelu torch-compile-linear-gelu cpp-linear-gelu triton-linear-gelu --format bf16 --sweep quick --timeout 120 \
	  --json reports/latest/linear_gelu.json --markdown reports/latest/linear_gelu.md || status=1; \
	$(BIN)/gelu-verify selftest --quick --json reports/latest/selftest.json || status=1; \
	echo "Written: reports/latest/*.json, reports/latest/*.md"; exit $$status

gate: venv ## Hold the kernels of pyproject.toml to their contracts and baselines
	$(BIN)/gelu-verify gate --json reports/latest/gate.json --markdown reports/latest/gate.md --junit reports/latest/gate.xml

verify-all: venv ## Check every registered kernel at the standard depth: about an hour on 2 cores
	$(BIN)/gelu-verify check --all --timeout 600 --json reports/latest/results.json --markdown reports/latest/summary.md

selftest: venv ## Run the catalogue of defects and renew its reports
	$(BIN)/gelu-verify selftest --json reports/selftest/cpu.json
	$(BIN)/python -m gelu_verify.report.publish reports/selftest/cpu.json

test: venv ## Run the test suite
	$(BIN)/python -m pytest -n 2 --dist worksteal -q

lint: venv ## Run ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: venv ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

schema: venv ## Write the JSON schema of results.json
	$(BIN)/python -m gelu_verify.report.schema

site: venv ## Renew the site of the committed records; reports/site
	rm -rf reports/site
	$(BIN)/gelu-verify report $(RECORDS) reports/selftest/cpu.json $(wildcard reports/convergence/*.json) -o reports/site

bench: venv ## Print the figures of the speed benchmarks
	$(BIN)/python -m benchmarks.check_speed
	$(BIN)/python -m benchmarks.gate_speed
	$(BIN)/python -m benchmarks.site_speed

release-check: venv ## Fail if the reference's source has no certificate of its own
	$(BIN)/python -m gelu_verify.reference.certificate check

clean: ## Remove what the targets made
	rm -rf $(VENV) reports/latest .pytest_cache .mypy_cache .ruff_cache *.egg-info
