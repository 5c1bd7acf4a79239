"""Tests `jobc image tag`, `history`, `diff` and `mount`, and options of `jobc image build`: named contexts, a build cache in
docker-registry, outputs, files with digests, hosts, shared memory, annotations, several platforms, findings.

skopeo reads what is written.
"""

import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from home import Home, assert_result
from registry import command, registry
from runtime import binary

pytestmark = [pytest.mark.duration(15), pytest.mark.needs("skopeo", "docker-registry", "busybox", "setpriv")]


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
    assert_result(result, code)
    return result


BUSYBOX = "FROM scratch\nCOPY busybox /bin/sh\n"


def with_busybox(home, text, *words, **more):
    """A build on an image that has a static shell."""
    directory = context(home, text)
    shutil.copy(shutil.which("busybox"), directory / "busybox")
    return home.run("image", "build", "--builder", "embedded", *words, directory, seconds=120, **more)


def test_a_tag_is_another_name_of_an_image(home):
    build(home, "FROM scratch\nCOPY f /f\n", "-t", "one", files={"f": "1"})
    assert_result(home.run("image", "tag", "one", "two:v2"))
    listed = json.loads(home.run("image", "ls", "--format", "json").stdout)
    digests = {image["name"].rsplit("/", 1)[-1]: image["digest"] for image in listed}
    assert digests.get("one:latest") is not None and digests.get("one:latest") == digests.get("two:v2"), f"the names are {digests}"
    assert_result(home.run("image", "tag", "one", f"x@{digests.get('one:latest')}"), 2, "a tag cannot have a digest")
    assert_result(home.run("image", "tag", "absent", "x"), 2, "is not in the image store")


def test_the_history_lists_the_steps_with_their_layers(home):
    build(home, "FROM scratch\nCOPY f /a-name-that-is-long-enough-to-be-cut-off-in-a-table-of-sixty-characters\nENV A=1\n", "-t", "one",
          files={"f": "1"})
    steps = json.loads(home.run("image", "history", "one", "--format", "json").stdout)
    assert [step["created_by"].split()[0] for step in steps] == ["ENV", "COPY"], f"the steps are {steps}"
    assert steps[0]["layer"] is None and steps[1]["layer"].startswith("sha256:") and steps[1]["size_bytes"] > 0, f"the layers are {steps}"
    short, whole = (home.run("image", "history", "one", *words).stdout for words in ([], ["--no-trunc"]))
    assert "…" in short and "sixty-characters" not in short and "sixty-characters" in whole and " B" in short, f"the tables are {short}{whole}"
    numbers = home.run("image", "history", "one", "--human=false").stdout
    assert str(steps[1]["size_bytes"]) in numbers and " B " not in numbers, f"without --human: {numbers}"


def test_a_diff_lists_the_changes_between_images(home):
    build(home, "FROM scratch\nCOPY a /d/a\nCOPY b /d/b\nCOPY b /gone/b\n", "-t", "base", files={"a": "1", "b": "2"})
    directory = context(home, "FROM base\nCOPY a /d/a\nCOPY c /d/c\n", a="other", c="3")
    home.run("image", "build", "--builder", "embedded", "-t", "next", directory)
    for words in (["base", "next"], ["next"]):
        result = home.run("image", "diff", *words)
        assert_result(result)
        assert result.stdout == "C /d/a\nA /d/c\n", f"diff {words}: {result.stdout}"
    back = home.run("image", "diff", "next", "base", "--format", "json").stdout
    assert json.loads(back) == [{"change": "changed", "path": "/d/a"}, {"change": "deleted", "path": "/d/c"}], f"the other way: {back}"
    assert_result(home.run("image", "diff", "base"), 2, "the base of `base` is not in the image store")


def test_a_mounted_image_is_read_only_and_kept(home):
    build(home, "FROM scratch\nCOPY a /d/a\nCOPY b /d/b\n", "-t", "one", files={"a": "1", "b": "2"})
    there = home.directory / "a place"
    there.mkdir()
    mounted = [Path(home.run("image", "mount", *words).stdout.strip()) for words in (["one", there], ["one"])]
    try:
        for path in mounted:
            assert (path / "d/a").read_text() + (path / "d/b").read_text() == "12", f"{path} has other files"
            with pytest.raises(OSError):
                (path / "new").write_text("")
        listed = json.loads(home.run("image", "mount", "--format", "json").stdout)
        assert sorted(entry["directory"] for entry in listed) == sorted(map(str, mounted)) and "one" in str(listed), f"the list is {listed}"
        # A mounted image is kept without a name.
        assert_result(home.run("image", "rm", "one"))
        assert_result(home.run("image", "gc", "--cache"))
        assert (mounted[1] / "d/a").read_text() == "1", "a mounted image was collected"
        held = os.open(there, os.O_RDONLY)
        assert_result(home.run("image", "umount", there), 1, "it is in use")
        os.close(held)
    finally:
        result = home.run("image", "umount", "--all")
    assert_result(result)
    assert home.run("image", "mount", "--format", "json").stdout.strip() == "[]" and not mounted[1].exists(), "mounts are left"
    assert_result(home.run("image", "gc", "--cache"))
    assert not list((home.store / "unpacked").glob("*/*")), "an unmounted image was not collected"


