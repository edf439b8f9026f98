# The commands for people and for CI. On a fresh machine, start with `make demo` and `make test`.
CARGO ?= cargo
OUT ?= out
FUZZ_SECONDS ?= 600
COUNT ?= 100
SEED ?= 1
FUZZ_TARGETS = wire_parse scenario_parse tcp_pair io_pair adversary stp_parse stp_pair slacp_parse slacp_pair compression mux_parse tunnel_parse carrier_peer carrier_frames gateway_parse uplink_parse script_parse fit_capture

CONFORMANCE = validation/conformance

.PHONY: test-engine test-arm test-windows check-elsewhere msrv package quic-stacks scoreboard site lab test-lab test-properties test-python conformance proof reference demo test check bench box deb command archive deb-command wheel bench-lab bench-gateway bench-gateway-faults bench-cost validate validate-ns2 validate-explore fuzz fuzz-targets deny api goldens docs clean

# Programs built like the tests, with the features of the whole workspace, so that nothing is compiled twice.
BUILT_BY_TESTS = $(or $(CARGO_TARGET_DIR),target)/debug

# Until all tests have been compiled once, incremental compilation is off, because it takes a third longer.
COMPILED = $(BUILT_BY_TESTS)/.tests-compiled
ifeq ($(wildcard $(COMPILED)),)
export CARGO_INCREMENTAL ?= 0
endif

# How TCP collapses over a GEO link, and what helps; a picture and a report in $(OUT)/demo.
demo:
	@scripts/setup rust
	$(CARGO) build --quiet --workspace --bin bentpipe
	@$(BUILT_BY_TESTS)/bentpipe demo --out $(OUT)/demo
	@$(BUILT_BY_TESTS)/bentpipe report geo --out $(OUT)/demo/geo.html

# All tests. Tests over real Linux sockets create their own network namespaces and need root. The slowest of them mostly wait for a link:
# they run first, three per processor. Meanwhile the other tests are compiled, and those that compute for long are run.
# Property tests draw the same cases each time, so that only the change affects the verdict. `make test-properties` draws other cases.
WAITING ?= $(shell echo $$((3 * $$(nproc))))
test: export PROPTEST_RNG_SEED ?= 1
test:
	@scripts/setup rust tshark ip ping nft
	CARGO="$(CARGO)" scripts/test $(WAITING)
	@touch $(COMPILED)

# The same tests, except those that wait, with ROUNDS other seeds of the property tests, from SEED on.
ROUNDS ?= 10
test-properties:
	@scripts/setup rust tshark ip ping nft
	for seed in $$(seq $(SEED) $$(($(SEED) + $(ROUNDS) - 1))); do \
		PROPTEST_RNG_SEED=$$seed $(CARGO) test --workspace --no-fail-fast -- --skip real_time:: || exit 1; \
	done

# The engine's own tests, for work on the engine. At level 1, and without optimisation between the units of a crate, an edit recompiles only
# what depends on it, and the tests run in a fifth of the time of level 0. `ONLY=tcp::recovery` runs some of them.
QUICK = --config profile.dev.package.bentpipe-engine.opt-level=1 --config 'profile.dev.lto="off"'
test-engine: export CARGO_INCREMENTAL = 1
test-engine:
	@scripts/setup rust
	$(CARGO) test -p bentpipe-engine --lib --test it $(QUICK) $(if $(ONLY),-- $(ONLY))

# Tests of engine, simulator and gateway, compiled for 64-bit ARM and run by QEMU, except those that wait or compute for long. They check
# that the traces of the shipped scenarios are the same. QEMU lacks socket options of the intercepting shapes (IP_TRANSPARENT), and returns
# only four bytes of TCP_INFO, which the relay reads.
ARM = aarch64-unknown-linux-gnu
test-arm: export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER = aarch64-linux-gnu-gcc
test-arm: export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER = qemu-aarch64 -L /usr/aarch64-linux-gnu
test-arm: export BENTPIPE_RUNNER = $(CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER)
test-arm:
	@scripts/setup rust aarch64-linux-gnu-gcc qemu-aarch64
	rustup target list --installed | grep -q $(ARM) || rustup target add $(ARM)
	$(CARGO) test --locked --no-fail-fast --target $(ARM) -p bentpipe-engine -p bentpipe-sim -p bentpipe-io -p bentpipe-gateway -p bentpipe-script --tests -- --skip real_time:: --skip long:: \
		--skip relay::work:: --skip relay::timeouts::

