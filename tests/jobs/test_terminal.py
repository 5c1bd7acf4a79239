"""Tests the job commands on a terminal (tmux): types keys and reads the screen."""

import re
import time

import pytest

import command_line
from screen import Screen

pytestmark = [pytest.mark.isolated, pytest.mark.duration(8), pytest.mark.accounts("root", slow="range")]

# Under its own name, which its cgroups have too: they are the host's, and another test may run.
LONG_JOB = command_line.LONG_JOB.replace("tested-long", "tested-seen")

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


@pytest.fixture
def jobs(jobs):
    for name, text in (("long", LONG_JOB), ("talk", TERMINAL_JOB), ("sweep", SWEEP)):
        (jobs.directory / f"{name}.yaml").write_text(text)
    return jobs


@pytest.fixture
def screen(jobs):
    screen = Screen(jobs)
    yield screen
    screen.close()


def unenforced(jobs):
    return "".join(f" {word}" for word in jobs.unenforced)


def check_terminal(screen):
    """Whether a command has restored the terminal settings."""
    screen.clear()
    screen.type("stty -a")
    settings = screen.until("icanon")
    for setting in ("icanon", "echo", "isig", "opost", "onlcr"):
        assert re.search(rf"(?<![-\w]){setting}\b", settings), f"the terminal lacks {setting} afterwards:\n{settings}"


def test_ctrl_c_stops_a_job_in_the_foreground(jobs, screen):
    """Lines are colored, with their tasks, and the shell gets its terminal back."""
    screen.type("jobc run long.yaml" + unenforced(jobs))
    screen.until(r"loud-0 \| hello from 0")
    screen.until(r"loud-1 \| hello from 1")
    assert "\x1b[3" in screen.read(colors=True), "no colors"
    screen.press("C-c")
    shown = screen.until(r"jobc: tested-seen\.\d+: stopped")
    assert "press Ctrl-C again to kill it" in shown and "bye from" in shown, f"the effect of Ctrl-C is not explained:\n{shown}"
    screen.type("echo code $?")
    screen.until("code 130")
    check_terminal(screen)
    # A job that ignores SIGTERM: the second Ctrl-C kills it.
    screen.type("sed -i 's/exit 0/true/; s/grace_period: 2s/grace_period: 60s/' long.yaml; jobc run long.yaml" + unenforced(jobs))
    screen.until(r"loud-1 \| hello from 1")
    screen.press("C-c")
    screen.until("press Ctrl-C again to kill it")
    time.sleep(0.3)
    screen.press("C-c")
    screen.until(r"jobc: tested-seen\.\d+: ", seconds=10)


def start_job(jobs, screen):
    screen.type("jobc run -d long.yaml" + unenforced(jobs))
    screen.until(r"tested-seen\.\d+")
    jobs.running("tested-seen")
    screen.clear()


def test_exec_gives_a_shell_with_the_size_of_the_terminal(jobs, screen):
    """Ctrl-C is for the program in it."""
    start_job(jobs, screen)
    screen.type("jobc exec -it tested-seen loud-1 -- env PS1='inside: ' sh -i")
    screen.until(r"inside: ?$")
    screen.type("stty size; hostname; test -t 0 && echo a terminal")
    shown = screen.until(r"(?m)^a terminal$")
    assert "30 100" in shown and "loud-1" in shown, f"size or name:\n{shown}"
    screen.type("sleep 600")
    time.sleep(0.5)
    screen.press("C-c")
    screen.type("echo code $?")
    screen.until("code 130")
    screen.type("exit 6")
    time.sleep(0.3)
    screen.type("echo outside $?")
    screen.until("outside 6")
    check_terminal(screen)


def test_logs_are_followed_until_ctrl_c(jobs, screen):
    """The job continues."""
    start_job(jobs, screen)
    screen.type("jobc logs -f tested-seen")
    screen.until(r"loud-1 \| hello from 1")
    time.sleep(0.5)
    assert not re.search(r"\$ ?$", screen.read()), "it ended without Ctrl-C"
    screen.press("C-c")
    screen.until(r"\$ ?$")
    assert jobs.record("tested-seen")["state"] == "running", "the job did not continue"
    check_terminal(screen)


def test_top_is_a_live_table_on_the_whole_screen(jobs, screen):
    """`q` restores the screen."""
    start_job(jobs, screen)
    screen.type("echo before; jobc top tested-seen")
    shown = screen.until("loud-1")
    assert "before" not in shown, f"the screen shows other text too:\n{shown}"
    wide = [line for line in shown.splitlines() if len(line) > 100]
    assert not wide, f"wider than the terminal: {wide}"
    # A filter leaves the tasks with a text.
    screen.type("/loud-1")
    shown = screen.until(r"filter: loud-1 \(1 of 2\)")
    assert not re.search(r"(?m)^tested-seen.* loud-0 ", shown), f"the filter leaves another task:\n{shown}"
    screen.press("Escape")
    screen.until(r"/ filter")
    screen.press("q")
    screen.until(r"before[\s\S]*\$ ?$")
    check_terminal(screen)


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