def test_a_mount_that_is_not_possible_is_refused(home):
    build(home, "FROM scratch\nCOPY a /a\n", "-t", "one", files={"a": "1"})
    assert_result(home.run("image", "mount", "one", "/nowhere"), 2, "cannot mount on `/nowhere`: no such file")
    assert_result(home.run("image", "umount", "/nowhere"), 2, "no image is mounted for `/nowhere`")
    command("chown", "-R", "65534:65534", home.directory)
    unprivileged = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *home_command("image", "mount", "one")],
                            env=home.environment, cwd="/", capture_output=True, text=True, check=False)
    assert_result(unprivileged, 3, "mounting an image needs root", "--map-root-user")


def home_command(*words):
    return [str(binary()), *words]


def test_named_contexts_are_directories_layouts_and_images(home):
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
    assert got == {"f": "from the image", "g": "from the image", "x": "from the directory"}, f"the files are {got}: {result.stderr}"
    refused = build(home, "FROM more\n", "--build-context", f"more={more}", code=1)
    assert_result(refused, 1, "the build context `more` is a directory, not an image")
    ignored = build(home, "FROM scratch\nCOPY --from=more left /\n", "--build-context", f"more={more}", code=1)
    assert_result(ignored, 1, "no such file or directory")
    assert_result(build(home, text, "--build-context", "more", code=2), 2, "invalid build context `more`")


def test_a_build_cache_is_kept_in_a_registry(home):
    with registry(home.directory / "registry") as host:
        cache = f"type=registry,ref={host}/cache:1"
        text = BUSYBOX + "RUN echo hello > /made\nENV A=1\nRUN true\n"
        assert_result(with_busybox(home, text, "-t", "one", "--plain-http", "--cache-to", cache))
        image = json.loads(command("skopeo", "inspect", "--tls-verify=false", f"docker://{host}/cache:1").stdout)
        assert len(image["Layers"]) == 2, f"the cache has the layers {image['Layers']}"
        other = Home(home.directory / "other")
        without = with_busybox(other, text, "-t", "two", "--plain-http", "--no-cache", "--cache-from", cache)
        assert_result(without)
        shutil.rmtree(other.store)
        result = with_busybox(other, text, "-t", "two", "--plain-http", "--cache-from", cache, "--format", "json")
        assert_result(result)
        steps = [json.loads(line) for line in result.stderr.splitlines() + result.stdout.splitlines() if line.startswith("{")]
        cached = {step["text"].split()[0]: step["cached"] for step in steps if step.get("event") == "step"}
        assert cached.get("RUN") and cached.get("COPY"), f"the steps are {cached}: {result.stderr}"
        assert not any("cache" in name for name in other.names()), f"the cache is an image of the user: {other.names()}"
        absent = with_busybox(other, text, "--plain-http", "--cache-from", f"type=registry,ref={host}/absent:1")
        assert_result(absent, 0, "cannot be used")
        assert not list(other.store_problems())
    assert_result(build(home, "FROM scratch\n", "--cache-to", "type=gha", code=2), 2, "unsupported type `gha`")


def test_a_build_writes_the_requested_outputs(home):
    directory = home.directory
    iid, metadata = directory / "iid", directory / "metadata.json"
    words = ["-t", "one", "--iidfile", iid, "--metadata-file", metadata, "--annotation", "a.b=c", "-o", f"type=oci,dest={directory}/oci.tar",
             "-o", f"type=tar,dest={directory}/files.tar", "-o", directory / "local"]
    result = build(home, "FROM scratch\nCOPY --chown=3:4 f /d/f\nCOPY f /gone\nCOPY --parents=false f /d/g\n", *words, files={"f": "1"})
    manifest = json.loads(command("skopeo", "inspect", "--raw", f"oci-archive:{directory}/oci.tar").stdout)
    assert manifest.get("annotations") == {"a.b": "c"}, f"the annotations are {manifest.get('annotations')}"
    meta = json.loads(metadata.read_text())
    digest = iid.read_text()
    seen = meta["containerimage.digest"], meta["containerimage.descriptor"]["digest"], meta["containerimage.config.digest"], meta["image.name"]
    assert seen == (digest, digest, manifest["config"]["digest"], "docker.io/library/one:latest"), meta
    assert digest in result.stdout, f"printed: {result.stdout}"
    with tarfile.open(directory / "files.tar") as archive:
        names = {entry.name.removeprefix("./"): (entry.uid, entry.gid) for entry in archive if entry.isfile()}
    assert names == {"d/f": (3, 4), "d/g": (0, 0), "gone": (0, 0)}, f"the archive has {names}"
    assert (directory / "local/d/f").read_text() == "1" and (directory / "local/d/f").stat().st_uid == 3, "the directory has other files"
    again = build(home, "FROM scratch\nCOPY f /f\n", "-o", directory / "local", files={"f": "1"}, code=2)
    assert_result(again, 2, "the directory is not empty")
    with open(directory / "stream.tar", "wb") as stream:
        subprocess.run([*home_command("image", "build", "--builder", "embedded", "-o", "-", str(directory / "context"))], env=home.environment,
                       stdout=stream, stderr=subprocess.DEVNULL, check=True)
    with tarfile.open(directory / "stream.tar") as archive:
        assert "f" in {name.removeprefix("./") for name in archive.getnames()}, f"stdout has {archive.getnames()}"
    assert not list((home.store / "cache/work").glob("*")), f"left in the store: {list((home.store / 'cache/work').glob('*'))}"


