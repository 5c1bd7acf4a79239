"""The runtimes of the peers' tests, and the comparison of their results with the lists in `expected`."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import needs
from peer import CRIU, EITHER, RUNTIMES, expectations
from runtime import ours


def pytest_generate_tests(metafunc):
    """Each test runs with each runtime that its module names; `--runtime` names another."""
    if "runtime" in metafunc.fixturenames:
        chosen = metafunc.config.option.runtime
        metafunc.parametrize("runtime", [chosen] if chosen else getattr(metafunc.module, "RUNTIMES", RUNTIMES), indirect=True)


@pytest.fixture
def runtime(request):
    """The name of a runtime."""
    return request.param


@pytest.fixture(autouse=True)
def host(request):
    needs.root()
    if not any(line.split(" - ")[1].startswith("cgroup ") for line in Path("/proc/self/mountinfo").read_text().splitlines()):
        needs.missing("cgroup v1")
    if not request.module.INSTALLED.exists():
        needs.missing("the peers' tests", "`tests/runtime/peers/install`")
    for name in ("awk", "mount", "timeout", "unshare"):
        needs.tool(name)  # for `sandbox`


@pytest.fixture
def program(runtime, directory):
    """The program of a runtime."""
    return str(ours(directory) if runtime == "jobc" else needs.tool(runtime))


@pytest.fixture
def compare(request, runtime, note):
    """Compares the problems of each test with the list of the peer. The problems of a test that skipped itself are None."""
    def compare(results, belongs=lambda test: True):
        name = request.path.stem.removeprefix("test_")
        reasons = {test: reason for test, reason in expectations(name)[runtime].items() if belongs(test)}
        gone = [test for test, reason in reasons.items() if test not in results or results[test] is None and not reason.startswith(CRIU)]
        wrong = [f"{test}: there is no such test: remove it from expected/{name}" for test in gone]
        for test, problems in results.items():
            if problems is None:
                note(f"{runtime}: skipped by the test itself")
                continue
            note(f"{runtime}: {'does not pass' if problems else 'passes'}")
            if problems and test not in reasons:
                wrong.append(f"{test}: " + "\n    ".join(problems))
            elif not problems and not reasons.get(test, EITHER).removeprefix(CRIU).startswith(EITHER):
                wrong.append(f"{test}: passes now: remove it from expected/{name}")
        if wrong:
            pytest.fail("\n".join(wrong), pytrace=False)

    return compare
