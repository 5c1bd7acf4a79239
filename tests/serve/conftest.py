import os
import signal
import subprocess
from pathlib import Path

import pytest

import needs
from harness import REPOSITORY
from service import Service, remove

HERE = Path(__file__).parent


@pytest.fixture
def make(tmp_path_factory):
    """Makes servers that end with the test."""
    made = []

    def service(*options, **more):
        directory = tmp_path_factory.mktemp("serve")
        made.append(Service(directory, *options, **more))
        return made[-1]

    yield service
    for one in made:
        one.stop()
        end_jobs(one)
        remove(one.directory)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A server that the tests of a module share."""
    one = Service(tmp_path_factory.mktemp("serve"))
    yield one
    one.stop()
    end_jobs(one)
    remove(one.directory)


def end_jobs(one):
    names = one.jobc("ps", "--quiet").stdout.split()
    if names:
        one.jobc("rm", "--force", *names)


@pytest.fixture
def steps(note):
    """Takes steps of `page.mjs`, which prints each expectation that does not hold, and how many hold."""
    needs.tool("node")
    jobc = Path(os.environ.get("JOBC", REPOSITORY / "target/debug/jobc")).resolve()
    if not jobc.exists():
        needs.missing("jobc", "`cargo build`")

    def run(*names, program="page.mjs", **environment):
        with subprocess.Popen(["node", HERE / program, *names], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", cwd=HERE, env=os.environ | {"JOBC": str(jobc)} | environment) as process:
            try:
                output, _ = process.communicate()
            except BaseException:
                process.send_signal(signal.SIGINT)  # it closes its browser and its server
                raise
        if lacking := needs.found(output):
            needs.missing(next(iter(lacking)))
        assert process.returncode == 0, output
        note(output.splitlines()[-1])

    return run
