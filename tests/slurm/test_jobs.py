"""Tests jobs on a Slurm cluster: success and failure, retries, time limits, cancellation, arrays, chains, secrets."""

import json
import os
import re
import subprocess
import time

import pytest

from cluster import text_of, until
from place import SUPERVISED, one

pytestmark = [pytest.mark.isolated, pytest.mark.duration(80), pytest.mark.together(5)]


def test_every_instance_runs_once_on_its_own_node(slurm):
    """It knows where the others are."""
    directory = slurm.build("succeeds", one("succeeds", 'echo "$JOBC_INDEX of $JOBC_INSTANCES at $SLURMD_NODENAME: $JOBC_HOSTS_MAIN"', 3))
    job = slurm.submit(directory)
    state = slurm.ends(job)
    said = [text.strip() for text in slurm.logs_of(directory, job).values()]
    nodes = said[0].rpartition(" ")[2].split(",") if said else []
    assert state == "COMPLETED" and said == [f"{index} of 3 at {node}: {','.join(nodes)}" for index, node in enumerate(nodes)] and len(set(nodes)) == 3, \
        f"{state}: {said}\n{slurm.output(job)}"


def processes(pattern):
    """The processes whose command line matches."""
    return subprocess.run(["pgrep", "--full", pattern], capture_output=True, text=True, check=False).stdout.split()


def test_a_failed_instance_ends_the_others(slurm):
    """Its exit code is that of the job."""
    run = 'if [ "$JOBC_INDEX" = 1 ]; then exit 7; fi\nsleep 300'
    directory = slurm.build("fails", one("fails", run, 3))
    job = slurm.submit(directory)
    since = time.monotonic()
    state, shown = slurm.ends(job), slurm.show(job)
    assert state == "FAILED" and shown["ExitCode"] == "7:0" and time.monotonic() - since <= 40, \
        f"{state}, exit code {shown['ExitCode']} after {time.monotonic() - since:.0f} s\n{slurm.output(job)}"
    assert "failed: main-1: exit 7" in slurm.output(job), slurm.output(job)


def test_a_role_may_lose_instances(slurm):
    """And it may end the job before all of its own have ended."""
    more = "    completion: {min_failed: 2, min_succeeded: 2}\n  other:\n    resources: {cpu: 1}\n    run: sleep 300\n"
    run = 'case $JOBC_INDEX in 0) exit 3 ;; 1 | 2) sleep 1 ;; 3) sleep 300 ;; esac'
    job = slurm.submit(slurm.build("thresholds", one("thresholds", run, 4, role=more)))
    state = slurm.ends(job)
    assert state == "COMPLETED", f"{state}\n{slurm.output(job)}"


def test_a_task_is_retried_in_its_step(slurm):
    """As often as it may, and only for the exit codes named."""
    run = 'echo try >>"$HOME/retries-$JOBC_INDEX"\n[ "$(wc -l <"$HOME/retries-$JOBC_INDEX")" -gt "$JOBC_INDEX" ] || exit 9'
    job_file = one("retries", f"HOME={slurm.home}\n{run}", 3) + "    retry: {max: 2, on_exit_codes: [9], backoff: 0s}\n"
    job = slurm.submit(slurm.build("retries", job_file))
    state = slurm.ends(job)
    tries = [len((slurm.home / f"retries-{index}").read_text().splitlines()) for index in range(3)]
    assert state == "COMPLETED" and tries == [1, 2, 3], f"{state}: {tries}\n{slurm.output(job)}"
    job_file = one("once", "exit 8") + "    retry: {max: 2, on_exit_codes: [9]}\n"
    job = slurm.submit(slurm.build("once", job_file))
    assert slurm.ends(job) == "FAILED" and "retry 1" not in slurm.output(job), slurm.output(job)


@pytest.mark.parametrize("scope", ("task", "role"))
def test_an_exit_code_may_be_final(slurm, scope):
    """All others are retried, of a task alone and of a role as a whole."""
    tries = slurm.home / f"tries-{scope}"
    run = f'echo try >>{tries}\n[ "$(wc -l <{tries})" -gt 1 ] || exit 9\nexit 42'
    retry = f"    retry: {{max: 5, scope: {scope}, never_on_exit_codes: [42], backoff: 0s}}\n"
    job = slurm.submit(slurm.build(f"final-{scope}", one(f"final-{scope}", run) + retry))
    state, tried = slurm.ends(job), tries.read_text().split()
    assert state == "FAILED" and len(tried) == 2, f"{state}: {tried}\n{slurm.output(job)}"


