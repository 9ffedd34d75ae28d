# Inputs; every variable can be overridden on the command line.
run: TARGET ?= reference
TARGET  ?= auto#     bmv2, embedded, auto (embedded), or reference (bmv2 if installed)
FABRIC  ?= auto#     mininet, loopback or auto
WORKERS ?= 8
TOPOLOGY ?= star#    star, or leaf-spine
LEAVES  ?= 2#        of leaf-spine: switches with workers
SPINES  ?= 1#        of leaf-spine: switches above the leaves

DATA    ?= digits:80# data set of `make run`: images joined to the 80 nearest
EPOCHS  ?= 20
LAYERS  ?= 3
HIDDEN  ?= 64#            numbers of a hidden feature
BANDWIDTH ?= 50#     Mbit/s of each link of `make run`; 0: no limit
RUN_OPTIONS ?=#      more options of `switchgnn train`

GRAPH   ?= digits:80# graph of `make exchange` and `make up`, or a file
ROUNDS  ?= 3
SLOTS   ?= 4096#     aggregators that a block may use
EXCHANGE_OPTIONS ?=# more options of `switchgnn run`
SOAK_MINUTES ?= 1

# One more than the cores, because tests sometimes wait for timers and for each other's processes.
JOBS    ?= $(shell expr $$(nproc) + 1)
LEVEL   ?= test#     of `make tests` and `make test-bare`: check, test or all
SHARE   ?= 40#       of `make test-share`: one test in this many
SEED    ?= 0
TEST_OPTIONS ?=#     more options of pytest

