"""Builds Dockerfiles with `jobc image build` and with buildah, and compares the trees and the configurations: as root, and as a user
without a range of ids; without `--quick` also as one with a range. Also tests what a killed build leaves.
"""

import functools
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

import build_cases
import needs
import user
from builders import Builder, Fixture, differences, image, settings, tree
from home import assert_result

pytestmark = [pytest.mark.duration(15), pytest.mark.needs("root", "buildah")]


@pytest.fixture(scope="module")
def fixture(shared):
    return Fixture(shared)


@pytest.fixture(scope="module")
def builders(fixture):
    """Our builders by the names of their users."""
    return {}


@pytest.fixture(params=["as_root", pytest.param("as_range", marks=pytest.mark.slow), "as_single"])
def builder(request, fixture, builders):
    if request.param == "as_range":
        needs.tool("newuidmap")
    if request.param not in builders:
        builders[request.param] = Builder(fixture, user.named(request.param.removeprefix("as_")))
    return builders[request.param]


@pytest.fixture(scope="module")
def theirs(fixture):
    """The context of a case, and what buildah builds of it, which is kept for the next user."""
    @functools.cache
    def build(name):
        context = fixture.context(name, build_cases.CASES[name])
        return context, *fixture.build_with_buildah(f"case-{name}", context)
    return build


@pytest.mark.parametrize("name", build_cases.CASES)
def test_jobc_builds_the_same_as_buildah(builder, theirs, note, name):
    one_id = builder.account is not None and builder.account.subuids is None
    context, files, configuration = theirs(name)
    result = builder.build(f"case-{name}", context)
    if one_id and name in build_cases.NEEDS_IDS:
        assert result.returncode and "/etc/subuid" in result.stderr, f"no message about the missing ids: {result.stderr[-600:]}"
        return
    assert_result(result)
    manifest, config = image(builder.store, f"docker.io/library/case-{name}:latest")
    assert not list(differences(files, tree(builder.store, manifest), owners=not one_id))
    assert not list(settings(configuration, config))
    assert not list(builder.leftovers())
    if one_id:
        note("with one id, files of other owners become root's, so owners are not compared")


@pytest.mark.parametrize("builder", ["as_root"], indirect=True)
def test_a_killed_build_resumes_and_leaves_nothing_incomplete(fixture, builder, times=8):
    text = "FROM base\n" + "".join(f"RUN echo {number} > /f{number} && sleep 0.05\n" for number in range(6))
    context = fixture.context("killed", text)
    rng, pids = random.Random(7), set()
    for _ in range(times):
        process = subprocess.Popen(builder.argv("image", "build", "--builder", "embedded", "-t", "killed", context),
                                   env=builder.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        pids.add(str(process.pid))
        time.sleep(rng.uniform(0.02, 0.6))
        process.send_signal(signal.SIGKILL)
        process.wait()
        time.sleep(0.1)
    assert_result(builder.build("killed", context))
    manifest, _ = image(builder.store, "docker.io/library/killed:latest")
    assert {f"f{number}" for number in range(6)} <= tree(builder.store, manifest).keys()
    assert_result(builder.run("image", "verify"))
    assert not list(builder.leftovers())
    # Named after the process: another test may build at the same time.
    cgroups = Path("/sys/fs/cgroup").glob("**/jobc/build/build-*")
    assert not [path for path in cgroups if path.name.split("-")[1] in pids]


@pytest.mark.parametrize("builder", ["as_root"], indirect=True)
def test_the_cgroup_of_a_build_that_was_killed_before_it_was_recorded_is_removed(fixture, builder, note):
    work = builder.store / "cache/work/4194304-0"
    container = "build-4194304-0"
    (work / "containers" / container).mkdir(parents=True)
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    cgroups = [Path(mount[1]) / "jobc/build" / container for mount in mounts if mount[2] in ("cgroup", "cgroup2")]
    for cgroup in cgroups:
        try:
            cgroup.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            note(f"{cgroup} cannot be created: {error}")
    there = [cgroup for cgroup in cgroups if cgroup.is_dir()]
    if not there:
        note("no cgroup can be created, so none is left")
    assert_result(builder.build("killed", fixture.context("killed-before-record", "FROM base\n")))
    assert not [cgroup for cgroup in there if cgroup.is_dir()]
    assert not work.exists()
