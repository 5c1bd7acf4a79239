#!/usr/bin/env python3
"""Tests completions in the shells themselves (tmux): installs the script as a user does, presses Tab and reads the screen.

`--user range` runs as an unprivileged user.
"""

import json
import re
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "runtime"))

from isolation import jobs_of, problems  # noqa: E402
import commands  # noqa: E402
from harness import Harness  # noqa: E402
from terminal import Screen, unenforced_option  # noqa: E402

# Under its own name, which its cgroups have too: they are the host's, and another test may run.
LONG_JOB = commands.LONG_JOB.replace("tested-long", "tested-tab")
SWEEP = "version: 1\nname: swept\nimage: host\nmatrix: {number: [1, 2]}\nroles: {only: {shell: sh, run: exit 0}}\n"
PARAMETERS = "params: {batch_size: 32}\n"
TARGETS = "version: 1\ntargets:\n  here: {backends: [oci]}\n  laboratory: {backends: [kubernetes]}\n"

# What is typed, and the line after Tab.
LINES = [
    ("jobc insp", "jobc inspect"),
    ("jobc check long.y", "jobc check long.yaml"),
    ("jobc logs tested-tab.", "jobc logs tested-tab.1"),
    ("jobc logs tested-tab lo", "jobc logs tested-tab loud"),
    ("jobc logs --tail 5 tested-tab loud-", "jobc logs --tail 5 tested-tab loud-"),
    ("jobc stop tested-t", "jobc stop tested-tab"),
    ("jobc report swept.", "jobc report swept.1"),
    ("jobc logs swept-0.", "jobc logs swept-0.1"),
    ("jobc exec -i tested-tab loud-", "jobc exec -i tested-tab loud-"),
    ("jobc kill -s USR", "jobc kill -s USR"),
    ("jobc kill -s WIN", "jobc kill -s WINCH"),
    ("jobc image inspect demo:1", "jobc image inspect demo:1.2"),
    ("jobc image inspect dem", "jobc image inspect demo:1.2"),
    ("jobc build -t lab", "jobc build -t laboratory"),
    ("jobc build --target=lab", "jobc build --target=laboratory"),
    ("jobc run --set bat", "jobc run --set batch_size="),
    ("jobc run long.yaml -t lou", "jobc run long.yaml -t loud-"),
    ("jobc explain roles.train.retr", "jobc explain roles.train.retry"),
    ("jobc explain resources.mem", "jobc explain resources.memory"),
    ("jobc explain J010", "jobc explain J010"),
    ("jobc std show torch", "jobc std show torchrun"),
    ("jobc init -e std/vl", "jobc init -e std/vllm-serve"),
    ("jobc logs --form", "jobc logs --format"),
    ("jobc logs --format=js", "jobc logs --format=json"),
]
# What is listed of several.
LISTS = [
    ("jobc logs tested-tab loud-", ["loud-0", "loud-1"]),
    ("jobc kill -s USR", ["USR1", "USR2"]),
]


def main():
    harness = Harness("completion", __doc__)
    harness.tool("tmux")
    with jobs_of(harness) as jobs:
        prepare(jobs)
        for shell in (bash, zsh, fish):
            harness.tool(shell.__name__)
            if harness.wants(shell.__name__):
                harness.check(shell.__name__, problems(shell, jobs))
        for case in (nothing_readable, many_jobs):
            if harness.wants(case.__name__):
                harness.check(case.__name__, problems(case, jobs))
    harness.end()


def prepare(jobs):
    """An image, a job file with a parameter, and a targets file."""
    (jobs.directory / "long.yaml").write_text(LONG_JOB + PARAMETERS)
    (jobs.directory / "job.yaml").write_text(LONG_JOB + PARAMETERS)
    (jobs.directory / "targets.yaml").write_text(TARGETS)
    answer = jobs.call("image", "import", "scratch", "-t", "demo:1.2")
    assert answer.returncode == 0, answer.stderr
    (jobs.directory / "sweep.yaml").write_text(SWEEP)
    answer = jobs.call("run", "--target", "here", str(jobs.directory / "sweep.yaml"))
    assert answer.returncode == 0, answer.stderr


def start(jobs):
    """Starts the job; a case ends the jobs that it leaves, and its number grows."""
    jobs.call("rm", "--force", "tested-tab")
    answer = jobs.call("run", "--target", "here", "--detach", *unenforced_option(jobs).split(), str(jobs.directory / "long.yaml"))
    assert answer.returncode == 0, answer.stderr
    jobs.running("tested-tab")


def install(jobs, shell, path):
    """Writes the script of a shell where the shell looks for it."""
    place = jobs.home / path
    answer = jobs.call("completions", shell)
    assert answer.returncode == 0, answer.stderr
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(answer.stdout)


def bash(jobs):
    """Sourced by the profile, or by the package bash-completion at the first Tab."""
    install(jobs, "bash", ".local/share/bash-completion/completions/jobc")
    (jobs.home / "bashrc").write_text("PS1='$ '\nsource ~/.local/share/bash-completion/completions/jobc\n")
    yield from pressed(jobs, ("bash", "--rcfile", str(jobs.home / "bashrc"), "-i"), tabs=2, keys=("C-u", "C-l"))


