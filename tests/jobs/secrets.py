#!/usr/bin/env python3
"""Tests that a job's secrets reach the task that requests them, and nobody who looks at the job.

While the job runs, after it was stopped, and after its supervisor was killed, the values are searched for in the job's directories,
in the output of the job commands, and in the command line of every process of the host.
"""

import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "runtime"))

import user  # noqa: E402
from faults import Jobs, copy_program  # noqa: E402
from harness import Harness, scratch  # noqa: E402

VARIABLE, FILE = "v4lue-of-the-v4riable", "v4lue-of-the-f1le"

# The task prints hashes of what it received, and then the values, which the log redacts.
JOB = """\
version: 1
name: {name}
image: host
network: none
secrets:
  token: {{env: TESTED_TOKEN}}
  key: {{file: key}}
roles:
  main:
    shell: sh
    env: {{TOKEN: "${{{{ secrets.token }}}}"}}
    files: {{/etc/tested/key: {{secret: key, mode: "0400"}}}}
    run: |
      printf %s "$TOKEN" | sha256sum
      sha256sum </etc/tested/key
      ls -l /etc/tested/key
      (echo never >/etc/tested/key) 2>/dev/null || echo read-only
      echo "$TOKEN"; cat /etc/tested/key
      sleep 600
"""

COMMANDS = [("ps", "--all", "--format", "json"), ("inspect", "--format", "json", "NAME"), ("events", "NAME"), ("logs", "NAME")]


def job_texts(jobs, name):
    """Everything that tells of a job: (where, bytes)."""
    for words in COMMANDS:
        answer = jobs.call(*[name if word == "NAME" else word for word in words])
        yield f"jobc {words[0]}", (answer.stdout + answer.stderr).encode()
    for directory in [state_directory(jobs), jobs.home / ".local/state/jobc"]:
        for path in directory.rglob("*"):
            if name in str(path) and path.is_file() and not path.is_symlink() and not in_secrets_directory(jobs, path):
                yield str(path), path.read_bytes()
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                yield f"{process}/cmdline", (process / "cmdline").read_bytes()
            except OSError:
                pass


def state_directory(jobs):
    return jobs.home / "jobc" if jobs.account else Path("/run/jobc")


def in_secrets_directory(jobs, path):
    """Whether a file is in the secrets directory of a job, which must be in memory and accessible only to its user."""
    place = path.relative_to(state_directory(jobs)).parts[:3] if path.is_relative_to(state_directory(jobs)) else ()
    if place[:1] != ("jobs",) or place[2:] != ("secrets",):
        return False
    kind = subprocess.run(["stat", "--file-system", "--format=%T", path], capture_output=True, text=True, check=True).stdout.strip()
    return kind == "tmpfs" and state_directory(jobs).joinpath(*place).stat().st_mode & 0o077 == 0


def leaked(jobs, name):
    """The places that contain a secret value; and whether enough places were searched."""
    count = 0
    for where, text in job_texts(jobs, name):
        count += 1
        for what, value in [("variable", VARIABLE), ("file", FILE)]:
            if value.encode() in text:
                yield f"the value of the {what} is in {where}"
    if count < 20:
        yield f"only {count} places were searched"


def leftovers(jobs, name):
    """What is left of the secrets directories."""
    uid = jobs.account.uid if jobs.account else 0
    places = [*Path(f"/dev/shm/jobc-{uid}").glob(f"{name}*"), *state_directory(jobs).glob(f"jobs/{name}.*/secrets")]
    return [f"{path} is left" for path in places]


def received(jobs, name):
    """Whether the task received the values, and its log has only their hashes."""
    wanted = [hashlib.sha256(VARIABLE.encode()).hexdigest(), hashlib.sha256(f"{FILE}\n".encode()).hexdigest(), "-r--------", "read-only", "***"]
    for _ in range(100):
        log = jobs.call("logs", name).stdout
        if log.count("***") >= 2:
            break
        time.sleep(0.1)
    return [f"the log does not have `{word}`: {log}" for word in wanted if word not in log]


def run(jobs, name):
    path = jobs.directory / f"{name}.yaml"
    path.write_text(JOB.format(name=name))
    (jobs.directory / "key").write_text(f"{FILE}\n")
    return jobs.run(str(path), "--detach", TESTED_TOKEN=VARIABLE)


def started(jobs, name):
    process = run(jobs, name)
    output = process.communicate(timeout=30)[0]
    if process.returncode != 0:
        raise RuntimeError(f"{name} did not start: {output}")
    return jobs.running(name)


