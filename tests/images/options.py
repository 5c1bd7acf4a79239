#!/usr/bin/env python3
"""Tests `jobc image tag`, `history`, `diff` and `mount`, and options of `jobc image build`: named contexts, a build cache in
docker-registry, outputs, files with digests, hosts, shared memory, annotations, several platforms, findings.

skopeo reads what is written. `--only TEXT` runs the cases whose name contains TEXT.
"""

import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

from home import Home
from harness import Harness, scratch
from registry import command, registry, unexpected_result
from runtime import binary


def context(home, text, **files):
    """A build context with a Dockerfile."""
    directory = home.directory / "context"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    (directory / "Dockerfile").write_text(text)
    for name, content in files.items():
        (directory / name).write_text(content)
    return directory


def build(home, text, *words, files=(), code=0, **environment):
    directory = context(home, text, **dict(files))
    result = home.run("image", "build", "--builder", "embedded", *words, directory, seconds=120, **environment)
    if result.returncode != code:
        raise SystemExit(f"options: exit code {result.returncode} of a build, not {code}: {result.stdout}{result.stderr}")
    return result


BUSYBOX = "FROM scratch\nCOPY busybox /bin/sh\n"


def with_busybox(home, text, *words, **more):
    """A build on an image that has a static shell."""
    directory = context(home, text)
    shutil.copy(shutil.which("busybox"), directory / "busybox")
    return home.run("image", "build", "--builder", "embedded", *words, directory, seconds=120, **more)


def tags(home):
    build(home, "FROM scratch\nCOPY f /f\n", "-t", "one", files={"f": "1"})
    yield from unexpected_result(home.run("image", "tag", "one", "two:v2"))
    listed = json.loads(home.run("image", "ls", "--format", "json").stdout)
    digests = {image["name"].rsplit("/", 1)[-1]: image["digest"] for image in listed}
    if digests.get("one:latest") is None or digests.get("one:latest") != digests.get("two:v2"):
        yield f"the names are {digests}"
    yield from unexpected_result(home.run("image", "tag", "one", f"x@{digests.get('one:latest')}"), 2, "a tag cannot have a digest")
    yield from unexpected_result(home.run("image", "tag", "absent", "x"), 2, "is not in the image store")


def history(home):
    build(home, "FROM scratch\nCOPY f /a-name-that-is-long-enough-to-be-cut-off-in-a-table-of-sixty-characters\nENV A=1\n", "-t", "one",
          files={"f": "1"})
    steps = json.loads(home.run("image", "history", "one", "--format", "json").stdout)
    if [step["created_by"].split()[0] for step in steps] != ["ENV", "COPY"]:
        yield f"the steps are {steps}"
    if steps[0]["layer"] is not None or not steps[1]["layer"].startswith("sha256:") or steps[1]["size_bytes"] <= 0:
        yield f"the layers are {steps}"
    short, whole = (home.run("image", "history", "one", *words).stdout for words in ([], ["--no-trunc"]))
    if "…" not in short or "sixty-characters" in short or "sixty-characters" not in whole or " B" not in short:
        yield f"the tables are {short}{whole}"
    numbers = home.run("image", "history", "one", "--human=false").stdout
    if str(steps[1]["size_bytes"]) not in numbers or " B " in numbers:
        yield f"without --human: {numbers}"


def diff(home):
    build(home, "FROM scratch\nCOPY a /d/a\nCOPY b /d/b\nCOPY b /gone/b\n", "-t", "base", files={"a": "1", "b": "2"})
    directory = context(home, "FROM base\nCOPY a /d/a\nCOPY c /d/c\n", a="other", c="3")
    home.run("image", "build", "--builder", "embedded", "-t", "next", directory)
    for words in (["base", "next"], ["next"]):
        result = home.run("image", "diff", *words)
        yield from unexpected_result(result)
        if result.stdout != "C /d/a\nA /d/c\n":
            yield f"diff {words}: {result.stdout}"
    back = home.run("image", "diff", "next", "base", "--format", "json").stdout
    if json.loads(back) != [{"change": "changed", "path": "/d/a"}, {"change": "deleted", "path": "/d/c"}]:
        yield f"the other way: {back}"
    yield from unexpected_result(home.run("image", "diff", "base"), 2, "the base of `base` is not in the image store")


