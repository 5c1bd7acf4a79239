"""Compares the modes that `COPY --chmod`, `ADD --chmod` and `mode` of an image block give with those of coreutils' chmod(1), for each
kind of file and each of many modes before.

`X` after a clause that has changed the execute bits is left out: chmod(1) looks at the changed bits, BuildKit at those before.
"""

import json
import shutil
import subprocess

import pytest

from home import Home, assert_result

pytestmark = [pytest.mark.duration(10), pytest.mark.needs("busybox")]

MODES = ["755", "0640", "4711", "+x", "-x", "u+x", "a+rX", "go=u", "u=rwX,go=rX", "a=rX", "go=u-w", "u+rw-x", "go=", "a=", "ug+rw,o-r", "u=g,g=o",
         "g=u,u=", "u+s,g+s", "a-s", "a-X", "+t", "o=rwx,g-x", "u=rwx,g=u,o=g"]
BEFORE = [0o000, 0o001, 0o044, 0o400, 0o600, 0o644, 0o640, 0o711, 0o755, 0o777]


def tree(directory):
    """Files and directories of all modes."""
    for mode in BEFORE:
        (directory / f"file-{mode:03o}").write_text("x")
        (directory / f"directory-{mode:03o}").mkdir()
    for path in directory.iterdir():
        path.chmod(int(path.name[-3:], 8))


@pytest.fixture(scope="module")
def context(shared):
    context = shared / "context"
    (context / "tree").mkdir(parents=True)
    tree(context / "tree")
    return context


def modes(directory):
    return {path.name: f"{path.lstat().st_mode & 0o7777:04o}" for path in sorted(directory.iterdir())}


def expected(directory, mode):
    """The same by chmod(1), whose result does not depend on the umask if all classes are named."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    tree(directory)
    subprocess.run(["chmod", "--", mode, *directory.iterdir()], check=True, umask=0)
    return modes(directory)


@pytest.mark.parametrize("mode", MODES)
def test_copied_files_get_the_modes_of_chmod(shared, context, mode):
    home = Home(shared / "home")
    wanted = expected(shared / "wanted", mode)
    for instruction in ("COPY", "ADD"):
        (context / "Dockerfile").write_text(f"FROM scratch\nARG MODE={mode}\n{instruction} --chmod=$MODE tree /tree/\nCOPY <<EOF --chmod=1 /f\nEOF\n"
                                            .replace("COPY <<EOF --chmod=1", f"COPY --chmod={mode} <<EOF"))
        out = shared / "out"
        shutil.rmtree(out, ignore_errors=True)
        assert_result(home.run("image", "build", "--builder", "embedded", "-o", out, context))
        got = modes(out / "tree")
        # chmod(1) leaves the set-id bits of a directory unless they are named in letters; digits of an image set all bits.
        assert got == wanted, f"{instruction} --chmod={mode}"
        new = shared / "new"
        new.write_text("")
        new.chmod(0o644)
        subprocess.run(["chmod", "--", mode, new], check=True, umask=0)
        assert modes(out)["f"] == f"{new.stat().st_mode & 0o7777:04o}", f"a heredoc with --chmod={mode}"


def test_check_and_the_builder_refuse_the_same_modes(shared, context):
    home = Home(shared / "home")
    for mode in ("u+q", "rwxr-xr-x", "888", "10000", "u+x,"):
        (context / "Dockerfile").write_text(f"FROM scratch\nCOPY --chmod={mode} tree /\n")
        (context / "job.yaml").write_text("version: 1\nname: a\nimage: {dockerfile: Dockerfile}\nroles: {main: {run: x}}\n")
        for words in (["image", "build", context], ["image", "build", "--check", context], ["check", context / "job.yaml"]):
            assert_result(home.run(*words), 1, "J0601", f"invalid mode `--chmod={mode}`", "Dockerfile:2:14")
    block = {"version": 1, "name": "a", "image": {"from": "busybox:1", "copy": [{"from": "tree", "to": "/t", "mode": "u+q"}]},
             "roles": {"main": {"run": "x"}}}
    for mode, code in (("u+q", 1), ("a+rX,go-w", 0), ("0o755", 0), ("4755", 0)):
        block["image"]["copy"][0]["mode"] = mode
        (context / "job.yaml").write_text(json.dumps(block))
        result = home.run("check", context / "job.yaml")
        assert result.returncode == code, f"mode {mode}: {result.stderr}{result.stdout}"
    written = home.run("build", context / "job.yaml", "--output", shared / "written")
    assert_result(written)
    assert any("--chmod=4755" in path.read_text() for path in (shared / "written").rglob("Dockerfile")), written.stdout