# Tests of the crates that do not need Linux, compiled for Windows and run by Wine, except those that compute for long. They check that
# traces and tables are the same. The Python module is linked, too.
WINDOWS = x86_64-pc-windows-gnu
PORTABLE = engine language study sim fit sweep script papers cli
test-windows: export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER = $(CURDIR)/scripts/wine
test-windows: export PROPTEST_RNG_SEED ?= 1
test-windows:
	@scripts/setup rust x86_64-w64-mingw32-gcc wine
	rustup target list --installed | grep -q $(WINDOWS) || rustup target add $(WINDOWS)
	$(CARGO) build --locked --target $(WINDOWS) -p bentpipe-python
	$(CARGO) test --locked --no-fail-fast --target $(WINDOWS) $(PORTABLE:%=-p bentpipe-%) --tests -- --skip long::

# Clippy for the command and the Python module on Windows and macOS. `ring` compiles C; `zig` is the C compiler for macOS. The engine is
# checked for a processor without an operating system: neither the engine nor its dependencies may need `std`.
MACOS = aarch64-apple-darwin
BARE = thumbv7em-none-eabihf
ZIG = $(abspath $(or $(CARGO_TARGET_DIR),target))/zig
check-elsewhere:
	@scripts/setup rust python x86_64-w64-mingw32-gcc
	rustup target list --installed | grep -q $(WINDOWS) || rustup target add $(WINDOWS)
	rustup target list --installed | grep -q $(MACOS) || rustup target add $(MACOS)
	rustup target list --installed | grep -q $(BARE) || rustup target add $(BARE)
	$(CARGO) clippy --locked --target $(BARE) -p bentpipe-engine --no-default-features -- -D warnings
	$(CARGO) clippy --locked --target $(BARE) -p bentpipe-engine --no-default-features --features ns2 -- -D warnings
	$(CARGO) clippy --locked --target $(WINDOWS) $(PORTABLE:%=-p bentpipe-%) -p bentpipe-python --all-targets -- -D warnings
	@test -x $(ZIG)/bin/cargo-zigbuild || { $(PYTHON) -m venv $(ZIG) && $(ZIG)/bin/pip install --quiet cargo-zigbuild ziglang; }
	PATH="$(ZIG)/bin:$$PATH" cargo-zigbuild clippy --locked --target $(MACOS) $(PORTABLE:%=-p bentpipe-%) -p bentpipe-python -- -D warnings

# Checks of CI: format, lints, documentation, comments, dependencies between crates, and import circles within them.
check:
	@scripts/setup rust python3
	$(CARGO) fmt --all --check
	@scripts/walls
	@scripts/circles
	@scripts/comments
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) clippy -p bentpipe-engine --lib --no-default-features -- -D warnings
	$(CARGO) clippy -p bentpipe-gateway --bin bentpipe-gateway -- -D warnings
	@if scripts/setup wasm && $(WASM_STD); then \
		$(CARGO) clippy -p bentpipe-wasm --lib --target wasm32-unknown-unknown -- -D warnings; \
	else \
		echo "not checked: bentpipe-wasm for wasm32-unknown-unknown"; \
	fi
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --quiet

# Speed compared with ns-2, one core, in pairs; writes bench.json.
bench:
	@scripts/setup rust ns valgrind
	$(CARGO) build --quiet --release -p bentpipe-bench
	$(or $(CARGO_TARGET_DIR),target)/release/bentpipe-bench --out bench.json

# Gain from gateways, between namespaces over an emulated GEO link; root, about 50 minutes; writes bench-gateway.json.
bench-gateway:
	@scripts/setup rust ip nft ping
	$(CARGO) bench --quiet -p bentpipe-gateway --bench gateway -- --seeds 24 --jobs 8 --out $(CURDIR)/bench-gateway.json

# The gateway alone, as a static binary for boxes without a compiler: $(OUT)/bentpipe-gateway. `MACHINE=aarch64` builds it, or its package,
# for a box with a 64-bit ARM processor.
MACHINE ?= $(shell uname -m)
STATIC = $(MACHINE)-unknown-linux-musl
STATIC_CC = $(if $(filter $(MACHINE),$(shell uname -m)),musl-gcc,$(MACHINE)-linux-gnu-gcc)
STATIC_NAME = $(subst -,_,$(STATIC))
BUILT_STATIC = $(or $(CARGO_TARGET_DIR),target)/$(STATIC)/box
BUILD_STATIC = { rustup target list --installed | grep -q $(STATIC) || rustup target add $(STATIC); } && $(if $(filter musl-gcc,$(STATIC_CC)),,CARGO_TARGET_$(shell echo $(STATIC_NAME) | tr a-z A-Z)_LINKER=$(STATIC_CC)) CC_$(STATIC_NAME)=$(STATIC_CC) $(CARGO) build --quiet --locked --profile box --target $(STATIC)
box:
	@scripts/setup rust $(STATIC_CC)
	$(BUILD_STATIC) -p bentpipe-gateway --bin bentpipe-gateway
	@mkdir -p $(OUT)
	@cp $(BUILT_STATIC)/bentpipe-gateway $(OUT)/bentpipe-gateway
	@ls -l $(OUT)/bentpipe-gateway

