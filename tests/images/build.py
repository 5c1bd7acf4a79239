#!/usr/bin/env python3
"""Builds Dockerfiles by `jobc image build` and by buildah, and compares the trees and the configurations.

As root, as a user with further ids, and as one with a single id; and what a kill leaves.
"""

import gzip
import hashlib
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "runtime"))
import user  # noqa: E402
from harness import Harness  # noqa: E402
from runtime import binary  # noqa: E402

import build_cases  # noqa: E402

# Where engines mount: whether an empty file or directory stays there is nobody's business.
MOUNTED = {"dev", "proc", "sys", "run", "etc/hosts", "etc/resolv.conf", "etc/hostname"}
SAME = ("User", "Env", "Cmd", "Entrypoint", "WorkingDir", "ExposedPorts", "Volumes", "Labels", "StopSignal", "OnBuild",
        "Shell", "Healthcheck")
MINE = "files of other owners become root's where a user has one id, so owners are not compared there"


def tree(layout, manifest):
    """The files that an image's layers make, without looking through anybody's unpacking."""
    files = {}
    for layer in manifest["layers"]:
        blob = layout / "blobs/sha256" / layer["digest"].split(":")[1]
        data = blob.read_bytes()
        data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        fresh = {}
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for entry in archive:
                path = "" if entry.name in (".", "./") else entry.name.removeprefix("./").strip("/")
                directory, _, name = path.rpartition("/")
                if name == ".wh..wh..opq":
                    gone = [other for other in files if other.startswith(directory + "/")]
                elif name.startswith(".wh."):
                    dead = f"{directory}/{name[4:]}".strip("/")
                    gone = [other for other in files if other == dead or other.startswith(dead + "/")]
                else:
                    gone = []
                    if path in files and not (entry.isdir() and files[path][0] == "d"):
                        gone = [other for other in files if other == path or other.startswith(path + "/")]
                    fresh[path] = told(archive, entry, {**files, **fresh})
                for other in gone:
                    files.pop(other)
        files.update(fresh)
    return {path: seen for path, seen in files.items() if path and path not in MOUNTED and
            not path.startswith(("dev/", "proc/", "sys/", "run/"))}


def told(archive, entry, files):
    if entry.islnk():
        return files[entry.linkname.removeprefix("./").strip("/")]
    owner = (entry.uid, entry.gid)
    if entry.isdir():
        return ("d", entry.mode & 0o7777, owner, "")
    if entry.issym():
        return ("l", 0, owner, entry.linkname)
    if entry.isfile():
        return ("f", entry.mode & 0o7777, owner, hashlib.sha256(archive.extractfile(entry).read()).hexdigest())
    return (entry.type.decode(), entry.mode & 0o7777, owner, (entry.devmajor, entry.devminor))


def image(layout, name=None):
    """A manifest and its configuration in a layout; the only one unless named."""
    entries = json.loads((layout / "index.json").read_text())["manifests"]
    if name:
        entries = [entry for entry in entries if entry["annotations"]["org.opencontainers.image.ref.name"] == name]
    read = lambda digest: json.loads((layout / "blobs/sha256" / digest.split(":")[1]).read_text())  # noqa: E731
    manifest = read(entries[0]["digest"])
    return manifest, read(manifest["config"]["digest"])


def differences(theirs, ours, owners=True, whose="buildah"):
    for path in sorted(theirs.keys() | ours.keys()):
        a, b = theirs.get(path), ours.get(path)
        if a and b and not owners:
            a, b = (a[0], a[1] & 0o1777, a[3]), (b[0], b[1] & 0o1777, b[3])
        if a != b:
            yield f"{path}: {whose} has {a}, jobc has {b}"


def settings(theirs, ours, whose="buildah"):
    for key in SAME:
        a, b = theirs["config"].get(key) or None, ours["config"].get(key) or None
        if key == "Labels" and a:
            a = {name: value for name, value in a.items() if not name.startswith("io.buildah")} or None
        if key == "WorkingDir":
            a, b = a or "/", b or "/"
        if a != b:
            yield f"{key}: {whose} has {a}, jobc has {b}"


