#!/usr/bin/env python3
"""The Debian and RPM packages, each installed into an empty root file system, run and removed by its package manager."""

import gzip
import os
import re
import shutil
from pathlib import Path

from releases import PACKAGING, REPOSITORY, Harness, expect, files_below, older_packaging, ran, scratch

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
                 "nvim/site/pack/jobc/opt/jobc/plugin/jobc.lua",
                 "doc/jobc/completions/jobc.elv", "doc/jobc/user-namespaces.md", "doc/jobc/LICENSE-MIT"):
        if not (root / "usr/share" / name).exists():
            yield f"no {name}"
    for path in root.rglob("usr/**/*"):
        if path.stat().st_uid != 0 or path.stat().st_mode & 0o022:
            yield f"{path.relative_to(root)}: mode {path.stat().st_mode & 0o7777:o}, user {path.stat().st_uid}"


def upgraded(root, installed, upgrade):
    """An upgrade replaces the version before, with a file that only that one has."""
    yield from expect(installed(), 0, "0.0.1")
    if not (root / "usr/share/doc/jobc/old").exists():
        yield "the version before is not installed"
    yield from expect(ran(upgrade))
    if "0.0.1" in installed().stdout or (root / "usr/share/doc/jobc/old").exists():
        yield f"after the upgrade: {installed().stdout}"


def deb(package, old, directory):
    root = directory / "deb-root"
    for name in ("updates", "info", "parts"):
        (root / "var/lib/dpkg" / name).mkdir(parents=True)
    for name in ("status", "available"):
        (root / "var/lib/dpkg" / name).touch()
    command = ["dpkg", f"--root={root}", "--force-depends", "--log=/dev/null"]
    yield from expect(ran([*command, "--install", old]))
    query = ["dpkg-query", f"--admindir={root}/var/lib/dpkg", "--show", "jobc"]
    yield from upgraded(root, lambda: ran(query), [*command, "--install", package])
    yield from runs(root)
    yield from expect(ran([*command, "--purge", "jobc"]))
    if (root / "usr").exists():
        yield f"left behind: {files_below(root / 'usr')}"


def relations(package, tree, directory):
    """It depends on what Debian's own program finds in the binaries, and apt knows the packages that it recommends and suggests."""
    def names(text):
        return {found[1]: found[2] for found in re.finditer(r"([a-z0-9.+-]+)(?: \(>= ([^)]+)\))?", text)}

    fields = dict(line.split(": ", 1) for line in ran(["dpkg-deb", "--field", package]).stdout.splitlines() if ": " in line)
    depends = names(fields.get("Depends", ""))
    if shutil.which("dpkg-shlibdeps"):
        (directory / "debian").mkdir()
        (directory / "debian/control").write_text("Source: jobc\n\nPackage: jobc\nArchitecture: any\n")
        found = ran(["dpkg-shlibdeps", "-O", *sorted((tree / "bin").iterdir())], cwd=directory)
        yield from expect(found, 0, "shlibs:Depends=")
        needed = names(found.stdout.split("shlibs:Depends=")[-1])
        if set(needed) != set(depends):
            yield f"depends on {depends}, dpkg-shlibdeps finds {needed}"
        for name, version in needed.items():
            if name in depends and depends[name] and ran(["dpkg", "--compare-versions", depends[name], "ge", version]).returncode:
                yield f"{name} {depends[name]}, dpkg-shlibdeps finds {version}"
    yield from expect(ran(["apt-get", "--simulate", "-o", "Debug::NoLocking=1", "install", package]), 0, "Inst jobc")
    for name in names(f"{fields['Recommends']}, {fields['Suggests']}"):
        yield from expect(ran(["apt-cache", "show", name]), 0, f"Package: {name}")