def mounts(home):
    build(home, "FROM scratch\nCOPY a /d/a\nCOPY b /d/b\n", "-t", "one", files={"a": "1", "b": "2"})
    there = home.directory / "a place"
    there.mkdir()
    mounted = [Path(home.run("image", "mount", *words).stdout.strip()) for words in (["one", there], ["one"])]
    try:
        for path in mounted:
            if (path / "d/a").read_text() + (path / "d/b").read_text() != "12":
                yield f"{path} has other files"
            try:
                (path / "new").write_text("")
                yield f"{path} can be written to"
            except OSError:
                pass
        listed = json.loads(home.run("image", "mount", "--format", "json").stdout)
        if sorted(entry["directory"] for entry in listed) != sorted(map(str, mounted)) or "one" not in str(listed):
            yield f"the list is {listed}"
        # A mounted image is kept without a name.
        yield from unexpected_result(home.run("image", "rm", "one"))
        yield from unexpected_result(home.run("image", "gc", "--cache"))
        if (mounted[1] / "d/a").read_text() != "1":
            yield "a mounted image was collected"
        held = os.open(there, os.O_RDONLY)
        yield from unexpected_result(home.run("image", "umount", there), 1, "it is in use")
        os.close(held)
    finally:
        result = home.run("image", "umount", "--all")
    yield from unexpected_result(result)
    if home.run("image", "mount", "--format", "json").stdout.strip() != "[]" or mounted[1].exists():
        yield "mounts are left"
    yield from unexpected_result(home.run("image", "gc", "--cache"))
    if list((home.store / "unpacked").glob("*/*")):
        yield "an unmounted image was not collected"


def refused_mounts(home):
    build(home, "FROM scratch\nCOPY a /a\n", "-t", "one", files={"a": "1"})
    yield from unexpected_result(home.run("image", "mount", "one", "/nowhere"), 2, "cannot mount on `/nowhere`: no such file")
    yield from unexpected_result(home.run("image", "umount", "/nowhere"), 2, "no image is mounted for `/nowhere`")
    command("chown", "-R", "65534:65534", home.directory)
    home.directory.parent.chmod(0o755)
    nobody = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *home_command("image", "mount", "one")],
                            env=home.environment, cwd="/", capture_output=True, text=True, check=False)
    yield from unexpected_result(nobody, 3, "mounting an image needs root", "--map-root-user")


def home_command(*words):
    return [str(binary()), *words]


def contexts(home):
    more = home.directory / "more"
    more.mkdir()
    (more / "x").write_text("from the directory")
    (more / "left").write_text("")
    (more / ".dockerignore").write_text("left\n")
    build(home, "FROM scratch\nCOPY f /f\n", "-t", "other", files={"f": "from the image"})
    layout = home.directory / "layout"
    command("mkdir", layout)
    archive = home.directory / "other.tar"
    home.run("image", "save", "-o", archive, "other")
    command("tar", "-xf", archive, "-C", layout)
    text = "FROM base\nCOPY --from=more x /x\nCOPY --from=img f /g\n"
    result = build(home, text, "-t", "all", "--build-context", f"base=oci-layout:{layout}", "--build-context", f"more={more}",
                   "--build-context", "img=docker-image://other", "-o", home.directory / "out")
    got = {str(path.relative_to(home.directory / "out")): path.read_text() for path in (home.directory / "out").rglob("*") if path.is_file()}
    if got != {"f": "from the image", "g": "from the image", "x": "from the directory"}:
        yield f"the files are {got}: {result.stderr}"
    refused = build(home, "FROM more\n", "--build-context", f"more={more}", code=1)
    yield from unexpected_result(refused, 1, "the build context `more` is a directory, not an image")
    ignored = build(home, "FROM scratch\nCOPY --from=more left /\n", "--build-context", f"more={more}", code=1)
    yield from unexpected_result(ignored, 1, "no such file or directory")
    yield from unexpected_result(build(home, text, "--build-context", "more", code=2), 2, "invalid build context `more`")


