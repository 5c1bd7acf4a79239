"""What the tests of the installation share: programs that stand in for jobc's, releases, and a server on loopback."""

import hashlib
import io
import os
import platform
import re
import shutil
import subprocess
import tarfile
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGING = REPOSITORY / "packaging"
PLATFORM = f"{platform.machine()}-linux"
# The tests of files other than root's run as this user, which owns nothing.
NOBODY = 65534


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextmanager
def server(directory):
    """Serves a directory over HTTP on loopback; the value is its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(directory))) as running:
        thread = threading.Thread(target=running.serve_forever, args=[0.02], daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{running.server_port}"
        finally:
            running.shutdown()
            thread.join()


def archive(name, files):
    """A release archive: `files` are contents by path below `name/`. Those below bin/ are executable."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for path, content in files.items():
            entry = tarfile.TarInfo(f"{name}/{path}")
            entry.size, entry.mode = len(content), 0o755 if path.startswith("bin/") else 0o644
            tar.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def release(root, version, files, latest=True):
    """Writes a release as GitHub serves it: download/vVERSION/ and, as the latest one, latest/download/."""
    name = f"jobc-{version}-{PLATFORM}"
    packed = archive(name, files)
    sums = f"{hashlib.sha256(packed).hexdigest()}  {name}.tar.gz\n"
    for directory in [root / f"download/v{version}", *([root / "latest/download"] if latest else [])]:
        directory.mkdir(parents=True, exist_ok=True)
        for old in directory.iterdir():
            old.unlink()
        (directory / f"{name}.tar.gz").write_bytes(packed)
        (directory / "SHA256SUMS").write_text(sums)
    return root / f"download/v{version}/{name}.tar.gz"


def files_below(root):
    """All files, links and directories below a directory, as sorted texts."""
    return sorted(str(path.relative_to(root)) for path in Path(root).rglob("*"))


def older_packaging(directory):
    """The packaging scripts of a version before every release, in a copy of what they read; returns their directory."""
    text = (REPOSITORY / "Cargo.toml").read_text()
    section, found = re.search(r'(?ms)^\[workspace\.package\]\n.*?^version = "([^"]+)"$', text), "0.0.1"
    for name in ("packaging", "editors/neovim"):
        shutil.copytree(REPOSITORY / name, directory / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("LICENSE-MIT", "LICENSE-APACHE", "README.md", "CHANGELOG.md"):
        shutil.copyfile(REPOSITORY / name, directory / name)
    (directory / "Cargo.toml").write_text(text.replace(section[0], section[0].replace(f'"{section[1]}"', f'"{found}"')))
    return directory / "packaging"


def ran(command, user=None, **settings):
    """Runs a command, as another user if `user` is given, and returns the completed process with its output as text."""
    settings = {"capture_output": True, "text": True, "timeout": 600, "stdin": subprocess.DEVNULL, **settings}
    if user is not None and os.getuid() == 0:
        settings |= {"user": user, "group": user, "extra_groups": []}
    return subprocess.run([str(word) for word in command], **settings)


def expect(process, code=0, text=""):
    """The process, after a look at its exit code and at its output, which must contain `text`."""
    output = process.stdout + process.stderr
    assert process.returncode == code, f"{process.args}: exit code {process.returncode}: {output.strip()[-1500:]}"
    assert text in output, f"{process.args}: {output.strip()[-1500:]}"
    return process


def succeeds(*command, **settings):
    """Runs a command that must succeed."""
    return expect(ran(command, **settings))
