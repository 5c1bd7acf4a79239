#!/usr/bin/env python3
"""What a real Docker makes of ours: it loads what `jobc image save` writes, and `jobc image build --builder docker` gives what
`jobc image build` gives, for the cases of `build` and for the Dockerfiles that are generated for the examples.

`run` runs it only when it is named, since it needs `dockerd` (Debian: docker.io), which is started in a network and with
mounts of its own, below a directory that goes away. `--only TEXT` takes the cases whose name has it.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import build  # noqa: E402
import build_cases  # noqa: E402
from build import Builder, Harness, Scene, image, tree  # noqa: E402
from harness import REPOSITORY  # noqa: E402

# What BuildKit leaves of a cache: the directories that it was mounted on.
CACHES = ("root/.cache", "var", "var/cache", "var/lib")
# What stands in the base of the examples and only notes how it was called.
PROGRAMS = ("python3", "apt-get", "install")


class Daemon:
    """A dockerd that nobody else sees."""

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
                harness.skip(f"dockerd does not start: {self.log.read_text()[-300:]}")
            time.sleep(0.2)

    def run(self, *words, input=None):  # noqa: A002
        done = subprocess.run([self.docker, *map(str, words)], env=self.environment, input=input, capture_output=True)
        if done.returncode != 0:
            raise RuntimeError(f"docker {words[0]}: {done.stderr.decode()[-400:]}")
        return done.stdout

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


class Tested(Scene):
    """The scene of `build` with Docker in buildah's place."""

    def begin(self):
        self.daemon = Daemon(self.harness, self.directory)


def both(ours, name, words):
    """What differs between what Docker builds of the same words, and what we do."""
    built = {}
    for builder in ("docker", "embedded"):
        done = ours.run("image", "build", "--builder", builder, "-t", f"{name}:{builder}", *words)
        if done.returncode != 0:
            return [f"by {builder} it exits with {done.returncode}: {done.stderr[-600:]}"]
        manifest, config = image(ours.store, f"docker.io/library/{name}:{builder}")
        built[builder] = tree(ours.store, manifest), config
    (theirs, their_config), (files, config) = built["docker"], built["embedded"]
    theirs = {path: seen for path, seen in theirs.items() if path in files or seen[0] != "d" or not path.startswith(CACHES)}
    return [*build.differences(theirs, files, whose="docker"), *build.settings(their_config, config, whose="docker")]


def loaded(scene, ours):
    """An image goes to Docker, runs there, and comes back with the same tree."""
    archive = scene.directory / "saved.tar"
    context = scene.context("loaded", "FROM base\nRUN echo text > /file && chmod 2750 /file\nENV A=b\nCMD [\"cat\", \"/file\"]\n")
    for words in (["build", "--builder", "embedded", "-t", "loaded:1", context], ["save", "loaded:1", "base", "-o", archive]):
        done = ours.run("image", *words)
        if done.returncode != 0:
            return [done.stderr]
    said = scene.daemon.run("load", "-i", archive).decode()
    problems = [f"docker load says {said}"] if "loaded:1" not in said or "base:latest" not in said else []
    if (text := scene.daemon.run("run", "--rm", "--network=none", "loaded:1")) != b"text\n":
        problems.append(f"the container says {text}")
    back = scene.directory / "back.tar"
    scene.daemon.run("save", "-o", back, "loaded:1")
    done = ours.run("image", "import", back, "-t", "back:1")
    if done.returncode != 0:
        return [*problems, done.stderr]
    (there, their_config), (here, config) = (image(ours.store, f"docker.io/library/{name}:1") for name in ("back", "loaded"))
    return [*problems, *build.differences(tree(ours.store, there), tree(ours.store, here), whose="docker"),
            *build.settings(their_config, config, whose="docker")]


def examples(scene):
    """The Dockerfiles that are generated, with the names of their bases."""
    for path in sorted(REPOSITORY.glob("examples/*/out/**/Dockerfile")):
        example = REPOSITORY / "examples" / path.relative_to(REPOSITORY / "examples").parts[0]
        bases = [line.split()[1] for line in path.read_text().splitlines() if line.startswith("FROM ")]
        yield example, path, bases


def furnish(scene):
    """A base as the examples want theirs: the same busybox, with programs that only note how they were called."""
    root = scene.directory / "base"
    for name in PROGRAMS:
        (root / "bin" / name).unlink(missing_ok=True)
        (root / "bin" / name).write_text("#!/bin/sh\necho \"$0 $*\" >>/called\n")
        (root / "bin" / name).chmod(0o755)
    (root / "bin/bash").write_text("#!/bin/sh\n[ \"$1\" = --version ] && echo bash && exit\nshift 3\nexec /bin/sh -c \"$@\"\n")
    (root / "bin/bash").chmod(0o755)
    archive = scene.directory / "furnished.tar"
    subprocess.run(["tar", "--owner=0", "--group=0", "--numeric-owner", "-C", root, "-cf", archive, "."], check=True)
    return archive


def bring(scene, ours, archive, name):
    """Gives an archive's image a name in our store and in Docker."""
    for words in (["import", "-q", archive, "-t", name], ["save", "-q", name, "-o", scene.directory / "one.tar"]):
        done = ours.run("image", *words)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
    scene.daemon.run("load", "-i", scene.directory / "one.tar")


def main():
    harness = Harness("docker", __doc__)
    harness.parse()
    if os.geteuid() != 0:
        harness.skip("only root starts dockerd")
    with tempfile.TemporaryDirectory(prefix="jobc-docker-") as directory:
        directory = Path(directory)
        directory.chmod(0o755)
        scene = Tested(harness, directory)
        try:
            ours = Builder(scene)
            ours.environment |= scene.daemon.environment
            if harness.wants("load"):
                harness.check("load", loaded(scene, ours))
            bring(scene, ours, scene.base, "base")
            for name, text in build_cases.CASES.items():
                if harness.wants(name):
                    harness.check(name, both(ours, f"case-{name}", [scene.context(name, text)]))
            archive = furnish(scene)
            for example, path, bases in examples(scene):
                if harness.wants(f"example {example.name}"):
                    for base in bases:
                        bring(scene, ours, archive, base)
                    harness.check(f"example {example.name}", both(ours, f"example-{example.name}", ["-f", path, example]))
        finally:
            scene.daemon.end()
            subprocess.run(["umount", "-R", directory / "docker"], capture_output=True)
    harness.end()


if __name__ == "__main__":
    main()