def on_debian(package, directory):
    """On a Debian with nothing but the essential packages, apt installs it with what it needs, and removes all of it."""
    root = directory / "debian-root"
    made = ran(["debootstrap", "--variant=minbase", "bookworm", root], timeout=1200)
    yield from expect(made)
    if made.returncode:
        return
    # Without these, apt starts services and asks questions; the proxy is that of this host.
    (root / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")
    (root / "usr/sbin/policy-rc.d").chmod(0o755)
    for name in ("resolv.conf", "apt/apt.conf.d", "apt/sources.list", "apt/sources.list.d"):
        if (source := Path("/etc") / name).is_dir():
            shutil.copytree(source, root / "etc" / name, dirs_exist_ok=True)
        elif source.exists():
            shutil.copyfile(source, root / "etc" / name)
    shutil.copyfile(package, root / "jobc.deb")
    (root / "job.yaml").write_text((REPOSITORY / "examples/hello-cpu/job.yaml").read_text())

    def inside(*command):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8", "HOME": "/root", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
        return ran(["chroot", root, *command], env=environment)

    def packages():
        return set(inside("dpkg-query", "--show").stdout.splitlines())

    yield from expect(inside("apt-get", "update", "-qq"))
    before = packages()
    yield from expect(inside("apt-get", "install", "-qq", "--yes", "/jobc.deb"))
    if missing := {"uidmap", "passt", "ca-certificates", "jobc"} - {line.split("\t")[0] for line in packages()}:
        yield f"not installed with it: {sorted(missing)}"
    yield from expect(inside("jobc", "check", "/job.yaml"))
    yield from expect(inside("jobc-oci", "--version"), 0, "version")
    # apt itself recommends ca-certificates, and would keep it.
    keep = [word for kind in ("Recommends", "Suggests") for word in ("-o", f"APT::AutoRemove::{kind}Important=false")]
    yield from expect(inside("apt-get", "purge", "-qq", "--yes", "--auto-remove", *keep, "jobc"))
    if packages() != before:
        yield f"left behind: {sorted(packages() ^ before)}"
    if left := [str(path.relative_to(root)) for path in root.rglob("*jobc*") if path.name not in ("jobc.deb", "job.yaml")]:
        yield f"left behind: {left}"


def rpm_relations(package):
    """rpmbuild has found the libraries; the rest is recommended and suggested."""
    for kind, expected in (("requires", ("libc.so.6",)), ("recommends", ("shadow-utils", "(passt or slirp4netns)", "ca-certificates")),
                           ("suggests", ("git-core", "openssh", "strace"))):
        found = ran(["rpm", "--query", "--package", f"--{kind}", "--nosignature", package])
        for name in expected:
            yield from expect(found, 0, name)


def rpm(package, old, directory):
    root = directory / "rpm-root"
    root.mkdir()
    command = ["rpm", f"--root={root}", "--nodeps", "--nosignature"]
    yield from expect(ran([*command, "--install", old]))
    yield from upgraded(root, lambda: ran(["rpm", f"--root={root}", "--query", "jobc"]), [*command, "--upgrade", package])
    yield from runs(root)
    yield from expect(ran([*command, "--erase", "jobc"]))
    left = files_below(root / "usr") if (root / "usr").exists() else []
    if files := [name for name in left if "jobc" in name]:
        yield f"left behind: {files}"


def main():
    harness = Harness("packages", __doc__)
    harness.parse()
    if os.getuid() != 0:
        harness.missing("root")
    if not (BINARIES / "jobc").exists():
        harness.missing("built programs", "`tests/install/run`")
    with scratch() as directory:
        harness.check("stage", expect(ran([PACKAGING / "stage", BINARIES, directory / "tree"])))
        older = older_packaging(directory / "older")
        shutil.copytree(directory / "tree", directory / "old-tree")
        (directory / "old-tree/share/doc/jobc/old").write_text("only in the version before\n")
        for kind, install, program in (("deb", deb, "dpkg-deb"), ("rpm", rpm, "rpmbuild")):
            if not shutil.which(program):
                harness.lacks(kind, program)
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
            harness.check(f"{kind} of the version before", expect(ran([older / "linux", directory / "old-tree", directory / "old", "--only", kind, "--fast"])))
            old, = (directory / "old").glob(f"*.{kind}")
            harness.check(kind, install(written[0], old, directory))
            if kind == "rpm":
                harness.check("rpm's relations", rpm_relations(written[0]))
            elif shutil.which("apt-get"):
                harness.check("deb's relations", relations(written[0], directory / "tree", directory))
                if shutil.which("debootstrap"):
                    harness.check("on Debian", on_debian(written[0], directory))
                else:
                    harness.lacks("on Debian", "debootstrap")
    harness.end()


main()