SCALE   ?= small#    of `make figures`: small takes minutes; medium has more points, full the paper's sizes
FIGURES_OPTIONS ?=#  more options of `switchgnn figures`, such as figure15 --jobs 1
NUMBERS ?= README.md $(wildcard docs/*.md docs/evidence/*.md)# of `make numbers`: the documents
LINKS   ?=#          of `make docs`: --check also requests the links to other sites

# One version for all users; a CPU build suffices.
TORCH   ?= torch==2.13.0
SPARE_PORTS ?= 0#    ports of the switch that `make up` keeps, for other jobs
GRPC_PORT ?= 9559#   P4Runtime of the switch that `make up` keeps and `make shell` opens
TOFINO_P4C ?= p4c-barefoot# of `make tofino`: p4c with its Tofino back end, beside bfas
ELECTION_ID ?= 0,1#  of `make shell`: high,low; 0,0 only reads, beside another controller
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Let a recipe fail where pip fails.
SHELL  := bash
.SHELLFLAGS := -o pipefail -c
# Everything here starts many processes; without this each would compile our modules again.
export PYTHONDONTWRITEBYTECODE :=

# A star has neither leaves nor spines; switchgnn itself refuses unknown topologies.
TOPOLOGY_OPTIONS := --topology $(TOPOLOGY) $(if $(filter leaf-spine,$(TOPOLOGY)),--leaves $(LEAVES) --spines $(SPINES))

BANDWIDTH_OPTIONS := $(if $(filter-out 0,$(BANDWIDTH)),--bandwidth $(BANDWIDTH))

PYTEST := $(BIN)/python -m pytest --numprocesses $(JOBS) $(TEST_OPTIONS)

.DEFAULT_GOAL := help

help:  ## list the targets
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(VENV)/run  ## a GCN on the whole graph, its sums through the switch (two plans), over hosts, and in one process
	$(BIN)/switchgnn train --data $(DATA) --workers $(WORKERS) --epochs $(EPOCHS) --layers $(LAYERS) --hidden $(HIDDEN) --dropout 0 --lr 0.05 \
	    --target $(TARGET) --fabric $(FABRIC) $(TOPOLOGY_OPTIONS) $(BANDWIDTH_OPTIONS) \
	    --transport switch --transport switch-paper --transport host --transport host-partial --transport local \
	    $(RUN_OPTIONS)

exchange: $(VENV)/base  ## only the neighbour sums, each compared with a reference
	$(BIN)/switchgnn run --target $(TARGET) --fabric $(FABRIC) --workers $(WORKERS) $(TOPOLOGY_OPTIONS) \
	    --graph $(GRAPH) --rounds $(ROUNDS) --slots $(SLOTS) $(EXCHANGE_OPTIONS)

up: $(VENV)/base  ## the same, then keep the switch running until Ctrl-C
	$(BIN)/switchgnn run --target $(TARGET) --fabric $(FABRIC) --workers $(WORKERS) $(TOPOLOGY_OPTIONS) \
	    --graph $(GRAPH) --rounds $(ROUNDS) --slots $(SLOTS) --keep --grpc-port $(GRPC_PORT) \
	    --spare-ports $(SPARE_PORTS) $(EXCHANGE_OPTIONS)

shell: $(VENV)-shell/ready  ## p4runtime-shell on the switch that `make up` keeps
	$(VENV)-shell/bin/python -m p4runtime_sh --grpc-addr 127.0.0.1:$(GRPC_PORT) --device-id 0 \
	    --election-id $(ELECTION_ID)

doctor: $(VENV)/base  ## installed and missing programs, and the commands that install them
	$(BIN)/switchgnn doctor

soak: $(VENV)/base  ## runs with random graphs and faults, for SOAK_MINUTES
	$(BIN)/python -m tests.soak --minutes $(SOAK_MINUTES) --target $(TARGET) --fabric $(FABRIC) $(TOPOLOGY_OPTIONS)

lint: $(VENV)/test  ## lint and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Lint and types run in parallel with the tests, which sometimes wait for each other.
BESIDE = $(MAKE) --no-print-directory -j2 lint

check: $(VENV)/test  ## before a commit: lint, types, and the tests that run no whole programs
	$(BESIDE) tests LEVEL=check

test: $(VENV)/test  ## all of that, and each promise once on each switch and fabric of the machine
	$(BESIDE) tests LEVEL=test

test-all: $(VENV)/test  ## every variation: widths, seeds, numbers of workers, kills, model searches
	$(BESIDE) tests LEVEL=all

tests: $(VENV)/test $(if $(filter-out check,$(LEVEL)),$(VENV)-shell/ready)
	$(PYTEST) --level $(LEVEL)

test-share: $(VENV)/test  ## one in SHARE of the tests that only test-all has, chosen by SEED
	$(PYTEST) --share $(SHARE):$(SEED)

test-bare: $(VENV)/test  ## the tests of `make test` without any of the optional programs
	PATH="$$($(BIN)/python tests/support/bare_path.py)" $(PYTEST) --level $(LEVEL)

check-lowest: $(VENV)-lowest/ready  ## the tests of `make check` on the lowest versions of all packages
	$(subst $(BIN),$(VENV)-lowest/bin,$(PYTEST)) --level check

bench: $(VENV)/test  ## the benchmarks; ratios measured side by side
	$(BIN)/python -m bench

figures: $(VENV)/figures  ## the thirteen figures of the paper with results; SCALE=full for its sizes
	$(BIN)/switchgnn figures --scale $(SCALE) $(FIGURES_OPTIONS)

docs: $(VENV)/docs  ## the documents as a site, in build/site; links to other sites are listed
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	$(BIN)/python docs/hooks/external.py $(LINKS)

numbers: $(VENV)/test  ## the numbers in README.md and docs/ that commands print
	SWITCHGNN_NUMBERS=all $(BIN)/python -m cogapp -r --verbosity=1 -U \
	    -I docs/hooks -p "from printed import put" $(NUMBERS)

p4: $(VENV)/base  ## compile the P4 program (needs p4c)
	$(BIN)/python -m switchgnn.p4src.build

tofino: $(VENV)/base  ## compile the P4 program for a Tofino 2, and report what it takes of the chip
	@command -v $(TOFINO_P4C) >/dev/null && command -v bfas >/dev/null || { \
	    echo "p4c's Tofino back end ($(TOFINO_P4C), bfas) is not on the PATH: build p4lang/p4c with it."; exit 2; }
	rm -rf build/tofino && mkdir -p build/tofino
	cd p4src/tofino && $(TOFINO_P4C) --target tofino2 --arch t2na --std p4-16 -g --verbose -Ttable_summary:1 \
	    --disable-dark-allocation --Wdisable=unused --p4runtime-files $(CURDIR)/build/tofino/p4info.json \
	    -o $(CURDIR)/build/tofino switchgnn.p4
	for each in build/tofino/*/switchgnn.bfa; do \
	    bfas --target tofino2 --no-warn -o $$(dirname $$each) $$each || exit; done
	$(BIN)/python -m bench.tofino build/tofino

clean:  ## remove everything that make creates
	rm -rf $(VENV) $(VENV)-lowest $(VENV)-shell build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

# pip is the last thing in a new environment: without `python3-venv` only the interpreter is there.
$(VENV)/bin/pip:
	$(PYTHON) -m venv $(VENV)

# INSTALL ENVIRONMENT WHAT ARGUMENTS...: show only the large downloads of pip's output.
INSTALL = @install() { \
	    echo "Installing $$2 into $$1; the first time, this takes some minutes."; \
	    "$$1/bin/python" -m pip install --disable-pip-version-check "$${@:3}" | sed -nuE \
	        -e 's/^ *((Downloading|Using cached) .*\([0-9.]+ [MG]B\)).*/  \1/p' \
	        -e 's/^Installing collected packages:.*/  Unpacking/p'; \
	}; install

$(VENV)/base: pyproject.toml | $(VENV)/bin/pip
	$(INSTALL) $(VENV) "SwitchGNN with Mininet" -e '.[mininet]'
	@touch $@

$(VENV)/run: pyproject.toml | $(VENV)/bin/pip
	$(INSTALL) $(VENV) "SwitchGNN with PyTorch (up to 3 GB of downloads)" -e '.[mininet,plots,training]' $(TORCH)
	@touch $@ $(VENV)/base

$(VENV)/test: pyproject.toml | $(VENV)/bin/pip
	$(INSTALL) $(VENV) "SwitchGNN with PyTorch (up to 3 GB of downloads) and test tools" -e '.[mininet,test]' $(TORCH)
	@touch $@ $(VENV)/run $(VENV)/base $(VENV)/figures

$(VENV)/figures: pyproject.toml | $(VENV)/bin/pip
	$(INSTALL) $(VENV) "SwitchGNN with Mt-KaHyPar, matplotlib and PyTorch (up to 3 GB of downloads)" -e '.[hypergraph,plots,training]' $(TORCH)
	@touch $@

$(VENV)/docs: pyproject.toml | $(VENV)/bin/pip
	$(INSTALL) $(VENV) "SwitchGNN with MkDocs" -e '.[docs]'
	@touch $@

$(VENV)-lowest/ready: pyproject.toml requirements-lowest.txt
	$(PYTHON) -m venv $(VENV)-lowest
	$(INSTALL) $(VENV)-lowest "the lowest versions of all packages" \
	    --constraint requirements-lowest.txt -e '.[mininet,test]' $(TORCH)
	@touch $@

# pip reads dependency groups from version 25.1 on.
$(VENV)-shell/ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)-shell
	$(INSTALL) $(VENV)-shell "pip" "pip>=25.1"
	$(INSTALL) $(VENV)-shell "p4runtime-shell" --group shell
	@touch $@

.PHONY: help run exchange up shell doctor soak lint check test test-all tests test-share test-bare check-lowest bench figures docs numbers p4 tofino clean
