"""Tests completions in the shells themselves (tmux): installs the script as a user does, presses Tab and reads the screen."""

import json
import re
import time

import needs
import pytest

import command_line
from screen import Screen

pytestmark = [pytest.mark.isolated, pytest.mark.duration(40), pytest.mark.slow]

# Under its own name, which its cgroups have too: they are the host's, and another test may run.
LONG_JOB = command_line.LONG_JOB.replace("tested-long", "tested-tab")
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


@pytest.fixture(scope="module")
def all_jobs(all_jobs):
    """With an image, a job file that has a parameter, a targets file, and a sweep that has ended."""
    for name, text in (("long", LONG_JOB + PARAMETERS), ("job", LONG_JOB + PARAMETERS), ("targets", TARGETS), ("sweep", SWEEP)):
        (all_jobs.directory / f"{name}.yaml").write_text(text)
    for words in (("image", "import", "scratch", "-t", "demo:1.2"), ("run", "--target", "here", str(all_jobs.directory / "sweep.yaml"))):
        answer = all_jobs.call(*words)
        assert answer.returncode == 0, answer.stderr
    return all_jobs


def start(jobs):
    """Starts the job; a case ends the jobs that it leaves, and its number grows."""
    jobs.call("rm", "--force", "tested-tab")
    answer = jobs.call("run", "--target", "here", "--detach", *jobs.unenforced, str(jobs.directory / "long.yaml"))
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
    return ("bash", "--rcfile", str(jobs.home / "bashrc"), "-i")


def zsh(jobs):
    """Loaded from a directory of functions at the first Tab, which completes already."""
    install(jobs, "zsh", "functions/_jobc")
    (jobs.home / ".zshrc").write_text("PS1='$ '\nfpath=(~/functions $fpath)\nautoload -U compinit\ncompinit -u\n")
    return ("zsh", "-i")


def fish(jobs):
    """Loaded from the user's directory of completions."""
    install(jobs, "fish", ".config/fish/completions/jobc.fish")
    (jobs.home / ".config/fish/config.fish").write_text(
        "function fish_prompt; echo -n '$ '; end\nfunction fish_greeting; end\nset -g fish_autosuggestion_enabled 0\n")
    return ("fish", "-i")


# How often Tab is pressed until the shell lists several candidates, and the keys that empty the screen.
SHELLS = [(bash, 2, ("C-u", "C-l")), (zsh, 1, ("C-c", "C-u", "C-l")), (fish, 1, ("C-c", "C-u", "C-l"))]


@pytest.mark.parametrize("shell, tabs, keys", SHELLS, ids=["bash", "zsh", "fish"])
def test_a_shell_completes_each_line(jobs, shell, tabs, keys):
    needs.tool(shell.__name__)
    start(jobs)
    screen = Screen(jobs, shell(jobs), ZDOTDIR=str(jobs.home))
    try:
        for typed, expected in LINES:
            screen.tmux("send-keys", "-l", typed)
            screen.press("Tab")
            screen.until(rf"(?m)^\$ {re.escape(expected)}\s*$", seconds=10)
            clear(screen, keys)
        for typed, candidates in LISTS:
            screen.tmux("send-keys", "-l", typed)
            for _ in range(tabs):
                screen.press("Tab")
                time.sleep(0.3)
            for candidate in candidates:
                screen.until(rf"(?<![\w-]){re.escape(candidate)}(?![\w-])", seconds=10)
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


def test_files_that_cannot_be_read_complete_nothing(jobs):
    """And print nothing."""
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
        assert answer.returncode == 0 and not answer.stderr and not listed, f"{words}: exit {answer.returncode}: {listed} {answer.stderr}"
    # A Tab makes no image store.
    complete(jobs, "image", "rm", "", XDG_DATA_HOME=str(jobs.directory / "nowhere"))
    assert not (jobs.directory / "nowhere").exists(), "a store was made"


def test_two_thousand_records_complete_within_a_second(jobs):
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
    assert len(words) >= 2001 and took <= 1, f"{len(words)} words in {took:.1f} s: {answer.stderr}"
