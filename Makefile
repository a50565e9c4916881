# The whole interface of the project. `make` lists it.
#
# Everything that is built or downloaded lies outside the checkout, under ERIS_CACHE, but for the wheels in dist/. It is
# built once: every recipe uses the release profile, the whole workspace and the same features, so that no recipe
# rebuilds another's dependencies.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

ERIS_CACHE ?= $(HOME)/.cache/eris
CARGO_TARGET_DIR ?= $(ERIS_CACHE)/target
export CARGO_TARGET_DIR

# `CI=true`: nothing may be skipped.
CI ?= false
SCALE ?= 1
FILES ?= crates/sql/tests/slt
SLT ?=
SSB ?=
DURABILITY ?=
DEMO ?= --breakdown
NUMA ?=
# Of the wheel; `dist` for one that is published.
PROFILE ?= release
BENCH ?=
# What the module is tested with; one wheel is for all from 3.11 on.
PYTHON ?= python3
# Targets of `make fuzz`, as crate/target.
FUZZ ?= index/art blink/tree blink/strings column/form log/chunk_files fragment/wire sql/sql sql/csv sql/json sql/parquet sql/arrow
FUZZ_SECONDS ?= 60
ERIS := $(CARGO_TARGET_DIR)/release/eris
RIVALS := $(ERIS_CACHE)/target-rivals/release/rivals
# The Python module has an allocator with features of its own: a cargo call builds it, or all the rest
# (docs/decisions/0001, docs/decisions/0038).
WORKSPACE := --workspace --exclude eris-python
MODULE := crates/python
PYTHON_SOURCES := $(MODULE)/python examples/python $(addprefix tests/python/,bare.py pages.py stubs.py test_beside.py)
# The parts of `make test`; how long each took, and what it printed if it may be skipped.
TESTS := check test-rust test-shell test-walk test-loom test-numa test-oracle test-python
NOTES := $(ERIS_CACHE)/test
VENV := $(ERIS_CACHE)/venv
# What the module is tested with, what builds it, and nothing.
PYTHON_VENV := $(ERIS_CACHE)/venv-$(notdir $(PYTHON))
MATURIN_VENV := $(ERIS_CACHE)/venv-maturin
BARE_VENV := $(ERIS_CACHE)/venv-bare
RESULTS := bench/results/$(shell date +%F)-$(shell uname -n)

# Sources that the workspace does not hold: fuzz targets, and what Eris's indexes are compared with.
APART = $(wildcard crates/*/fuzz/fuzz_targets/*.rs $(addprefix bench/rivals/,src/*.rs examples/*.rs examples/*/*.rs))

# Crates whose protocols are model-checked, and crates that Miri can run.
LOOM_CRATES := route aeu atomics blink
MIRI_CRATES := kernels route index blink

.PHONY: help
help: ## list the recipes
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16
	@echo
	@echo "Variables: SCALE=$(SCALE) ERIS_CACHE=$(ERIS_CACHE) CARGO_TARGET_DIR=$(CARGO_TARGET_DIR) CI=$(CI)"

# ---- use -------------------------------------------------------------------------------------------------------------

.PHONY: demo
demo: build ## build, then generate, load and run the Star Schema Benchmark (SCALE=1)
	$(ERIS) ssb run --scale $(SCALE) $(DEMO)

.PHONY: build
build: cargo ## build target/release/eris and everything that the tests share
	cargo build --release $(WORKSPACE)

.PHONY: install
install: build ## copy the binary, stripped, to ~/.local/bin (or PREFIX/bin)
	install -Dm755 --strip $(ERIS) $(or $(PREFIX),$(HOME)/.local)/bin/eris

.PHONY: wheel
wheel: cargo $(MATURIN_VENV)/.ready ## the Python module as a wheel and as a source distribution, in dist/ (PROFILE=dist: smaller, but all is compiled anew)
	rm -f dist/eris_db-*
	$(MATURIN_VENV)/bin/maturin build --quiet --locked --compression-level 9 --profile $(PROFILE) --manifest-path $(MODULE)/Cargo.toml --out dist
	$(MATURIN_VENV)/bin/maturin sdist --manifest-path $(MODULE)/Cargo.toml --out dist
	@ls -l dist

# ---- proof -----------------------------------------------------------------------------------------------------------

