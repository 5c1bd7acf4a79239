"""A shell on a terminal, by tmux."""

import os
import re
import shlex
import subprocess
import time

import needs

SECONDS = 20


class Screen:
    """A shell on a terminal of 100 columns; its prompt ends with `$ `."""

    def __init__(self, jobs, shell=("sh", "-i"), **more):
        needs.tool("tmux")
        self.jobs, self.socket = jobs, f"check-{os.getpid()}"
        environment = jobs.environment(PS1="$ ", TERM="screen", LC_ALL="C.UTF-8", PATH=f"{jobs.directory}:{os.environ['PATH']}",
                                       JOBC_COLOR="auto", **more)
        words = [*(jobs.account.prefix() if jobs.account else []), "env", "-i", *(f"{k}={v}" for k, v in environment.items()),
                 *shell]
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "30", "-c", str(jobs.directory), shlex.join(words))
        self.until(r"\$ ?$")

    def tmux(self, *words):
        return subprocess.run(["tmux", "-L", self.socket, *words], capture_output=True, text=True, timeout=SECONDS, check=True).stdout

    def type(self, text):
        """Types a line."""
        self.tmux("send-keys", "-l", text)
        self.tmux("send-keys", "Enter")

    def press(self, *keys):
        self.tmux("send-keys", *keys)

    def read(self, colors=False):
        return self.tmux("capture-pane", "-p", *(["-e"] if colors else []), "-S", "-200").rstrip()

    def until(self, pattern, seconds=SECONDS):
        """Waits until the pattern is on the screen, and returns the screen."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            screen = self.read()
            if re.search(pattern, screen):
                return screen
            time.sleep(0.1)
        raise AssertionError(f"{pattern!r} is not on the screen:\n{self.read()}")

    def clear(self):
        # Cleared lines scroll into the history first, when the shell reads the command.
        self.type("clear")
        deadline = time.monotonic() + SECONDS
        while not re.fullmatch(r"\$ ?", self.read()):
            assert time.monotonic() < deadline, f"the screen is not clear:\n{self.read()}"
            self.tmux("clear-history")
            time.sleep(0.1)

    def close(self):
        subprocess.run(["tmux", "-L", self.socket, "kill-server"], capture_output=True, check=False)
