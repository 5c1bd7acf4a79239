#!/usr/bin/env python3
"""Tests jobs on a Slurm cluster: success and failure, retries, time limits, cancellation, arrays, chains, secrets."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from cluster import check, cluster, until  # noqa: E402
from harness import Harness  # noqa: E402

ONE = """\
version: 1
name: {name}
image: host
{more}
roles:
  main:
    instances: {instances}
    resources: {{cpu: 1, memory: 64MiB}}
    run: |
{run}
"""


def one(name, run, instances=1, more=""):
    return ONE.format(name=name, run="\n".join(f"      {line}" for line in run.splitlines()), instances=instances, more=more)


def succeeds(slurm):
    """Every instance runs once, on a node of its own, and knows where the others are."""
    directory = slurm.build("succeeds", one("succeeds", 'echo "$JOBC_INDEX of $JOBC_INSTANCES at $SLURMD_NODENAME: $JOBC_HOSTS_MAIN"', 3))
    job = slurm.submit(directory)
    state = slurm.ends(job)
    said = [text.strip() for text in slurm.logs_of(directory, job).values()]
    nodes = said[0].rpartition(" ")[2].split(",") if said else []
    if state != "COMPLETED" or said != [f"{index} of 3 at {node}: {','.join(nodes)}" for index, node in enumerate(nodes)] or len(set(nodes)) != 3:
        yield f"{state}: {said}\n{slurm.output(job)}"


def processes(pattern):
    """The processes whose command line matches."""
    return subprocess.run(["pgrep", "--full", pattern], capture_output=True, text=True, check=False).stdout.split()


def fails(slurm):
    """One failing instance ends the others, and its exit code is that of the job."""
    run = 'if [ "$JOBC_INDEX" = 1 ]; then exit 7; fi\nsleep 300'
    directory = slurm.build("fails", one("fails", run, 3))
    job = slurm.submit(directory)
    since = time.monotonic()
    state, shown = slurm.ends(job), slurm.show(job)
    if state != "FAILED" or shown["ExitCode"] != "7:0" or time.monotonic() - since > 40:
        yield f"{state}, exit code {shown['ExitCode']} after {time.monotonic() - since:.0f} s\n{slurm.output(job)}"
    if "role main failed: instance 1 ended with exit code 7" not in slurm.output(job):
        yield slurm.output(job)


def thresholds(slurm):
    """A role may lose instances, and may end the job before all of its own have ended."""
    roles = ONE + """\
    completion: {{min_failed: 2, min_succeeded: 2}}
  other:
    resources: {{cpu: 1}}
    run: sleep 300
