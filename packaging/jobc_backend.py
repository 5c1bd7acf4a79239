"""The build backend of pyproject.toml (PEP 517): a wheel with the programs of jobc as scripts, and a source distribution.

It needs nothing but Python's standard library. `JOBC_BINARIES` names a directory with built programs; without it, cargo builds them.
"""

import base64
import hashlib
import os
import stat
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from common import PROGRAMS, REPOSITORY, files_below, source_date_epoch, version, write_tar_gz  # noqa: E402
from elf import read_elf  # noqa: E402

# manylinux_2_17 is the oldest platform of Rust's standard library, and what a static program is tagged with.
OLDEST_GLIBC = (2, 17)


def python_version():
    """The version in Python's normal form (PEP 440): `0.2.0-rc.1` is `0.2.0rc1`."""
    return version().replace("-alpha.", "a").replace("-beta.", "b").replace("-rc.", "rc")


def metadata():
    """The core metadata (version 2.4), with the README as description."""
    lines = ["Metadata-Version: 2.4", "Name: jobc", f"Version: {python_version()}",
             "Summary: Compiler and runtime for AI and GPU jobs", "License-Expression: MIT OR Apache-2.0",
             "License-File: LICENSE-APACHE", "License-File: LICENSE-MIT", "Requires-Python: >=3.8",
             "Keywords: gpu,kubernetes,oci,containers,machine-learning", "Classifier: Environment :: Console",
             "Classifier: Operating System :: POSIX :: Linux", "Classifier: Programming Language :: Rust",
             "Classifier: Topic :: Scientific/Engineering :: Artificial Intelligence", "Description-Content-Type: text/markdown"]
    return "\n".join(lines) + "\n\n" + (REPOSITORY / "README.md").read_text()


def platform_tag(programs):
    """The manylinux tag (PEP 600) of the newest glibc that any of the programs needs."""
    read = [read_elf(program) for program in programs]
    machines = {each.machine for each in read}
    if len(machines) != 1:
        raise ValueError(f"the programs are for several machines: {', '.join(sorted(machines))}")
    major, minor = max([OLDEST_GLIBC, *(each.glibc[:2] for each in read if each.glibc)])
    return f"manylinux_{major}_{minor}_{machines.pop()}"


def cargo_build(target):
    """Builds the programs as an ordinary release; `./release` builds smaller and static ones."""
    subprocess.run(["cargo", "build", "--release", "--locked", "--target-dir", str(target), "--package", "jobc", "--package", "jobc-oci",
                    "--package", "jobc-nvml", *(word for name in PROGRAMS for word in ("--bin", name))], cwd=REPOSITORY, check=True)
    return Path(target) / "release"


class Wheel:
    """A wheel being written (PEP 427): each file enters RECORD with its hash."""

    def __init__(self, path):
        self.archive, self.record = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9), []
        self.time = time.gmtime(source_date_epoch())[:6]

    def write(self, name, content, mode=0o644):
        entry = zipfile.ZipInfo(name, self.time)
        entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_DEFLATED, 3, (stat.S_IFREG | mode) << 16
        self.archive.writestr(entry, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(content)}\n")

    def close(self, information):
        name = f"{information}/RECORD"
        self.write(name, "".join([*self.record, f"{name},,\n"]).encode())
        self.archive.close()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Writes the wheel and returns its file name."""
    with tempfile.TemporaryDirectory() as scratch:
        binaries = os.environ.get("JOBC_BINARIES")
        binaries = Path(binaries) if binaries else cargo_build(REPOSITORY / "target")
        tag = f"py3-none-{platform_tag([binaries / name for name in PROGRAMS])}"
        tree = Path(scratch) / "tree"
        subprocess.run([str(REPOSITORY / "packaging/stage"), str(binaries), str(tree)], check=True)
        name, information, data = f"jobc-{python_version()}-{tag}.whl", f"jobc-{python_version()}.dist-info", f"jobc-{python_version()}.data"
        wheel = Wheel(Path(wheel_directory) / name)
        for file in files_below(tree):
            if file.parts[0] == "bin":
                wheel.write(f"{data}/scripts/{file.name}", (tree / file).read_bytes(), 0o755)
            else:
                wheel.write(f"{data}/data/{file}", (tree / file).read_bytes())
        for license in ("LICENSE-APACHE", "LICENSE-MIT"):
            wheel.write(f"{information}/licenses/{license}", (REPOSITORY / license).read_bytes())
        wheel.write(f"{information}/METADATA", metadata().encode())
        wheel.write(f"{information}/WHEEL", f"Wheel-Version: 1.0\nGenerator: jobc\nRoot-Is-Purelib: false\nTag: {tag}\n".encode())
        wheel.close(information)
    return name


def build_sdist(sdist_directory, config_settings=None):
    """Writes the source distribution (PEP 625): every file that Git tracks, and PKG-INFO."""
    prefix = f"jobc-{python_version()}"
    if (REPOSITORY / ".git").exists():
        listed = subprocess.run(["git", "-C", str(REPOSITORY), "ls-files", "-z"], capture_output=True, check=True).stdout
        files = [name.decode() for name in listed.split(b"\0") if name]
    else:
        files = [str(name) for name in files_below(REPOSITORY) if name.parts[0] != "target" and "__pycache__" not in name.parts]
    files = [name for name in files if (REPOSITORY / name).is_file() and not (REPOSITORY / name).is_symlink() and name != "PKG-INFO"]
    write_tar_gz(Path(sdist_directory) / f"{prefix}.tar.gz", REPOSITORY, prefix, files, {"PKG-INFO": metadata().encode()})
    return f"{prefix}.tar.gz"