# The changelog of a Debian package: $(call changelog,NAME).
changelog = printf '$(1) (%s-1) unstable; urgency=medium\n\n  * See CHANGELOG.md in the sources.\n\n -- bentpipe maintainers <bentpipe@users.noreply.github.com>  %s\n' \
	$(VERSION) "$$(git log -1 --format=%aD 2>/dev/null || date -R)"

# The Debian package of the gateway, in $(OUT). `scripts/try-deb` installs and starts it in a namespace, as root.
# A gateway for another processor is run by QEMU to write its manual pages and completions.
RUN_STATIC = $(if $(filter musl-gcc,$(STATIC_CC)),,qemu-$(MACHINE)) $(OUT)/bentpipe-gateway
deb: box
	@scripts/setup cargo-deb $(if $(filter musl-gcc,$(STATIC_CC)),,qemu-$(MACHINE))
	@rm -rf out/gateway
	@mkdir -p out/gateway/completions
	@$(call changelog,bentpipe-gateway) > out/gateway/changelog
	@$(RUN_STATIC) man out/gateway/man
	@for shell in bash zsh fish; do $(RUN_STATIC) completions $$shell > out/gateway/completions/bentpipe-gateway.$$shell || exit 1; done
	$(CARGO) deb --quiet --no-build --no-strip --profile box --target $(STATIC) -p bentpipe-gateway --output $(OUT)/bentpipe-gateway.deb
	@ls -l $(OUT)/bentpipe-gateway.deb

# Gateways under faults: each demand with its bar, one after the other, in its full form; root, four hours; writes
# bench-gateway-faults.json. `ONLY=older,policy` runs some of them, `SHORT=yes` the short forms of all.
bench-gateway-faults:
	@scripts/setup rust ip nft ping faketime
	$(CARGO) bench --quiet -p bentpipe-gateway --bench faults -- $(if $(ONLY),--only $(ONLY)) $(if $(SHORT),--short $(SHORT)) --out $(CURDIR)/bench-gateway-faults.json

# Cost of gateways: CPU time per byte and per connection, compared with the kernel's forwarding and a plain relay; root, a minute.
bench-cost:
	@scripts/setup rust ip nft
	$(CARGO) bench --quiet -p bentpipe-gateway --bench cost -- --out $(CURDIR)/bench-cost.json

# The simulator as one web page: $(OUT)/bentpipe-lab.html. The page needs no server and makes no network requests.
# Debian's Rust has no standard library for wasm32; it is then built from source.
WASM = $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)/wasm32-unknown-unknown/page/bentpipe_wasm.wasm
WASM_STD = test -d "$$(rustc --print sysroot)/lib/rustlib/wasm32-unknown-unknown/lib"
lab:
	@scripts/setup rust wasm node
	@cd lab && npm ci --silent --no-audit --no-fund & packages=$$!; \
	std=; $(WASM_STD) || { std=-Zbuild-std=std,panic_abort; export RUSTC_BOOTSTRAP=1 CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=wasm-ld; }; \
	$(CARGO) build --quiet --profile page --target wasm32-unknown-unknown $$std -p bentpipe-wasm && wait $$packages
	@cd lab && npm run --silent check && BENTPIPE_WASM=$(WASM) npm run --silent build
	@mkdir -p $(OUT)
	@cp lab/dist/index.html $(OUT)/bentpipe-lab.html
	@ls -l $(OUT)/bentpipe-lab.html

# The command as in a release, in $(OUT)/command: static, with manual pages, completions and the lab's page. `make archive` packs it for
# `cargo binstall`, `make deb-command` builds a Debian package.
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
RELEASE = bentpipe-$(VERSION)-$(STATIC)
command: lab
	@scripts/setup rust musl-gcc
	$(BUILD_STATIC) -p bentpipe-cli --bin bentpipe
	@rm -rf $(OUT)/command
	@mkdir -p $(OUT)/command/completions
	@cp $(BUILT_STATIC)/bentpipe $(OUT)/bentpipe-lab.html LICENSE README.md $(OUT)/command
	@$(OUT)/command/bentpipe man $(OUT)/command/man
	@for shell in bash zsh fish; do $(OUT)/command/bentpipe completions $$shell > $(OUT)/command/completions/bentpipe.$$shell || exit 1; done