"""
    run = 'case $JOBC_INDEX in 0) exit 3 ;; 1 | 2) sleep 1 ;; 3) sleep 300 ;; esac'
    job_file = roles.format(name="thresholds", run=f"      {run}", instances=4, more="")
    directory = slurm.build("thresholds", job_file)
    job = slurm.submit(directory)
    state = slurm.ends(job)
    if state != "COMPLETED":
        yield f"{state}\n{slurm.output(job)}"


def retries(slurm):
    """A task is tried again in its step, as often as it may, and only for the exit codes named."""
    run = 'echo try >>"$HOME/retries-$JOBC_INDEX"\n[ "$(wc -l <"$HOME/retries-$JOBC_INDEX")" -gt "$JOBC_INDEX" ] || exit 9'
    job_file = one("retries", f"HOME={slurm.home}\n{run}", 3) + "    retry: {max: 2, on_exit_codes: [9], backoff: 0s}\n"
    job = slurm.submit(slurm.build("retries", job_file))
    state = slurm.ends(job)
    tries = [len((slurm.home / f"retries-{index}").read_text().splitlines()) for index in range(3)]
    if state != "COMPLETED" or tries != [1, 2, 3]:
        yield f"{state}: {tries}\n{slurm.output(job)}"
    job_file = one("once", "exit 8") + "    retry: {max: 2, on_exit_codes: [9]}\n"
    job = slurm.submit(slurm.build("once", job_file))
    if slurm.ends(job) != "FAILED" or "retry 1" in slurm.output(job):
        yield slurm.output(job)


def requeue(slurm):
    """A job that fails is requeued by itself, at most as often as the job says, and its output goes on."""
    for name, run, expected in (("requeued", '[ "${SLURM_RESTART_COUNT-0}" -ge 1 ] || exit 5', "COMPLETED"), ("exhausted", "exit 5", "FAILED")):
        directory = slurm.build(name, one(name, f'echo "start ${{SLURM_RESTART_COUNT-0}}"\n{run}') + "    retry: {max: 1, scope: job}\n")
        job = slurm.submit(directory)
        until(lambda job=job: (slurm.show(job)["Restarts"], slurm.show(job)["JobState"]) == ("1", "PENDING"), 40)
        # Slurm lets a requeued job wait for two minutes. It refuses a start in the second in which the first one ended.
        time.sleep(3)
        slurm.user("scontrol", "update", f"jobid={job}", "starttime=now")
        state, shown = slurm.ends(job), slurm.show(job)
        said = slurm.output(job)
        if state != expected or shown["Restarts"] != "1" or "start 0" not in said or "start 1" not in said:
            yield f"{name}: {state}, {shown['Restarts']} restarts, {shown['Reason']}, exit code {shown['ExitCode']}\n{said}"


def time_limit(slurm):
    """The time limit of a role ends an instance; that of a job becomes Slurm's own."""
    directory = slurm.build("limit", one("limit", "sleep 300", more="timeout: 90s") + "    timeout: 1s\n")
    job = slurm.submit(directory)
    limit = slurm.show(job)["TimeLimit"]
    state, shown = slurm.ends(job), slurm.show(job)
    if state != "FAILED" or shown["ExitCode"] != "124:0" or limit != "00:02:00":
        yield f"{state}, exit code {shown['ExitCode']}, limit {limit}\n{slurm.output(job)}"


def timeout(slurm):
    """Slurm ends a job at its time limit, and tasks are told before."""
    run = "trap 'echo bye; exit 0' TERM\nwhile :; do sleep 300 & wait; done"
    job = slurm.submit(slurm.build("timeout", one("timeout", run, 2, "timeout: 1m")))
    state = slurm.ends(job, 150)
    if state != "TIMEOUT" or slurm.output(job).count("bye") != 2:
        yield f"{state}\n{slurm.output(job)}"


def cancel(slurm):
    """scancel stops tasks with SIGTERM, they have the time that Slurm gives them, and nothing is left of them."""
    mark = "sleep 98765"
    job = slurm.submit(slurm.build("cancel", one("cancel", f"trap 'sleep 2 || :; echo bye; exit 0' TERM\necho up\nwhile :; do {mark} & wait; done", 2)))
    until(lambda: slurm.output(job).count("up\n") == 2)
    slurm.user("scancel", job)
    state = slurm.ends(job)
    until(lambda: not slurm.user("squeue", "--noheader", "--job", job).stdout.strip())
    left = processes(mark)
    if state != "CANCELLED" or left or slurm.output(job).count("bye") != 2:
        yield f"{state}, left {left}\n{slurm.output(job)}"


def array(slurm):
    """A matrix is one array, and no more of it runs at once than the job says."""
    run = (f"mark={slurm.home}/running-${{{{ matrix.n }}}}\n"
           f"touch $mark; ls {slurm.home}/running-* | wc -l; sleep 2; rm $mark\n"
           "echo value ${{ matrix.n }} of $JOBC_JOB")
    directory = slurm.build("array", one("array", run, more="matrix: {axes: {n: [1, 2, 3, 4]}, max_parallel: 2}"))
    job = slurm.submit(directory, "array.sbatch")
    state = slurm.ends(job)
    logs = sorted((slurm.home / "array/out").glob("*/cluster.slurm/jobc-*/logs/*.log"))
    said = [path.read_text().split("\n") for path in logs]
    at_once = [int(lines[0]) for lines in said]
    values = sorted(lines[1] for lines in said)
    if state != "COMPLETED" or values != [f"value {n} of array-{n - 1}" for n in (1, 2, 3, 4)] or max(at_once) > 2:
        yield f"{state}: {at_once} {values}"