.PHONY: test
test: cargo ## everything that must hold: checks, tests, model checking, comparison with an oracle
	@rm -rf $(NOTES) && mkdir -p $(NOTES)
	@for part in $(TESTS); do \
	  begun=$$SECONDS; $(MAKE) $$part; echo "$$((SECONDS - begun)) $$part" >> $(NOTES)/times; \
	done
	@if skipped=$$(grep -hs ^SKIPPED $(NOTES)/*.log); then \
	  echo "make test: what was tested holds; $$(echo "$$skipped" | paste -sd ';' | sed 's/;/; /g')"; \
	else \
	  echo "make test: everything holds, and nothing was skipped"; \
	fi

.PHONY: check
check: cargo ## formatting, layers, style, licences and documents (seconds)
	cargo fmt --all --check
	rustfmt --edition 2024 --check $(APART)
	tools/check-layers
	tools/check-style
	tools/check-deps
	tools/check-docs

# With the module: nothing is checked twice, and the C part of mimalloc that this compiles is the wheel's.
.PHONY: lint
lint: cargo doc ## clippy over all targets and the documentation, warnings denied
	cargo clippy --release --workspace --all-targets -- -D warnings

.PHONY: doc
doc: cargo ## the documentation of all crates, private items too, warnings denied
	RUSTDOCFLAGS="-D warnings" cargo doc --release --workspace --no-deps --document-private-items

.PHONY: test-rust
test-rust: cargo ## unit, property, simulation, SQL logic and command line tests
	cargo test --release $(WORKSPACE)

.PHONY: test-shell
test-shell: build ## the interactive prompt, on a pseudo-terminal
	ERIS=$(ERIS) python3 tests/shell/prompt.py

.PHONY: test-walk
test-walk: build ## the commands that README, walk and manual show, outputs compared
	@mkdir -p $(NOTES)
	ERIS=$(ERIS) ERIS_CACHE=$(ERIS_CACHE) CI=$(CI) python3 -u tests/walk/walk.py | tee $(NOTES)/walk.log

.PHONY: test-crash
test-crash: cargo ## kill a process 200 times while eight sessions write, and crash 10,000 simulated disks
	ERIS_CYCLES=200 cargo test --release $(WORKSPACE) --test database killed::what -- --nocapture
	ERIS_SEEDS=10000 cargo test --release $(WORKSPACE) --lib simulations::crashes

.PHONY: test-loom
test-loom: cargo ## every interleaving of the latch-free protocols, within loom's bounds
	@for crate in $(LOOM_CRATES); do \
	  CARGO_TARGET_DIR=$(ERIS_CACHE)/target-loom RUSTFLAGS="--cfg loom" \
	    cargo test --release -p eris-$$crate --lib model | tee $(ERIS_CACHE)/loom.log; \
	  grep -qE ' [1-9][0-9]* passed' $(ERIS_CACHE)/loom.log || { echo "eris-$$crate has no model"; exit 1; }; \
	done

.PHONY: test-numa
test-numa: build ## where pages really lie, on a machine with four NUMA nodes, emulated (half a minute; NUMA=--verbose)
	@mkdir -p $(NOTES)
	@ERIS=$(ERIS) ERIS_CACHE=$(ERIS_CACHE) CI=$(CI) python3 -u tests/numa/pages.py $(NUMA) | tee $(NOTES)/numa.log

.PHONY: test-links
test-links: build ## what eris.traffic counts beside the processor's counters, where perf may read these
	ERIS=$(ERIS) tests/numa/links.sh

.PHONY: test-oracle
test-oracle: build ## the same data and queries in DuckDB, results compared
	@mkdir -p $(NOTES) && rm -f $(NOTES)/oracle.log
	@if $(MAKE) venv; then \
	  for script in tests/oracle/*.py crates/sql/tests/slt/verify.py; do echo "$$script"; ERIS=$(ERIS) $(VENV)/bin/python $$script; done; \
	elif [ "$(CI)" = true ]; then \
	  echo "test-oracle: Python packages could not be installed"; exit 1; \
	else \
	  echo "SKIPPED: comparison with DuckDB, for its Python package could not be installed:" \
	    "it takes python3-venv and PyPI" | tee $(NOTES)/oracle.log; \
	fi

.PHONY: test-python
test-python: cargo ## the Python module: its wheel where nothing else is, tests, documents, notebook, types and form (PYTHON=python3.13)
	@mkdir -p $(NOTES) && rm -f $(NOTES)/python.log
	@if $(MAKE) $(MATURIN_VENV)/.ready $(PYTHON_VENV)/.ready; then \
	  $(MAKE) wheel; \
	  $(MAKE) check-python; \
	elif [ "$(CI)" = true ]; then \
	  echo "test-python: Python packages could not be installed"; exit 1; \
	else \
	  echo "SKIPPED: tests of the Python module, for its packages could not be installed:" \
	    "it takes python3-venv and PyPI" | tee $(NOTES)/python.log; \
	fi

.PHONY: check-python
check-python: $(PYTHON_VENV)/.ready
	$(PYTHON) -m venv --clear $(BARE_VENV)
	$(BARE_VENV)/bin/pip install --quiet --disable-pip-version-check --no-index dist/eris_db-*.whl
	$(BARE_VENV)/bin/python tests/python/bare.py
	$(PYTHON_VENV)/bin/pip install --quiet --disable-pip-version-check --no-index --force-reinstall dist/eris_db-*.whl
	$(PYTHON_VENV)/bin/abi3audit --strict dist/eris_db-*.whl
	$(PYTHON_VENV)/bin/ruff check --config $(MODULE)/pyproject.toml $(PYTHON_SOURCES)
	$(PYTHON_VENV)/bin/ruff format --check --config $(MODULE)/pyproject.toml $(PYTHON_SOURCES)
	$(PYTHON_VENV)/bin/stubtest --mypy-config-file $(MODULE)/pyproject.toml eris_db
	$(PYTHON_VENV)/bin/python tests/python/stubs.py
	$(PYTHON_VENV)/bin/basedpyright --project examples/python --pythonpath $(PYTHON_VENV)/bin/python
	ERIS_CACHE=$(ERIS_CACHE) CI=$(CI) $(PYTHON_VENV)/bin/python -u tests/python/pages.py | tee $(NOTES)/pages.log
	ERIS_CACHE=$(ERIS_CACHE) CI=$(CI) $(PYTHON_VENV)/bin/python -m pytest -q tests/python

.PHONY: fuzz
fuzz: cargo ## inputs chosen by coverage: index, stored forms, chunk files, fragments, SQL text, files (a minute each; FUZZ=sql/csv FUZZ_SECONDS=600; needs cargo-fuzz)
	@for target in $(FUZZ); do \
	  crate=crates/$${target%/*} name=$${target#*/} found=$(ERIS_CACHE)/fuzz/$$target; \
	  mkdir -p $$found; \
	  seeds=$$(test ! -d $$crate/fuzz/seeds/$$name || echo fuzz/seeds/$$name); \
	  (cd $$crate && CARGO_TARGET_DIR=$(ERIS_CACHE)/target-fuzz \
	    cargo +nightly fuzz run $$name $$found $$seeds -- -max_total_time=$(FUZZ_SECONDS)) || exit 1; \
	done

