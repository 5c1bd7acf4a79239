"""The container image: built by jobc from the programs, and run by podman and dockerd with a job file; it has nothing but jobc in it."""

import shutil
import sys
import tarfile

import needs
import pytest
from releases import PACKAGING, REPOSITORY, expect, ran, succeeds

pytestmark = [pytest.mark.slow, pytest.mark.needs("root", "runc"), pytest.mark.duration(60)]


@pytest.fixture(scope="module")
def archive(binaries, shared):
    succeeds(PACKAGING / "image", binaries, shared / "out")
    path, = (shared / "out").iterdir()
    return path


def checks_jobs(run, directory):
    """A container checks a job, a good one and a bad one."""
    good = (REPOSITORY / "examples/hello-cpu/job.yaml").read_text()
    for text, code, output in ((good, 0, ""), (good.replace("instances:", "intances:"), 1, "unknown key `intances`")):
        (directory / "job.yaml").write_text(text)
        expect(run("--rm", "--network", "none", "--volume", f"{directory}:/work:ro"), code, output)


def test_the_archive_is_one_of_oci_and_of_docker(archive, note):
    with tarfile.open(archive) as opened:
        assert {"index.json", "oci-layout", "manifest.json"} <= set(opened.getnames())
    note(f"{archive.name}: {archive.stat().st_size / 1e6:.1f} MB")


@pytest.mark.needs("podman")
def test_podman_loads_and_runs_it(archive, directory):
    """Into a store of its own."""
    (directory / "policy.json").write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
    podman = ["podman", "--root", directory / "graph", "--runroot", directory / "run", "--tmpdir", directory / "tmp", "--storage-driver", "vfs",
              "--cgroup-manager", "cgroupfs", "--runtime", needs.tool("runc")]
    loaded = expect(ran([*podman, "load", "--quiet", "--signature-policy", directory / "policy.json", "--input", archive]), 0, "jobc:")
    name = loaded.stdout.strip().removeprefix("Loaded image: ")
    work = directory / "work"
    work.mkdir()
    checks_jobs(lambda *options: ran([*podman, "run", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024", *options, name, "check", "job.yaml"]), work)
    succeeds(*podman, "rmi", "--force", name)


@pytest.mark.skipif(not shutil.which("dockerd"), reason="needs dockerd; `tests/runtime/peers/install` installs it")
def test_docker_loads_and_runs_it(archive, directory):
    """A private dockerd."""
    sys.path.append(str(REPOSITORY / "tests/runtime/peers"))
    from test_docker import Docker

    docker = Docker(directory, needs.tool("runc"))
    docker.start()
    try:
        loaded = expect(docker("load", "--quiet", "--input", str(archive)), 0, "jobc:")
        name = loaded.stdout.strip().removeprefix("Loaded image: ")
        work = directory / "work"
        work.mkdir()
        checks_jobs(lambda *options: docker("run", *options, name, "check", "job.yaml"), work)
    finally:
        docker.daemon.terminate()
        docker.daemon.wait()
