#!/usr/bin/env python3
"""Tests jobc with a real Docker: it loads what `jobc image save` writes, and `jobc image build --builder docker` gives the same
as `jobc image build`, for the cases of `build` and for the generated Dockerfiles of the examples.

`run` runs it only when it is named, since it needs `dockerd` (Debian: docker.io), which it starts with its own
network and mounts, in a temporary directory. `--only TEXT` runs the cases whose name contains TEXT.
"""

import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import build  # noqa: E402
import build_cases  # noqa: E402
from build import Builder, Harness, Fixture, image, tree  # noqa: E402
from harness import REPOSITORY  # noqa: E402

# BuildKit leaves the directories on which a cache was mounted.
CACHES = ("root/.cache", "var", "var/cache", "var/lib")
# Stubs in the base image of the examples, which only record their arguments.
STUB_PROGRAMS = ("python3", "apt-get", "install")


class Daemon:
    """A private dockerd."""

    def __init__(self, harness, directory):
        self.dockerd, self.docker = harness.tool("dockerd"), harness.tool("docker")
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
                raise SystemExit(f"docker: dockerd does not start: {self.log.read_text()[-300:]}")
            time.sleep(0.2)

    def run(self, *words, input=None):  # noqa: A002
        result = subprocess.run([self.docker, *map(str, words)], env=self.environment, input=input, capture_output=True)
        if result.returncode != 0:
            raise RuntimeError(f"docker {words[0]}: {result.stderr.decode()[-400:]}")
        return result.stdout

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


class DockerFixture(Fixture):
    """The fixture of `build` with Docker instead of buildah."""

    def prepare_builder(self):
        self.daemon = Daemon(self.harness, self.directory)


def compare_builders(ours, name, words):
    """The differences between what Docker and jobc build from the same arguments."""
    built = {}
    for builder in ("docker", "embedded"):
        result = ours.run("image", "build", "--builder", builder, "-t", f"{name}:{builder}", *words)
        if result.returncode != 0:
            return [f"with {builder}: exit code {result.returncode}: {result.stderr[-600:]}"]
        manifest, config = image(ours.store, f"docker.io/library/{name}:{builder}")
        built[builder] = tree(ours.store, manifest), config
    (theirs, their_config), (files, config) = built["docker"], built["embedded"]
    theirs = {path: seen for path, seen in theirs.items() if path in files or seen[0] != "d" or not path.startswith(CACHES)}
    return [*build.differences(theirs, files, whose="docker"), *build.settings(their_config, config, whose="docker")]


def load_and_run(fixture, ours):
    """An image is loaded into Docker, runs there, and is imported again with the same tree."""
    archive = fixture.directory / "saved.tar"
    context = fixture.context("loaded", "FROM base\nRUN echo text > /file && chmod 2750 /file\nENV A=b\nCMD [\"cat\", \"/file\"]\n")
    for words in (["build", "--builder", "embedded", "-t", "loaded:1", context], ["save", "loaded:1", "base", "-o", archive]):
        result = ours.run("image", *words)
        if result.returncode != 0:
            return [result.stderr]
    output = fixture.daemon.run("load", "-i", archive).decode()
    problems = [f"docker load prints {output}"] if "loaded:1" not in output or "base:latest" not in output else []
    if (text := fixture.daemon.run("run", "--rm", "--network=none", "loaded:1")) != b"text\n":
        problems.append(f"the container prints {text}")
    back = fixture.directory / "back.tar"
    fixture.daemon.run("save", "-o", back, "loaded:1")
    result = ours.run("image", "import", back, "-t", "back:1")
    if result.returncode != 0:
        return [*problems, result.stderr]
    (there, their_config), (here, config) = (image(ours.store, f"docker.io/library/{name}:1") for name in ("back", "loaded"))
    return [*problems, *build.differences(tree(ours.store, there), tree(ours.store, here), whose="docker"),
            *build.settings(their_config, config, whose="docker")]


def examples(fixture, ours):
    """The generated Dockerfiles, with their base images."""
    for job in sorted(REPOSITORY.glob("examples/*/job.*")):
        example, out = job.parent, fixture.directory / "examples" / job.parent.name
        result = ours.run("build", "-o", out, job)
        if result.returncode != 0:
            raise RuntimeError(result.stderr)
        path = next(out.glob("**/Dockerfile"), None)
        if path is None:
            continue
        bases = [line.split()[1] for line in path.read_text().splitlines() if line.startswith("FROM ")]
        yield example, path, bases


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


def import_image(fixture, ours, archive, name):
    """Imports an archive under a name into our store and into Docker."""
    for words in (["import", "-q", archive, "-t", name], ["save", "-q", name, "-o", fixture.directory / "one.tar"]):
        result = ours.run("image", *words)
        if result.returncode != 0:
            raise RuntimeError(result.stderr)
    fixture.daemon.run("load", "-i", fixture.directory / "one.tar")


def main():
    harness = Harness("docker", __doc__)
    harness.parse()
    if os.geteuid() != 0:
        harness.missing("root")
    with tempfile.TemporaryDirectory(prefix="jobc-docker-") as directory:
        directory = Path(directory)
        directory.chmod(0o755)
        fixture = DockerFixture(harness, directory)
        try:
            ours = Builder(fixture)
            ours.environment |= fixture.daemon.environment
            if harness.wants("load"):
                harness.check("load", load_and_run(fixture, ours))
            import_image(fixture, ours, fixture.base, "base")
            for name, text in build_cases.CASES.items():
                if harness.wants(name):
                    harness.check(name, compare_builders(ours, f"case-{name}", [fixture.context(name, text)]))
            archive = example_base(fixture)
            for example, path, bases in examples(fixture, ours):
                if harness.wants(f"example {example.name}"):
                    for base in bases:
                        import_image(fixture, ours, archive, base)
                    harness.check(f"example {example.name}", compare_builders(ours, f"example-{example.name}", ["-f", path, example]))
        finally:
            fixture.daemon.end()
            subprocess.run(["umount", "-R", directory / "docker"], capture_output=True)
    harness.end()


if __name__ == "__main__":
    main()