def test_commands_have_the_hosts_and_shared_memory_of_the_options(home):
    text = BUSYBOX + "RUN while read a b c; do echo $a $b; done < /etc/hosts > /hosts; while read a b c d; do [ $b = /dev/shm ] && echo $d; " \
        "done < /proc/mounts > /shm; true\n"
    out = home.directory / "out"
    result = with_busybox(home, text, "--add-host", "example.test:10.9.8.7", "--shm-size", "2m", "-o", out)
    assert_result(result)
    assert "10.9.8.7 example.test" in (out / "hosts").read_text(), f"/etc/hosts has {(out / 'hosts').read_text()}"
    assert "size=2048k" in (out / "shm").read_text(), f"/dev/shm has {(out / 'shm').read_text()}"
    # A host is what the result may depend on.
    other = with_busybox(home, text, "--add-host", "example.test:10.9.8.6", "-o", home.directory / "again")
    assert_result(other)
    assert "10.9.8.6" in (home.directory / "again/hosts").read_text(), "the step was cached with another host"
    for words, expected in ((["--add-host", "x"], "invalid host `x`"), (["--shm-size", "much"], "invalid size `much`")):
        assert_result(build(home, "FROM scratch\n", *words, code=2), 2, expected)


def test_a_build_is_for_several_platforms(home):
    text = "FROM scratch\nARG TARGETARCH\nCOPY f /$TARGETARCH\n"
    archive = home.directory / "both.tar"
    result = build(home, text, "--platform", "linux/amd64,linux/arm64", "-t", "both", "-o", f"type=oci,dest={archive}", files={"f": "1"})
    listed = json.loads(home.run("image", "ls", "--format", "json").stdout)
    assert listed[0]["platforms"] == ["linux/amd64", "linux/arm64"] and len(listed) == 1, f"the images are {listed}: {result.stderr}"
    for architecture in ("amd64", "arm64"):
        config = json.loads(command("skopeo", "inspect", "--config", "--override-arch", architecture, f"oci-archive:{archive}").stdout)
        assert config["architecture"] == architecture
        assert architecture in config["history"][-1]["created_by"].replace("$TARGETARCH", architecture)
    build(home, text, "--platform", "linux/amd64,linux/arm64", "-o", home.directory / "out", files={"f": "1"})
    got = sorted(str(path.relative_to(home.directory / "out")) for path in (home.directory / "out").rglob("*") if path.is_file())
    assert got == ["linux_amd64/amd64", "linux_arm64/arm64"], f"the files are {got}"
    if not Path("/proc/sys/fs/binfmt_misc/qemu-s390x").exists():
        run = with_busybox(home, BUSYBOX + "RUN true\n", "--platform", "linux/s390x")
        assert_result(run, 1, "no emulator `qemu-s390x` is registered", "qemu-user-static")
    refused = build(home, text, "--platform", "linux/amd64,linux/arm64", "-o", f"type=tar,dest={archive}", files={"f": "1"}, code=2)
    assert_result(refused, 2, "an archive of files is for one platform")


def test_findings_of_the_rules_are_reported(home):
    text = "FROM scratch AS Base\nENV A=1\nFROM Base\nENV B=$A C=$UNKNOWN\nCOPY secret /\n"
    result = build(home, text, files={"secret": "", ".dockerignore": "secret\n"}, code=1)
    assert_result(result, 1, "note[J0615]", "warning[J0613]: `$UNKNOWN` has no value", "warning[J0623]: `.dockerignore` excludes")
    build(home, "FROM scratch\nENV KNOWN=1\nCOPY f /\n", "-t", "base", files={"f": ""})
    # What a base image sets is known here.
    result = build(home, "FROM base\nENV A=$KNOWN B=$OTHER\n")
    assert_result(result, 0, "warning[J0613]: `$OTHER` has no value")
    assert "$KNOWN`" not in result.stderr, f"a variable of the base is reported: {result.stderr}"
    assert "J06" not in build(home, "# check=skip=all\nFROM base\nENV A=$OTHER\nMAINTAINER x\n").stderr, "a skipped rule is reported"
    failed = build(home, "# check=error=true\nFROM base\nMAINTAINER x\n", code=1)
    assert_result(failed, 1, "error[J0620]")
