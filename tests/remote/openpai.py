#!/usr/bin/env python3
"""Tests `jobc submit` and the commands about jobs on OpenPAI, against a stand-in for its rest-server."""

import json
import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fixture import SECONDS, expect, until
from harness import REPOSITORY, Harness, scratch

try:
    from pai import ApiError, Pai, Script, event, token
except ImportError:
    Pai = None

TARGETS = """\
version: 1
default: [pai]
targets:
  pai:
    backends: [openpai]
    openpai: {{server: "{server}", token_file: token{more}}}
"""
ONE = """\
version: 1
name: one
image: busybox:1.36
roles:
  main:
    instances: 2
    resources: {cpu: 1, memory: 64MiB}
    run: echo hello
"""
TWO = """\
version: 1
name: two
image: busybox:1.36
roles:
  ps-server: {resources: {cpu: 1, memory: 64MiB}, run: echo hello}
  client: {instances: 3, resources: {cpu: 1, memory: 64MiB}, run: echo hello}
"""
SECRET = """\
version: 1
name: hidden
image: registry.example.com/x:1
registries:
  registry.example.com: {username: me, password: {secret: login}}
secrets:
  token: {env: TEST_TOKEN}
  login: {env: TEST_LOGIN}
roles:
  main:
    resources: {cpu: 1, memory: 64MiB}
    env: {TOKEN: "${{ secrets.token }}"}
    run: echo hello
"""
RETRY = ONE.replace("    instances: 2\n", "    instances: 2\n    retry: {max: 2, scope: job}\n")


class Place:
    """A user's directory, and an OpenPAI cluster."""

    def __init__(self, directory, program):
        self.directory, self.program = directory, program
        self.pai = Pai()
        self.write("token", self.pai.token + "\n")
        self.target()
        self.write("one.yaml", ONE)
        self.write("two.yaml", TWO)

    def target(self, server=None, more=""):
        self.write("targets.yaml", TARGETS.format(server=server or f"{self.pai.portal}/rest-server", more=more))

    def write(self, name, text):
        (self.directory / name).write_text(text)

    def start(self, *words, env=None):
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "LLVM_PROFILE_FILE")}
        env = {**kept, "HOME": str(self.directory), "NO_COLOR": "1", **(env or {})}
        return subprocess.Popen([self.program, *map(str, words)], cwd=self.directory, env=env, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, *words, code=0, env=None):
        """Runs jobc; returns its stdout and stderr."""
        with self.start(*words, env=env) as process:
            out, errors = process.communicate(timeout=SECONDS)
        if code is not None and process.returncode != code:
            raise AssertionError(f"jobc {' '.join(map(str, words))}: exit code {process.returncode}, not {code}: {out}{errors}")
        return out, errors

    def json(self, *words):
        return json.loads(self.run(*words, "--format", "json")[0])

    def submit(self, job="one.yaml", *words):
        """Submits a job; returns its handle."""
        return self.run("submit", job, *words)[0].strip()

    def job(self, handle):
        return self.pai.jobs["alice~" + handle.split("/")[1]]


def creates_a_job_that_runs(place):
    handle = place.submit()
    target, name = handle.split("/")
    expect(target == "pai" and name.startswith("one-") and len(name) == len("one-") + 5, handle)
    job = place.job(handle)
    expect(job.config["name"] == name and len(job.config["extras"]["jobc"]["plan"]) == 64, job.config)
    expect(job.tags == ["jobc-plan-" + job.config["extras"]["jobc"]["plan"][:32]], job.tags)
    out, _ = place.run("wait", handle)
    expect(out == f"{handle}: succeeded\n", out)
    out, _ = place.run("logs", handle)
    expect(sorted(line.split()[-1] for line in out.splitlines()) == ["hello"] * 2, out)
    expect("main-0" in out and "main-1" in out, out)
    tasks = place.json("ps", handle)
    expect([(task["task"], task["attempt"], task["state"], task["exit_code"], task["node"]) for task in tasks]
           == [(f"main-{index}", 1, "succeeded", 0, "worker-1") for index in range(2)], tasks)
    shown, _ = place.run("inspect", handle)
    expect("OpenPAI job in the virtual cluster default" in shown and "user       alice" in shown, shown)


