#!/usr/bin/env python3
"""install.sh, with a server on loopback: install, upgrade, remove, and everything that it must refuse.

Each case runs by each shell that is installed, as an unprivileged user; as root too, if the test itself is started by root.
"""

import os
import shutil

from releases import NOBODY, PACKAGING, PLATFORM, Harness, archive, expect, files_below, ran, release, scratch, server

SCRIPT = PACKAGING / "install.sh"


def program(version):
    return f"#!/bin/sh\necho jobc {version}\n".encode()


def contents(version, extra=()):
    return {"bin/jobc": program(version), "share/man/man1/jobc.1": b".TH jobc 1\n", "share/doc/jobc/README.md": b"jobc\n",
            **{name: b"extra\n" for name in extra}}


class Case:
    """One user with an empty home directory, and a shell."""

    def __init__(self, directory, address, shell, user):
        self.directory, self.address, self.shell, self.user = directory, address, shell, user
        self.home = directory / "home"
        self.temporary = directory / "tmp"
        for path in (self.home, self.temporary):
            path.mkdir()
            if os.getuid() == 0:
                os.chown(path, user, user)
        self.prefix = self.home / ".local"

    def install(self, *arguments, **variables):
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "TMPDIR": str(self.temporary), "JOBC_DOWNLOAD": self.address,
                       **variables}
        # Root installs to /usr/local unless told otherwise, which is no place for a test.
        prefix = ["--prefix", self.prefix] if self.user == 0 and "--prefix" not in arguments else []
        return ran([*self.shell, SCRIPT, *arguments, *prefix], user=self.user, cwd=self.home, env=environment)

    def version(self):
        found = self.prefix / "bin/jobc"
        return ran([found, "--version"]).stdout.strip() if found.exists() else None

    def leftovers(self):
        """Problems: files of a failed or removed installation."""
        for path in (self.home, self.temporary):
            yield from (f"left behind: {path.name}/{name}" for name in files_below(path))


def life(case, root):
    """Install, upgrade, downgrade by version, remove."""
    release(root, "0.1.0", contents("0.1.0", ["share/jobc/schemas/old.json"]))
    yield from expect(case.install(), 0, "installed jobc 0.1.0")
    if case.version() != "jobc 0.1.0":
        yield f"version {case.version()}, expected 0.1.0"
    modes = {name: (case.prefix / name).stat().st_mode & 0o777 for name in ("bin/jobc", "share/man/man1/jobc.1")}
    if list(modes.values()) != [0o755, 0o644]:
        yield f"modes {modes}"
    yield from expect(case.install(), 0, "installed jobc 0.1.0")

    release(root, "0.2.0", contents("0.2.0", ["share/jobc/schemas/new.json"]))
    yield from expect(case.install(), 0, "installed jobc 0.2.0")
    if case.version() != "jobc 0.2.0":
        yield f"version {case.version()}, expected 0.2.0"
    schemas = files_below(case.prefix / "share/jobc/schemas")
    if schemas != ["new.json"]:
        yield f"the upgrade left {schemas}"
    yield from expect(case.install("--version", "0.1.0"), 0, "installed jobc 0.1.0")
    yield from expect(case.install("--remove"), 0, "removed jobc")
    yield from case.leftovers()
    yield from expect(case.install("--remove"), 1, "has not installed jobc")


def foreign_files(case, root):
    """Files of others below the prefix stay, and so do their directories."""
    release(root, "0.1.0", contents("0.1.0"))
    ran(["mkdir", "-p", case.prefix / "share/man/man1", case.prefix / "bin"], user=case.user)
    ran(["touch", case.prefix / "share/man/man1/other.1"], user=case.user)
    before = files_below(case.home)
    yield from expect(case.install())
    yield from expect(case.install("--remove"))
    if files_below(case.home) != before:
        yield f"{files_below(case.home)} instead of {before}"
    shutil.rmtree(case.prefix)


def tampered(case, root):
    """An archive that is not that of its sum: first one byte more, then other contents. A good version stays."""
    release(root, "0.1.0", contents("0.1.0"))
    packed = release(root, "0.2.0", contents("0.2.0"))
    good = packed.read_bytes()
    packed.write_bytes(good + b"\0")
    yield from expect(case.install(), 1, "wrong SHA-256 sum")
    yield from case.leftovers()
    yield from expect(case.install("--version", "0.1.0"))
    packed.write_bytes(archive(f"jobc-0.2.0-{PLATFORM}", {"bin/jobc": b"#!/bin/sh\ntouch ~/tampered\n"}))
    yield from expect(case.install(), 1, "nothing was installed")
    if case.version() != "jobc 0.1.0":
        yield f"version {case.version()} after a refused upgrade"
    yield from expect(case.install("--remove"))
    yield from case.leftovers()


def refused(case, root):
    """A release without a sum, without an archive, with a program that does not run; no address; wrong arguments."""
    packed = release(root, "0.1.0", contents("0.1.0"))
    sums = packed.with_name("SHA256SUMS")
    sums.write_text(sums.read_text().replace("jobc-", "other-"))
    yield from expect(case.install(), 1, "no SHA-256 sum")
    release(root, "0.1.0", {"bin/jobc": b"#!/bin/sh\nexit 1\n"})
    yield from expect(case.install(), 1, "does not run on this host")
    yield from expect(case.install("--version", "9.9.9"), 1, "cannot download")
    yield from expect(case.install("--version", "../../x"), 1, "invalid version")
    yield from expect(case.install(JOBC_DOWNLOAD=""), 1, "set JOBC_DOWNLOAD")
    yield from expect(case.install("--upgrade"), 1, "unknown option `--upgrade`")
    packed.unlink()
    yield from expect(case.install(), 1, "cannot download")
    yield from case.leftovers()


def cut(case, root):
    """Any first part of the script, as a lost connection leaves it to `sh`, changes nothing."""
    release(root, "0.1.0", contents("0.1.0"))
    lines = SCRIPT.read_text().splitlines(keepends=True)
    for end in range(5, len(lines), 12):
        environment = {"PATH": os.environ["PATH"], "HOME": str(case.home), "TMPDIR": str(case.temporary), "JOBC_DOWNLOAD": case.address}
        ran([*case.shell, "-c", "".join(lines[:end]), "install.sh", "--prefix", case.prefix], user=case.user, cwd=case.home, env=environment)
    yield from case.leftovers()


def main():
    harness = Harness("install_sh", __doc__)
    harness.parse()
    harness.tool("curl")
    # `sh` is dash or bash, which is then not run twice.
    shells = {os.path.realpath(path): shell for shell in ("busybox", "dash", "bash") if (path := shutil.which(shell))}.values()
    users = [0, NOBODY] if os.getuid() == 0 else [os.getuid()]
    for shell in shells:
        # One shell runs the cases as both users.
        for user in users if shell == "dash" else users[-1:]:
            for check in (life, foreign_files, tampered, refused, cut):
                name = f"{check.__name__} by {shell} as user {user}"
                if harness.wants(name):
                    with scratch() as directory:
                        root = directory / "releases"
                        root.mkdir()
                        with server(root) as address:
                            harness.check(name, check(Case(directory, address, [shell, "sh"] if shell == "busybox" else [shell], user), root))
    harness.end()


main()
