"""The baseline (`floor.c`): the speed of a host changes within minutes, so durations are compared with those of the floor."""

import os
import subprocess
import time
from pathlib import Path

# The floor's duration when the goals in milliseconds were set. On another host, or at another time, a goal is the same multiple
# of the floor's current duration.
FLOOR_OF_GOALS = 2.5


def built(directory):
    """The program, compiled into `directory`."""
    program = directory / "floor"
    subprocess.run(["gcc", "-O2", "-static", "-o", program, Path(__file__).with_name("floor.c")], check=True)
    return program


def begin(command):
    """Starts a command with /dev/null as its streams, and returns its pid."""
    devnull = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
    return os.posix_spawn(command[0], command, os.environ, file_actions=devnull)


def once(command):
    """Wall and processor milliseconds and the exit code of one run, from posix_spawn to wait4."""
    begun = time.perf_counter()
    _, status, usage = os.wait4(begin(command), 0)
    wall = time.perf_counter() - begun
    return wall * 1000, (usage.ru_utime + usage.ru_stime) * 1000, os.waitstatus_to_exitcode(status)


def gang(commands, at_once):
    """Milliseconds from the first start to the last exit of commands, `at_once` at a time."""
    begun, left, running = time.perf_counter(), list(reversed(commands)), set()
    while left or running:
        while left and len(running) < at_once:
            running.add(begin(left.pop()))
        pid, status = os.wait()
        if pid in running and os.waitstatus_to_exitcode(status):
            raise SystemExit(f"start: the floor failed with {os.waitstatus_to_exitcode(status)}")
        running.discard(pid)
    return (time.perf_counter() - begun) * 1000


def now(entrant, count):
    """The lower quartile of several runs of the floor: half of them may wait for other processes."""
    return lower_quartile([once(entrant.command(f"now-{number}"))[0] for number in range(count)])


def lower_quartile(values):
    return sorted(values)[len(values) // 4]


def beside(measured, goal, floor):
    """Compares milliseconds with a goal, both as multiples of the floor."""
    times, most = measured / floor, goal / FLOOR_OF_GOALS
    return f"{measured:.2f} ms, {times:.2f} x floor", f"at most {goal} ms at {FLOOR_OF_GOALS}, {most:.2f}", times <= most
