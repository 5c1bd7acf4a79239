# Recipes for development; `just` lists them.

_default:
    @just --list --unsorted

# Format the code and run the checks of CI; run this before a push
ready: fmt test

# Run the checks that every change must pass; `just test --all` runs all checks
test *arguments:
    ./test {{ arguments }}

# Check lints and formatting without changing files
lint:
    ./test --only format --only clippy --only "clippy, no backend"

# Format all code
fmt:
    cargo fmt --all
    cargo fmt --manifest-path fuzz/Cargo.toml

# Check licenses, banned crates and crate sources; needs cargo-deny
deny:
    ./test --only licenses

# Run external validators on what jobc builds from the examples: `just oracles -k oci_run`
oracles *arguments:
    tests/oracles/selftest
    tests/oracles/run {{ arguments }}

# Give arbitrary input to the readers of files: `just fuzz --seconds 600 tar`
fuzz *arguments:
    fuzz/run {{ arguments }}

# Build the release binaries jobc, jobc-oci and jobc-nvml in target/release
release:
    ./release

# Write all artifacts of a release and take each from installation to removal; needs root and `just release`
rehearse *arguments:
    packaging/rehearse {{ arguments }}

# Print the version, or write a new one to all files: `just version 1.2.3`
version *version:
    packaging/version {{ version }}

# Test the packages, install.sh and the workflows: `just installation --quick`
installation *arguments:
    tests/install/run {{ arguments }}

# Build jobc and compile one example into target/demo
demo *job:
    ./demo {{ job }}

# Regenerate the golden output of the examples
goldens:
    JOBC_UPDATE=1 cargo test --locked --package jobc-tests --test examples committed
    git status --short examples

# Regenerate the JSON Schemas from the Rust types
schemas:
    cargo run --locked --package jobc-tests --bin schemas
    git status --short schemas

# Run the conformance tests of the runtime against runc, crun and podman: `just runtime -k test_exits`
runtime *arguments:
    tests/runtime/selftest
    tests/runtime/run {{ arguments }}

# Test the schema, the language server and the extension in real editors: `just editors -k neovim`
editors *arguments:
    tests/editor/run {{ arguments }}

# Package the extension for VS Code in editors/vscode/dist; needs Node: `just vsix linux-x64 "$PWD/target/release"`
vsix *arguments:
    cd editors/vscode && npm ci --ignore-scripts --no-audit --no-fund && npm run package -- {{ arguments }}

# Build the playground as target/web, static files for any web server; needs Node
web:
    editors/web/install
    editors/web/build

# Build the page of `jobc serve`, which the next `cargo build` embeds; needs Node
page:
    serve/page/build

# Package the web extension for VS Code as editors/vscode/dist/jobc-web.vsix; needs Node
vsix-web: web
    cd editors/vscode && npm ci --ignore-scripts --no-audit --no-fund && npm run package:web

# Run the integration tests of jobs, in a pipe and on a terminal: `just jobs -k test_terminal`
jobs *arguments:
    tests/jobs/run {{ arguments }}

# Run the tests of `jobc serve`: `just serve -k attacks`
serve *arguments:
    tests/serve/run {{ arguments }}

# Run the integration tests of jobs on Slurm: `just slurm -k test_jobs`
slurm *arguments:
    tests/slurm/run {{ arguments }}

# Run the integration tests of jobs on clusters: `just remote -k submit`
remote *arguments:
    tests/remote/run {{ arguments }}

# Measure the time and memory of jobc for jobs of several sizes
bench *arguments:
    tests/bench/run {{ arguments }}

# Measure the language server over a pipe: typing, messages in one piece, edits of long jobs; needs the release binary
bench-lsp *arguments:
    tests/bench/lsp {{ arguments }}

# Measure typing in VS Code, from a key to the screen; needs `tests/editor/install`, `just vsix` and the release binary
bench-editor *arguments:
    tests/bench/editor {{ arguments }}

# Measure each way to install the packages of built programs, from nothing to the first finding: `just bench-install target/release`
bench-install binaries *arguments:
    tests/bench/install {{ binaries }} {{ arguments }}

# Measure the start of a container, compared with bubblewrap, crun and runc; needs root
bench-start *arguments:
    tests/bench/start {{ arguments }}

# Measure the start of a job with 100 instances and the cost of its idle supervisor; needs root
bench-supervisor *arguments:
    tests/bench/supervisor {{ arguments }}

# Run the soak tests: 100,000 swaps under two readers, 11,300 container starts
soak *arguments:
    tests/soak/run {{ arguments }}

# Measure pulling, unpacking and building images, compared with other tools; needs root and the release binary
bench-images:
    python3 tests/bench/images/unpack.py
    python3 tests/bench/images/pull.py
    python3 tests/bench/images/pull_unpack.py
    python3 tests/bench/images/dockerfile.py

# Measure jobc beside the programs that people use for the same work: the table of docs/benchmarks.md; needs root and `just release`
bench-peers *arguments:
    tests/bench/peers {{ arguments }}

# Measure `jobc submit` against stand-ins of a cluster and a registry
bench-cluster:
    cargo build --locked --release --package jobc
    tests/bench/cluster

# Rewrite the pages of docs/ that come from the program
docs:
    docs/site/build --write
    git status --short docs

# Build the documentation site as target/site/book; `docs/site/install` installs mdBook
site:
    docs/site/build

# Draw the pictures of the terminal in README.md and docs/ again
pictures:
    cargo build --locked --package jobc
    .oracles/venv/bin/python docs/site/pictures.py target/debug/jobc