# `submit` has a chain and a matrix, and requeued jobs wait.
@pytest.mark.slow
@pytest.mark.parametrize("name, code, expected", [("requeued", '$((SLURM_RESTART_COUNT ? 0 : 5))', "COMPLETED"), ("exhausted", "5", "FAILED")])
def test_a_job_that_fails_is_requeued(slurm, name, code, expected):
    """It is requeued by itself, at most as often as the job says, and its output goes on."""
    run = f'exec bash -c \'echo "start ${{SLURM_RESTART_COUNT-0}}"; exit {code}\''
    directory = slurm.build(name, one(name, run) + "    retry: {max: 1, scope: job}\n")
    job = slurm.submit(directory)
    until(lambda: (slurm.show(job)["Restarts"], slurm.show(job)["JobState"]) == ("1", "PENDING"), 40)
    # Slurm lets a requeued job wait for two minutes. It refuses a start in the second in which the first one ended.
    time.sleep(3)
    slurm.user("scontrol", "update", f"jobid={job}", "starttime=now")
    state, shown = slurm.ends(job), slurm.show(job)
    said = slurm.output(job)
    assert (state, shown["Restarts"]) == (expected, "1") and "start 0" in said and "start 1" in said, f"{shown['Reason']}, exit code {shown['ExitCode']}\n{said}"


def test_the_time_limit_of_a_role_ends_an_instance(slurm):
    """That of a job becomes Slurm's own, and so does that of a role whose tasks Slurm runs."""
    directory = slurm.build("limit", one("limit", "sleep 300", more="timeout: 90s") + f"    timeout: 1s\n{SUPERVISED}")
    job = slurm.submit(directory)
    limit = slurm.show(job)["TimeLimit"]
    state, shown = slurm.ends(job), slurm.show(job)
    assert state == "FAILED" and shown["ExitCode"] == "124:0" and limit == "00:02:00", \
        f"{state}, exit code {shown['ExitCode']}, limit {limit}\n{slurm.output(job)}"
    job = slurm.submit(slurm.build("direct-limit", one("direct-limit", "sleep 300", more="timeout: 1h") + "    timeout: 90s\n"))
    assert slurm.show(job)["TimeLimit"] == "00:02:00", slurm.show(job)
    slurm.user("scancel", job)


@pytest.mark.slow
def test_slurm_ends_a_job_at_its_time_limit(slurm):
    """Tasks are told before."""
    run = "trap 'echo bye; exit 0' TERM\nwhile :; do sleep 300 & wait; done"
    job = slurm.submit(slurm.build("timeout", one("timeout", run, 2, "timeout: 1m")))
    state = slurm.ends(job, 150)
    assert state == "TIMEOUT" and slurm.output(job).count("bye") == 2, f"{state}\n{slurm.output(job)}"


SAVES = """\
import signal, sys, time
def save(*_):
    time.sleep(1)
    open(sys.argv[1], "a").write("saved")
    sys.exit()
signal.signal(signal.SIGTERM, save)
print("up", flush=True)
time.sleep(300)
"""


@pytest.mark.parametrize("shell", ("bash", "sh"))
@pytest.mark.parametrize("form, script", [
    ("alone", "PROGRAM"), ("two", "PROGRAM\necho after"), ("pipe", "PROGRAM | cat"), ("setup", "cd /\nexport A=$(date)\nPROGRAM"), ("loop", "for i in 1; do PROGRAM; done"),
])
def test_a_program_behind_a_shell_saves_before_it_is_stopped(slurm, shell, form, script):
    """Slurm signals all processes of a task here; the shell lives until the program has ended."""
    name, program = f"saves-{form}-{shell}", slurm.home / "saves.py"
    slurm.write("saves.py", SAVES)
    saved = slurm.home / f"{name}.out"
    job = slurm.submit(slurm.build(name, one(name, script.replace("PROGRAM", f"python3 {program} {saved}"), role=f"    shell: {shell}\n")))
    until(lambda: "up" in slurm.output(job))
    slurm.user("scancel", job)
    slurm.ends(job)
    assert saved.exists() and saved.read_text() == "saved", slurm.output(job)


