"""Builds what the tests check, and runs a test for each artifact: those that match the pattern ARTIFACTS of its module and for which its
function `applies`, if it has one, is true. Without a pattern, an artifact is a whole directory of built output.

With JOBC_SELFTEST the artifacts are the valid sample and the invalid ones, each of which must fail with the text in its file `expect`.
"""

import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import artifacts
import needs

SELFTEST, INVALID = "JOBC_SELFTEST" in os.environ, HERE / "invalid"
# What a sample may need besides programs.
STATES = {"published schemas": (artifacts.REPOSITORY.parent / "shared/schemas").is_dir(),
          "cgroup v1": not Path("/sys/fs/cgroup/cgroup.controllers").exists()}


def samples(module):
    """The samples that the test of a module must reject."""
    return sorted((INVALID / module.removeprefix("test_")).glob("*/"))


collect_ignore = [path.name for path in HERE.glob("test_*.py") if SELFTEST and not samples(path.stem)]


def pytest_configure():
    if not SELFTEST and "JOBC_BUILT" not in os.environ:
        if not artifacts.program():
            pytest.exit("no program to test: build it with `cargo build --package jobc`, or set JOBC", 1)
        if problems := artifacts.build_all():
            pytest.exit("\n".join(problems), 1)
        os.environ["JOBC_BUILT"] = str(artifacts.BUILT)


def found(module, root):
    """The artifacts of a module below a root."""
    pattern, applies = module.ARTIFACTS, getattr(module, "applies", lambda path: True)
    return [root] if pattern is None else sorted(path for path in root.rglob(pattern) if applies(path))


def sample_parameters(root):
    """The marks of the tests of an invalid sample that this host cannot check."""
    file = root / "needs"
    needed = file.read_text().strip() if file.exists() else None
    return [] if STATES.get(needed, True) else [pytest.mark.skip(reason=f"needs {needed}")]


def pytest_generate_tests(metafunc):
    if "artifact" not in metafunc.fixturenames:
        return
    module = metafunc.module
    if SELFTEST:
        roots, everything = [HERE / "valid", *samples(Path(module.__file__).stem)], True
    else:
        roots, everything = artifacts.roots()
        roots = [root for root in roots if not everything or root.name in getattr(module, "ROOTS", artifacts.SOURCES)]
    params = [pytest.param(path, id=str(path.relative_to(root.parent)), marks=sample_parameters(root)) for root in roots for path in found(module, root)]
    if not params and not everything:
        params = [pytest.param(None, marks=pytest.mark.skip(reason=f"nothing to check in {os.environ['JOBC_BUILT']}"))]
    assert params, f"{module.ARTIFACTS}: nothing to check"
    metafunc.parametrize("artifact", params)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    artifact = item.callspec.params["artifact"] if "artifact" in item.fixturenames else HERE
    if call.when == "call" and not report.skipped and artifact.is_relative_to(INVALID):
        expected = Path(INVALID, *artifact.relative_to(INVALID).parts[:2], "expect").read_text().strip()
        if report.passed:
            report.outcome, report.longrepr = "failed", "the sample is accepted"
        elif expected in str(report.longrepr):
            report.outcome, report.longrepr = "passed", None
        else:
            report.longrepr = f"fails for another reason than `{expected}`: {report.longrepr}"
    return report


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="session")
def jobc():
    return artifacts.program() or needs.missing("jobc", "`cargo build`")