def caches(home):
    with registry(home.directory / "registry") as host:
        cache = f"type=registry,ref={host}/cache:1"
        text = BUSYBOX + "RUN echo hello > /made\nENV A=1\nRUN true\n"
        yield from unexpected_result(with_busybox(home, text, "-t", "one", "--plain-http", "--cache-to", cache))
        image = json.loads(command("skopeo", "inspect", "--tls-verify=false", f"docker://{host}/cache:1").stdout)
        if len(image["Layers"]) != 2:
            yield f"the cache has the layers {image['Layers']}"
        other = Home(home.directory / "other")
        other.directory.mkdir()
        without = with_busybox(other, text, "-t", "two", "--plain-http", "--no-cache", "--cache-from", cache)
        yield from unexpected_result(without)
        shutil.rmtree(other.store)
        result = with_busybox(other, text, "-t", "two", "--plain-http", "--cache-from", cache, "--format", "json")
        yield from unexpected_result(result)
        steps = [json.loads(line) for line in result.stderr.splitlines() + result.stdout.splitlines() if line.startswith("{")]
        cached = {step["text"].split()[0]: step["cached"] for step in steps if step.get("event") == "step"}
        if not (cached.get("RUN") and cached.get("COPY")):
            yield f"the steps are {cached}: {result.stderr}"
        if any("cache" in name for name in other.names()):
            yield f"the cache is an image of the user: {other.names()}"
        absent = with_busybox(other, text, "--plain-http", "--cache-from", f"type=registry,ref={host}/absent:1")
        yield from unexpected_result(absent, 0, "cannot be used")
        yield from other.store_problems()
    yield from unexpected_result(build(home, "FROM scratch\n", "--cache-to", "type=gha", code=2), 2, "unsupported type `gha`")


def outputs(home):
    directory = home.directory
    iid, metadata = directory / "iid", directory / "metadata.json"
    words = ["-t", "one", "--iidfile", iid, "--metadata-file", metadata, "--annotation", "a.b=c", "-o", f"type=oci,dest={directory}/oci.tar",
             "-o", f"type=tar,dest={directory}/files.tar", "-o", directory / "local"]
    result = build(home, "FROM scratch\nCOPY --chown=3:4 f /d/f\nCOPY f /gone\nCOPY --parents=false f /d/g\n", *words, files={"f": "1"})
    manifest = json.loads(command("skopeo", "inspect", "--raw", f"oci-archive:{directory}/oci.tar").stdout)
    if manifest.get("annotations") != {"a.b": "c"}:
        yield f"the annotations are {manifest.get('annotations')}"
    meta = json.loads(metadata.read_text())
    digest = iid.read_text()
    if meta["containerimage.digest"] != digest or meta["containerimage.config.digest"] != manifest["config"]["digest"] or \
            meta["image.name"] != "docker.io/library/one:latest" or meta["containerimage.descriptor"]["digest"] != digest:
        yield f"the metadata are {meta}, the digest {digest}"
    if digest not in result.stdout:
        yield f"printed: {result.stdout}"
    with tarfile.open(directory / "files.tar") as archive:
        names = {entry.name.removeprefix("./"): (entry.uid, entry.gid) for entry in archive if entry.isfile()}
    if names != {"d/f": (3, 4), "d/g": (0, 0), "gone": (0, 0)}:
        yield f"the archive has {names}"
    if (directory / "local/d/f").read_text() != "1" or (directory / "local/d/f").stat().st_uid != 3:
        yield "the directory has other files"
    again = build(home, "FROM scratch\nCOPY f /f\n", "-o", directory / "local", files={"f": "1"}, code=3)
    yield from unexpected_result(again, 3, "the directory is not empty")
    with open(directory / "stream.tar", "wb") as stream:
        subprocess.run([*home_command("image", "build", "--builder", "embedded", "-o", "-", str(directory / "context"))], env=home.environment,
                       stdout=stream, stderr=subprocess.DEVNULL, check=True)
    with tarfile.open(directory / "stream.tar") as archive:
        if "f" not in {name.removeprefix("./") for name in archive.getnames()}:
            yield f"stdout has {archive.getnames()}"
    if list((home.store / "cache/work").glob("*")):
        yield f"left in the store: {list((home.store / 'cache/work').glob('*'))}"