def zsh(jobs):
    """Loaded from a directory of functions at the first Tab, which completes already."""
    install(jobs, "zsh", "functions/_jobc")
    (jobs.home / ".zshrc").write_text("PS1='$ '\nfpath=(~/functions $fpath)\nautoload -U compinit\ncompinit -u\n")
    yield from pressed(jobs, ("zsh", "-i"), tabs=1)


def fish(jobs):
    """Loaded from the user's directory of completions."""
    install(jobs, "fish", ".config/fish/completions/jobc.fish")
    (jobs.home / ".config/fish/config.fish").write_text(
        "function fish_prompt; echo -n '$ '; end\nfunction fish_greeting; end\nset -g fish_autosuggestion_enabled 0\n")
    yield from pressed(jobs, ("fish", "-i"), tabs=1)


def pressed(jobs, shell, tabs, keys=("C-c", "C-u", "C-l")):
    """Each line after Tab; `tabs` is how often it is pressed until the shell lists several candidates, `keys` empty the screen."""
    start(jobs)
    screen = Screen(jobs, shell, ZDOTDIR=str(jobs.home))
    try:
        for typed, expected in LINES:
            screen.tmux("send-keys", "-l", typed)
            screen.press("Tab")
            try:
                screen.until(rf"(?m)^\$ {re.escape(expected)}\s*$", seconds=10)
            except AssertionError as error:
                yield f"{typed}: not {expected}: {error}"
            clear(screen, keys)
        for typed, candidates in LISTS:
            screen.tmux("send-keys", "-l", typed)
            for _ in range(tabs):
                screen.press("Tab")
                time.sleep(0.3)
            for candidate in candidates:
                try:
                    screen.until(rf"(?<![\w-]){re.escape(candidate)}(?![\w-])", seconds=10)
                except AssertionError as error:
                    yield f"{typed}: {candidate} is not listed: {error}"
            clear(screen, keys)
    finally:
        screen.close()


def clear(screen, keys):
    """Gives the line up, and closes a list of candidates, once the shell has them."""
    time.sleep(0.3)
    deadline = time.monotonic() + 15
    while not re.fullmatch(r"\$ ?", screen.read()):
        assert time.monotonic() < deadline, f"the screen is not clear:\n{screen.read()}"
        screen.press(*keys)
        time.sleep(0.3)
        screen.tmux("clear-history")


def complete(jobs, *words, **environment):
    """What `jobc` answers to the script of a shell; the last word is at the cursor."""
    environment = {"JOBC_COMPLETE": "bash", "_CLAP_IFS": "\n", "_CLAP_COMPLETE_INDEX": str(len(words)), **environment}
    return jobs.call("--", "jobc", *words, **environment)


def nothing_readable(jobs):
    """Files that cannot be read complete nothing, and print nothing."""
    broken = jobs.directory / "broken"
    (broken / "jobc/jobs/tested-bad.1").mkdir(parents=True)
    (broken / "jobc/jobs/tested-bad.1/job.json").write_text("{")
    (broken / "jobc/images").mkdir()
    (broken / "jobc/images/index.json").write_text("no json")
    (jobs.directory / "bad.yaml").write_text("version: [")
    for words, environment in ((("logs", "tested-b"), {"XDG_STATE_HOME": str(broken)}), (("image", "rm", ""), {"XDG_DATA_HOME": str(broken)}),
                               (("run", str(jobs.directory / "bad.yaml"), "--set", ""), {}), (("build", "--targets", "/absent", "-t", "zzz"), {}),
                               (("logs", ""), {"HOME": "", "XDG_STATE_HOME": ""})):
        answer = complete(jobs, *words, **environment)
        listed = [line for line in answer.stdout.split("\n") if line and not line.startswith("-") and not line.startswith("tested-bad")]
        if answer.returncode != 0 or answer.stderr or listed:
            yield f"{words}: exit {answer.returncode}: {listed} {answer.stderr}"
    # A Tab makes no image store.
    complete(jobs, "image", "rm", "", XDG_DATA_HOME=str(jobs.directory / "nowhere"))
    if (jobs.directory / "nowhere").exists():
        yield "a store was made"


def many_jobs(jobs):
    """Two thousand records: a Tab answers within a second."""
    start(jobs)
    record = jobs.record("tested-tab")
    for name in ("files", "plan"):
        record.pop(name, None)
    many = jobs.directory / "many/jobc/jobs"
    for run in range(1, 2001):
        place = many / f"sweep.{run}"
        place.mkdir(parents=True)
        (place / "job.json").write_text(json.dumps({**record, "id": f"sweep.{run}", "state": "succeeded"}))
    began = time.monotonic()
    answer = complete(jobs, "logs", "sweep", XDG_STATE_HOME=str(jobs.directory / "many"))
    took = time.monotonic() - began
    words = answer.stdout.split("\n")
    if len(words) < 2001 or took > 1:
        yield f"{len(words)} words in {took:.1f} s: {answer.stderr}"


if __name__ == "__main__":
    main()