class Scene:
    """The base, a context a case, and what buildah builds of them."""

    def __init__(self, harness, directory):
        self.harness, self.directory = harness, directory
        busybox = Path("/bin/busybox")
        if not busybox.exists():
            harness.skip("busybox-static is not installed")
        self.program = directory / "jobc"
        shutil.copy2(binary(), self.program)
        self.program.chmod(0o755)
        root = directory / "base"
        for name in ("bin", "etc", "tmp", "root", "home"):
            (root / name).mkdir(parents=True)
        (root / "tmp").chmod(0o1777)
        (root / "root").chmod(0o700)
        shutil.copy2(busybox, root / "bin/busybox")
        for applet in subprocess.run([busybox, "--list"], capture_output=True, text=True).stdout.split():
            if applet != "busybox":
                (root / "bin" / applet).symlink_to("busybox")
        (root / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\ndaemon:x:1:1::/:/bin/sh\n")
        (root / "etc/group").write_text("root:x:0:\ndaemon:x:1:\nmail:x:8:daemon\n")
        self.base = directory / "base.tar"
        subprocess.run(["tar", "--owner=0", "--group=0", "--numeric-owner", "-C", root, "-cf", self.base, "."], check=True)
        self.base.chmod(0o644)
        self.begin()

    def begin(self):
        """Gives the base to the other builder."""
        self.buildah_tool = self.harness.tool("buildah")
        self.buildah("from", "--name", "base", "scratch")
        self.buildah("add", "-q", "base", self.base, "/")
        # As importing does it: nobody says where programs are looked for, but everybody looks there.
        self.buildah("commit", "-q", "--format", "docker", "base", "localhost/base")

    def buildah(self, *words):
        options = ["--root", self.directory / "buildah", "--runroot", self.directory / "buildah-run", "--storage-driver", "vfs"]
        done = subprocess.run([self.buildah_tool, *map(str, options), *map(str, words)], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"buildah {words[0]}: {done.stderr}")
        return done.stdout

    def context(self, name, text):
        directory = self.directory / "contexts" / name
        directory.mkdir(parents=True, exist_ok=True)
        for path, content in build_cases.CONTEXT.items():
            (directory / path).parent.mkdir(parents=True, exist_ok=True)
            (directory / path).write_text(content)
        for path in directory.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        for path, mode in build_cases.MODES.items():
            # Whoever builds must be able to read it.
            (directory / path).chmod(mode | 0o044)
        for path, target in build_cases.LINKS.items():
            if not (directory / path).is_symlink():
                (directory / path).symlink_to(target)
        with tarfile.open(directory / "tree.tar.gz", "w:gz") as archive:
            for name_in, mode, owner in (("top", 0o755, (0, 0)), ("top/tool", 0o4755, (5, 6))):
                entry = tarfile.TarInfo(name_in)
                entry.mode, (entry.uid, entry.gid), entry.mtime = mode, owner, 1_000_000_000
                if name_in == "top":
                    entry.type = tarfile.DIRTYPE
                    archive.addfile(entry)
                else:
                    entry.size = 4
                    archive.addfile(entry, io.BytesIO(b"tool"))
        (directory / ".dockerignore").write_text(build_cases.IGNORES.get(name, ".dockerignore\nDockerfile\ntree.tar.gz\n"
                                              if "archive" not in name else ""))
        (directory / "Dockerfile").write_text(text)
        return directory

    def theirs(self, name, context):
        self.buildah("bud", "-q", "--isolation", "chroot", "--format", "docker", "--layers=false", "-t", name,
                     "--build-arg", "TAG=localhost/base", "-f", self.their_file(context), context)
        layout = self.directory / "theirs" / name
        layout.parent.mkdir(exist_ok=True)
        self.buildah("push", "-q", "--format", "oci", name, f"oci:{layout}:x")
        docker = json.loads(self.buildah("inspect", "--type", "image", name))["Docker"]
        manifest, _ = image(layout)
        return tree(layout, manifest), {"config": {key: docker["config"].get(key) for key in SAME}}

    def their_file(self, context):
        text = (context / "Dockerfile").read_text().replace("FROM base", "FROM localhost/base")
        path = self.directory / "theirs.Dockerfile"
        path.write_text(text)
        return path


class Builder:
    """Our builder, as somebody."""

    def __init__(self, scene, who=None):
        self.scene, self.who = scene, who
        self.home = scene.directory / f"home-{who.name if who else 'root'}"
        self.home.mkdir(mode=0o700)
        if who:
            os.chown(self.home, who.uid, who.gid)
        self.store = self.home / "images"
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "XDG_RUNTIME_DIR": str(self.home),
                            "JOBC_IMAGE_ROOT": str(self.store), "JOBC_COLOR": "never"}
        done = self.run("image", "import", scene.base, "--tag", "base", "--quiet")
        if done.returncode != 0:
            raise RuntimeError(done.stderr)

    def argv(self, *words):
        return [*(self.who.prefix() if self.who else []), str(self.scene.program), *map(str, words)]

    def run(self, *words, seconds=120):
        return subprocess.run(self.argv(*words), env=self.environment, capture_output=True, text=True, timeout=seconds,
                              cwd="/", stdin=subprocess.DEVNULL)

    def build(self, name, context, *more):
        return self.run("image", "build", "--builder", "embedded", "-t", name, *more, context)

    def left(self):
        """What a build must not leave."""
        work = self.store / "cache/work"
        for path in work.iterdir() if work.exists() else []:
            yield f"{path} is left"
        if str(self.store) in Path("/proc/mounts").read_text():
            yield "a mount is left"