def submitting_twice_is_one_job(place):
    first, second = place.submit(), place.submit()
    expect(first == second and len(place.pai.jobs) == 1, (first, second))
    _, errors = place.run("submit", "one.yaml")
    expect("submitted before" in errors and "--new" in errors, errors)
    third = place.submit("one.yaml", "--new")
    expect(third != first and len(place.pai.jobs) == 2, third)
    # Where the server and the token are says nothing about the job.
    place.write("other", place.pai.token)
    place.target(more=", portal: \"http://127.0.0.1:1\"")
    expect(place.submit() in (first, third), "the same job through another portal")
    place.target()
    place.write("one.yaml", ONE.replace("hello", "other"))
    fourth = place.submit()
    expect(fourth not in (first, third), fourth)
    fifth = place.submit("one.yaml", "--replace")
    listed = [job["handle"] for job in place.json("ps", "--target", "pai", "--all")]
    expect(listed == [fifth], listed)


def an_answer_that_is_lost_is_no_second_job(place):
    for fault in ({"cut": True, "after": True}, {"code": 502, "after": True}, {"code": 503}, {"cut": True}):
        place.pai.fail("POST", "/api/v2/jobs$", **fault)
        handle = place.submit("one.yaml", "--new")
        expect(place.job(handle).tags, fault)
    expect(len(place.pai.jobs) == 4, list(place.pai.jobs))


def a_killed_submission_is_completed(place):
    place.submit()
    total = len(place.pai.requests)
    for kind in ("before", "after"):
        for number in range(1, total + 1):
            place.pai.jobs.clear()
            place.pai.requests.clear()
            process = place.start("submit", "one.yaml")

            def kill(count, when):
                if count == number and when == kind and process.poll() is None:
                    os.kill(process.pid, signal.SIGKILL)
                    process.wait()

            place.pai.on_request = kill
            process.communicate()
            place.pai.on_request = None
            handle = place.submit()
            expect(list(place.pai.jobs) == ["alice~" + handle.split("/")[1]], f"{kind} request {number}: {list(place.pai.jobs)}")
            expect(place.job(handle).tags, f"{kind} request {number}: without its tag")


def an_unfinished_submission_is_seen(place):
    place.pai.fail("PUT", "/tag$", times=99, code=500)
    place.run("submit", "one.yaml", code=3)
    job, = place.pai.jobs.values()
    until(lambda: job.state == "SUCCEEDED", "the end")
    listed, _ = place.run("ps", "--target", "pai", "--all")
    expect("submission not complete" in listed, listed)
    place.pai.faults.clear()
    handle = place.submit()
    expect(handle.endswith(job.name) and job.tags and len(place.pai.jobs) == 1, handle)
    expect("not complete" not in place.run("ps", "--target", "pai", "--all")[0], "complete")


def another_job_of_the_name_is_left_alone(place):
    handle = place.submit()
    job = place.job(handle)
    place.pai.jobs.clear()
    job.tags, job.text = [], job.text.replace("plan: \"", "plan: \"0")
    place.pai.jobs[job.framework] = job
    other = place.submit()
    expect(other != handle and len(place.pai.jobs) == 2, other)


def secrets_are_sent_and_hidden(place):
    place.write("hidden.yaml", SECRET)
    place.run("submit", "hidden.yaml", code=2)
    expect(not place.pai.jobs, "nothing without the secret")
    value, password = "a'b \"c\"\nd: <%x%>", "pa55"
    out, errors = place.run("submit", "hidden.yaml", "-o", "out", env={"TEST_TOKEN": value, "TEST_LOGIN": password})
    job, = place.pai.jobs.values()
    expect(job.secrets == {"token": value, "login": password}, job.secrets)
    expect(job.config["prerequisites"][0]["auth"]["password"] == "<% $secrets.login %>", job.config["prerequisites"])
    expect('secrets: "******"' in job.text and "pa55" not in job.text and "a'b" not in job.text, job.text)
    expect(job.config["extras"]["submitFrom"] == "jobc", job.config["extras"])
    texts = [out, errors] + [path.read_text() for path in (place.directory / "out").rglob("*") if path.is_file()]
    expect(not any("pa55" in text or "a'b" in text or place.pai.token in text for text in texts), "a value is in the output")
    # The same again needs the values no more than once.
    expect(place.run("submit", "hidden.yaml")[0] == out, "the same job")