.PHONY: slt
slt: cargo ## run sqllogictest files of other databases: make slt FILES="select1.test dir" [SLT=--verbose]
	cargo build --release $(WORKSPACE) --example slt
	$(CARGO_TARGET_DIR)/release/examples/slt $(SLT) $(FILES)

.PHONY: test-memory
test-memory: build ## statements that try to grow, beside the limit of memory (three minutes)
	ERIS=$(ERIS) python3 -u tests/memory/memory.py

.PHONY: nightly
nightly: cargo ## the long version: 10,000 seeds, ten minutes of torture, Miri, fuzzing, scale 3 against the oracle
	PROPTEST_CASES=10000 ERIS_SEEDS=10000 ERIS_CYCLES=200 ERIS_TORTURE_SECONDS=600 cargo test --release $(WORKSPACE)
	rustup toolchain install nightly --profile minimal --component miri --component rust-src
	CARGO_TARGET_DIR=$(ERIS_CACHE)/target-miri PROPTEST_CASES=4 MIRIFLAGS=-Zmiri-disable-isolation \
	  cargo +nightly miri test $(MIRI_CRATES:%=-p eris-%) --lib
	CARGO_TARGET_DIR=$(ERIS_CACHE)/target-miri MIRIFLAGS=-Zmiri-disable-isolation \
	  cargo +nightly miri test -p eris-index --test index
	$(MAKE) test-loom
	CARGO_TARGET_DIR=$(ERIS_CACHE)/target-rivals cargo test --release --manifest-path bench/rivals/Cargo.toml
	cargo install --locked --root $(ERIS_CACHE)/tools cargo-fuzz cargo-deny
	PATH=$(ERIS_CACHE)/tools/bin:$$PATH cargo deny check licenses bans sources
	PATH=$(ERIS_CACHE)/tools/bin:$$PATH $(MAKE) fuzz FUZZ_SECONDS=600
	ERIS_LEAK_CALLS=10000 $(MAKE) test-python
	PYTHONDEVMODE=1 $(PYTHON_VENV)/bin/python tests/python/torture.py
	ERIS_ORACLE_SCALE=3 ERIS_ORACLE_SEED=clock $(MAKE) test-oracle
	$(MAKE) test-memory