def compare(harness, scene, builders):
    for name, text in build_cases.CASES.items():
        if not harness.wants(name):
            continue
        context = scene.context(name, text)
        try:
            theirs, their_settings = scene.theirs(f"case-{name}", context)
        except RuntimeError as error:
            harness.check(f"{name} by buildah", [str(error)[-400:]])
            continue
        for who, builder in builders.items():
            done = builder.build(f"case-{name}", context)
            problems = []
            one_id = who == "one id"
            if one_id and name in build_cases.NEEDS_IDS:
                if done.returncode == 0 or "/etc/subuid" not in done.stderr:
                    problems = [f"exit {done.returncode}, and no word of what is missing: {done.stderr[-600:]}"]
            elif done.returncode != 0:
                problems = [f"exit {done.returncode}: {done.stderr[-600:]}"]
            else:
                manifest, config = image(builder.store, f"docker.io/library/case-{name}:latest")
                problems += differences(theirs, tree(builder.store, manifest), owners=not one_id)
                problems += settings(their_settings, config)
                problems += builder.left()
                if one_id:
                    harness.note(MINE)
            harness.check(f"{name} as {who}", problems)


def killed(harness, scene, builder, times=8):
    """A build that is killed goes on, and leaves nothing half there."""
    text = "FROM base\n" + "".join(f"RUN echo {number} > /f{number} && sleep 0.05\n" for number in range(6))
    context = scene.context("killed", text)
    chance, numbers = random.Random(7), set()
    for _ in range(times):
        process = subprocess.Popen(builder.argv("image", "build", "--builder", "embedded", "-t", "killed", context),
                                   env=builder.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        numbers.add(str(process.pid))
        time.sleep(chance.uniform(0.02, 0.6))
        process.send_signal(signal.SIGKILL)
        process.wait()
        time.sleep(0.1)
    done = builder.build("killed", context)
    problems = [] if done.returncode == 0 else [done.stderr[-600:]]
    if not problems:
        manifest, _ = image(builder.store, "docker.io/library/killed:latest")
        files = tree(builder.store, manifest)
        problems += [f"/f{number} is missing" for number in range(6) if f"f{number}" not in files]
    verified = builder.run("image", "verify")
    if verified.returncode != 0:
        problems.append(verified.stdout + verified.stderr)
    problems += builder.left()
    # Named after the process: another test may build at the same time.
    groups = [str(path) for path in Path("/sys/fs/cgroup").glob("**/jobc/build/build-*") if path.name.split("-")[1] in numbers]
    problems += [f"the group {path} is left" for path in groups]
    harness.check("killed at any moment", problems)


def killed_before_record(harness, scene, builder):
    """A build killed between creating a container's cgroup and recording it: the next build removes the cgroup."""
    work = builder.store / "cache/work/4194304-0"
    container = "build-4194304-0"
    (work / "containers" / container).mkdir(parents=True)
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    groups = [Path(mount[1]) / "jobc/build" / container for mount in mounts if mount[2] in ("cgroup", "cgroup2")]
    for group in groups:
        try:
            group.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            harness.note(f"{group} cannot be created: {error}")
    there = [group for group in groups if group.is_dir()]
    if not there:
        harness.note("no cgroup can be created, so none is left")
    done = builder.build("killed", scene.context("killed-before-record", "FROM base\n"))
    problems = [] if done.returncode == 0 else [done.stderr[-600:]]
    problems += [f"the group {group} is left" for group in there if group.is_dir()]
    problems += [f"{work} is left"] if work.exists() else []
    harness.check("killed before its cgroup was recorded", problems)


def main():
    harness = Harness("build", __doc__)
    harness.parser.add_argument("--as", dest="who", metavar="TEXT", default="", help="only as who is called so")
    harness.parse()
    if os.geteuid() != 0:
        harness.skip("only root can become the users that builds run as")
    with tempfile.TemporaryDirectory(prefix="jobc-build-") as directory:
        directory = Path(directory)
        directory.chmod(0o755)
        scene = Scene(harness, directory)
        people = {"root": lambda: None, "further ids": user.with_range, "one id": user.without_range}
        if not shutil.which("newuidmap"):
            people.pop("further ids")
            harness.note("newuidmap is not installed, so nobody has further ids")
        builders = {name: Builder(scene, who()) for name, who in people.items() if harness.options.who in name}
        compare(harness, scene, builders)
        if harness.wants("killed") and "root" in builders:
            killed(harness, scene, builders["root"])
            killed_before_record(harness, scene, builders["root"])
    harness.end()


if __name__ == "__main__":
    main()