archive: command
	tar -C $(OUT) --transform 's,^command,$(RELEASE),' --sort=name --owner=0 --group=0 --numeric-owner -czf $(OUT)/$(RELEASE).tar.gz command
	@ls -l $(OUT)/$(RELEASE).tar.gz

deb-command: command
	@scripts/setup cargo-deb
	@mkdir -p out/deb-command
	@$(call changelog,bentpipe) > out/deb-command/changelog
	$(CARGO) deb --quiet --no-build --no-strip --profile box --target $(STATIC) -p bentpipe-cli --output $(OUT)/bentpipe.deb
	@ls -l $(OUT)/bentpipe.deb

# The Python package with the lab's page: a wheel in $(OUT).
wheel: lab
	@scripts/setup python
	@cp $(OUT)/bentpipe-lab.html python/bentpipe
	@test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/pip wheel --quiet --no-deps --wheel-dir $(OUT) .
	@ls -l $(OUT)/bentpipe-*.whl

# The Python package's tests, in their own environment, with the module that `cargo build --workspace` makes. Only the packages that the
# tests import are installed. `PYTHON=python3.12` selects another interpreter.
PYTHON ?= python3
VENV = $(abspath $(or $(CARGO_TARGET_DIR),target))/venv
test-python:
	@scripts/setup rust python
	@test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	@# The packages are downloaded while the compiler runs.
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check 'distributed>=2024.8' 'duckdb>=1.1' 'ipykernel>=6' 'matplotlib>=3.8' 'nbclient>=0.10' 'numpy>=1.26' 'pandas>=2.1' 'polars>=1.10' 'pyarrow>=15' 'pytest>=8' 'scipy>=1.12' & \
	packages=$$!; $(CARGO) build --quiet --workspace && wait $$packages
	@cp $(BUILT_BY_TESTS)/lib_bentpipe.so python/bentpipe/_bentpipe.abi3.so
	@PYTHONPATH=$(CURDIR)/python $(VENV)/bin/python -m pytest --quiet -p bentpipe._pytest

# Tests of the page in headless Chromium: each control, the same numbers as the command, no network requests; pictures in $(OUT)/lab.
test-lab: lab
	@scripts/setup chromium
	$(CARGO) build --quiet --workspace --bin bentpipe
	@cd lab && BENTPIPE=$(or $(CARGO_TARGET_DIR),$(CURDIR)/target)/debug/bentpipe BENTPIPE_WASM=$(WASM) OUT=$(abspath $(OUT)) npm run --silent test

# Response time of the page to a slider, in headless Chromium.
bench-lab: lab
	@scripts/setup chromium
	@cd lab && OUT=$(abspath $(OUT)) npm run --silent answer

# Agreement with ns-2: the reference table, a new run of `ns` on a sample of it, and scenarios drawn at random, some with round numbers.
validate:
	@scripts/setup rust ns
	$(CARGO) build --quiet --workspace --bin bentpipe-validate
	$(BUILT_BY_TESTS)/bentpipe-validate ns2 validation/ns2/reference.csv --rerun 8
	$(BUILT_BY_TESTS)/bentpipe-validate ns2-explore --count 100

# Agreement with any table in the same format: make validate-ns2 CSV=path
validate-ns2:
	@scripts/setup rust
	@test -n "$(CSV)" || { echo "usage: make validate-ns2 CSV=path"; exit 2; }
	$(CARGO) run --quiet --release -p bentpipe-validate -- ns2 $(CSV)

# Agreement with `ns` on scenarios drawn at random: make validate-explore COUNT=100 SEED=1
validate-explore:
	@scripts/setup rust ns
	$(CARGO) run --quiet --release -p bentpipe-validate -- ns2-explore --count $(COUNT) --seed $(SEED)

