"""The fixture of a security check: bundles with a hostile program, and a sentinel directory outside that must not change."""

import hashlib
import os
import shutil
import subprocess
import threading
from pathlib import Path

from bundle import configuration, give, rootless, write
from racer import Racer

SECRET = "the host's own words"


class Fixture:
    """One runtime, one user, and a sentinel: files of the host that no container may read or change."""

    def __init__(self, runtime, roots, inside, directory, account, note, races, exchanges):
        self.runtime, self.roots, self.account, self.note, self.races, self.exchanges = runtime, roots, account, note, races, exchanges
        self.directory, self.count, self.running = Path(directory), 0, []
        self.inside = self.directory / "inside"
        shutil.copy2(inside, self.inside)
        # The files belong to the user of the test, so that only the runtime protects them and not file permissions.
        self.sentinel = self.directory / "sentinel"
        (self.sentinel / "directory").mkdir(parents=True)
        (self.sentinel / "secret").write_text(SECRET)
        (self.sentinel / "directory/file").write_text("kept")
        (self.sentinel / "link").symlink_to("secret")
        for path in (self.sentinel, self.sentinel / "directory"):
            path.chmod(0o777)
        (self.sentinel / "secret").chmod(0o666)
        self.owner = (account.uid, account.gid) if account else None
        if account:
            give(self.sentinel, self.owner)
        self.before = self.digest()

    def digest(self):
        """A hash of every name, type, mode, owner, time and content below the sentinel."""
        digest = hashlib.sha256()
        for path in [self.sentinel, *sorted(self.sentinel.rglob("*"))]:
            stat = path.lstat()
            digest.update(repr((str(path), stat.st_mode, stat.st_uid, stat.st_gid, stat.st_mtime_ns, stat.st_rdev)).encode())
            if path.is_symlink():
                digest.update(os.readlink(path).encode())
            elif path.is_file():
                digest.update(path.read_bytes())
        return digest.hexdigest()

    def racing(self, what, one, two):
        """A context manager during which a second process keeps exchanging two paths."""
        return Racer(self, what, one, two)

    def assert_unchanged(self, what="a start"):
        names = sorted(str(path.relative_to(self.sentinel)) for path in self.sentinel.rglob("*"))
        assert self.digest() == self.before, f"{what} changed the host's directory: it holds {names}"

    def bundle(self, args, change=None, prepare=None):
        """A bundle that runs `/inside` with these arguments, or a command; `prepare` changes its root file system."""
        self.count += 1
        directory = self.directory / f"bundle-{self.count}"
        directory.mkdir()
        config = configuration()
        config["process"]["args"] = ["/inside", *args] if not args[0].startswith("/") else list(args)
        config["linux"]["cgroupsPath"] = f"/check-{os.getpid()}/{self.count}"
        if self.account:
            rootless(config, self.account)
            config["linux"].pop("cgroupsPath")
        if change:
            change(config)
        self.roots.bundle(directory, config)
        os.link(self.inside, directory / "rootfs/inside")
        if prepare:
            prepare(directory / "rootfs")
        if self.account:
            give(directory, self.owner)
            os.chown(self.inside, 0, 0)
        write(directory, config)
        return directory, f"security-{os.getpid()}-{self.count}"

    def run(self, args, change=None, prepare=None, flags=(), **more):
        """Runs a bundle to its end. Exit code 124 is a container that hangs, which always fails the check."""
        directory, name = self.bundle(args, change, prepare)
        try:
            return self.runtime.run(directory, name, *flags, **more)
        finally:
            self.runtime.delete(name)

    def start(self, args, change=None, prepare=None, **more):
        """Starts a bundle and returns (process, name) after the program printed `ready`, otherwise (None, the output)."""
        directory, name = self.bundle(args, change, prepare)
        started = self.runtime.spawn(directory, name, **more)
        guard = threading.Timer(20, started.kill)
        guard.start()
        line = started.stdout.readline()
        guard.cancel()
        if line.strip() != "ready":
            _, errors = started.communicate(timeout=20)
            self.runtime.delete(name)
            return None, f"does not start: {line!r} {errors.strip()}"
        self.running.append((started, name))
        return started, name

    def close(self):
        """Kills containers that an interrupted check left running."""
        for started, name in self.running:
            if started.poll() is None:
                self.end(started, name)

    def end(self, started, name):
        """Kills a container, and returns its output since it was started."""
        self.runtime.call("kill", name, "KILL")
        out = ""
        try:
            out, _ = started.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            # A process that survived keeps the pipes open, so do not wait for their end.
            started.kill()
        self.runtime.delete(name)
        return out


def assert_ended(result, what="a start"):
    assert result.returncode != 124, f"{what} hangs"


def assert_rejected(result, what):
    """The runtime must have failed with a message, without starting the program."""
    assert_ended(result, what)
    assert "hello" not in result.stdout, f"{what}: the program was started"
    assert result.returncode != 0, f"{what}: exit code 0"
    assert result.stderr.strip(), f"{what}: rejected without a message"
