#!/usr/bin/env python3
"""Tests the job commands on a terminal (tmux): types keys and reads the screen.

`--user range` and `--user single` run as an unprivileged user.
"""

import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "runtime"))

from isolation import jobs_of, problems  # noqa: E402
import commands  # noqa: E402
from harness import Harness  # noqa: E402

SECONDS = 20

# Under its own name, which its cgroups have too: they are the host's, and another test may run.
LONG_JOB = commands.LONG_JOB.replace("tested-long", "tested-seen")

TERMINAL_JOB = """\
version: 1
name: tested-talk
image: host
roles:
  main:
    shell: sh
    run: |
      test -t 0 && test -t 1 && echo on a terminal of $(stty size)
      read -r line; echo "heard $line"; sleep 0.2; exit 5
  other:
    shell: sh
    run: sleep 600
"""


class Screen:
    """A shell on a terminal of 100 columns; its prompt ends with `$ `."""

    def __init__(self, jobs, shell=("sh", "-i"), **more):
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


SWEEP = """\
version: 1
name: tested-both
image: host
matrix: {number: [1, 2]}
roles:
  only:
    shell: sh
    run: |
      trap 'exit 0' TERM
      echo begin; while :; do sleep 0.1; done
"""


def main():
    harness = Harness("terminal", __doc__)
    harness.tool("tmux")
    with jobs_of(harness) as jobs:
        (jobs.directory / "long.yaml").write_text(LONG_JOB)
        (jobs.directory / "talk.yaml").write_text(TERMINAL_JOB)
        (jobs.directory / "sweep.yaml").write_text(SWEEP)
        for case in (foreground, executing, following_logs, watching, live_table, running_on_terminal, failing, stopping):
            if harness.wants(case.__name__):
                harness.check(case.__name__, problems(with_screen(case), jobs))
    harness.end()


def with_screen(case):
    """The case with its own terminal."""
    def run(jobs):
        screen = Screen(jobs)
        try:
            yield from case(jobs, screen)
        finally:
            screen.close()
    return run


def unenforced_option(jobs):
    return " --allow-unenforced" if jobs.account else ""


def terminal_restored(screen):
    """The terminal settings that a command has not restored."""
    screen.clear()
    screen.type("stty -a")
    settings = screen.until("icanon")
    for setting in ("icanon", "echo", "isig", "opost", "onlcr"):
        if not re.search(rf"(?<![-\w]){setting}\b", settings):
            yield f"the terminal lacks {setting} afterwards:\n{settings}"


def foreground(jobs, screen):
    """Colored lines with their tasks; Ctrl-C stops the job, and the shell gets its terminal back."""
    screen.type("jobc run long.yaml" + unenforced_option(jobs))
    screen.until(r"loud-0 \| hello from 0")
    screen.until(r"loud-1 \| hello from 1")
    if "\x1b[3" not in screen.read(colors=True):
        yield "no colors"
    screen.press("C-c")
    shown = screen.until(r"jobc: tested-seen\.\d+: stopped")
    if "press Ctrl-C again to kill it" not in shown or "bye from" not in shown:
        yield f"the effect of Ctrl-C is not explained:\n{shown}"
    screen.type("echo code $?")
    screen.until("code 130")
    yield from terminal_restored(screen)
    # A job that ignores SIGTERM: the second Ctrl-C kills it.
    screen.type("sed -i 's/exit 0/true/; s/grace_period: 2s/grace_period: 60s/' long.yaml; jobc run long.yaml" + unenforced_option(jobs))
    screen.until(r"loud-1 \| hello from 1")
    screen.press("C-c")
    screen.until("press Ctrl-C again to kill it")
    time.sleep(0.3)
    screen.press("C-c")
    screen.until(r"jobc: tested-seen\.\d+: ", seconds=10)
    (jobs.directory / "long.yaml").write_text(LONG_JOB)


def start_job(jobs, screen):
    screen.type("jobc run -d long.yaml" + unenforced_option(jobs))
    screen.until(r"tested-seen\.\d+")
    jobs.running("tested-seen")
    screen.clear()


