# Short names for what is done often; `just` lists them.

_default:
    @just --list --unsorted

# What CI runs for a change, apart from installing tools: do this before a push
ready: fmt test

# What every change must pass, with a summary; `just test --all` for everything
test *arguments:
    ./test {{ arguments }}

# Lints and formatting, nothing changed
lint:
    ./test --only format --only clippy --only "clippy, no backend"

# Format everything
fmt:
    cargo fmt --all

# Licences, banned crates and sources; needs cargo-deny
deny:
    ./test --only licenses

# The outside judges on the examples' golden output: `just oracles -c oci_run`
oracles *arguments:
    tests/oracles/selftest
    tests/oracles/run {{ arguments }}

# Build what is handed out, into target/release: jobc, jobc-oci, jobc-nvml
release:
    ./release

# Build the program and compile one example into target/demo
demo *job:
    ./demo {{ job }}

# Make the examples' golden output again
goldens:
    JOBC_UPDATE=1 cargo test --locked --package jobc-tests --test examples the_output_is_what_is_committed
    git status --short examples

# Make the JSON Schemas again from the Rust types
schemas:
    cargo run --locked --package jobc-tests --bin schemas
    git status --short schemas

# The runtime beside runc, crun and podman, its security, and what it leaves behind: `just judges -c security`
judges *arguments:
    tests/runtime/selftest
    tests/runtime/run {{ arguments }}

# The schema, the language server and the extension in real editors: `just editors -c neovim`
editors *arguments:
    tests/editor/run {{ arguments }}

# Package the extension for VS Code as editors/vscode/dist/jobc.vsix; needs Node
vsix:
    cd editors/vscode && npm ci --ignore-scripts --no-audit --no-fund && npm run package

# Jobs as people run them, in a pipe and on a terminal, and what is left when something dies: `just jobs -c terminal`
jobs *arguments:
    tests/jobs/run {{ arguments }}

# Time and memory of whole runs, and how they grow with the job
bench *arguments:
    tests/bench/run {{ arguments }}

# How long an edit of a job of 2,000 lines takes in the language server: `just bench-edit --limit 20`
bench-edit *arguments:
    cargo bench --profile dist --locked --package jobc-lsp --bench edit -- {{ arguments }}

# A container from start to end beside a floor, bubblewrap, crun and runc; as root
bench-start *arguments:
    tests/bench/start {{ arguments }}

# How long until a job of 100 instances runs, and what its idle supervisor costs; as root
bench-supervisor *arguments:
    tests/bench/supervisor {{ arguments }}

# Look for what happens rarely: 100,000 swaps under two readers, 11,300 starts of containers
soak *arguments:
    tests/soak/run {{ arguments }}

# Pulling, unpacking and building images beside other tools; needs root and the release binary
bench-images:
    python3 tests/bench/images/unpack.py
    python3 tests/bench/images/pull.py
    python3 tests/bench/images/dockerfile.py
