"""Tests jobc with a real Docker: it loads what `jobc image save` writes, and `jobc image build --builder docker` gives the same
as `jobc image build`, for the cases of `test_build.py` and for the generated Dockerfiles of the examples.

`tests/run docker images/docker.py` runs it: it needs `dockerd` (Debian: docker.io), which it starts with its own network and mounts,
in a temporary directory.
"""

import os
import signal
import subprocess
import time

import pytest

import build_cases
import needs
from builders import Builder, Fixture, differences, image, settings, tree
from harness import REPOSITORY
from home import assert_result

pytestmark = [pytest.mark.duration(60), pytest.mark.needs("root", "dockerd", "docker")]

# BuildKit leaves the directories on which a cache was mounted.
CACHES = ("root/.cache", "var", "var/cache", "var/lib")
# Stubs in the base image of the examples, which only record their arguments.
STUB_PROGRAMS = ("python3", "apt-get", "install")


class Daemon:
    """A private dockerd."""

    def __init__(self, directory):
        self.dockerd, self.docker = needs.tool("dockerd"), needs.tool("docker")
        self.socket, self.log = directory / "docker.sock", directory / "dockerd.log"
        words = [self.dockerd, f"--host=unix://{self.socket}", f"--data-root={directory}/docker", "--exec-root=/run/docker",
                 "--pidfile=/run/dockerd.pid", "--storage-driver=vfs", "--iptables=false", "--ip6tables=false",
                 "--ip-forward=false"]
        script = 'mount --make-rprivate / && mount -t tmpfs tmpfs /run && exec "$@"'
        with self.log.open("w") as log:
            self.process = subprocess.Popen(["unshare", "--mount", "--net", "--", "sh", "-c", script, "dockerd", *words],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        self.environment = {"PATH": os.environ["PATH"], "DOCKER_HOST": f"unix://{self.socket}"}
        until = time.monotonic() + 30
        while subprocess.run([self.docker, "version"], env=self.environment, capture_output=True).returncode != 0:
            if self.process.poll() is not None or time.monotonic() > until:
                self.end()
                pytest.fail(f"dockerd does not start: {self.log.read_text()[-300:]}")
            time.sleep(0.2)

    def run(self, *words, input=None):  # noqa: A002
        result = subprocess.run([self.docker, *map(str, words)], env=self.environment, input=input, capture_output=True)
        assert result.returncode == 0, f"docker {words[0]}: {result.stderr.decode()[-400:]}"
        return result.stdout

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


class DockerFixture(Fixture):
    """The fixture of `test_build.py` with Docker instead of buildah."""

    def prepare_builder(self):
        self.daemon = Daemon(self.directory)


@pytest.fixture(scope="module")
def fixture(shared):
    fixture = DockerFixture(shared)
    yield fixture
    fixture.daemon.end()
    subprocess.run(["umount", "-R", shared / "docker"], capture_output=True)


@pytest.fixture(scope="module")
def ours(fixture):
    ours = Builder(fixture)
    ours.environment |= fixture.daemon.environment
    import_image(fixture, ours, fixture.base, "base")
    return ours


def assert_same(ours, name, words):
    """Docker and jobc build the same from the same arguments."""
    built = {}
    for builder in ("docker", "embedded"):
        assert_result(ours.run("image", "build", "--builder", builder, "-t", f"{name}:{builder}", *words))
        manifest, config = image(ours.store, f"docker.io/library/{name}:{builder}")
        built[builder] = tree(ours.store, manifest), config
    (theirs, their_config), (files, config) = built["docker"], built["embedded"]
    theirs = {path: seen for path, seen in theirs.items() if path in files or seen[0] != "d" or not path.startswith(CACHES)}
    assert not [*differences(theirs, files, whose="docker"), *settings(their_config, config, whose="docker")]


def import_image(fixture, ours, archive, name):
    """Imports an archive under a name into our store and into Docker."""
    for words in (["import", "-q", archive, "-t", name], ["save", "-q", name, "-o", fixture.directory / "one.tar"]):
        assert_result(ours.run("image", *words))
    fixture.daemon.run("load", "-i", fixture.directory / "one.tar")


def test_docker_loads_and_runs_an_image_and_saves_the_same(fixture, ours):
    archive, back = fixture.directory / "saved.tar", fixture.directory / "back.tar"
    context = fixture.context("loaded", "FROM base\nRUN echo text > /file && chmod 2750 /file\nENV A=b\nCMD [\"cat\", \"/file\"]\n")
    for words in (["build", "--builder", "embedded", "-t", "loaded:1", context], ["save", "loaded:1", "base", "-o", archive]):
        assert_result(ours.run("image", *words))
    output = fixture.daemon.run("load", "-i", archive).decode()
    assert "loaded:1" in output and "base:latest" in output
    assert fixture.daemon.run("run", "--rm", "--network=none", "loaded:1") == b"text\n"
    fixture.daemon.run("save", "-o", back, "loaded:1")
    assert_result(ours.run("image", "import", back, "-t", "back:1"))
    (there, their_config), (here, config) = (image(ours.store, f"docker.io/library/{name}:1") for name in ("back", "loaded"))
    assert not [*differences(tree(ours.store, there), tree(ours.store, here), whose="docker"), *settings(their_config, config, whose="docker")]


@pytest.mark.parametrize("name", build_cases.CASES)
def test_docker_builds_the_same(fixture, ours, name):
    assert_same(ours, f"case-{name}", [fixture.context(name, build_cases.CASES[name])])


@pytest.fixture(scope="module")
def example_base(fixture):
    """A base image for the examples: the same busybox, with stubs that only record their arguments."""
    root = fixture.directory / "base"
    for name in STUB_PROGRAMS:
        (root / "bin" / name).unlink(missing_ok=True)
        (root / "bin" / name).write_text("#!/bin/sh\necho \"$0 $*\" >>/called\n")
        (root / "bin" / name).chmod(0o755)
    (root / "bin/bash").write_text("#!/bin/sh\n[ \"$1\" = --version ] && echo bash && exit\nshift 3\nexec /bin/sh -c \"$@\"\n")
    (root / "bin/bash").chmod(0o755)
    archive = fixture.directory / "example-base.tar"
    subprocess.run(["tar", "--owner=0", "--group=0", "--numeric-owner", "-C", root, "-cf", archive, "."], check=True)
    return archive


@pytest.mark.parametrize("job", sorted(REPOSITORY.glob("examples/*/job.*")), ids=lambda job: job.parent.name)
def test_docker_builds_the_same_of_the_dockerfile_of_an_example(fixture, ours, example_base, job):
    out = fixture.directory / "examples" / job.parent.name
    assert_result(ours.run("build", "-o", out, job))
    for path in list(out.glob("**/Dockerfile"))[:1]:
        for line in path.read_text().splitlines():
            if line.startswith("FROM "):
                import_image(fixture, ours, example_base, line.split()[1])
        assert_same(ours, f"example-{job.parent.name}", ["-f", path, job.parent])