# ---- measurement -----------------------------------------------------------------------------------------------------

.PHONY: rivals bench-machine bench-route bench-index bench-join bench-misses bench-balance bench-moves bench-statement bench-keys bench-atomics bench-placement bench-copy bench-flush bench-chunk-files bench-durability bench-busy bench-sharing bench-tasks bench-blink bench-pushpull bench-scan bench-chunk bench-together bench-ssb bench-tpch bench-shapes bench-python bench-record
bench-machine: build ## bandwidths and latencies of this machine
	$(ERIS) machine --measure

rivals: cargo ## build what Eris's indexes are compared with, which no other recipe builds
	CARGO_TARGET_DIR=$(ERIS_CACHE)/target-rivals cargo build --release --manifest-path bench/rivals/Cargo.toml

bench-route: build ## the routing layer
	$(ERIS) bench route

bench-index: build rivals ## 64-bit keys: partitioned and routed, beside shared indexes
	$(ERIS) bench index --rivals $(RIVALS)

bench-misses: cargo ## misses of the last cache, an index shared or partitioned, by simulation (minutes; needs valgrind)
	CARGO_TARGET_DIR=$(ERIS_CACHE)/target-rivals tools/cache-misses

bench-balance: build ## lookups while the workload moves, by balancing algorithm, on 32 AEUs with a share of a core each (minutes)
	ERIS_TOPOLOGY=8x4 $(ERIS) bench balance

bench-moves: cargo ## what clients keep of their rate while all that they use changes owners (four minutes)
	cargo run --release -p eris-engine --example moving_keys
	cargo run --release -p eris-engine --example moving_rows

bench-statement: build ## what a short statement costs
	$(ERIS) bench statement

bench-keys: build venv ## what a primary key costs a load, beside DuckDB (a minute)
	ERIS=$(ERIS) $(VENV)/bin/python bench/keys.py

bench-join: build ## tables of hash joins: rows a second, beside the standard library's map (a minute)
	$(ERIS) bench join

bench-atomics: build ## one counter and one latch that all threads want, by way (a minute)
	$(ERIS) bench atomics

bench-pushpull: build ## operations pushed to the data, or data pulled to them, over a paced link, beside the cost model
	$(ERIS) bench pushpull

bench-placement: build ## where data lies, on machines that are imitated
	$(ERIS) bench placement

bench-copy: build ## copies between nodes and double-buffered scans, by engine, block and link
	$(ERIS) bench copy

bench-flush: cargo ## what a flush of a file takes, by size and by how its room was made
	cargo run --release -p eris-disk --example flush

bench-chunk-files: cargo ## writing, opening and reading back chunk files, beside plain files; a log's flushes meanwhile (minutes)
	cargo run --release -p eris-log --example chunk_files

bench-durability: build venv ## what a commit, a load and a recovery take on a disk, beside SQLite, DuckDB and PostgreSQL (SCALE=1, DURABILITY="--dir /data --rounds 7"; minutes)
	test -e $(ERIS_CACHE)/ssb-$(SCALE)/lineorder.parquet || $(ERIS) ssb generate --scale $(SCALE) --out $(ERIS_CACHE)/ssb-$(SCALE)
	$(VENV)/bin/python bench/durability.py --eris $(ERIS) --data $(ERIS_CACHE)/ssb-$(SCALE) --scale $(SCALE) --dir $(ERIS_CACHE) $(DURABILITY)

bench-busy: build ## a scan while another thread uses one core
	$(ERIS) bench busy

bench-sharing: build ## statements that scan one table at the same time
	$(ERIS) bench sharing

bench-blink: build rivals ## a B-link tree that threads share, by way, beside others
	$(ERIS) bench blink --rivals $(RIVALS)

bench-tasks: build ## tasks from spawn to run, beside Tokio and Rayon, and with memory asked for ahead
	$(ERIS) bench tasks

bench-scan: build ## column scans beside the memory's bandwidth
	$(ERIS) bench scan

bench-chunk: build ## scan time against the size of a chunk
	$(ERIS) bench scan --chunk

bench-together: cargo ## eight programs over the same chunks, together and one by one, beside the least possible (a minute)
	cargo run --release -p eris-exec --example together