# Third-party packet scripts: make conformance DIR=path [EXPECT=file]. docs/reference/packet-scripts.md lists the trees.
conformance:
	@scripts/setup rust
	@test -n "$(DIR)" || { echo "usage: make conformance DIR=path [EXPECT=file]"; exit 2; }
	@$(CARGO) run --quiet -p bentpipe-cli --bin bentpipe -- script "$(DIR)" \
		--expect $(or $(EXPECT),$(wildcard $(CONFORMANCE)/*.toml))

# Builds real QUIC stacks in target/quic-stacks/bin; validation/quic/run runs them over emulated links.
STACKS = $(abspath $(or $(CARGO_TARGET_DIR),target))/quic-stacks
quic-stacks:
	@scripts/setup rust cmake clang go python
	@mkdir -p $(STACKS)/bin
	CARGO_TARGET_DIR=$(STACKS) $(CARGO) build --quiet --locked --release --manifest-path validation/quic/rust/Cargo.toml
	cp $(addprefix $(STACKS)/release/,quinn s2n quiche) $(STACKS)/bin
	cd validation/quic/go && go build -o $(STACKS)/bin/quic-go .
	python3 -m venv $(STACKS)/venv && $(STACKS)/venv/bin/pip --quiet install aioquic==1.7.2
	printf '#!/bin/sh\nexec %s %s "$$@"\n' $(STACKS)/venv/bin/python $(abspath validation/quic/python/aioquic_stack.py) > $(STACKS)/bin/aioquic
	chmod +x $(STACKS)/bin/aioquic

# Runs each fuzz target for FUZZ_SECONDS; needs a nightly toolchain.
fuzz:
	@scripts/setup rust cargo-fuzz python3
	@python3 fuzz/seeds.py unpack
	@for target in $(FUZZ_TARGETS); do \
		echo "fuzzing $$target for $(FUZZ_SECONDS) s"; \
		(cd fuzz && $(CARGO) +nightly fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1) || exit 1; \
	done

# The names of the fuzz targets as a JSON list, for CI jobs that share them.
fuzz-targets:
	@printf '['; sep=; for target in $(FUZZ_TARGETS); do printf '%s"%s"' "$$sep" $$target; sep=,; done; printf ']\n'

# Licences, advisories and sources of all dependencies: deny.toml.
deny:
	@scripts/setup rust cargo-deny
	$(CARGO) deny --locked check
	$(CARGO) deny --locked --manifest-path fuzz/Cargo.toml check --config deny.toml

# Compiles all crates with the oldest Rust that Cargo.toml promises.
OLDEST = $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
msrv:
	@scripts/setup rust
	rustup toolchain install $(OLDEST) --profile minimal
	CARGO_TARGET_DIR=$(or $(CARGO_TARGET_DIR),target)/msrv $(CARGO) +$(OLDEST) check --locked --workspace

# Packs every published crate, and builds it from its package alone, as `cargo publish` does; nightly.
PRIVATE = bench python validate wasm
package:
	@scripts/setup rust
	$(CARGO) package --locked --workspace $(PRIVATE:%=--exclude bentpipe-%)

# The engine as a library, nightly: builds it for wasm32, lists its public items, and lists breaking changes since BASE. Changes are no
# failure, since nothing is published yet. Needs a nightly toolchain for rustdoc's JSON.
BASE ?= HEAD~1
api:
	@scripts/setup rust cargo-public-api cargo-semver-checks
	@scripts/setup wasm
	$(CARGO) check --quiet -p bentpipe-engine --target wasm32-unknown-unknown
	@mkdir -p $(OUT)
	$(CARGO) +nightly public-api -p bentpipe-engine -sss > $(OUT)/api.txt
	@echo "$$(wc -l < $(OUT)/api.txt) public items, in $(OUT)/api.txt"
	-$(CARGO) semver-checks -p bentpipe-engine --baseline-rev $(BASE)

# All published results of the papers next to bentpipe's, into docs/REPRODUCTION.md.
proof:
	@scripts/setup rust
	$(CARGO) run --quiet --release -p bentpipe-cli --bin bentpipe -- reproduce all --markdown docs/REPRODUCTION.md

# Every transport over every link, into docs/SCOREBOARD.md; a test recomputes a part of it.
scoreboard:
	@scripts/setup rust
	$(CARGO) run --quiet --release -p bentpipe-cli --bin bentpipe -- scoreboard --conduct --markdown docs/SCOREBOARD.md

# The generated pages of docs/reference; a test fails if they are out of date.
reference:
	@scripts/setup rust
	$(CARGO) run --quiet -p bentpipe-cli --bin bentpipe -- reference --out docs/reference

# Rewrites the goldens; CHANGELOG.md must then say which numbers changed and why.
goldens:
	UPDATE_GOLDENS=1 $(CARGO) test -p bentpipe-sim --test it golden::

# The documents as one site that works offline: $(OUT)/site/index.html.
ZENSICAL = 0.0.73
site:
	@scripts/setup python node
	@test -x target/site/bin/zensical || { python3 -m venv target/site && target/site/bin/pip install --quiet zensical==$(ZENSICAL); }
	@mkdir -p $(OUT)
	@target/site/bin/python scripts/site $(OUT)/site

docs:
	$(CARGO) doc --workspace --no-deps --open

clean:
	$(CARGO) clean
	rm -rf $(OUT) bench.json bench-cost.json
