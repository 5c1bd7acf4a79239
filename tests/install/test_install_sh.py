"""install.sh, with a server on loopback: install, upgrade, remove, and everything that it must refuse.

Each case runs by each shell that is installed, as an unprivileged user; as root too, if the test itself is started by root.
"""

import os
import shutil

import pytest
from releases import NOBODY, PACKAGING, PLATFORM, archive, expect, files_below, ran, release, server, succeeds

SCRIPT = PACKAGING / "install.sh"
pytestmark = [pytest.mark.needs("curl"), pytest.mark.duration(10)]


def contents(version, extra=()):
    return {"bin/jobc": f"#!/bin/sh\necho jobc {version}\n".encode(), "share/man/man1/jobc.1": b".TH jobc 1\n", "share/doc/jobc/README.md": b"jobc\n",
            **{name: b"extra\n" for name in extra}}


def runs():
    """Each shell that is installed and each user: one shell runs the cases as both users."""
    # `sh` is dash or bash, which is then not run twice.
    shells = {os.path.realpath(path): shell for shell in ("busybox", "dash", "bash") if (path := shutil.which(shell))}.values()
    users = [0, NOBODY] if os.getuid() == 0 else [os.getuid()]
    return [pytest.param((shell, user), id=f"{shell} as user {user}") for shell in shells for user in (users if shell == "dash" else users[-1:])]


class Case:
    """One user with an empty home directory, a shell, and a server of releases."""

    def __init__(self, directory, address, shell, user):
        self.releases, self.address, self.user = directory / "releases", address, user
        self.shell = [shell, "sh"] if shell == "busybox" else [shell]
        self.home, self.temporary, self.prefix = directory / "home", directory / "tmp", directory / "home/.local"
        for path in (self.home, self.temporary):
            path.mkdir()
            if os.getuid() == 0:
                os.chown(path, user, user)

    def release(self, version, files):
        return release(self.releases, version, files)

    def install(self, *arguments, **variables):
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "TMPDIR": str(self.temporary), "JOBC_DOWNLOAD": self.address,
                       **variables}
        # Root installs to /usr/local by default, which a test must not change.
        prefix = ["--prefix", self.prefix] if self.user == 0 and "--prefix" not in arguments else []
        return ran([*self.shell, SCRIPT, *arguments, *prefix], user=self.user, cwd=self.home, env=environment)

    def version(self):
        found = self.prefix / "bin/jobc"
        return ran([found, "--version"]).stdout.strip() if found.exists() else None

    def leaves_nothing(self):
        """Looks for files of a failed or removed installation."""
        assert files_below(self.home) == files_below(self.temporary) == []


@pytest.fixture(params=runs())
def case(directory, request):
    (directory / "releases").mkdir()
    with server(directory / "releases") as address:
        yield Case(directory, address, *request.param)


def test_a_version_is_installed_upgraded_downgraded_and_removed(case):
    case.release("0.1.0", contents("0.1.0", ["share/jobc/schemas/old.json"]))
    expect(case.install(), 0, "installed jobc 0.1.0")
    assert case.version() == "jobc 0.1.0"
    assert [(case.prefix / name).stat().st_mode & 0o777 for name in ("bin/jobc", "share/man/man1/jobc.1")] == [0o755, 0o644]
    expect(case.install(), 0, "installed jobc 0.1.0")

    case.release("0.2.0", contents("0.2.0", ["share/jobc/schemas/new.json"]))
    expect(case.install(), 0, "installed jobc 0.2.0")
    assert case.version() == "jobc 0.2.0"
    assert files_below(case.prefix / "share/jobc/schemas") == ["new.json"]
    expect(case.install("--version", "0.1.0"), 0, "installed jobc 0.1.0")
    expect(case.install("--remove"), 0, "removed jobc")
    case.leaves_nothing()
    expect(case.install("--remove"), 1, "has not installed jobc")


def test_files_of_others_below_the_prefix_stay(case):
    case.release("0.1.0", contents("0.1.0"))
    succeeds("mkdir", "-p", case.prefix / "share/man/man1", case.prefix / "bin", user=case.user)
    succeeds("touch", case.prefix / "share/man/man1/other.1", user=case.user)
    before = files_below(case.home)
    expect(case.install())
    expect(case.install("--remove"))
    assert files_below(case.home) == before


def test_an_archive_that_is_not_that_of_its_sum_is_refused(case):
    """First one byte more, then other contents. A good version stays."""
    case.release("0.1.0", contents("0.1.0"))
    packed = case.release("0.2.0", contents("0.2.0"))
    packed.write_bytes(packed.read_bytes() + b"\0")
    expect(case.install(), 1, "wrong SHA-256 sum")
    case.leaves_nothing()
    expect(case.install("--version", "0.1.0"))
    packed.write_bytes(archive(f"jobc-0.2.0-{PLATFORM}", {"bin/jobc": b"#!/bin/sh\ntouch ~/tampered\n"}))
    expect(case.install(), 1, "nothing was installed")
    assert case.version() == "jobc 0.1.0"
    expect(case.install("--remove"))
    case.leaves_nothing()


def test_broken_releases_and_wrong_arguments_are_refused(case):
    packed = case.release("0.1.0", contents("0.1.0"))
    sums = packed.with_name("SHA256SUMS")
    sums.write_text(sums.read_text().replace("jobc-", "other-"))
    expect(case.install(), 1, "no SHA-256 sum")
    case.release("0.1.0", {"bin/jobc": b"#!/bin/sh\nexit 1\n"})
    expect(case.install(), 1, "does not run on this host")
    expect(case.install("--version", "9.9.9"), 1, "cannot download")
    expect(case.install("--version", "../../x"), 1, "invalid version")
    expect(case.install(JOBC_DOWNLOAD=""), 1, "set JOBC_DOWNLOAD")
    expect(case.install("--upgrade"), 1, "unknown option `--upgrade`")
    packed.unlink()
    expect(case.install(), 1, "cannot download")
    case.leaves_nothing()


def test_any_first_part_of_the_script_changes_nothing(case):
    """As a lost connection leaves it to `sh`."""
    case.release("0.1.0", contents("0.1.0"))
    lines = SCRIPT.read_text().splitlines(keepends=True)
    for end in range(5, len(lines), 12):
        environment = {"PATH": os.environ["PATH"], "HOME": str(case.home), "TMPDIR": str(case.temporary), "JOBC_DOWNLOAD": case.address}
        ran([*case.shell, "-c", "".join(lines[:end]), "install.sh", "--prefix", case.prefix], user=case.user, cwd=case.home, env=environment)
    case.leaves_nothing()