@pytest.mark.slow
@pytest.mark.parametrize("how", (["--signal=TERM"], []), ids=["step", "job"])
def test_sigterm_reaches_every_program(slurm, how):
    """Of many jobs at once on a busy host: by `--signal`, as before a time limit, and by `scancel`."""
    count, name = int(os.environ.get("JOBC_JOBS", "40")), f"many-{len(how)}"
    slurm.write("saves.py", SAVES)
    job = one(name, f"python3 {slurm.home}/saves.py {slurm.home}/{name}-$SLURM_JOB_ID.saved", role="    grace_period: 20s\n")
    directory = slurm.build(name, job.replace("memory: 64MiB", "memory: 16MiB"), "container: none, kill_wait: 1m")
    script = (directory / "job.sbatch").read_text()
    assert "exec srun " in script and len(script.splitlines()) <= 20, script
    jobs = [slurm.submit(directory) for _ in range(count)]
    until(lambda: all("up" in slurm.output(job) for job in jobs), 200)
    slurm.user("scancel", *how, *jobs)
    until(lambda: all((slurm.home / f"{name}-{job}.saved").exists() for job in jobs) or not slurm.user("squeue", "--noheader").stdout, 60)
    saved = [job for job in jobs if (slurm.home / f"{name}-{job}.saved").exists()]
    print(f"{len(saved)} of {count} programs got SIGTERM")
    assert len(saved) == count, [slurm.output(job) for job in jobs if job not in saved][:3]


def test_scancel_stops_tasks(slurm):
    """With SIGTERM; they have the time that Slurm gives them, and nothing is left of them."""
    # If it ends before its shell is told, the shell begins nothing of that name again.
    mark = "sleep 98765"
    job = slurm.submit(slurm.build("cancel", one("cancel", f"trap 'sleep 2 || :; echo bye; exit 0' TERM\necho up\n{mark} & wait\nsleep 3", 2)))
    until(lambda: slurm.output(job).count("up\n") == 2)
    slurm.user("scancel", job)
    state = slurm.ends(job)
    until(lambda: not slurm.user("squeue", "--noheader", "--job", job).stdout.strip())
    until(lambda: not processes(mark))
    assert state == "CANCELLED" and slurm.output(job).count("bye") == 2, f"{state}\n{slurm.output(job)}"


@pytest.mark.slow
def test_a_matrix_is_an_array(slurm):
    """No more of it runs at once than the job says."""
    run = (f"mark={slurm.home}/running-${{{{ matrix.n }}}}\n"
           f"touch $mark; ls {slurm.home}/running-* | wc -l; sleep 2; rm $mark\n"
           "echo value ${{ matrix.n }} of $JOBC_JOB")
    directory = slurm.build("array", one("array", run, more="matrix: {axes: {n: [1, 2, 3, 4]}, max_parallel: 2}"))
    job = slurm.submit(directory, "array.sbatch")
    state = slurm.ends(job)
    logs = sorted((slurm.home / "array/out").glob("*/cluster.slurm/jobc-*/records/*/logs/*/*.log"))
    said = [text_of(path).split("\n") for path in logs]
    at_once = [int(lines[0]) for lines in said]
    values = sorted(lines[1] for lines in said)
    assert state == "COMPLETED" and values == [f"value {n} of array-{n - 1}" for n in (1, 2, 3, 4)] and max(at_once) <= 2, \
        f"{state}: {at_once} {values}"


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


@pytest.mark.slow
def test_stages_are_jobs_that_wait_for_each_other(slurm):
    """None runs after one that failed."""
    log = slurm.home / "chain.log"
    for first, states, lines in ((f"echo prepare >>{log}", ["COMPLETED"] * 4, ["prepare", "train", "train", "report"]),
                                 ("exit 3", ["FAILED"] + ["CANCELLED"] * 3, [])):
        slurm.write("chain.log", "")
        directory = slurm.build("chain", CHAIN.format(first=first, log=log))
        done = slurm.user("./submit.sh", cwd=directory)
        jobs = [line.split()[1] for line in done.stdout.splitlines()]
        assert done.returncode == 0 and len(jobs) == 4, f"submit.sh: exit {done.returncode}\n{done.stdout}{done.stderr}"
        ended = [slurm.ends(job) for job in jobs]
        assert ended == states and log.read_text().split() == lines, \
            f"{ended}: {log.read_text().split()}\n" + "".join(slurm.output(job) for job in jobs)


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


