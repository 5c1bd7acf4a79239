"""The command line of a runtime: that of jobc-oci, runc and crun is the same."""

import json
import os
import pty
import re
import shutil
import stat
import subprocess
from pathlib import Path

import needs
from harness import REPOSITORY

SECONDS = 30

# crun 1.8 refuses a hybrid cgroup tree, so it gets a mount namespace in which the v2 half is not mounted.
WITHOUT_V2 = ["unshare", "--mount", "sh", "-c", 'umount /sys/fs/cgroup/unified; exec "$@"', "sh"]


class Runtime:
    """A runtime's program, its state directory, and the user that it runs as (`None`: the test's own user)."""

    def __init__(self, program, directory, user=None):
        self.program, self.user = Path(program), user
        self.name = "ours" if self.program.name == "jobc-oci" else self.program.name
        self.states = Path(directory, f"states-{self.name}")
        self.states.mkdir(mode=0o700, exist_ok=True)
        self.home = Path(directory, "home")
        self.home.mkdir(mode=0o700, exist_ok=True)
        if user:
            os.chown(self.states, user.uid, user.gid)
            os.chown(self.home, user.uid, user.gid)

    def argv(self, *words, flags=()):
        hybrid = self.name == "crun" and os.path.ismount("/sys/fs/cgroup/unified")
        globally = ["--root", str(self.states), *flags]
        if self.name == "crun" and self.user:
            globally.append("--cgroup-manager=disabled")
        return [*(WITHOUT_V2 if hybrid else []), *(self.user.prefix() if self.user else []), str(self.program),
                *globally, *words]

    def environment(self):
        if not self.user:
            return None
        # For `mutant.py`.
        more = {name: os.environ[name] for name in ("JOBC_MUTATION",) if name in os.environ}
        return {"PATH": os.environ["PATH"], "HOME": str(self.home), "XDG_RUNTIME_DIR": str(self.home)} | more

    def call(self, *words, seconds=SECONDS, **more):
        """Runs a command to its end; exit code 124 is a timeout."""
        if "stdin" not in more:
            with self.null() as null:
                return self.call(*words, seconds=seconds, stdin=null, **more)
        started = subprocess.Popen(self.argv(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   errors="surrogateescape", **({"env": self.environment()} | more))
        try:
            out, err = started.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            started.kill()
            out, err = started.communicate()
            return subprocess.CompletedProcess(started.args, 124, out, f"{err}\ntimed out after {seconds} s")
        return subprocess.CompletedProcess(started.args, started.returncode, out, err)

    def null(self):
        """An open /dev/null; for crun one of its own, since crun gives its standard input to the container's user."""
        if self.name != "crun" or os.geteuid() != 0:
            return open(os.devnull, "rb")
        own = self.states.parent / "null"
        if not own.exists():
            os.mknod(own, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
            own.chmod(0o666)
        return own.open("rb")

    def run(self, bundle, name, *flags, **more):
        return self.call("run", *flags, "--bundle", str(bundle), name, **more)

    def spawn(self, bundle, name, *flags, prelude=(), **more):
        """Starts `run` and returns while the container runs, with pipes as streams."""
        more = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | more
        return subprocess.Popen([*prelude, *self.argv("run", *flags, "--bundle", str(bundle), name)],
                                text=True, errors="surrogateescape", env=self.environment(), **more)

    def state(self, name):
        """The state as JSON, `None` if there is no container of that name."""
        answer = self.call("state", name)
        return json.loads(answer.stdout) if answer.returncode == 0 else None

    def delete(self, name):
        return self.call("delete", "--force", name)


def ours(directory, built=None):
    """A copy of this tree's `jobc-oci`, or of the `jobc` that `JOBC` names, as `jobc-oci`, where every user may run it."""
    copy = Path(directory, "jobc-oci")
    if not copy.exists():
        shutil.copy2(built or binary("jobc-oci"), copy)
        copy.chmod(0o755)
    return copy


def binary(name="jobc"):
    """The program that cargo built last; `JOBC` names another `jobc`, which serves as both programs."""
    if "JOBC" in os.environ:
        return Path(os.environ["JOBC"])
    target = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))
    built = [path for path in (target / "debug" / name, target / "release" / name) if path.exists()]
    if not built:
        raise SystemExit(f"`{name}` is not built: run `cargo build` first")
    return max(built, key=lambda path: path.stat().st_mtime)


def program(requested, directory):
    """The program to test: what `--runtime` names, or ours."""
    return ours(directory) if requested in (None, "ours") else needs.tool(requested)


def on_a_terminal(argv, environment, answer=None, seconds=SECONDS):
    """Runs a command on its own terminal of 33 rows and 101 columns; returns its exit code and output."""
    import fcntl
    import select
    import struct
    import termios
    import time

    pid, master = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 101, 0, 0))
        os.execvpe(argv[0], argv, environment or os.environ)
    written, deadline = b"", time.monotonic() + seconds
    while time.monotonic() < deadline:
        if select.select([master], [], [], 0.2)[0]:
            try:
                piece = os.read(master, 65536)
            except OSError:
                break
            if not piece:
                break
            written += piece
            if answer and answer[0] in written:
                os.write(master, answer[1])
                answer = None
    else:
        os.kill(pid, 9)
    _, status = os.waitpid(pid, 0)
    os.close(master)
    # A runtime that sets the terminal to raw only after the program has written leaves two carriage returns.
    return os.waitstatus_to_exitcode(status), re.sub(r"\r+\n", "\n", written.decode(errors="surrogateescape"))


def remove_groups(name):
    """Removes the cgroups that runtimes leave above a container's cgroup."""
    for top in ("/sys/fs/cgroup", *(f"/sys/fs/cgroup/{each}" for each in os.listdir("/sys/fs/cgroup"))):
        for directory, _, _ in os.walk(os.path.join(top, name), topdown=False):
            try:
                os.rmdir(directory)
            except OSError:
                pass


def running(command):
    """The processes with this command line, whose arguments have no blanks."""
    found, words = [], "\0".join([*command.split(), ""])
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/cmdline", encoding="utf-8", errors="replace") as file:
                    if file.read() == words:
                        found.append(int(entry))
            except OSError:
                pass
    return found


def unique_sleep(number):
    """`sleep` with a duration that no other process on the host has, so that it is found by its command line: another test may run."""
    return f"sleep {number}{os.getpid():07}"
