"""What tests of builds with servers share: a builder, Git repositories, an SSH agent, sshd."""

import contextlib
import gzip
import io
import json
import os
import shutil
import socket
import subprocess
import tarfile
import time
from pathlib import Path

import needs
import web
from home import Home
from runtime import binary

BASE = "FROM scratch AS base\nCOPY busybox /bin/busybox\nRUN [\"/bin/busybox\", \"--install\", \"-s\", \"/bin\"]\nFROM base\n"


class Builder:
    """A home, a context with busybox, and the program as a user may run it."""

    def __init__(self, directory, account=None):
        self.account, self.directory = account, directory
        # A command that enters namespaces and executes what follows.
        self.entering = []
        self.program = directory / "jobc"
        shutil.copy2(binary(), self.program)
        self.program.chmod(0o755)
        if not Path("/bin/busybox").exists():
            needs.missing("busybox-static")
        self.home = Home(directory / "home")
        self.context = directory / "context"
        self.context.mkdir()
        for path in (self.home.directory, self.context):
            if account:
                os.chown(path, account.uid, account.gid)
        shutil.copy2("/bin/busybox", self.context / "busybox")

    def run(self, text, *words, context=None, seconds=60, **environment):
        """Builds a Dockerfile."""
        (self.context / "Dockerfile").write_text(text)
        return self.command("image", "build", "--builder", "embedded", *words, context or self.context, seconds=seconds, **environment)

    def command(self, *words, seconds=60, **environment):
        prefix = [*self.entering, *(self.account.prefix() if self.account else [])]
        # None removes a variable.
        environment = {name: value for name, value in (self.home.environment | environment).items() if value is not None}
        return subprocess.run([*prefix, self.program, *map(str, words)], env=environment, cwd=self.home.directory,
                              capture_output=True, text=True, timeout=seconds, check=False)

    def files(self, result):
        """The files of the image that was built: path, and its entry with its content."""
        read = lambda digest: (self.home.store / "blobs/sha256" / digest.split(":")[1]).read_bytes()  # noqa: E731
        found = {}
        for layer in json.loads(read(result.stdout.split()[-1]))["layers"]:
            with tarfile.open(fileobj=io.BytesIO(gzip.decompress(read(layer["digest"])))) as archive:
                for entry in archive:
                    content = archive.extractfile(entry).read() if entry.isfile() else b""
                    found[entry.name.removeprefix("./").strip("/")] = (entry, content)
        return found

    def left(self):
        """What builds have left."""
        return list((self.home.store / "cache/work").glob("*"))


def git(directory, *words):
    environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1",
                   "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@x", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@x",
                   "GIT_AUTHOR_DATE": f"{web.MODIFIED} +0000", "GIT_COMMITTER_DATE": f"{web.MODIFIED} +0000"}
    return subprocess.run(["git", *map(str, words)], cwd=directory, env=environment, capture_output=True, text=True, check=True).stdout.strip()


def repository(root, name, files, submodule=None):
    """A repository with a commit, a branch `other`, an annotated tag `v1`, and hooks that must not run."""
    work = root / f"{name}-work"
    work.mkdir(parents=True)
    git(work, "init", "--quiet", "--initial-branch=main")
    for path, content in files.items():
        (work / path).parent.mkdir(parents=True, exist_ok=True)
        (work / path).write_text(content)
    if submodule:
        (work / ".gitmodules").write_text(f"[submodule \"sub\"]\n\tpath = sub\n\turl = {submodule[0]}\n")
        git(work, "update-index", "--add", "--cacheinfo", f"160000,{submodule[1]},sub")
    git(work, "add", "--all", *(["--", ":!sub"] if submodule else []))
    git(work, "commit", "--quiet", "-m", "one")
    git(work, "tag", "-a", "v1", "-m", "v1")
    git(work, "checkout", "--quiet", "-b", "other")
    (work / "file").write_text("other\n")
    git(work, "add", "file")
    git(work, "commit", "--quiet", "-m", "two")
    git(work, "checkout", "--quiet", "main")
    git(root, "clone", "--quiet", "--bare", work, f"{name}.git")
    return git(work, "rev-parse", "main")


@contextlib.contextmanager
def ssh_server(directory, key):
    """A real sshd on loopback that lets root in with a key; its port, and its line for known_hosts."""
    place = directory / "sshd"
    place.mkdir(mode=0o700)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", place / "host"], check=True)
    shutil.copy2(f"{key}.pub", place / "authorized")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = {"ListenAddress": f"127.0.0.1:{port}", "HostKey": place / "host", "AuthorizedKeysFile": place / "authorized", "PidFile": "none",
                "PermitRootLogin": "prohibit-password", "PasswordAuthentication": "no", "UsePAM": "no", "StrictModes": "no"}
    (place / "config").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    # sshd wants this directory, which a service would make.
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    process = subprocess.Popen([shutil.which("sshd") or "/usr/sbin/sshd", "-D", "-e", "-f", place / "config"], stderr=(place / "log").open("w"))
    try:
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.05)
        kind, public = (place / "host.pub").read_text().split()[:2]
        yield port, f"[127.0.0.1]:{port} {kind} {public}\n"
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def agent(directory, account=None):
    """A real agent with a new key; its socket, and the key's public part."""
    prefix = account.prefix() if account else []
    place = directory / "agent"
    place.mkdir()
    if account:
        os.chown(place, account.uid, account.gid)
    path = place / "socket"
    process = subprocess.Popen([*prefix, "ssh-agent", "-D", "-a", str(path)], stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 5
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        key = place / "key"
        subprocess.run([*prefix, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "of-test", "-f", key], check=True)
        subprocess.run([*prefix, "ssh-add", "-q", key], env={"PATH": os.environ["PATH"], "SSH_AUTH_SOCK": str(path)}, check=True)
        yield path, key
    finally:
        process.kill()
        process.wait()


def ssh_home(directory):
    """A directory, and the prefix of a command in which it is ~/.ssh: ssh takes the user's home from the account, not from HOME."""
    home = directory / "ssh"
    home.mkdir(mode=0o700)
    # It is left there: who removes it takes away the mounts that other tests have on it.
    Path("~root/.ssh").expanduser().mkdir(mode=0o700, exist_ok=True)
    return home, ["unshare", "--mount", "--propagation", "private", "sh", "-c", 'mount --bind "$0" ~root/.ssh && exec "$@"', str(home)]


def is_helper_of(comm, builder):
    with contextlib.suppress(OSError):
        return comm.read_text() == "jobc-network\n" and os.readlink(comm.parent / "exe") == str(builder.program)
    return False
