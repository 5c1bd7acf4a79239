"""What the packaging scripts share: the version, the programs, the time of the sources, archives that are the same for the same files."""

import gzip
import io
import os
import re
import subprocess
import tarfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
# The programs of a Linux release, in the directory that `./release` writes.
PROGRAMS = ("jobc", "jobc-oci", "jobc-nvml")
# 1980-01-01, the first time that a zip archive can hold.
ZIP_EPOCH = 315532800


def version():
    """The version of the workspace in Cargo.toml, the one place where it is written by hand."""
    text = (REPOSITORY / "Cargo.toml").read_text()
    section = re.search(r"(?ms)^\[workspace\.package\]$(.*?)(?=^\[)", text)[1]
    return re.search(r'(?m)^version = "([^"]+)"$', section)[1]


def platform_of(target):
    """The platform in the name of an archive, for a target of Rust: `x86_64-linux` for x86_64-unknown-linux-musl."""
    system = {"linux": "linux", "darwin": "macos", "windows": "windows"}[target.split("-")[2]]
    return f"{target.split('-')[0]}-{system}"


def source_date_epoch():
    """Seconds since 1970 for every time in a package: SOURCE_DATE_EPOCH, else the time of the last commit, else 1980."""
    if "SOURCE_DATE_EPOCH" in os.environ:
        return max(int(os.environ["SOURCE_DATE_EPOCH"]), ZIP_EPOCH)
    try:
        shown = subprocess.run(["git", "-C", str(REPOSITORY), "log", "-1", "--format=%ct"], capture_output=True, text=True, check=True)
        return max(int(shown.stdout), ZIP_EPOCH)
    except (OSError, subprocess.CalledProcessError, ValueError):
        return ZIP_EPOCH


def files_below(root):
    """All regular files below a directory, sorted, relative to it."""
    return sorted(path.relative_to(root) for path in Path(root).rglob("*") if path.is_file() and not path.is_symlink())


def write_tar_gz(path, root, prefix, files, extra=None):
    """Writes `files` of `root` below `prefix/` to a tar archive, and `extra`: contents by name. Only names, contents and the
    executable bit enter it."""
    stream = io.BytesIO()
    extra = extra or {}
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted([*files, *extra]):
            source = Path(root) / name
            content = extra[name] if name in extra else source.read_bytes()
            entry = tarfile.TarInfo(f"{prefix}/{name}")
            entry.mtime, entry.uname, entry.gname, entry.size = source_date_epoch(), "root", "root", len(content)
            entry.mode = 0o755 if name not in extra and source.stat().st_mode & 0o100 else 0o644
            archive.addfile(entry, io.BytesIO(content))
    with open(path, "wb") as output, gzip.GzipFile(filename="", fileobj=output, mode="wb", compresslevel=9, mtime=0) as compressed:
        compressed.write(stream.getbuffer())