bench-ssb: build venv ## Star Schema Benchmark beside all peers, interleaved (SCALE=1, SSB=--no-recoding)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -r bench/requirements.txt
	test -e $(ERIS_CACHE)/ssb-$(SCALE)/lineorder.parquet || $(ERIS) ssb generate --scale $(SCALE) --out $(ERIS_CACHE)/ssb-$(SCALE)
	$(VENV)/bin/python bench/ssb.py --data $(ERIS_CACHE)/ssb-$(SCALE) --eris $(ERIS) $(SSB)

bench-tpch: build venv ## the 22 queries of TPC-H beside DuckDB, constants drawn anew in each round (SCALE=1, TPCH="--peers duckdb,hyper,datafusion --rounds 9")
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -r bench/requirements.txt
	$(VENV)/bin/python bench/tpch.py --data $(ERIS_CACHE) --eris $(ERIS) --scale $(SCALE) $(TPCH)

bench-shapes: build venv ## joins, groups, windows, Top-N and functions over 10 million rows, beside DuckDB (SHAPES="--query left")
	$(VENV)/bin/python bench/shapes.py --data $(ERIS_CACHE) --eris $(ERIS) $(SHAPES)

bench-python: build wheel $(PYTHON_VENV)/.ready ## the Python module beside DuckDB's, Polars' and Rust (minutes; BENCH="--only out,in", BESIDE_RUST="--only ssb")
	$(PYTHON_VENV)/bin/pip install --quiet --disable-pip-version-check --no-index --force-reinstall dist/eris_db-*.whl
	mkdir -p $(RESULTS)
	$(PYTHON_VENV)/bin/python bench/python.py --output $(RESULTS)/python.json $(BENCH)
	$(PYTHON_VENV)/bin/python bench/python_beside_rust.py --eris $(ERIS) --output $(RESULTS)/python-beside-rust.json $(BESIDE_RUST)

bench-record: build rivals ## run all without a peer and keep the raw numbers in bench/results/<date>-<machine>/
	mkdir -p $(RESULTS)
	$(ERIS) machine --measure --json > $(RESULTS)/machine.json
	$(ERIS) bench route --svg $(RESULTS)/route --json > $(RESULTS)/route.json
	$(ERIS) bench index --rivals $(RIVALS) --json > $(RESULTS)/index.json
	$(ERIS) bench statement --json > $(RESULTS)/statement.json
	$(ERIS) bench join --json > $(RESULTS)/join.json
	$(ERIS) bench atomics --svg $(RESULTS)/atomics --json > $(RESULTS)/atomics.json
	$(ERIS) bench copy --svg $(RESULTS)/copy --json > $(RESULTS)/copy.json
	$(ERIS) bench commit --dir $(ERIS_CACHE) --json > $(RESULTS)/commit.json
	$(ERIS) bench busy --json > $(RESULTS)/busy.json
	$(ERIS) bench placement --svg $(RESULTS)/placement --json > $(RESULTS)/placement.json
	$(ERIS) bench pushpull --over nodes --svg $(RESULTS)/pushpull-nodes --json > $(RESULTS)/pushpull-nodes.json
	$(ERIS) bench sharing --svg $(RESULTS)/sharing --json > $(RESULTS)/sharing.json
	$(ERIS) bench pushpull --svg $(RESULTS)/pushpull --json > $(RESULTS)/pushpull.json
	$(ERIS) bench scan --json > $(RESULTS)/scan.json
	$(ERIS) bench scan --chunk --json > $(RESULTS)/chunk.json
	$(ERIS) ssb run --scale $(SCALE) --json > $(RESULTS)/ssb-$(SCALE).json

# ---- set-up ----------------------------------------------------------------------------------------------------------

.PHONY: cargo
cargo:
	@command -v cargo > /dev/null || { echo "Rust is missing: https://rustup.rs installs it"; exit 1; }
	@mkdir -p $(ERIS_CACHE)

.PHONY: venv
venv: $(VENV)/.ready

$(VENV)/.ready: tests/oracle/requirements.txt
$(PYTHON_VENV)/.ready: tests/python/requirements.txt tests/python/checkers.txt
$(MATURIN_VENV)/.ready: $(MODULE)/requirements.txt
$(PYTHON_VENV)/.ready: INTERPRETER := $(PYTHON)
$(VENV)/.ready $(PYTHON_VENV)/.ready $(MATURIN_VENV)/.ready:
	@mkdir -p $(ERIS_CACHE)
	$(or $(INTERPRETER),python3) -m venv $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check $(^:%=-r %)
	@touch $@

.PHONY: clean
clean: ## remove what was built and downloaded
	rm -rf $(ERIS_CACHE) dist
