"""Builders of Dockerfiles: `jobc image build` as root and as users, and buildah; the trees and configurations that they make."""

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import build_cases
import needs
from home import assert_result
from runtime import binary

# Mount points of engines: an empty file or directory may be left there.
MOUNT_POINTS = {"dev", "proc", "sys", "run", "etc/hosts", "etc/resolv.conf", "etc/hostname"}
COMPARED_FIELDS = ("User", "Env", "Cmd", "Entrypoint", "WorkingDir", "ExposedPorts", "Volumes", "Labels", "StopSignal", "OnBuild",
        "Shell", "Healthcheck")


def tree(layout, manifest):
    """The files of an image, computed from its layers without unpacking."""
    files = {}
    for layer in manifest["layers"]:
        blob = layout / "blobs/sha256" / layer["digest"].split(":")[1]
        data = blob.read_bytes()
        data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        added = {}
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for entry in archive:
                path = "" if entry.name in (".", "./") else entry.name.removeprefix("./").strip("/")
                directory, _, name = path.rpartition("/")
                if name == ".wh..wh..opq":
                    deleted = [other for other in files if other.startswith(directory + "/")]
                elif name.startswith(".wh."):
                    removed = f"{directory}/{name[4:]}".strip("/")
                    deleted = [other for other in files if other == removed or other.startswith(removed + "/")]
                else:
                    deleted = []
                    if path in files and not (entry.isdir() and files[path][0] == "d"):
                        deleted = [other for other in files if other == path or other.startswith(path + "/")]
                    added[path] = describe(archive, entry, {**files, **added})
                for other in deleted:
                    files.pop(other)
        files.update(added)
    return {path: seen for path, seen in files.items() if path and path not in MOUNT_POINTS and
            not path.startswith(("dev/", "proc/", "sys/", "run/"))}


def describe(archive, entry, files):
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
    """The manifest and configuration of an image in a layout [default: the only image]."""
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
    for key in COMPARED_FIELDS:
        a, b = theirs["config"].get(key) or None, ours["config"].get(key) or None
        if key == "Labels" and a:
            a = {name: value for name, value in a.items() if not name.startswith("io.buildah")} or None
        if a != b:
            yield f"{key}: {whose} has {a}, jobc has {b}"


class Fixture:
    """The base image, a context for each case, and what buildah builds from them."""

    def __init__(self, directory):
        self.directory = directory
        busybox = Path("/bin/busybox")
        if not busybox.exists():
            needs.missing("busybox-static")
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
        self.prepare_builder()

    def prepare_builder(self):
        """Imports the base image into the other builder."""
        self.buildah_tool = needs.tool("buildah")
        self.buildah("from", "--name", "base", "scratch")
        self.buildah("add", "-q", "base", self.base, "/")
        # As `jobc image import` does it: without PATH in the configuration.
        self.buildah("commit", "-q", "--format", "docker", "base", "localhost/base")

    def buildah(self, *words):
        options = ["--root", self.directory / "buildah", "--runroot", self.directory / "buildah-run", "--storage-driver", "vfs"]
        result = subprocess.run([self.buildah_tool, *map(str, options), *map(str, words)], capture_output=True, text=True)
        assert result.returncode == 0, f"buildah {words[0]}: {result.stderr}"
        return result.stdout

    def context(self, name, text):
        directory = self.directory / "contexts" / name
        directory.mkdir(parents=True, exist_ok=True)
        for path, content in build_cases.CONTEXT.items():
            (directory / path).parent.mkdir(parents=True, exist_ok=True)
            (directory / path).write_text(content)
        for path in directory.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        for path, mode in build_cases.MODES.items():
            # The user who builds must be able to read it.
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

    def build_with_buildah(self, name, context):
        self.buildah("bud", "-q", "--isolation", "chroot", "--format", "docker", "--layers=false", "-t", name,
                     "--build-arg", "TAG=localhost/base", "-f", self.buildah_dockerfile(context), context)
        layout = self.directory / "theirs" / name
        layout.parent.mkdir(exist_ok=True)
        self.buildah("push", "-q", "--format", "oci", name, f"oci:{layout}:x")
        docker = json.loads(self.buildah("inspect", "--type", "image", name))["Docker"]
        manifest, _ = image(layout)
        return tree(layout, manifest), {"config": {key: docker["config"].get(key) for key in COMPARED_FIELDS}}

    def buildah_dockerfile(self, context):
        text = (context / "Dockerfile").read_text().replace("FROM base", "FROM localhost/base")
        path = self.directory / "theirs.Dockerfile"
        path.write_text(text)
        return path


class Builder:
    """Our builder, as root or as a user."""

    def __init__(self, fixture, account=None):
        self.fixture, self.account = fixture, account
        self.home = fixture.directory / f"home-{account.name if account else 'root'}"
        self.home.mkdir(mode=0o700)
        if account:
            os.chown(self.home, account.uid, account.gid)
        self.store = self.home / "images"
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "XDG_RUNTIME_DIR": str(self.home),
                            "JOBC_IMAGE_ROOT": str(self.store), "JOBC_COLOR": "never"}
        assert_result(self.run("image", "import", fixture.base, "--tag", "base", "--quiet"))

    def argv(self, *words):
        return [*(self.account.prefix() if self.account else []), str(self.fixture.program), *map(str, words)]

    def run(self, *words, seconds=120):
        return subprocess.run(self.argv(*words), env=self.environment, capture_output=True, text=True, timeout=seconds,
                              cwd="/", stdin=subprocess.DEVNULL)

    def build(self, name, context, *more):
        return self.run("image", "build", "--builder", "embedded", "-t", name, *more, context)

    def leftovers(self):
        """What a build has left: work directories and mounts."""
        work = self.store / "cache/work"
        for path in work.iterdir() if work.exists() else []:
            yield f"{path} is left"
        if str(self.store) in Path("/proc/mounts").read_text():
            yield "a mount is left"