def test_a_live_table_is_below_the_lines_of_tasks(jobs, screen):
    """Every line is whole, and nothing of the table is left at the end."""
    (jobs.directory / "live.yaml").write_text(LIVE_JOB)
    command = "jobc run live.yaml" + unenforced(jobs)
    screen.tmux("set-option", "-g", "history-limit", "3000")
    screen.type(command)
    screen.until(r"(?m)^tested-live\.\d+  running .* 3 running  CPU .*\nTASK +STATE +CPU +MEMORY +GPU +LAST LINE\nbusy-0 +running ")
    screen.until(r"(?m)^calm-0 +running +\S+ +\S.*  calm$")
    shown = screen.until(r"calm-0 +running .*\s*$")
    lines = shown.splitlines()
    wide = [line for line in lines if len(line) > 99 and "LAST LINE" in shown]
    assert not wide, f"wider than the terminal: {wide}"
    screen.until(r"2 succeeded, 1 running", seconds=40)
    # The table is redrawn in the new width.
    screen.tmux("resize-window", "-x", "80", "-y", "24")
    screen.until(r"(?m)^calm-0 +running ")
    screen.press("C-c")
    screen.until(r"jobc: tested-live\.\d+: stopped")
    history = screen.tmux("capture-pane", "-p", "-J", "-S", "-3000")
    assert "LAST LINE" not in history.split("press Ctrl-C again")[-1], f"the table is left at the end:\n{history[-3000:]}"
    for task in (0, 1):
        numbers = [int(number) for number in re.findall(rf"(?m)^busy-{task} \| line (\d+) of {task}$", history)]
        assert numbers == list(range(1, 401)), \
            f"busy-{task}: lines are lost, doubled or broken: {len(numbers)} of 400: {sorted(set(range(1, 401)) - set(numbers))[:9]}"
    screen.clear()
    screen.type(command + " --plain")
    screen.until(r"line 90 of 1")
    assert "LAST LINE" not in screen.read(), "`--plain` shows a table"
    screen.press("C-c")
    screen.until(r"jobc: tested-live\.\d+: stopped")
    check_terminal(screen)


def test_a_task_runs_on_the_terminal_of_its_user(jobs, screen):
    """While the others run; then the end of the job, with the task's exit code."""
    screen.type("jobc run -it main-0 talk.yaml" + unenforced(jobs))
    screen.until("on a terminal of 30 100")
    screen.type("something")
    screen.until("heard something")
    screen.until(r"jobc: tested-talk\.\d+: failed.*exit 5")
    screen.type("echo code $?")
    screen.until(r"(?m)^(\$ )?code 1$")
    check_terminal(screen)


def test_stop_asks_which_job_is_meant(jobs, screen):
    """Nothing is stopped by accident."""
    start_job(jobs, screen)
    screen.type("jobc stop; echo code $?")
    screen.until(r"stop tested-seen\.\d+, running, submitted .* ago\? \[Y/n\]$")
    screen.type("n")
    screen.until(r"error: no job was stopped\ncode 1")
    start_job(jobs, screen)
    screen.type("jobc stop; echo code $?")
    shown = screen.until(r"stop which\? .* none:$")
    runs = re.findall(r"(?m)^([12]) +(tested-seen\.\d+) +running ", shown)
    assert [number for number, _ in runs] == ["1", "2"], f"the jobs to choose from:\n{shown}"
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
    assert jobs.record(runs[0][1])["state"] == "running", "the other job was stopped too"
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
    check_terminal(screen)


CRASHING_JOB = """\
version: 1
name: tested-crash
image: host
roles:
  main: {run: [python3, -c, "import ctypes, sys; print('about to crash', file=sys.stderr, flush=True); ctypes.string_at(0)"]}
"""


def test_the_reason_of_a_failure_is_red(jobs, screen):
    """A progress line is not."""
    (jobs.directory / "crash.yaml").write_text(CRASHING_JOB)
    screen.type("jobc run crash.yaml" + unenforced(jobs))
    screen.until(r"all of its output: `jobc logs tested-crash\.1 main-0`")
    lines = screen.read(colors=True).splitlines()
    red = [line for line in lines if re.search(r"\x1b\[31m", line)]
    assert len(red) == 1 and "jobc: tested-crash.1: failed: main-0: killed by SIGSEGV (segmentation fault)" in red[0], f"red: {red}"
    screen.clear()
    screen.type("jobc wait tested-crash")
    screen.until(r"the last lines of main-0 on stderr:\n  about to crash")
    assert re.search(r"\x1b\[31mtested-crash\.1: failed: ", screen.read(colors=True)), f"`jobc wait`: {screen.read(colors=True)}"
    check_terminal(screen)
