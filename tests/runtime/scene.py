"""Where a security check takes place: bundles with a hostile program in them, and a directory outside that must stay as it is."""

import hashlib
import os
import subprocess
import threading
from pathlib import Path

from bundle import HERE, configuration, give, rootless, write
from racer import Racer

SECRET = "the host's own words"


class Scene:
    """One runtime, one user, and a sentinel: files of the host, which no container may read or change."""

    def __init__(self, harness, runtime, roots, directory, account):
        self.harness, self.runtime, self.roots, self.account = harness, runtime, roots, account
        self.directory, self.count, self.running = Path(directory), 0, []
        self.inside = self.directory / "inside"
        compiled = subprocess.run(["gcc", "-O1", "-static", "-o", self.inside, HERE / "inside.c"], capture_output=True, text=True, check=False)
        if compiled.returncode:
            harness.skip(f"`gcc -static` fails: {compiled.stderr.strip()}")
        # In a user's case the files are that user's own, so that no other permission than the runtime's care protects them.
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
        """Every name, kind, mode, owner, time and content below the sentinel, as one hash; reading changes none of it."""
        told = hashlib.sha256()
        for path in [self.sentinel, *sorted(self.sentinel.rglob("*"))]:
            seen = path.lstat()
            told.update(repr((str(path), seen.st_mode, seen.st_uid, seen.st_gid, seen.st_mtime_ns, seen.st_rdev)).encode())
            if path.is_symlink():
                told.update(os.readlink(path).encode())
            elif path.is_file():
                told.update(path.read_bytes())
        return told.hexdigest()

    def exchanged(self, what, one, two):
        """While this is entered, two paths are exchanged all the time."""
        return Racer(self.harness, what, one, two)

    def untouched(self):
        if self.digest() != self.before:
            there = sorted(str(path.relative_to(self.sentinel)) for path in self.sentinel.rglob("*"))
            self.before = self.digest()
            yield f"the host's directory was changed: it holds {there}"

    def bundle(self, args, change=None, prepare=None):
        """A bundle that runs `/inside` with these words, or a whole command; `prepare` changes its root's files."""
        self.count += 1
        place = self.directory / f"bundle-{self.count}"
        place.mkdir()
        config = configuration()
        config["process"]["args"] = ["/inside", *args] if not args[0].startswith("/") else list(args)
        config["linux"]["cgroupsPath"] = f"/check-{os.getpid()}/{self.count}"
        if self.account:
            rootless(config, self.account)
            config["linux"].pop("cgroupsPath")
        if change:
            change(config)
        self.roots.bundle(place, config)
        os.link(self.inside, place / "rootfs/inside")
        if prepare:
            prepare(place / "rootfs")
        if self.account:
            give(place, self.owner)
            os.chown(self.inside, 0, 0)
        write(place, config)
        return place, f"security-{os.getpid()}-{self.count}"

    def run(self, args, change=None, prepare=None, flags=(), **more):
        """Runs a bundle to its end; exit code 124 is a container that hangs, which is always a refusal."""
        place, name = self.bundle(args, change, prepare)
        try:
            return self.runtime.run(place, name, *flags, **more)
        finally:
            self.runtime.delete(name)

    def start(self, args, change=None, prepare=None, **more):
        """Starts a bundle and returns (process, name) after the program said `ready`; (None, what was said) if it does not."""
        place, name = self.bundle(args, change, prepare)
        started = self.runtime.spawn(place, name, **more)
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
        """Ends what a check that broke off left running."""
        for started, name in self.running:
            if started.poll() is None:
                self.end(started, name)

    def end(self, started, name):
        """Ends a container that was started, and gives what it printed since."""
        self.runtime.call("kill", name, "KILL")
        out = ""
        try:
            out, _ = started.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            # Whatever lives on holds the pipes, so nothing waits for their end.
            started.kill()
        self.runtime.delete(name)
        return out


def hung(ended):
    if ended.returncode == 124:
        yield "hangs"


def refused(ended, what):
    """The runtime must have failed by itself, in words, with the program not started."""
    yield from hung(ended)
    if "hello" in ended.stdout:
        yield f"{what}: the program runs all the same"
    elif ended.returncode == 0:
        yield f"{what}: exit code 0"
    elif not ended.stderr.strip():
        yield f"{what}: refused without a word"