def executing(jobs, screen):
    """A shell in a task, with the size of the user's terminal, and Ctrl-C for the program in it."""
    start_job(jobs, screen)
    screen.type("jobc exec -it tested-seen loud-1 -- env PS1='inside: ' sh -i")
    screen.until(r"inside: ?$")
    screen.type("stty size; hostname; test -t 0 && echo a terminal")
    shown = screen.until(r"(?m)^a terminal$")
    if "30 100" not in shown or "loud-1" not in shown:
        yield f"size or name:\n{shown}"
    screen.type("sleep 600")
    time.sleep(0.5)
    screen.press("C-c")
    screen.type("echo code $?")
    screen.until("code 130")
    screen.type("exit 6")
    time.sleep(0.3)
    screen.type("echo outside $?")
    screen.until("outside 6")
    yield from terminal_restored(screen)


def following_logs(jobs, screen):
    """Logs as they come, until Ctrl-C; the job continues."""
    start_job(jobs, screen)
    screen.type("jobc logs -f tested-seen")
    screen.until(r"loud-1 \| hello from 1")
    time.sleep(0.5)
    if re.search(r"\$ ?$", screen.read()):
        yield "it ended without Ctrl-C"
    screen.press("C-c")
    screen.until(r"\$ ?$")
    if jobs.record("tested-seen")["state"] != "running":
        yield "the job did not continue"
    yield from terminal_restored(screen)


def watching(jobs, screen):
    """A live table on the whole screen; `q` restores the screen."""
    start_job(jobs, screen)
    screen.type("echo before; jobc top tested-seen")
    shown = screen.until("loud-1")
    if "before" in shown:
        yield f"the screen shows other text too:\n{shown}"
    wide = [line for line in shown.splitlines() if len(line) > 100]
    if wide:
        yield f"wider than the terminal: {wide}"
    # A filter leaves the tasks with a text.
    screen.type("/loud-1")
    shown = screen.until(r"filter: loud-1 \(1 of 2\)")
    if re.search(r"(?m)^tested-seen.* loud-0 ", shown):
        yield f"the filter leaves another task:\n{shown}"
    screen.press("Escape")
    screen.until(r"/ filter")
    screen.press("q")
    screen.until(r"before[\s\S]*\$ ?$")
    yield from terminal_restored(screen)


LIVE_JOB = """\
version: 1
name: tested-live
image: host
roles:
  busy:
    instances: 2
    shell: sh
    run: |
      i=0; while [ $i -lt 400 ]; do i=$((i+1)); echo line $i of $JOBC_INDEX; sleep 0.02; done
  calm:
    shell: sh
    run: sleep 600 & trap 'exit 0' TERM; echo calm; wait
"""


def live_table(jobs, screen):
    """What tasks use, below their lines; every line is whole, and nothing of the table is left at the end."""
    (jobs.directory / "live.yaml").write_text(LIVE_JOB)
    command = "jobc run live.yaml" + unenforced_option(jobs)
    screen.tmux("set-option", "-g", "history-limit", "3000")
    screen.type(command)
    screen.until(r"(?m)^tested-live\.\d+  running .* 3 running  CPU .*\nTASK +STATE +CPU +MEMORY +GPU +LAST LINE\nbusy-0 +running ")
    screen.until(r"(?m)^calm-0 +running +\S+ +\S.*  calm$")
    shown = screen.until(r"calm-0 +running .*\s*$")
    lines = shown.splitlines()
    wide = [line for line in lines if len(line) > 99 and "LAST LINE" in shown]
    if wide:
        yield f"wider than the terminal: {wide}"
    screen.until(r"2 succeeded, 1 running", seconds=40)
    # The table is redrawn in the new width.
    screen.tmux("resize-window", "-x", "80", "-y", "24")
    screen.until(r"(?m)^calm-0 +running ")
    screen.press("C-c")
    screen.until(r"jobc: tested-live\.\d+: stopped")
    history = screen.tmux("capture-pane", "-p", "-J", "-S", "-3000")
    if "LAST LINE" in history.split("press Ctrl-C again")[-1]:
        yield f"the table is left at the end:\n{history[-3000:]}"
    for task in (0, 1):
        numbers = [int(number) for number in re.findall(rf"(?m)^busy-{task} \| line (\d+) of {task}$", history)]
        if numbers != list(range(1, 401)):
            yield f"busy-{task}: lines are lost, doubled or broken: {len(numbers)} of 400: {sorted(set(range(1, 401)) - set(numbers))[:9]}"
    screen.clear()
    screen.type(command + " --plain")
    screen.until(r"line 90 of 1")
    if "LAST LINE" in screen.read():
        yield "`--plain` shows a table"
    screen.press("C-c")
    screen.until(r"jobc: tested-live\.\d+: stopped")
    yield from terminal_restored(screen)