def exit_codes_are_those_of_a_local_job(place):
    for script, code, words in [
        (Script(["hello"]), 0, "succeeded"),
        (Script(["hello"], codes=[3]), 1, "failed: PAIRuntimeUnknownFailed: task `main-0` ended with exit code 3; its last line: "
                                          "RuntimeError: no data"),
        (Script(["hello"], codes=[-1200]), 1, "failed: UserContainerDockerOOMKilled: task `main-0` failed: User Container killed"),
        (Script(["hello"], codes=[124]), 124, "timed out"),
    ]:
        place.pai.default = script
        handle = place.submit("one.yaml", "--new")
        out, _ = place.run("wait", handle, code=code)
        expect(f"{handle}: {words}" in out, out)
        expect(place.run("wait", handle, "--format", "json", code=code)[0].startswith("{"), "JSON")
    place.pai.default = Script(["hello"], pause=30)
    handle = place.submit("one.yaml", "--new")
    process = place.start("wait", handle)
    until(lambda: place.pai.count("GET", f"{handle.split('/')[1]}$") > 1, "a wait")
    out, _ = place.run("stop", handle)
    expect(out == f"{handle}: stopped\n" and place.job(handle).execution == "STOP", out)
    out, _ = process.communicate(timeout=30)
    expect(process.returncode == 130 and "stopped" in out, out)
    expect(place.run("stop", handle)[0] == f"{handle}: stopped already\n", "again")
    place.run("wait", "pai/none", code=2)


def removed_jobs_are_hidden(place):
    handle = place.submit()
    place.run("wait", handle)
    out, _ = place.run("rm", handle)
    expect(out == f"{handle}: removed\n", out)
    expect(place.json("ps", "--target", "pai", "--all") == [], "listed")
    place.run("inspect", handle, code=2)
    # The name is taken for ever.
    again = place.submit()
    expect(again != handle and len(place.pai.jobs) == 2, again)
    expect(place.json("ps", "--target", "pai", "--all")[0]["handle"] == again, "the second")
    place.pai.default = Script(["hello"], pause=30)
    running = place.submit("one.yaml", "--new")
    place.run("rm", running, code=1)
    place.run("rm", "--force", running)
    expect(place.job(running).state == "STOPPED", place.job(running).state)


def output_is_followed_without_loss_or_doubles(place):
    lines = [f"line {number:03} of @" for number in range(80)]
    place.pai.default = Script(lines, pause=0.05)
    place.pai.limit = 700
    handle = place.submit()
    process = place.start("logs", "-f", handle)

    def break_it():
        time.sleep(1.5)
        place.pai.log_token = "t1"
        place.pai.fail("GET", "/log-manager/", times=2, cut=True)
        place.pai.fail("GET", "/api/v2/jobs/", times=1, code=503)
    break_it()
    out, errors = process.communicate(timeout=SECONDS)
    for index in range(2):
        shown = [line for line in out.splitlines() if f"main-{index}" in line]
        wanted = [line.replace("@", str(index)) for line in lines]
        expect([line[line.index("line"):] for line in shown] == wanted, f"main-{index}: {len(shown)} lines: {out[-400:]}{errors}")
    expect(process.returncode == 0, process.returncode)
    tail, _ = place.run("logs", "--tail", "2", handle, "main-1")
    expect([line[line.index("line"):] for line in tail.splitlines()] == ["line 078 of 1", "line 079 of 1"], tail)
    place.run("logs", "--since", "1m", handle, code=2)
    _, errors = place.run("logs", handle, "other", code=2)
    expect("name a role, `main`" in errors, errors)


def lost_output_is_reported(place):
    place.pai.limit = 100
    place.pai.default = Script([f"line {number:03}" for number in range(200)], pause=0.05)
    handle = place.submit()
    out, errors = place.run("logs", "-f", handle, "main-0")
    expect("no longer has all of the output" in out + errors, out + errors)


def attempts_are_numbered(place):
    place.write("retry.yaml", RETRY)
    place.pai.default = Script(["attempt # of @"], codes=[1, 1, 0])
    handle = place.submit("retry.yaml")
    expect(place.job(handle).config["jobRetryCount"] == 2, place.job(handle).config)
    place.run("wait", handle)
    tasks = [(task["task"], task["attempt"], task["state"], task["exit_code"]) for task in place.json("ps", handle)]
    expect(tasks == [(f"main-{index}", number + 1, *end) for index in range(2)
                     for number, end in enumerate([("failed", 1), ("failed", 1), ("succeeded", 0)])], tasks)
    out, _ = place.run("logs", handle, "main-1", "--attempt", "2")
    expect("attempt 1 of 1" in out and "attempt 0" not in out and "attempt 2 of" not in out, out)
    out, _ = place.run("logs", handle)
    expect(sum("attempt" in line and " of " in line for line in out.splitlines()) == 6, out)