def stopped(jobs, name):
    started(jobs, name)
    problems = [*received(jobs, name), *leaked(jobs, name)]
    if not leftovers(jobs, name):
        problems.append("the secrets directory was not found, so its removal was not tested")
    jobs.call("stop", "--grace", "1s", name)
    jobs.until(name, lambda record: record["state"] == "stopped")
    return [*problems, *leaked(jobs, name), *leftovers(jobs, name)]


def exec_secrets(jobs, name):
    """`exec` gets the variables only with `--secrets`, from the sources in the job file."""
    started(jobs, name)
    wanted, none = (hashlib.sha256(value.encode()).hexdigest() for value in (VARIABLE, ""))
    program = [name, "--", "sh", "-c", "printf %s \"$TOKEN\" | sha256sum"]
    problems = []
    for words, given, code, output in ((["--secrets"], {"TESTED_TOKEN": VARIABLE}, 0, wanted), ([], {"TESTED_TOKEN": VARIABLE}, 0, none),
                                     (["--secrets"], {}, 125, "needs the environment variable `TESTED_TOKEN`, which is not set")):
        answer = jobs.call("exec", *words, *program, **given)
        if answer.returncode != code or output not in answer.stdout + answer.stderr:
            problems.append(f"exec {words}: exit {answer.returncode}, not {code} with `{output}`: {answer.stdout}{answer.stderr}")
    jobs.call("kill", name)
    return [*problems, *leaked(jobs, name)]


def environ_unreadable(jobs, name):
    """Other processes of the user cannot read a supervisor's environment, also not while it is queued."""
    path = jobs.directory / f"{name}.yaml"
    path.write_text(JOB.format(name=name) + "matrix: {axes: {number: [1, 2]}, max_parallel: 1}\n")
    (jobs.directory / "key").write_text(f"{FILE}\n")
    output = jobs.run(str(path), "--detach", TESTED_TOKEN=VARIABLE).communicate(timeout=30)[0]
    problems = [] if len(output.split()) == 1 else [f"not the id of the sweep: {output}"]
    names = [f"{name}-{number}" for number in range(2)]
    for job in names:
        record = jobs.until(job, lambda record: record["state"] in ("running", "queued"))
        look = subprocess.run([*jobs.account.prefix(), "cat", f"/proc/{record['supervisor']['pid']}/environ"], capture_output=True, check=False)
        if look.returncode == 0:
            problems.append(f"the memory of a supervisor whose job is {record['state']} can be read")
    for job in reversed(names):
        jobs.call("kill", job)
    return problems


def killed(jobs, name):
    supervisor = started(jobs, name)["supervisor"]["pid"]
    os.kill(supervisor, signal.SIGKILL)
    while Path(f"/proc/{supervisor}").exists():
        time.sleep(0.05)
    jobs.call("ps")
    record = jobs.until(name, lambda record: record["state"] == "lost")
    return [*leaked(jobs, name), *leftovers(jobs, name), *([] if record else ["no record"])]


def missing(jobs, name):
    path = jobs.directory / f"{name}.yaml"
    path.write_text(JOB.format(name=name))
    (jobs.directory / "key").unlink(missing_ok=True)
    answer = jobs.call("run", str(path))
    output = answer.stdout + answer.stderr
    problems = [] if answer.returncode == 125 else [f"exit code {answer.returncode}, not 125"]
    if "TESTED_TOKEN" not in output:
        problems.append(f"the variable is not named: {output}")
    return [*problems, *leftovers(jobs, name)]


def main():
    harness = Harness("job secrets", __doc__)
    harness.parse()
    if os.geteuid() != 0:
        harness.missing("root")
    for user_name, account in [("root", None), ("a user", user.with_range()), ("a user with one id", user.without_range())]:
        for case in [stopped, exec_secrets, killed, missing, *([environ_unreadable] if account else [])]:
            name = f"{user_name}: {case.__name__}"
            if not harness.wants(name):
                continue
            with scratch() as directory:
                directory = Path(directory)
                directory.chmod(0o755)
                jobs = Jobs(copy_program(directory), directory, account)
                if account:
                    os.chown(directory, account.uid, account.gid)
                try:
                    harness.check(name, case(jobs, f"tested-{case.__name__.replace('_', '-')}-{os.getpid()}"))
                except (RuntimeError, TimeoutError) as why:
                    harness.check(name, [str(why)])
    harness.end()


if __name__ == "__main__":
    main()
