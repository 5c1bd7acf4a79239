"""The packages for aarch64, from programs that are cross-compiled here: their names, tags and fields, and the program of the wheel under
QEMU, which checks jobs and writes the same plans as that of this architecture. It is built for a documentation site, as a release is."""

import os
import platform
import re
import zipfile

import needs
import pytest
from releases import PACKAGING, REPOSITORY, expect, files_below, ran, succeeds

pytestmark = [pytest.mark.slow, pytest.mark.needs("aarch64-linux-gnu-gcc", "aarch64-linux-gnu-strip", "qemu-aarch64", "dpkg-deb", "rpmbuild"),
              pytest.mark.duration(400)]
TARGET = "aarch64-unknown-linux-gnu"
PROGRAMS = ("jobc", "jobc-oci", "jobc-nvml")
NATIVE = REPOSITORY / "target/debug/jobc"
SITE = "https://docs.example.com/jobc"


@pytest.fixture(scope="module")
def programs(shared):
    """The programs as cargo links them, without symbols."""
    if platform.machine() != "x86_64":
        needs.missing("an x86_64 host")
    variable, compiler = TARGET.replace("-", "_"), f"{TARGET.replace('-unknown', '')}-gcc"
    environment = {**os.environ, f"CARGO_TARGET_{variable.upper()}_LINKER": compiler, f"CC_{variable}": compiler, "JOBC_SITE": SITE}
    packages = [word for name in PROGRAMS for word in ("--package", name, "--bin", name)]
    succeeds("cargo", "build", "--quiet", "--locked", "--target", TARGET, *packages, cwd=REPOSITORY, env=environment, timeout=3000)
    (shared / "programs").mkdir()
    for name in PROGRAMS:
        succeeds("aarch64-linux-gnu-strip", "-o", shared / "programs" / name, REPOSITORY / "target" / TARGET / "debug" / name)
    return shared / "programs"


@pytest.fixture(scope="module")
def out(programs, shared):
    """A directory with every package."""
    settings = {"env": {"SOURCE_DATE_EPOCH": "1790000000", **os.environ, "JOBC": str(NATIVE)}}
    out, tree = shared / "out", shared / "tree"
    out.mkdir()
    for command in ([PACKAGING / "stage", programs, tree], [PACKAGING / "archive", tree, out], [PACKAGING / "linux", tree, out, "--fast"],
                    [PACKAGING / "wheel", programs, out]):
        succeeds(*command, **settings)
    return out


@pytest.mark.parametrize("pattern", [r"jobc-[^-]+-aarch64-linux\.tar\.gz", r"jobc_[^_]+_arm64\.deb", r"jobc-[^-]+-1\.aarch64\.rpm",
                                     r"jobc-[^-]+-py3-none-manylinux_2_\d+_aarch64\.whl"])
def test_each_package_has_the_architecture_in_its_name(pattern, out):
    assert any(re.fullmatch(pattern, name) for name in files_below(out)), files_below(out)


def test_each_package_says_which_architecture_it_is_for(out):
    deb, = out.glob("*.deb")
    expect(ran(["dpkg-deb", "--field", deb, "Architecture"]), 0, "arm64")
    rpm, = out.glob("*.rpm")
    expect(ran(["rpm", "--query", "--package", "--nosignature", "--queryformat", "%{ARCH}", rpm]), 0, "aarch64")


@pytest.fixture(scope="module")
def emulated(out, shared):
    """The program of the wheel under QEMU, with Debian's C library for cross-compiled programs."""
    program, (wheel,) = shared / "jobc", out.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        program.write_bytes(archive.read(next(name for name in archive.namelist() if name.endswith(".data/scripts/jobc"))))
    program.chmod(0o755)
    return ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", program]


def test_the_program_runs(emulated, directory):
    expect(ran([*emulated, "--version"]), 0, ran([NATIVE, "--version"]).stdout)
    wrong = directory / "job.yaml"
    wrong.write_text((REPOSITORY / "examples/hello-cpu/job.yaml").read_text().replace("instances:", "intances:"))
    expect(ran([*emulated, "check", wrong]), 1, "unknown key `intances`")
    expect(ran([*emulated, "schema", "job"]), 0, f'"$id": "{SITE}/schemas/job.v1.schema.json"')


@pytest.mark.parametrize("example", ["hello-cpu", "torchrun-4x8", "local-sweep"])
def test_the_program_writes_the_same_plan_and_artifacts(example, emulated, directory):
    built = []
    for name, command in (("native", [NATIVE]), ("emulated", emulated)):
        out = directory / name
        succeeds(*command, "build", REPOSITORY / "examples" / example / "job.yaml", "--output", out)
        built.append({path: (out / path).read_bytes() for path in files_below(out) if (out / path).is_file()})
    assert built[0]
    assert not [name for name in built[0] | built[1] if built[0].get(name) != built[1].get(name)]