CHAIN = """\
version: 1
name: chain
image: host
roles:
  prepare: {{run: "{first}", resources: {{cpu: 1}}}}
  train:
    needs: {{prepare: succeeded}}
    matrix: {{n: [1, 2]}}
    run: echo train >>{log}
    resources: {{cpu: 1}}
  report: {{needs: {{train: succeeded}}, run: "echo report >>{log}", resources: {{cpu: 2}}}}
"""


def chain(slurm):
    """Stages are jobs that wait for each other; none runs after one that failed."""
    log = slurm.home / "chain.log"
    for first, states, lines in ((f"echo prepare >>{log}", ["COMPLETED"] * 4, ["prepare", "train", "train", "report"]),
                                 ("exit 3", ["FAILED"] + ["CANCELLED"] * 3, [])):
        slurm.write("chain.log", "")
        directory = slurm.build("chain", CHAIN.format(first=first, log=log))
        done = slurm.user("./submit.sh", cwd=directory)
        jobs = [line.split()[1] for line in done.stdout.splitlines()]
        if done.returncode or len(jobs) != 4:
            yield f"submit.sh: exit {done.returncode}\n{done.stdout}{done.stderr}"
            return
        ended = [slurm.ends(job) for job in jobs]
        if ended != states or log.read_text().split() != lines:
            yield f"{ended}: {log.read_text().split()}\n" + "".join(slurm.output(job) for job in jobs)


SERVE = """\
version: 1
name: serve
image: host
roles:
  server:
    resources: {cpu: 1, memory: 64MiB, ports: {http: auto}}
    ready: {http: {port: http, path: /}, every: 1s}
    run: exec python3 -u -m http.server --bind 0.0.0.0 "$JOBC_PORT_HTTP"
  client:
    instances: 2
    needs: {server: ready}
    resources: {cpu: 2, gpu: 1}
    run: |
      exec 3<>"/dev/tcp/${{ hosts.server[0] }}/${{ ports.server.http }}"
      printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3
      read -r _ code _ <&3
      echo "code $code at $JOBC_ENDPOINTS_SERVER_HTTP, GPUs ${CUDA_VISIBLE_DEVICES-none}"
    completion: {min_succeeded: all}
"""


def serve(slurm):
    """Roles with different nodes are one heterogeneous job; a role starts when the other is ready, and ends the job."""
    directory = slurm.build("serve", SERVE)
    job = slurm.submit(directory)
    state = slurm.ends(job)
    logs = slurm.logs_of(directory, job)
    said = logs["client-0"] + logs["client-1"]
    if state not in ("COMPLETED", ["COMPLETED", "CANCELLED"]) or said.count("code 200 at n") != 2 or said.count("GPUs 0") != 2:
        yield f"{state}: {said}\n{slurm.output(job)}"


def secrets(slurm):
    """The value of a secret is in a file of its user alone: not in a script, nor in what Slurm knows of the job."""
    value = "s3cret-\n'\"$value"
    job_file = one("secrets", f'printf %s "$TOKEN" >{slurm.home}/token\nenv | grep -c CALLER || :', more="secrets: {token: {env: WANDB_API_KEY}}")
    directory = slurm.build("secrets", job_file + "    env: {TOKEN: '${{ secrets.token }}'}\n")
    done = slurm.user("./submit.sh", cwd=directory, WANDB_API_KEY=value, CALLERS_OWN="1")
    job = done.stdout.strip()
    shown = slurm.user("scontrol", "show", "job", "--details", job).stdout
    state = slurm.ends(job)
    if state != "COMPLETED" or (slurm.home / "token").read_text() != value:
        yield f"{done.stderr}{state}\n{slurm.output(job)}"
    elif "0" not in slurm.logs_of(directory, job)["main-0"].split():
        yield "the caller's variables are passed on"
    file = directory.parent.with_name("cluster.slurm") / "secrets/token"
    if file.stat().st_mode & 0o777 != 0o600 or file.parent.stat().st_mode & 0o777 != 0o700:
        yield f"mode {file.stat().st_mode:o}"
    texts = [shown, *(path.read_bytes().decode(errors="replace") for path in [*slurm.place.rglob("state/**/*"), *(slurm.home / "secrets/out").rglob("*")] if path.is_file() and path != file)]
    if any("s3cret" in text for text in texts):
        yield "the value is elsewhere, too"
    # Beside an array `submit.sh` submits that.
    job_file = one("secret-array", "echo ${#TOKEN} ${{ matrix.n }}", more="secrets: {token: {env: TOKEN}}\nmatrix: {n: [1, 2]}")
    directory = slurm.build("secret-array", job_file + "    env: {TOKEN: '${{ secrets.token }}'}\n")
    done = slurm.user("./submit.sh", cwd=directory, TOKEN="value")
    state = slurm.ends(done.stdout.strip())
    said = sorted(path.read_text() for path in (slurm.home / "secret-array/out").glob("*/cluster.slurm/jobc-*/logs/*.log"))
    if state != "COMPLETED" or said != ["5 1\n", "5 2\n"]:
        yield f"{done.stderr}{state}: {said}"


