"""Tests Dockerfiles that attack their builder: they replace what is mounted or cached by links, so that a builder reads, creates or removes
files of the host. Each test also plants the fault that it looks for.

The classes are those of CVE-2024-23651 (a cache that another build changes while it is mounted), CVE-2024-23652 (what is removed once a mount
is gone) and CVE-2024-9675 (a cache outside the directory of caches).
"""

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from home import assert_result
from runtime import binary

pytestmark = [pytest.mark.duration(15), pytest.mark.needs("root", "busybox")]

APPLETS = ("sh", "ls", "cat", "rm", "ln", "mkdir", "mv", "rmdir", "sleep", "true")


@pytest.fixture
def context(home):
    context = home.directory / "context"
    context.mkdir()
    shutil.copy(shutil.which("busybox"), context / "busybox")
    lines = "".join(f"COPY busybox /bin/{name}\n" for name in APPLETS)
    (context / "Dockerfile").write_text(f"FROM scratch\n{lines}")
    assert_result(home.run("image", "build", "--builder", "embedded", "-t", "bb:1", context))
    return context


@pytest.fixture
def victim(home):
    """Files of the host, with an empty directory, which a builder may take for a mount point that it has made."""
    victim = home.directory / "victim"
    (victim / "empty").mkdir(parents=True)
    (victim / "secret").write_text("of the host\n")
    return victim


def untouched(victim):
    """Whether the host's files are what they were."""
    found = sorted(str(path.relative_to(victim)) for path in victim.rglob("*"))
    return found == ["empty", "secret"] and (victim / "secret").read_text() == "of the host\n"


def build(home, context, text, *words, code=0):
    (context / "Dockerfile").write_text(f"FROM bb:1\n{text}")
    result = home.run("image", "build", "--builder", "embedded", "--no-cache", "--network", "none", *words, context, seconds=120)
    if code is not None:
        assert_result(result, code)
    return result


def test_what_replaces_a_mount_point_leads_nowhere(home, context, victim):
    """CVE-2024-23652: after the command, a builder removes the empty mount points that it has made, through links of the image."""
    out = home.directory / "out"
    for kind in ("tmpfs", "cache,id=x"):
        for point in ("empty", "new/empty"):
            shutil.rmtree(out, ignore_errors=True)
            # The mount moves with its directory; a link to the host's files takes its place.
            script = f"mv /a /b 2>/dev/null; rm -rf /a 2>/dev/null; [ -e /a ] || ln -s {victim} /a; ls -la / >/dev/null; true"
            build(home, context, f"RUN --mount=type={kind},target=/a/{point} {script}\nRUN ls /\n", "-o", out)
            assert untouched(victim), f"a mount of {kind} on {point}"
    # The fault: what removes mount points by their paths follows the link.
    root = home.directory / "root"
    root.mkdir()
    (root / "a").symlink_to(victim)
    subprocess.run(["rmdir", f"{root}/a/empty"], check=True)
    assert not untouched(victim), "the test cannot fail"


def test_a_cache_that_changes_while_it_is_mounted_shows_nothing_of_the_host(home, context, victim):
    """CVE-2024-23651: two builds share a cache; one replaces a directory of it by a link to the host while the other mounts it."""
    (context / "Dockerfile").write_text(
        f"FROM bb:1\nRUN --mount=type=cache,id=shared,target=/c i=0; while [ $i -lt 400 ]; do rm -rf /c/d; mkdir /c/d; rm -rf /c/d; ln -s {victim} /c/d; "
        "i=$((i+1)); done\n")
    attack = subprocess.Popen([binary(), "image", "build", "--builder", "embedded", "--no-cache", "--network", "none", str(context)],
                              env=home.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.2)
    other = home.directory / "other"
    shutil.copytree(context, other)
    seen = []
    while attack.poll() is None:
        result = build(home, other, "RUN --mount=type=cache,id=shared,source=d,target=/m --mount=type=cache,id=shared,target=/c "
                                    "cat /m/secret /c/d/secret; echo x > /c/d/made; true\n", code=None)
        seen.append(result.stderr)
    assert seen and not [text for text in seen if "of the host" in text], "\n".join(seen)
    assert untouched(victim)
    caches = home.store / "cache/mounts"
    links = [path for path in caches.rglob("d") if path.is_symlink()]
    # The fault: a builder that resolves `source` on the host reads the secret through the link.
    if links:
        assert (links[0] / "secret").read_text() == "of the host\n", "the test cannot fail"


@pytest.mark.parametrize("name", ["../../../../../../{victim}", "{victim}", "a/../../../{victim}", "..", "."])
def test_the_name_of_a_cache_leads_nowhere(home, context, victim, name):
    """CVE-2024-9675: the id of a cache, or the directory in it, is a path out of the directory of caches."""
    name = name.format(victim=victim)
    for words in (f"id={name},target=/c", f"id=x,source={name},target=/c", f"target=/c/../../../{name}" if name != "." else "target=/c,id=.."):
        result = build(home, context, f"RUN --mount=type=cache,{words} cat /c/secret; echo x > /c/made; true\n", code=None)
        assert "of the host" not in result.stderr and untouched(victim), f"{words}: {result.stderr}"
    below = [path for path in home.store.rglob("made")]
    assert all(home.store / "cache" in path.parents for path in below), below
    # The fault: the id as a path.
    naive = Path(f"{home.store}/cache/mounts/{name}") if not name.startswith("/") else Path(name)
    if (naive / "secret").exists():
        (naive / "made").write_text("x")
        assert not untouched(victim), "the test cannot fail"