def running_on_terminal(jobs, screen):
    """A task on the user's terminal, while the others run; then the end of the job, with the task's exit code."""
    screen.type("jobc run -it main-0 talk.yaml" + unenforced_option(jobs))
    screen.until("on a terminal of 30 100")
    screen.type("something")
    screen.until("heard something")
    screen.until(r"jobc: tested-talk\.\d+: failed.*exit 5")
    screen.type("echo code $?")
    screen.until(r"(?m)^(\$ )?code 1$")
    yield from terminal_restored(screen)


def stopping(jobs, screen):
    """`jobc stop` asks which job is meant; nothing is stopped by accident."""
    start_job(jobs, screen)
    screen.type("jobc stop; echo code $?")
    screen.until(r"stop tested-seen\.\d+, running, submitted .* ago\? \[Y/n\]$")
    screen.type("n")
    screen.until(r"error: no job was stopped\ncode 1")
    start_job(jobs, screen)
    screen.type("jobc stop; echo code $?")
    shown = screen.until(r"stop which\? .* none:$")
    runs = re.findall(r"(?m)^([12]) +(tested-seen\.\d+) +running ", shown)
    if [number for number, _ in runs] != ["1", "2"]:
        yield f"the jobs to choose from:\n{shown}"
    screen.type("")
    screen.until(r"error: no job was stopped\ncode 1")
    screen.clear()
    screen.type("jobc stop; echo code $?")
    screen.until(r"stop which\? .* none:$")
    screen.type("7")
    screen.until(r"`7` is not one of the numbers 1 to 2")
    screen.clear()
    screen.type("jobc stop; echo code $?")
    screen.until(r"stop which\? .* none:$")
    screen.type("2")
    screen.until(re.escape(runs[1][1]) + r": stopped.*\ncode 0")
    if jobs.record(runs[0][1])["state"] != "running":
        yield "the other job was stopped too"
    screen.clear()
    screen.type("jobc stop; echo code $?")
    screen.until(r"\[Y/n\]$")
    screen.type("")
    screen.until(re.escape(runs[0][1]) + r": stopped.*\ncode 0")
    screen.clear()
    # At a terminal, the job that was taken is named.
    screen.type("jobc logs")
    screen.until(re.escape(f"jobc: {runs[0][1]}, stopped"))
    screen.clear()
    # The jobs of a sweep are one thing to stop, and to look at.
    name = jobs.call("run", "--detach", str(jobs.directory / "sweep.yaml")).stdout.strip()
    jobs.running("tested-both-0")
    screen.type("jobc stop; echo code $?")
    screen.until(rf"stop {re.escape(name)}, running, submitted .* ago\? \[Y/n\]$")
    screen.type("y")
    screen.until(re.escape(name) + r": 2 stopped\ncode 0")
    screen.clear()
    screen.type("jobc logs")
    screen.until(re.escape(f"jobc: {name}, a sweep"))
    yield from terminal_restored(screen)


CRASHING_JOB = """\
version: 1
name: tested-crash
image: host
roles:
  main: {run: [python3, -c, "import ctypes, sys; print('about to crash', file=sys.stderr, flush=True); ctypes.string_at(0)"]}
"""


def failing(jobs, screen):
    """The reason of a failure is red; a progress line is not."""
    (jobs.directory / "crash.yaml").write_text(CRASHING_JOB)
    screen.type("jobc run crash.yaml" + unenforced_option(jobs))
    screen.until(r"all of its output: `jobc logs tested-crash\.1 main-0`")
    lines = screen.read(colors=True).splitlines()
    red = [line for line in lines if re.search(r"\x1b\[31m", line)]
    if len(red) != 1 or "jobc: tested-crash.1: failed: main-0: killed by SIGSEGV (segmentation fault)" not in red[0]:
        yield f"red: {red}"
    screen.clear()
    screen.type("jobc wait tested-crash")
    screen.until(r"the last lines of main-0 on stderr:\n  about to crash")
    if not re.search(r"\x1b\[31mtested-crash\.1: failed: ", screen.read(colors=True)):
        yield f"`jobc wait`: {screen.read(colors=True)}"
    yield from terminal_restored(screen)


if __name__ == "__main__":
    main()