MPI = """\
version: 1
name: mpi
image: host
roles:
  train:
    instances: 3
    resources: {cpu: 2}
    env: {MARK: here}
    run: |
      for host in $(cut -d' ' -f1 "$JOBC_HOSTFILE"); do
        ssh -x -p 22 "$host" 'echo "$SLURMD_NODENAME index $JOBC_INDEX rank $JOBC_RANK $MARK"' </dev/null
      done
distributed: {framework: mpi, roles: [train]}
"""


def remote_shell(slurm):
    """Programs that start processes by ssh start them through Slurm, in the environment of the instance there."""
    directory = slurm.build("mpi", MPI)
    job = slurm.submit(directory)
    state = slurm.ends(job)
    said = slurm.logs_of(directory, job)["train-0"].splitlines()
    if state != "COMPLETED" or [line.split(" ", 1)[1] for line in said] != [f"index {index} rank {index} here" for index in range(3)]:
        yield f"{state}: {said}\n{slurm.output(job)}"
    elif len({line.split()[0] for line in said}) != 3:
        yield f"not on three nodes: {said}"


AWKWARD = "it's \"5\" $HOME `id` \\\\ * \n 日本 #"


def awkward(slurm):
    """Texts reach tasks as they are written, whatever a shell would read in them; so do settings of the target, and directories may have any name."""
    root, images = slurm.home / "root 2", slurm.home / "im'ages"
    for directory in (root / "bin", root / "tmp", images):
        slurm.user("mkdir", "-p", directory)
    slurm.user("cp", "/bin/busybox", root / "bin/printf")
    slurm.user("tar", "-C", root, "-cf", images / "example.org_printf_1.tar", ".")
    for name, container, image in (("bare it's", "none", "host"), ("contained 日本", "jobc", "example.org/printf:1")):
        job_file = (f"version: 1\nname: awkward\nimage: {image}\nroles:\n  main:\n    resources: {{cpu: 1, memory: 64MiB}}\n"
                    f"    env: {{TEXT: {json.dumps(AWKWARD)}}}\n    run: {json.dumps(['printf', '%s|', AWKWARD, '', '-n', '${TEXT}'])}\n")
        settings = f"container: {container}, images: {json.dumps(str(images))}, extra: {{comment: {json.dumps(AWKWARD.replace(chr(10), ''))}}}"
        directory = slurm.build(name, job_file, settings, backends="[oci, slurm]")
        job = slurm.submit(directory)
        comment = slurm.user("squeue", "--noheader", "--states=all", "--format=%k", "--jobs", job).stdout.rstrip("\n")
        state = slurm.ends(job)
        said = slurm.logs_of(directory, job).get("main-0", "")
        if state != "COMPLETED" or f"{AWKWARD}||-n|${{TEXT}}|" not in said:
            yield f"{name}: {state}: {said!r}\n{slurm.output(job)}"
        if comment != AWKWARD.replace("\n", ""):
            yield f"{name}: comment {comment!r}"


