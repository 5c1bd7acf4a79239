#!/usr/bin/env python3
"""The Debian and RPM packages, each installed into an empty root file system, run and removed by its package manager."""

import gzip
import os
import shutil
from pathlib import Path

from releases import PACKAGING, REPOSITORY, Harness, expect, files_below, ran, scratch

BINARIES = Path(os.environ.get("JOBC_BINARIES") or REPOSITORY / "target/release")


def runs(root):
    """The installed program checks a job; its files are those of the tree, with compressed manual pages."""
    yield from expect(ran([root / "usr/bin/jobc", "check", REPOSITORY / "examples/hello-cpu/job.yaml"]))
    schema = root / "usr/share/jobc/schemas/job.v1.schema.json"
    yield from expect(ran([root / "usr/bin/jobc", "schema", "--path"]), 0, f"{schema}\n")
    page = root / "usr/share/man/man1/jobc-check.1.gz"
    if not page.exists() or b".TH jobc-check 1" not in gzip.decompress(page.read_bytes()):
        yield f"no manual page {page.name}"
    for name in ("bash-completion/completions/jobc", "zsh/site-functions/_jobc", "fish/vendor_completions.d/jobc.fish",
                 "doc/jobc/completions/jobc.elv", "doc/jobc/user-namespaces.md", "doc/jobc/LICENSE-MIT"):
        if not (root / "usr/share" / name).exists():
            yield f"no {name}"
    for path in root.rglob("usr/**/*"):
        if path.stat().st_uid != 0 or path.stat().st_mode & 0o022:
            yield f"{path.relative_to(root)}: mode {path.stat().st_mode & 0o7777:o}, user {path.stat().st_uid}"


def deb(package, directory):
    root = directory / "deb-root"
    for name in ("updates", "info", "parts"):
        (root / "var/lib/dpkg" / name).mkdir(parents=True)
    for name in ("status", "available"):
        (root / "var/lib/dpkg" / name).touch()
    command = ["dpkg", f"--root={root}", "--force-depends", "--log=/dev/null"]
    yield from expect(ran([*command, "--install", package]))
    yield from runs(root)
    yield from expect(ran([*command, "--purge", "jobc"]))
    if (root / "usr").exists():
        yield f"left behind: {files_below(root / 'usr')}"


def rpm(package, directory):
    root = directory / "rpm-root"
    root.mkdir()
    command = ["rpm", f"--root={root}", "--nodeps", "--nosignature"]
    yield from expect(ran([*command, "--install", package]))
    yield from runs(root)
    yield from expect(ran([*command, "--erase", "jobc"]))
    left = files_below(root / "usr") if (root / "usr").exists() else []
    if files := [name for name in left if "jobc" in name]:
        yield f"left behind: {files}"


def main():
    harness = Harness("packages", __doc__)
    harness.parse()
    if os.getuid() != 0:
        harness.skip("needs root")
    if not (BINARIES / "jobc").exists():
        harness.skip(f"no programs in `{BINARIES}`")
    with scratch() as directory:
        harness.check("stage", expect(ran([PACKAGING / "stage", BINARIES, directory / "tree"])))
        for kind, install, program in (("deb", deb, "dpkg-deb"), ("rpm", rpm, "rpmbuild")):
            if not shutil.which(program):
                harness.note(f"`{program}` is not installed")
                continue
            written = []
            for time in ("first", "second"):
                out = directory / f"{kind}-{time}"
                harness.check(f"{kind} written, {time} time",
                              expect(ran([PACKAGING / "linux", directory / "tree", out, "--only", kind, "--fast"])))
                written += out.glob("jobc*")
            if len(written) != 2:
                continue
            same = written[0].read_bytes() == written[1].read_bytes()
            harness.check(f"{kind} reproduced", [] if same else ["the same tree gave two packages"])
            harness.check(kind, install(written[0], directory))
    harness.end()


main()