def test_a_role_starts_when_another_is_ready(slurm):
    """Roles with different nodes are one heterogeneous job, and a role ends it."""
    directory = slurm.build("serve", SERVE)
    job = slurm.submit(directory)
    state = slurm.ends(job)
    logs = slurm.logs_of(directory, job)
    said = logs["client-0"] + logs["client-1"]
    assert state in ("COMPLETED", ["COMPLETED", "CANCELLED"]) and said.count("code 200 at n") == 2 and said.count("GPUs 0") == 2, \
        f"{state}: {said}\n{slurm.output(job)}"


def test_a_secret_is_in_a_file_of_its_user_alone(slurm):
    """Not in a script, nor in what Slurm knows of the job."""
    value = "s3cret-\n'\"$value"
    job_file = one("secrets", f'printf %s "$TOKEN" >{slurm.home}/token\nenv | grep -c CALLER || :', more="secrets: {token: {env: WANDB_API_KEY}}")
    directory = slurm.build("secrets", job_file + "    env: {TOKEN: '${{ secrets.token }}'}\n")
    done = slurm.user("./submit.sh", cwd=directory, WANDB_API_KEY=value, CALLERS_OWN="1")
    job = done.stdout.strip()
    shown = slurm.user("scontrol", "show", "job", "--details", job).stdout
    state = slurm.ends(job)
    assert state == "COMPLETED" and (slurm.home / "token").read_text() == value, f"{done.stderr}{state}\n{slurm.output(job)}"
    assert "0" in slurm.logs_of(directory, job)["main-0"].split(), "the caller's variables are passed on"
    file = directory.parent.with_name("cluster.slurm") / "secrets/token"
    assert file.stat().st_mode & 0o777 == 0o600 and file.parent.stat().st_mode & 0o777 == 0o700, f"mode {file.stat().st_mode:o}"
    texts = [shown, *(path.read_bytes().decode(errors="replace") for path in [*slurm.place.rglob("state/**/*"), *(slurm.home / "secrets/out").rglob("*")] if path.is_file() and path != file)]
    assert not any("s3cret" in text for text in texts), "the value is elsewhere, too"
    # Beside an array `submit.sh` submits that.
    job_file = one("secret-array", "echo ${#TOKEN} ${{ matrix.n }}", more="secrets: {token: {env: TOKEN}}\nmatrix: {n: [1, 2]}")
    directory = slurm.build("secret-array", job_file + "    env: {TOKEN: '${{ secrets.token }}'}\n", "container: none, jobc: none")
    done = slurm.user("./submit.sh", cwd=directory, TOKEN="value")
    state = slurm.ends(done.stdout.strip())
    said = sorted(path.read_text() for path in (slurm.home / "secret-array/out").glob("*/cluster-*_*.out"))
    assert state == "COMPLETED" and said == ["5 1\n", "5 2\n"], f"{done.stderr}{state}: {said}"


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


def test_programs_that_call_ssh_start_processes_through_slurm(slurm):
    """In the environment of the instance there."""
    directory = slurm.build("mpi", MPI)
    job = slurm.submit(directory)
    state = slurm.ends(job)
    said = slurm.logs_of(directory, job)["train-0"].splitlines()
    assert state == "COMPLETED" and [line.split(" ", 1)[1] for line in said] == [f"index {index} rank {index} here" for index in range(3)], \
        f"{state}: {said}\n{slurm.output(job)}"
    assert len({line.split()[0] for line in said}) == 3, f"not on three nodes: {said}"


RANKS = """\
version: 1
name: ranks
image: host
roles:
  train:
    instances: 3
    resources: {cpu: 2}
    retry: {max: 1, on_exit_codes: [9], scope: role, backoff: 0s}
    run: |
      echo "rank $JOBC_RANK $PMI_RANK $PMI_SIZE"
      if [ "$JOBC_RANK" = 1 ] && [ ! -e TRIED ]; then touch TRIED; exit 9; fi
distributed: {framework: mpi, roles: [train], launch: all}
"""


