# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0

# What `make run` runs; every variable can be given on the command line.
TARGET  ?= auto#     bmv2, embedded or auto
FABRIC  ?= auto#     mininet, loopback or auto
WORKERS ?= 4
GRAPH   ?= digits#   digits, karate, or a file
ROUNDS  ?= 3
SLOTS   ?= 256#      aggregators that a block may use
RUN_OPTIONS ?=#      more options of `switchgnn run`

DATA    ?= digits#   what `make train` trains on
EPOCHS  ?= 20
TRAIN_OPTIONS ?=#    more options of `switchgnn train`
SOAK_MINUTES ?= 1

GRPC_PORT ?= 9559#   P4Runtime of the switch that `make up` keeps and `make shell` opens
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.DEFAULT_GOAL := help

help:  ## list what can be made
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(VENV)/run  ## a real graph's neighbour sums through the switch, compared with a reference
	$(BIN)/switchgnn run --target $(TARGET) --fabric $(FABRIC) --workers $(WORKERS) \
	    --graph $(GRAPH) --rounds $(ROUNDS) --slots $(SLOTS) $(RUN_OPTIONS)

train: $(VENV)/train  ## a GCN on the whole graph, its neighbour sums through the switch
	$(BIN)/switchgnn train --data $(DATA) --workers $(WORKERS) --epochs $(EPOCHS) \
	    --target $(TARGET) --fabric $(FABRIC) $(TRAIN_OPTIONS)

up: $(VENV)/run  ## the same, then keep the switch running until Ctrl-C
	$(BIN)/switchgnn run --target $(TARGET) --fabric $(FABRIC) --workers $(WORKERS) \
	    --graph $(GRAPH) --rounds $(ROUNDS) --slots $(SLOTS) --keep --grpc-port $(GRPC_PORT) \
	    $(RUN_OPTIONS)

shell: $(VENV)-shell/ready  ## p4runtime-shell on the switch that `make up` keeps
	$(VENV)-shell/bin/python -m p4runtime_sh --grpc-addr 127.0.0.1:$(GRPC_PORT) --device-id 0 \
	    --election-id 0,1

doctor: $(VENV)/run  ## what is installed, what is missing, and what mends it
	$(BIN)/switchgnn doctor

soak: $(VENV)/run  ## runs with random graphs and faults, for SOAK_MINUTES
	$(BIN)/switchgnn soak --minutes $(SOAK_MINUTES) --target $(TARGET) --fabric $(FABRIC)

test: $(VENV)/test  ## lint, types, and all tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest

bench: $(VENV)/test  ## the benchmarks; ratios measured side by side
	$(BIN)/python -m bench

p4: $(VENV)/run  ## compile the P4 program (needs p4c)
	$(BIN)/python -m switchgnn.p4src.build

clean:  ## remove everything that can be made again
	rm -rf $(VENV) $(VENV)-shell build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/run: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[mininet]'
	@touch $@

$(VENV)/test: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[mininet,test]'
	@touch $@ $(VENV)/run

$(VENV)/train: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[mininet,training]'
	@touch $@ $(VENV)/run

# p4runtime-shell pins a protobuf that is too old for everything else.
$(VENV)-shell/ready:
	$(PYTHON) -m venv $(VENV)-shell
	$(VENV)-shell/bin/python -m pip install --quiet --disable-pip-version-check p4runtime-shell
	@touch $@

.PHONY: help run train up shell doctor soak test bench p4 clean