def unstarted(slurm):
    """A task that cannot start is a failure with its reason, and not a job that was stopped."""
    directory = slurm.build("unstarted", one("unstarted", "true", 2, more="secrets: {token: {env: TOKEN}}") + "    env: {TOKEN: '${{ secrets.token }}'}\n")
    # Without `submit.sh` nothing has written the secret.
    job = slurm.submit(directory)
    state, shown = slurm.ends(job), slurm.show(job)
    if state != "FAILED" or shown["ExitCode"] != "125:0" or "no value of the secret token" not in slurm.output(job):
        yield f"{state}, exit code {shown['ExitCode']}\n{slurm.output(job)}"
    tasks = [path.read_text().split() for path in (directory.parent.with_name("cluster.slurm") / f"jobc-{job}/tasks").iterdir()]
    if not any(words[1:3] == ["started", "1"] and words[-3:] == ["ended", "1", "125"] for words in tasks):
        yield f"{tasks}"


def contained(slurm):
    """Containers run by jobc: rootless, from an archive, with the addresses of the nodes, and nothing is left of their bundles."""
    root, images = slurm.home / "root", slurm.home / "images"
    for directory in (root / "bin", root / "tmp", images):
        slurm.user("mkdir", "-p", directory)
    slurm.user("cp", "/bin/busybox", root / "bin/busybox")
    for name in ("sh", "cat", "echo", "id"):
        slurm.user("ln", "-s", "busybox", root / "bin" / name)
    slurm.user("tar", "-C", root, "-cf", images / "example.org_busybox_1.tar", ".")
    run = 'echo "$JOBC_INDEX of $JOBC_HOSTS_MAIN, $JOBC_ENDPOINTS_MAIN_WEB, $(cat /etc/hostname) $(id -u)"\ncat /etc/jobc/job.json'
    job_file = one("contained", run, 2).replace("image: host", "image: example.org/busybox:1").replace("    run: |", "    shell: sh\n    run: |")
    job_file = job_file.replace("memory: 64MiB", "memory: 64MiB, ports: {web: auto}") + "    files: {/etc/hostname: {content: 'task ${{ instance.index }}'}}\n"
    directory = slurm.build("contained", job_file, f"container: jobc, images: {images}", backends="[oci, slurm]")
    job = slurm.submit(directory)
    state, logs = slurm.ends(job), slurm.logs_of(directory, job)
    for index in (0, 1):
        said = logs.get(f"main-{index}", "")
        match = re.search(rf"^{index} of (n\d),(n\d), \1:(\d+),\2:(\d+), task {index} 0$", said, re.MULTILINE)
        if not match or int(match[4]) != int(match[3]) + 1 or f'"hosts":["{match[1]}","{match[2]}"]' not in said:
            yield f"{state}: {said}"
    if state != "COMPLETED" or list(directory.parent.with_name("cluster.slurm").glob("bundles-*")):
        yield f"{state}\n{slurm.output(job)}"


def callers(slurm):
    """An image that is the caller's surroundings has the directory and the named variables of `sbatch`, and no others."""
    run = 'pwd; echo "${CALLERS_OWN-none} ${CALLERS_OTHER-none}"; command -v id'
    image = "image: {host: {cwd: true, env: [CALLERS_OWN]}}"
    directory = slurm.build("callers", one("callers", run).replace("image: host", image))
    done = slurm.user("sbatch", "--parsable", "--chdir", directory, directory / "job.sbatch", CALLERS_OWN="a b", CALLERS_OTHER="c")
    job = done.stdout.strip()
    state = slurm.ends(job)
    said = slurm.logs_of(directory, job).get("main-0", "").splitlines()
    if state != "COMPLETED" or said[:2] != [str(slurm.home), "a b none"] or len(said) != 3:
        yield f"{done.stderr}{state}: {said}\n{slurm.output(job)}"


CASES = [succeeds, fails, thresholds, retries, requeue, time_limit, cancel, array, chain, serve, secrets, remote_shell, contained, callers, awkward, unstarted]
SLOW = [timeout]
# `submit` has a chain and a matrix, and requeued jobs wait.
LATER = {requeue, array, chain}


def main():
    harness = Harness("slurm jobs", __doc__)
    harness.parser.add_argument("--slow", action="store_true", help="run the cases that wait for Slurm's own limits")
    harness.parser.add_argument("--quick", action="store_true", help="leave out what other tests have, too")
    options = harness.parse()
    with cluster(harness) as slurm:
        chosen = [case for case in CASES if not (options.quick and case in LATER)]
        check(harness, SLOW if options.slow else chosen, slurm, 5)
    harness.end()


if __name__ == "__main__":
    main()
