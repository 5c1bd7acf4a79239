"""What the tests of editors share: the programs for Node in this directory (`check.mjs`), and the package of the extension."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

import needs
from harness import REPOSITORY

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def jobc():
    """The `jobc` to test."""
    program = Path(os.environ.get("JOBC", REPOSITORY / "target/debug/jobc")).resolve()
    return program if program.exists() else needs.missing("jobc", "`cargo build`")


@pytest.fixture
def check(jobc, note):
    """Runs a program for Node, which prints each expectation that does not hold, and how many hold."""
    needs.tool("node")

    def run(name, *words, **environment):
        with subprocess.Popen(["node", HERE / f"{name}.mjs", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", cwd=HERE, env=os.environ | {"JOBC": jobc} | environment) as process:
            try:
                output, _ = process.communicate()
            except BaseException:
                process.send_signal(signal.SIGINT)  # it closes its editor
                raise
        if lacking := needs.found(output):
            needs.missing(next(iter(lacking)))
        if process.returncode:
            # Without counts it is the program itself that has failed.
            raise AssertionError(output) if " hold" in output else RuntimeError(output)
        note(output.splitlines()[-1])

    return run


@pytest.fixture(scope="session")
def npm():
    """Runs a script of a package in `editors`."""
    def run(package, script):
        directory = REPOSITORY / "editors" / package
        if not (directory / "node_modules").exists():
            needs.missing("npm packages")
        ran = subprocess.run(["npm", "run", "--silent", script], cwd=directory, capture_output=True, text=True, errors="replace", check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr

    return run


@pytest.fixture(scope="module")
def package(npm):
    """The package of the extension for all platforms."""
    npm("vscode", "package")
    return REPOSITORY / "editors/vscode/dist/jobc.vsix"