def commands(home):
    text = BUSYBOX + "RUN while read a b c; do echo $a $b; done < /etc/hosts > /hosts; while read a b c d; do [ $b = /dev/shm ] && echo $d; " \
        "done < /proc/mounts > /shm; true\n"
    out = home.directory / "out"
    result = with_busybox(home, text, "--add-host", "example.test:10.9.8.7", "--shm-size", "2m", "-o", out)
    yield from unexpected_result(result)
    if "10.9.8.7 example.test" not in (out / "hosts").read_text():
        yield f"/etc/hosts has {(out / 'hosts').read_text()}"
    if "size=2048k" not in (out / "shm").read_text():
        yield f"/dev/shm has {(out / 'shm').read_text()}"
    # A host is what the result may depend on.
    other = with_busybox(home, text, "--add-host", "example.test:10.9.8.6", "-o", home.directory / "again")
    yield from unexpected_result(other)
    if "10.9.8.6" not in (home.directory / "again/hosts").read_text():
        yield "the step was cached with another host"
    for words, expected in ((["--add-host", "x"], "invalid host `x`"), (["--shm-size", "much"], "invalid size `much`")):
        yield from unexpected_result(build(home, "FROM scratch\n", *words, code=2), 2, expected)


def platforms(home):
    text = "FROM scratch\nARG TARGETARCH\nCOPY f /$TARGETARCH\n"
    archive = home.directory / "both.tar"
    result = build(home, text, "--platform", "linux/amd64,linux/arm64", "-t", "both", "-o", f"type=oci,dest={archive}", files={"f": "1"})
    listed = json.loads(home.run("image", "ls", "--format", "json").stdout)
    if listed[0]["platforms"] != ["linux/amd64", "linux/arm64"] or len(listed) != 1:
        yield f"the images are {listed}: {result.stderr}"
    for architecture in ("amd64", "arm64"):
        config = json.loads(command("skopeo", "inspect", "--config", "--override-arch", architecture, f"oci-archive:{archive}").stdout)
        if config["architecture"] != architecture or architecture not in config["history"][-1]["created_by"].replace("$TARGETARCH", architecture):
            yield f"the configuration of {architecture} is {config}"
    build(home, text, "--platform", "linux/amd64,linux/arm64", "-o", home.directory / "out", files={"f": "1"})
    got = sorted(str(path.relative_to(home.directory / "out")) for path in (home.directory / "out").rglob("*") if path.is_file())
    if got != ["linux_amd64/amd64", "linux_arm64/arm64"]:
        yield f"the files are {got}"
    foreign = "s390x" if not Path("/proc/sys/fs/binfmt_misc/qemu-s390x").exists() else None
    if foreign:
        run = with_busybox(home, BUSYBOX + "RUN true\n", "--platform", f"linux/{foreign}")
        yield from unexpected_result(run, 1, f"no emulator `qemu-{foreign}` is registered", "qemu-user-static")
    refused = build(home, text, "--platform", "linux/amd64,linux/arm64", "-o", f"type=tar,dest={archive}", files={"f": "1"}, code=3)
    yield from unexpected_result(refused, 3, "an archive of files is for one platform")


def findings(home):
    text = "FROM scratch AS Base\nENV A=1\nFROM Base\nENV B=$A C=$UNKNOWN\nCOPY secret /\n"
    result = build(home, text, files={"secret": "", ".dockerignore": "secret\n"}, code=1)
    yield from unexpected_result(result, 1, "note[J0615]", "warning[J0613]: `$UNKNOWN` has no value", "warning[J0623]: `.dockerignore` excludes")
    build(home, "FROM scratch\nENV KNOWN=1\nCOPY f /\n", "-t", "base", files={"f": ""})
    # What a base image sets is known here.
    result = build(home, "FROM base\nENV A=$KNOWN B=$OTHER\n")
    yield from unexpected_result(result, 0, "warning[J0613]: `$OTHER` has no value")
    if "$KNOWN`" in result.stderr:
        yield f"a variable of the base is reported: {result.stderr}"
    if "J06" in build(home, "# check=skip=all\nFROM base\nENV A=$OTHER\nMAINTAINER x\n").stderr:
        yield "a skipped rule is reported"
    failed = build(home, "# check=error=true\nFROM base\nMAINTAINER x\n", code=1)
    yield from unexpected_result(failed, 1, "error[J0620]")


CASES = [tags, history, diff, mounts, refused_mounts, contexts, caches, outputs, commands, platforms, findings]


def main():
    harness = Harness("options", __doc__)
    harness.parse()
    for tool in ("skopeo", "docker-registry", "busybox", "setpriv"):
        harness.tool(tool)
    for case in CASES:
        if harness.wants(case.__name__):
            with scratch() as directory:
                home = Home(directory)
                harness.check(case.__name__, [*case(home), *home.store_problems()])
    harness.end()


if __name__ == "__main__":
    main()