def a_waiting_job_says_why(place):
    place.pai.default = Script(["hello"], late=30)
    handle = place.submit()
    until(lambda: place.job(handle).attempts, "an attempt")
    shown, _ = place.run("inspect", handle)
    expect("state      pending" in shown and "it waits for resources of the virtual cluster `default`" in shown, shown)
    place.job(handle).events.append(event("main", 0, "Warning", "FailedScheduling", "0/3 nodes are available: 3 Insufficient gpu."))
    out, _ = place.run("events", handle)
    expect("task/main-0 FailedScheduling: 0/3 nodes are available" in out, out)
    process = place.start("events", "-f", handle)
    until(lambda: place.pai.count("GET", "/events$") > 1, "the first events")
    place.job(handle).events.append(event(None, None, "Normal", "Stopping", "the user stops it"))
    place.run("stop", handle)
    out, errors = process.communicate(timeout=SECONDS)
    expect(out.count("FailedScheduling") == 1 and out.count("job Stopping: the user stops it") == 1, out + errors)


def problems_are_shown_at_lines(place):
    place.target(more=", virtual_cluster: reserch, storages: [{name: absent}]")
    _, errors = place.run("submit", "one.yaml", code=1)
    expect("there is no virtual cluster `reserch`" in errors and "`default`, `private`, `research`" in errors, errors)
    expect("the setting `openpai.virtual_cluster` of the target" in errors, errors)
    expect("there is no storage `absent`" in errors and "`confignfs`" in errors, errors)
    place.target(more=", virtual_cluster: private")
    _, errors = place.run("submit", "one.yaml", code=1)
    expect("you may not use the virtual cluster `private`" in errors and "you may use `default`, `research`" in errors, errors)
    place.target(more=", virtual_cluster: research")
    place.write("big.yaml", ONE.replace("64MiB", "64MiB, gpu: 8"))
    _, errors = place.run("submit", "big.yaml")
    expect("warning: the job needs 16 GPUs, and the virtual cluster `research` has 8" in errors, errors)
    place.run("submit", "one.yaml", "--new", "--dry-run")
    expect(len(place.pai.jobs) == 1, "a dry run creates nothing")

    def refuse(config):
        raise ApiError(400, "InvalidProtocolError", json.dumps([{"dataPath": ".taskRoles['main'].instances", "message": "should be <= 1"}]))
    place.pai.extra_check = refuse
    _, errors = place.run("submit", "one.yaml", "--new", code=1)
    expect("`taskRoles['main'].instances` should be <= 1" in errors and "one.yaml:6" in errors, errors)


def errors_say_what_to_do(place):
    place.write("token", token("alice", exp=1000000000))
    _, errors = place.run("ps", "--target", "pai", code=3)
    expect("Your token is invalid" in errors and "expired at 2001-09-09T01:46:40Z" in errors and "profile page" in errors, errors)
    place.write("token", "secret-value")
    _, errors = place.run("ps", "--target", "pai", code=2)
    expect("has no OpenPAI token" in errors and "secret-value" not in errors, errors)
    (place.directory / "token").unlink()
    _, errors = place.run("ps", "--target", "pai", code=None)
    expect("no such file" in errors and "profile page" in errors, errors)
    place.write("token", place.pai.token)
    # The address of the portal is not that of the rest-server.
    place.target(server=place.pai.portal)
    _, errors = place.run("ps", "--target", "pai", code=2)
    expect("answers with a web page" in errors and "/rest-server" in errors, errors)
    place.target()
    place.pai.fail("GET", "/jobs", code=302, headers={"Location": "https://login.example.com/x?secret=1"}, body="")
    _, errors = place.run("ps", "--target", "pai", code=2)
    expect("redirects to `https://login.example.com/x`" in errors and "secret" not in errors, errors)
    place.pai.fail("POST", "/jobs$", code=429, headers={"Retry-After": "3600"})
    _, errors = place.run("submit", "one.yaml", code=3)
    expect("the server limits how often you may do this; try again in 1h" in errors, errors)
    place.target(server="http://127.0.0.1:1/rest-server")
    _, errors = place.run("ps", "--target", "pai", code=3)
    expect("127.0.0.1:1" in errors and "check the network" in errors, errors)


def tokens_come_from_files_and_variables(place):
    place.write("targets.yaml", TARGETS.format(server=f"{place.pai.portal}/rest-server", more="").replace("token_file: token", "token_env: PAI"))
    _, errors = place.run("ps", "--target", "pai", code=2)
    expect("`PAI` is not set" in errors, errors)
    place.run("ps", "--target", "pai", env={"PAI": place.pai.token})
    # A file is read again when the server refuses what was in it.
    place.target()
    place.pai.default = Script(["hello"], pause=4)
    handle = place.submit()
    process = place.start("wait", handle)
    until(lambda: place.pai.count("GET", f"{handle.split('/')[1]}$") > 1, "a wait")
    new = token("alice")
    place.pai.tokens = {new: "alice"}
    place.write("token", new)
    out, errors = process.communicate(timeout=SECONDS)
    expect(process.returncode == 0, out + errors)