def test_ranks_of_mpi_are_started_together(slurm):
    """By one `srun`; a rank that fails ends the others, and the role is tried again."""
    directory = slurm.build("ranks", RANKS.replace("TRIED", str(slurm.home / "ranks-tried")))
    # The plug-in for PMIx of several slurmd on one host fails (22.05), and with `srun hostname` as well.
    steps = (directory / "job.json").read_text()
    slurm.write((directory / "job.json").relative_to(slurm.home), steps.replace("--mpi=pmix", "--mpi=pmi2"))
    assert "--mpi=pmix" in steps and not (directory / "bin").exists()
    job = slurm.submit(directory)
    state = slurm.ends(job)
    logs = slurm.logs_of(directory, job)
    for rank in range(3):
        assert f"rank {rank} {rank} 3" in logs.get(f"train-{rank}.2", ""), f"{state}: {logs}\n{slurm.output(job)}"
    tasks = {path.name: path.read_text() for path in (directory.parent.with_name("cluster.slurm") / f"jobc-{job}/tasks").iterdir()}
    assert state == "COMPLETED" and "ended 1 9" in tasks["train-1"], f"{state}: {tasks}"
    ends = {name: [line for line in text.splitlines() if " judged " not in line][-1] for name, text in tasks.items()}
    assert all(ends[f"train-{rank}"].endswith("ended 2 0") for rank in range(3)), tasks
    assert ' judged 1 {"kind":"user error"' in tasks["train-0"] and ' judged 2 {"kind":"success"' in tasks["train-0"], tasks


AWKWARD = "it's \"5\" $HOME `id` \\\\ * \n 日本 #"


def test_texts_reach_tasks_as_they_are_written(slurm):
    """Whatever a shell would read in them; so do settings of the target, and directories may have any name."""
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
        assert state == "COMPLETED" and f"{AWKWARD}||-n|${{TEXT}}|" in said, f"{name}: {state}: {said!r}\n{slurm.output(job)}"
        assert comment == AWKWARD.replace("\n", ""), f"{name}: comment {comment!r}"


def test_a_task_that_cannot_start_is_a_failure(slurm):
    """With its reason; it is not a job that was stopped."""
    directory = slurm.build("unstarted", one("unstarted", "true", 2, more="secrets: {token: {env: TOKEN}}") + "    env: {TOKEN: '${{ secrets.token }}'}\n",
                            "container: none, jobc: none")
    # Without `submit.sh` nothing has written the secret.
    job = slurm.submit(directory)
    state, shown = slurm.ends(job), slurm.show(job)
    assert state == "FAILED" and shown["ExitCode"] == "125:0" and "secrets/token: No such file" in slurm.output(job), \
        f"{state}, exit code {shown['ExitCode']}\n{slurm.output(job)}"
    directory = slurm.build("unstarted-task", one("unstarted-task", "true", 2, more="secrets: {token: {env: TOKEN}}")
                            + f"    env: {{TOKEN: '${{{{ secrets.token }}}}'}}\n{SUPERVISED}")
    job = slurm.submit(directory)
    assert slurm.ends(job) == "FAILED" and "no value of the secret token" in slurm.output(job), slurm.output(job)
    tasks = [path.read_text().split() for path in (directory.parent.with_name("cluster.slurm") / f"jobc-{job}/tasks").iterdir()]
    assert any(words[1:3] == ["started", "1"] and words[-3:] == ["ended", "1", "125"] for words in tasks), tasks


def test_jobc_runs_containers_in_steps(slurm):
    """Rootless, from an archive, with the addresses of the nodes, and nothing is left of their bundles."""
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
        assert match and int(match[4]) == int(match[3]) + 1 and f'"hosts":["{match[1]}","{match[2]}"]' in said, f"{state}: {said}"
    assert state == "COMPLETED" and not list(directory.parent.with_name("cluster.slurm").glob("bundles-*")), f"{state}\n{slurm.output(job)}"


def test_an_image_of_the_host_has_the_named_variables_of_sbatch(slurm):
    """And its directory, and no other variables."""
    run = 'pwd; echo "${CALLERS_OWN-none} ${CALLERS_OTHER-none}"; command -v id'
    image = "image: {host: {cwd: true, env: [CALLERS_OWN]}}"
    directory = slurm.build("callers", one("callers", run).replace("image: host", image))
    done = slurm.user("sbatch", "--parsable", "--chdir", directory, directory / "job.sbatch", CALLERS_OWN="a b", CALLERS_OTHER="c")
    job = done.stdout.strip()
    state = slurm.ends(job)
    said = slurm.logs_of(directory, job).get("main-0", "").splitlines()
    assert state == "COMPLETED" and said[:2] == [str(slurm.home), "a b none"] and len(said) == 3, f"{done.stderr}{state}: {said}\n{slurm.output(job)}"
