"""Proves that the tests of this directory can fail: each security test runs with mutations of runc (`mutant.py`), and must find each.
`runc` and `crun` instead of jobc must fail the tests in which they differ.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

import needs
import test_advisories
import test_life
import test_names
import test_paths
import test_process
from harness import scratch
from mutations import assert_found

pytestmark = [pytest.mark.duration(60), pytest.mark.needs("root", "runc")]

HERE = Path(__file__).parent
PROMISES = [pytest.param(module.__name__, name, mark.args[2], mutation, id=f"{mark.args[0]}-{name.removeprefix('test_')}-{mutation}")
            for module in (test_paths, test_process, test_names, test_life, test_advisories) for name, test in vars(module).items()
            for mark in getattr(test, "pytestmark", []) if mark.name == "promise" for mutation in mark.args[1]]


@pytest.fixture
def directory():
    """Mutations mount below the working directory, and put the state of the container `/absolute` there if they take a name as a path."""
    before = Path("/absolute").exists()
    with scratch("jobc-selftest-") as path:
        yield path
    if not before:
        shutil.rmtree("/absolute", ignore_errors=True)
    for group in (*Path("/sys/fs/cgroup").glob("*/tested-elsewhere"), *Path("/sys/fs/cgroup").glob("tested-elsewhere")):
        subprocess.run(["rmdir", group], check=False, capture_output=True)


@pytest.mark.parametrize("module, test, user, mutation", PROMISES)
def test_a_mutation_of_a_promise_is_found(directory, module, test, user, mutation):
    # busybox is static, so that it runs again as /proc/self/exe where there is no library. The only mutation that uses it changes it.
    nsenter = shutil.copy(needs.tool("busybox"), directory / "nsenter")
    assert_found(f"runtime/{module}.py::{test}[{user}]", "", HERE / "mutant.py", cwd=directory, JOBC_MUTATION=mutation, JOBC_NSENTER=str(nsenter),
                 JOBC_RACES="10", JOBC_EXCHANGES="1000")


@pytest.mark.parametrize("tests, expression, runtime", [
    ("hooks", "takes_too_long", "runc"),
    ("modules", "a_profile]", HERE / "unconfined"),
    ("systemd", "name_units", HERE / "unscoped"),
    ("exits", "absent", "runc"),
    ("podman", "limits_are_enforced", HERE / "unlimited"),
], ids=["a_hook_runs_longer_than_its_timeout", "the_profile_is_dropped", "systemd_creates_no_cgroup", "another_exit_code", "no_limits"])
def test_a_difference_of_another_runtime_is_found(tests, expression, runtime):
    assert_found(f"runtime/test_{tests}.py", f"{expression} and not single and not range", runtime)


@pytest.mark.parametrize("mutation, tests, expression", [
    ("cgroup-writable", "differential", "plain"),
    ("privileges", "differential", "ids"),
    ("limits", "differential", "memory_and_pids"),
    ("owners", "differential", "owners_mapped]"),
    ("names", "leaks", "test_runs"),
    ("agent", "notify", "a_call_is_decided"),
    ("decided", "notify", "a_call_is_decided"),
])
def test_a_mutation_is_found(mutation, tests, expression):
    assert_found(f"runtime/test_{tests}.py", f"{expression} and root and not another_runtime", HERE / "mutant.py", JOBC_MUTATION=mutation, JOBC_RUNS="3")