def wrong_settings_are_errors_at_their_lines(place):
    place.target(more=", tokenfile: x, server_url: y")
    _, errors = place.run("ps", "--target", "pai", code=2)
    expect("tokenfile" in errors and "targets.yaml:6:" in errors, errors)
    place.target(more=", token_env: X")
    _, errors = place.run("ps", "--target", "pai", code=2)
    expect("exclude each other" in errors, errors)
    place.target(server="pai.example.com")
    _, errors = place.run("ps", "--target", "pai", code=2)
    expect("https://" in errors, errors)
    place.write("targets.yaml", "version: 1\ntargets: {pai: {backends: [openpai]}}\n")
    _, errors = place.run("submit", "one.yaml", "--target", "pai", code=2)
    expect("the target has no `openpai.server`" in errors, errors)
    place.target()
    place.write("bad.yaml", ONE + "openpai: {server: https://evil.example.com}\n")
    _, errors = place.run("submit", "bad.yaml", code=1)
    expect("server" in errors and not place.pai.jobs, errors)


def access_is_checked(place):
    out, _ = place.run("targets", "check", "pai")
    expect("OpenPAI v1.8.0" in out and "token of the user `alice`" in out and "storage `confignfs`" in out, out)
    checks = {check["what"]: check["is_allowed"] for check in place.json("targets", "check", "pai")["checks"]}
    expect(checks["virtual cluster `default`"] and not checks["virtual cluster `private`"], checks)
    place.target(more=", virtual_cluster: private")
    out, _ = place.run("targets", "check", "pai", code=1)
    expect("MISSING" in out, out)
    _, errors = place.run("targets", "role", "pai", code=2)
    expect("not a cluster of Kubernetes" in errors, errors)


def older_releases_do_what_they_can(place):
    place.pai.old = True
    first, second = place.submit(), place.submit()
    expect(first == second and len(place.pai.jobs) == 1, (first, second))
    place.run("wait", first)
    expect(place.json("ps", "--target", "pai", "--all")[0]["handle"] == first, "listed")
    expect("not complete" not in place.run("inspect", first)[0], "complete")
    _, errors = place.run("events", first, code=2)
    expect("has no events" in errors, errors)
    _, errors = place.run("rm", first, code=2)
    expect("no tags to hide them" in errors, errors)
    out, errors = place.run("logs", first)
    expect("shows output in a browser: http://10.0.0.1:9103/log-manager/tail/" in out + errors, out + errors)


def follows_in_the_foreground(place):
    place.pai.default = Script(["hello"], codes=[2], pause=0.5)
    out, errors = place.run("submit", "two.yaml", "--follow", code=1)
    expect(sum("hello" in line for line in out.splitlines()) == 4 and "client-2" in out and "psserver-0" in out, out)
    expect("ended with exit code 2" in errors, errors)


CASES = [
    creates_a_job_that_runs,
    submitting_twice_is_one_job,
    an_answer_that_is_lost_is_no_second_job,
    a_killed_submission_is_completed,
    an_unfinished_submission_is_seen,
    another_job_of_the_name_is_left_alone,
    secrets_are_sent_and_hidden,
    exit_codes_are_those_of_a_local_job,
    removed_jobs_are_hidden,
    output_is_followed_without_loss_or_doubles,
    lost_output_is_reported,
    attempts_are_numbered,
    a_waiting_job_says_why,
    problems_are_shown_at_lines,
    errors_say_what_to_do,
    tokens_come_from_files_and_variables,
    wrong_settings_are_errors_at_their_lines,
    access_is_checked,
    older_releases_do_what_they_can,
    follows_in_the_foreground,
]


def problems_of(case, program):
    with scratch() as directory:
        place = Place(directory, program)
        try:
            return list(case(place) or [])
        except (AssertionError, KeyError, IndexError, TypeError, ValueError, subprocess.SubprocessError) as error:
            return [f"{type(error).__name__}: {error}"]
        finally:
            place.pai.close()


def main():
    harness = Harness("openpai", __doc__)
    harness.parse()
    if Pai is None:
        harness.missing("yaml")
    program = Path(harness.options.runtime or REPOSITORY / "target/debug/jobc").resolve()
    if not program.exists():
        harness.missing("jobc", "`cargo build`")
    # Each case has a cluster of its own, and most of its time is waiting.
    wanted = [case for case in CASES if harness.wants(case.__name__)]
    with ThreadPoolExecutor(3) as threads:
        for case, problems in zip(wanted, threads.map(lambda case: problems_of(case, program), wanted)):
            harness.check(case.__name__, problems)
    harness.end()


if __name__ == "__main__":
    main()
