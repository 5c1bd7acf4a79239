#!/usr/bin/env python3
"""The packages for aarch64, from programs that are cross-compiled here: their names, tags and fields, and the program of the wheel under
QEMU, which checks jobs and writes the same plans as that of this architecture. It is built for a documentation site, as a release is."""

import os
import platform
import re
import shutil
import zipfile

from releases import PACKAGING, REPOSITORY, Harness, expect, files_below, ran, scratch

TARGET = "aarch64-unknown-linux-gnu"
PROGRAMS = ("jobc", "jobc-oci", "jobc-nvml")
NATIVE = REPOSITORY / "target/debug/jobc"
# Debian's C library for cross-compiled programs.
LIBRARIES = "/usr/aarch64-linux-gnu"
SITE = "https://docs.example.com/jobc"
EXAMPLES = ("hello-cpu", "torchrun-4x8", "local-sweep")


def build(binaries):
    """The programs as cargo links them, without symbols."""
    variable, compiler = TARGET.replace("-", "_"), f"{TARGET.replace('-unknown', '')}-gcc"
    environment = {**os.environ, f"CARGO_TARGET_{variable.upper()}_LINKER": compiler, f"CC_{variable}": compiler, "JOBC_SITE": SITE}
    packages = [word for name in PROGRAMS for word in ("--package", name, "--bin", name)]
    yield from expect(ran(["cargo", "build", "--quiet", "--locked", "--target", TARGET, *packages], cwd=REPOSITORY, env=environment, timeout=3000))
    binaries.mkdir()
    for name in PROGRAMS:
        yield from expect(ran(["aarch64-linux-gnu-strip", "-o", binaries / name, REPOSITORY / "target" / TARGET / "debug" / name]))


def fields(out):
    """Each package says which architecture it is for."""
    names = files_below(out)
    for pattern in (r"jobc-[^-]+-aarch64-linux\.tar\.gz", r"jobc_[^_]+_arm64\.deb", r"jobc-[^-]+-1\.aarch64\.rpm",
                    r"jobc-[^-]+-py3-none-manylinux_2_\d+_aarch64\.whl"):
        if not any(re.fullmatch(pattern, name) for name in names):
            yield f"no {pattern} among {names}"
    deb, = out.glob("*.deb")
    yield from expect(ran(["dpkg-deb", "--field", deb, "Architecture"]), 0, "arm64")
    rpm, = out.glob("*.rpm")
    yield from expect(ran(["rpm", "--query", "--package", "--nosignature", "--queryformat", "%{ARCH}", rpm]), 0, "aarch64")


def runs(wheel, directory, qemu):
    """The program of the wheel under QEMU."""
    program = directory / "jobc"
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".data/scripts/jobc"))
        program.write_bytes(archive.read(name))
    program.chmod(0o755)
    emulated = [qemu, "-L", LIBRARIES, program]
    yield from expect(ran([*emulated, "--version"]), 0, ran([NATIVE, "--version"]).stdout)
    wrong = directory / "job.yaml"
    wrong.write_text((REPOSITORY / "examples/hello-cpu/job.yaml").read_text().replace("instances:", "intances:"))
    yield from expect(ran([*emulated, "check", wrong]), 1, "unknown key `intances`")
    yield from expect(ran([*emulated, "schema", "job"]), 0, f'"$id": "{SITE}/schemas/job.v1.schema.json"')
    for example in EXAMPLES:
        built = []
        for name, command in (("native", [NATIVE]), ("emulated", emulated)):
            out = directory / name / example
            yield from expect(ran([*command, "build", REPOSITORY / "examples" / example / "job.yaml", "--output", out]))
            built.append({path: (out / path).read_bytes() for path in files_below(out) if (out / path).is_file()})
        if not built[0] or built[0] != built[1]:
            yield f"{example}: another plan or other artifacts: {sorted(name for name in built[0] | built[1] if built[0].get(name) != built[1].get(name))}"


def main():
    harness = Harness("aarch64", __doc__)
    harness.parse()
    if platform.machine() != "x86_64":
        harness.missing("an x86_64 host")
    for tool in ("aarch64-linux-gnu-gcc", "aarch64-linux-gnu-strip", "qemu-aarch64", "dpkg-deb", "rpmbuild"):
        if not shutil.which(tool):
            harness.missing(tool)
    qemu = shutil.which("qemu-aarch64")
    with scratch() as directory:
        binaries, tree, out = directory / "binaries", directory / "tree", directory / "out"
        harness.check("compiled", build(binaries))
        os.environ["JOBC"] = str(NATIVE)
        os.environ.setdefault("SOURCE_DATE_EPOCH", "1790000000")
        out.mkdir()
        harness.check("written", [problem for command in ([PACKAGING / "stage", binaries, tree], [PACKAGING / "archive", tree, out],
                                                          [PACKAGING / "linux", tree, out, "--fast"], [PACKAGING / "wheel", binaries, out])
                                  for problem in expect(ran(command))])
        harness.check("fields", fields(out))
        wheel, = out.glob("*.whl")
        harness.check("runs", runs(wheel, directory, qemu))
    harness.end()


main()
