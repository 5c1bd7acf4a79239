"""Runs jobs of the built-in templates on this host.

Where a framework is installed (`tests/jobs/install`), the template starts the framework itself. Servers that are not installed are stand-ins
that print how they were started and answer the readiness check, so that ports, checks and command lines are those of the template.
"""

import contextlib
import http.client
import http.cookiejar
import json
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

import needs
from frameworks import DEBIAN, JAX, MPI_PROGRAM, ORACLES, PATH, TENSORFLOW, TENSORFLOW_PROGRAM, TORCH_PROGRAM, check_lines, need
from harness import REPOSITORY

pytestmark = [pytest.mark.isolated, pytest.mark.duration(80)]
SERVERS = ORACLES / "servers"
RAY = ORACLES / "ray"
# Of `tests/editor/install`.
CODE_SERVER = REPOSITORY / "target/editor/code-server"
SMALL = {"cpu": 0.5, "memory": "1GiB", "shm": "64MiB", "gpu": 0}

# Prints its command line and the variables of its template, and answers every request until the job ends.
SERVER = """\
#!/usr/bin/env python3
import http.server, os, re, sys
words = sys.argv[1:]
shown = {name: os.environ[name] for name in ("HF_HOME", "JUPYTER_TOKEN", "PASSWORD") if name in os.environ}
print(os.path.basename(sys.argv[0]), *words, *(f"{name}={len(value)}" for name, value in shown.items()), flush=True)
port = int(re.search(r"(?:--port[= ]|0\\.0\\.0\\.0:)(\\d+)", " ".join(words))[1])
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == PATH else 404)
        self.end_headers()
    def log_message(self, *words):
        pass
http.server.ThreadingHTTPServer(("", port), Answer).serve_forever()
"""


def test_each_combination_runs_once(jobs):
    """It has a directory of its own."""
    script = "-c 'import os; open(\"/output/lr\", \"w\").write(\"${{ matrix.lr }}\"); print(\"loss\", ${{ matrix.lr }})'"
    job = of_template("sweep", {"script": script, "python": "python3", "gpus": 0}, matrix={"lr": [0.1, 0.2, 0.4]},
                      metrics={"loss": {"log": "loss ([0-9.]+)", "better": "lower"}}, roles={"train": {"resources": SMALL}})
    answer = run_job(jobs, job)
    assert answer.returncode == 0, answer
    for index, value in enumerate(("0.1", "0.2", "0.4")):
        path = jobs.directory / "runs" / f"sweep-{index}" / "lr"
        assert path.exists() and path.read_text() == value, f"{path} has not {value}: {answer.stdout[-800:]}{answer.stderr[-800:]}"
    assert "0.1 *" in answer.stdout + answer.stderr, f"the best value is not marked: {answer.stdout[-800:]}"


def test_a_data_set_is_prepared_once_a_version(jobs):
    """And again after a failure; the role that needs it starts afterwards."""
    place = jobs.directory / "data"
    shutil.rmtree(place, ignore_errors=True)

    def prepared(command, version=1, retries=0):
        uses = {"uses": "std/data-prepare", "with": {"command": command, "version": version, "retries": retries, "cpu": 0.5, "memory": "1GiB"}}
        roles = {"prepare": {**uses, "image": "host"}, "train": {"needs": ["prepare"], "shell": "sh", "run": "cat /data/words"}}
        job = {"version": 1, "name": "prepared", "image": "host", "roles": roles,
               "outputs": {"images": {"source": "./data", "mount": "/data"}}}
        return run_job(jobs, job)

    answer = prepared("echo half >words\nexit 3")
    assert answer.returncode == 1, answer
    for version, wanted in ((1, "first"), (1, "first"), (2, "second")):
        answer = prepared("echo first >words" if version == 1 else "echo second >words", version)
        check_lines(answer, f"train-0   | {wanted}")
    answer = prepared("echo third >words", 2)
    check_lines(answer, "train-0   | second", "prepare-0 | version 2 is prepared already")


@pytest.mark.parametrize("name, program, path, given, line", [
    ("jupyter", "jupyter", "/api", {"token": "${{ secrets.token }}", "directory": "/"},
     "jupyter lab --ip=0.0.0.0 --port=8888 --no-browser --ServerApp.root_dir=/ JUPYTER_TOKEN=5"),
    ("tensorboard", "tensorboard", "/", {"logdir": "/tmp", "port": 6007},
     "tensorboard --logdir /tmp --host 0.0.0.0 --port 6007 --reload_interval=30"),
    ("vllm-serve", "vllm", "/health", {"model": "a/b", "arguments": "--max-model-len 512"},
     "vllm serve a/b --host 0.0.0.0 --port 8000 --tensor-parallel-size 1 --gpu-memory-utilization 0.9 --max-model-len 512 HF_HOME=6"),
], ids=["jupyter", "tensorboard", "vllm"])
def test_servers_start_with_the_options_of_their_template(jobs, name, program, path, given, line):
    """Each is ready when it answers at the path of its check."""
    files = {f"/opt/bin/{program}": {"content": SERVER.replace("self.path == PATH", f"self.path == {path!r}"), "mode": "0755"}}
    role = {"uses": f"std/{name}", "with": given, "image": "host", "files": files, "env": {"PATH": f"/opt/bin:{PATH}"}, "resources": SMALL}
    client = {"needs": {"server": "ready"}, "shell": "sh", "run": "echo it is ready", "completion": {"min_succeeded": 1}}
    job = {"version": 1, "name": name, "image": "host", "network": "job", "roles": {"server": role, "client": client},
           **({"secrets": {"token": {"env": "TOKEN"}}} if "token" in given else {})}
    check_lines(run_job(jobs, job, TOKEN="abcde"), f"server-0 | {line}", "client-0 | it is ready")


@pytest.mark.slow
def test_jupyter_opens_with_the_token_alone(jobs):
    """JupyterLab is ready when its check succeeds, and opens with the token alone."""
    need(SERVERS)
    env = {"PATH": f"{SERVERS}/bin:{PATH}", "JUPYTER_CONFIG_PATH": "/opt/jupyter", "HOME": "/tmp"}
    # The image of the template has a user of its own.
    files = {"/opt/jupyter/jupyter_server_config.json": {"content": '{"ServerApp": {"allow_root": true}}'}}
    role = {"uses": "std/jupyter", "with": {"token": "${{ secrets.token }}", "directory": "/tmp"}, "image": "host", "env": env, "files": files,
            "resources": SMALL}
    asks(jobs, "jupyter", role, ["/api/status", "/api/status?token=abcde"], ["403", "200"], secrets={"token": {"env": "TOKEN"}})


# Starts a kernel, runs a cell in it, and prints what the cell prints.
CELL = """\
import json, sys, urllib.request, uuid, websocket
place, token, code = sys.argv[1:]
start = urllib.request.Request(f"http://{place}/api/kernels?token={token}", method="POST", data=b"{}")
kernel = json.load(urllib.request.urlopen(start, timeout=60))["id"]
channel = websocket.create_connection(f"ws://{place}/api/kernels/{kernel}/channels?token={token}", timeout=60)
header = {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "username": "", "session": uuid.uuid4().hex, "version": "5.3"}
content = {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False, "stop_on_error": True}
channel.send(json.dumps({"header": header, "parent_header": {}, "metadata": {}, "channel": "shell", "content": content}))
for _ in range(100):
    message = json.loads(channel.recv())
    if message["msg_type"] == "stream":
        sys.exit(print(message["content"]["text"].strip()))
"""


@pytest.mark.slow
def test_a_kernel_of_jupyter_runs_a_cell_by_the_published_port(jobs):
    need(SERVERS)
    env = {"PATH": f"{SERVERS}/bin:{PATH}", "JUPYTER_CONFIG_PATH": "/opt/jupyter", "HOME": "/tmp"}
    files = {"/opt/jupyter/jupyter_server_config.json": {"content": '{"ServerApp": {"allow_root": true}}'}}
    role = {"uses": "std/jupyter", "with": {"token": "${{ secrets.key }}", "directory": "/tmp"}, "image": "host", "env": env, "files": files,
            "resources": {**SMALL, "cpu": 2}}
    with served(jobs, "notebook", role, "http://127.0.0.1:8888/api"):
        cell = [f"{SERVERS}/bin/python", "-c", CELL, "127.0.0.1:8888", "abcde", "import socket; print(6 * 7, socket.gethostname())"]
        ran = subprocess.run(cell, capture_output=True, text=True, timeout=120, check=False)
        assert ran.stdout == "42 server-0\n", ran


@pytest.mark.slow
def test_code_server_opens_with_its_password_by_the_published_port(jobs):
    if not (CODE_SERVER / "installed").exists():
        needs.missing("code-server", "`tests/editor/install`")
    for name in ("node", "ssh-keygen"):
        needs.tool(name)
    env = {"PATH": f"{CODE_SERVER}/node_modules/.bin:{PATH}", "HOME": "/tmp"}
    role = {"uses": "std/code-server", "with": {"password": "${{ secrets.key }}", "directory": "/tmp"}, "image": "host", "user": "0:0", "env": env,
            "resources": {**SMALL, "cpu": 2}}
    with served(jobs, "editor", role, "http://127.0.0.1:8080/healthz"):
        for password, opens in (("other", False), ("abcde", True)):
            client = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
            form = urllib.parse.urlencode({"password": password, "base": ".", "href": "http://127.0.0.1:8080/login"}).encode()
            page = client.open("http://127.0.0.1:8080/login", form, timeout=60).read().decode()
            assert ("vscode-workbench-web-configuration" in page) is opens, f"{password}: {page[:2000]}"


@contextlib.contextmanager
def served(jobs, name, role, address):
    """Runs the server of a template until the block ends, which begins when the server answers at this address of the host."""
    path = jobs.directory / f"{name}.json"
    path.write_text(json.dumps({"version": 1, "name": name, "network": "job", "secrets": {"key": {"env": "KEY"}}, "roles": {"server": role}}))
    client, deadline = jobs.run(str(path), KEY="abcde"), time.monotonic() + 120
    try:
        while True:
            with contextlib.suppress(OSError, http.client.HTTPException):
                urllib.request.urlopen(address, timeout=10).close()
                break
            assert client.poll() is None and time.monotonic() < deadline, f"{address} does not answer: {jobs.call('logs', name).stdout[-3000:]}"
            time.sleep(0.2)
        yield
    finally:
        jobs.call("stop", name)
        client.communicate(timeout=60)


@pytest.mark.slow
def test_tensorboard_lists_runs(jobs):
    """TensorBoard is ready when its check succeeds, and lists the runs of its directory."""
    need(SERVERS)
    role = {"uses": "std/tensorboard", "with": {"logdir": "/tmp"}, "image": "host", "env": {"PATH": f"{SERVERS}/bin:{PATH}"}, "resources": SMALL}
    asks(jobs, "tensorboard", role, ["/data/runs", "/"], ["200", "200"])


def asks(jobs, name, role, paths, wanted, **more):
    """Runs a server until another role has asked it for these paths; the answers must have these codes."""
    script = ("import sys, urllib.error, urllib.request\n"
              "for path in sys.argv[2:]:\n"
              "    try:\n"
              "        code = urllib.request.urlopen(sys.argv[1] + path).status\n"
              "    except urllib.error.HTTPError as error:\n"
              "        code = error.code\n"
              "    print('answer', code)\n")
    client = {"needs": {"server": "ready"}, "files": {"/opt/ask.py": {"content": script}}, "completion": {"min_succeeded": 1},
              "run": ["python3", "/opt/ask.py", "http://${{ hosts.server[0] }}:${{ ports.server.http[0] }}", *paths]}
    job = {"version": 1, "name": name, "image": "host", "network": "job", "roles": {"server": role, "client": client}, **more}
    answer = run_job(jobs, job, TOKEN="abcde")
    assert answer.returncode == 0, answer
    codes = [line.rpartition(" ")[2] for line in answer.stdout.splitlines() if "| answer " in line]
    assert codes == wanted, f"answers {codes}: {answer.stdout[-1600:]}{answer.stderr[-1600:]}"


def test_jax_meets_by_the_variables_of_its_template(jobs):
    need(JAX)
    program = REPOSITORY / "examples/local-jax/code/train.py"
    job = of_template("jax", {"script": "-u /opt/train.py --steps 100", "nodes": 2, "gpus": 0, "python": f"{JAX}/bin/python"},
                      roles={"train": {"resources": SMALL, "files": {"/opt/train.py": {"content": program.read_text()}}}})
    answer = run_job(jobs, job)
    check_lines(answer, *(f"train-{rank} | process {rank}: slope 2.000, intercept -1.000" for rank in range(2)))


@pytest.mark.slow
def test_torchrun_sums_ranks(jobs):
    """Of two processes on each of two hosts."""
    answer = run_torch(jobs, "torchrun", {"script": torch_script("/opt/program.py"), "nodes": 2, "gpus": 0}, TORCH_PROGRAM,
                       distributed={"processes_per_instance": 2})
    check_lines(answer, *(f"train-{rank // 2} | [default{rank % 2}]:rank {rank} of 4 has 10.0" for rank in range(4)))


@pytest.mark.slow
def test_elastic_hosts_sum_ranks(jobs):
    given = {"script": torch_script("/opt/program.py"), "nodes": 3, "min_nodes": 3, "max_nodes": 3, "gpus": 0}
    answer = run_torch(jobs, "elastic", given, TORCH_PROGRAM)
    assert answer.returncode == 0, answer
    assert sum("of 3 has 6.0" in line for line in answer.stdout.splitlines()) == 3, \
        f"not all have the sum: {answer.stdout[-1600:]}{answer.stderr[-800:]}"


@pytest.mark.slow
def test_ddp_has_one_process_on_each_host(jobs):
    answer = run_torch(jobs, "ddp", {"script": "/opt/program.py", "nodes": 3}, TORCH_PROGRAM)
    check_lines(answer, *(f"train-{rank} | rank {rank} of 3 has 6.0" for rank in range(3)))


@pytest.mark.slow
@pytest.mark.parametrize("wanted, code", [(0, 0), (100000, 1)])
def test_nccl_test_prints_a_line_for_each_size(jobs, wanted, code):
    """It fails below a bandwidth that no CPU has."""
    need(DEBIAN)
    given = {"nodes": 2, "gpus": 0, "max_mib": 4, "iterations": 2}
    job = of_template("nccl-test", {**given, "min_busbw": wanted}, network="job",
                      roles={"test": {"resources": SMALL, "run": torch_command(f"/opt/nccl-test/all_reduce.py 1 4 2 {wanted}")}})
    answer = run_job(jobs, job, "--root", DEBIAN)
    assert answer.returncode == code, answer
    sizes = [line.split()[3] for line in answer.stdout.splitlines() if line.startswith("test-0 | [default0]: ") and line.split()[3].isdigit()]
    assert sizes == ["1", "2", "4"] and "2 processes, backend gloo" in answer.stdout, \
        f"sizes {sizes}: {answer.stdout[-1600:]}{answer.stderr[-800:]}"
    assert not wanted or "is below 100000.0 GB/s" in answer.stdout + answer.stderr, f"the failure has no reason: {answer.stdout[-800:]}"


@pytest.mark.slow
def test_open_mpi_starts_two_processes_on_each_host(jobs):
    need(DEBIAN)
    job = of_template("mpi", {"program": "python3 /opt/program.py", "nodes": 3, "processes": 2}, env={"WORD": "passed"},
                      roles={"main": {"resources": SMALL, "files": {"/opt/program.py": {"content": MPI_PROGRAM}}}})
    answer = run_job(jobs, job, "--root", DEBIAN)
    lines = (f"main-0 | Open MPI v4: rank {rank} of 6 on main-{rank // 2} has 21 and passed" for rank in range(6))
    check_lines(answer, *lines)


@pytest.mark.slow
def test_mpirun_takes_the_options_of_horovod(jobs):
    """`mpirun` takes the options of Horovod, and starts a process in every slot. The program is one of MPI."""
    need(DEBIAN)
    files = {"/opt/program.py": {"content": MPI_PROGRAM}, "/opt/bin/python": {"content": '#!/bin/sh\nexec python3 "$@"\n', "mode": "0755"}}
    job = of_template("horovod", {"script": "/opt/program.py", "nodes": 2, "gpus": 0, "arguments": "--tag-output"},
                      env={"WORD": "passed", "PATH": f"/opt/bin:{PATH}"}, distributed={"processes_per_instance": 2},
                      roles={"train": {"resources": SMALL, "files": files}})
    answer = run_job(jobs, job, "--root", DEBIAN)
    assert answer.returncode == 0, answer
    for rank in range(4):
        assert f"<stdout>:Open MPI v4: rank {rank} of 4 on train-{rank // 2} has 10 and passed" in answer.stdout, \
            f"rank {rank} is missing: {answer.stdout[-1600:]}{answer.stderr[-800:]}"


@pytest.mark.slow
def test_the_sshd_of_code_server_takes_the_given_key_alone(jobs):
    """The sshd of Debian takes the key that is given, and no other. `code-server` is a stand-in."""
    need(DEBIAN)
    server = SERVER.replace("self.path == PATH", "self.path == '/healthz'")
    files = {"/opt/bin/code-server": {"content": server, "mode": "0755"}}
    given = {"password": "${{ secrets.password }}", "directory": "/shared", "ssh_key": "${{ params.key }}"}
    key = jobs.directory / "key"
    for path in (key, key.with_suffix(".pub")):
        path.unlink(missing_ok=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    login = ("cp /keys/key /tmp/key; chmod 600 /tmp/key\n"
             "ssh -i /tmp/key -p ${{ ports.code.ssh }} -o StrictHostKeyChecking=no -o BatchMode=yes root@${{ hosts.code[0] }} echo logged in\n"
             "ssh-keygen -q -t ed25519 -N '' -f /tmp/other\n"
             "if ssh -i /tmp/other -p ${{ ports.code.ssh }} -o StrictHostKeyChecking=no -o BatchMode=yes root@${{ hosts.code[0] }} true; then\n"
             "  echo another key is taken\nelse\n  echo another key is refused\nfi\n")
    roles = {"code": {"uses": "std/code-server", "with": given, "image": "host", "user": "0:0", "files": files, "resources": SMALL,
                      "env": {"PATH": f"/opt/bin:{PATH}"}},
             "client": {"needs": {"code": "ready"}, "shell": "sh", "run": login, "completion": {"min_succeeded": 1}}}
    job = {"version": 1, "name": "workbench", "image": "host", "network": "job", "roles": roles, "secrets": {"password": {"env": "TOKEN"}},
           "params": {"key": key.with_suffix(".pub").read_text().strip()}, "data": {"keys": {"source": ".", "mount": "/keys"}}}
    answer = run_job(jobs, job, "--root", DEBIAN, TOKEN="abcde")
    check_lines(answer, "client-0 | logged in", "client-0 | another key is refused")


@pytest.mark.slow
def test_every_part_of_tensorflow_finds_itself(jobs):
    """Every part finds itself in the cluster of its `TF_CONFIG`, and the chief ends the job."""
    need(TENSORFLOW)
    files = {"/opt/program.py": {"content": TENSORFLOW_PROGRAM}, "/opt/bin/python": {"content": f'#!/bin/sh\nexec {TENSORFLOW}/bin/python "$@"\n', "mode": "0755"}}
    parts = {part: {"resources": SMALL, "files": files} for part in ("chief", "worker", "ps")}
    job = of_template("tensorflow-ps", {"script": "/opt/program.py", "workers": 2, "servers": 1, "gpus": 0}, network="job",
                      env={"PATH": f"/opt/bin:{PATH}"}, roles=parts)
    answer = run_job(jobs, job)
    assert answer.returncode == 0, answer
    cluster = {"chief": ["chief-0:2222"], "worker": ["worker-0:2222", "worker-1:2222"], "ps": ["ps-0:2222"]}
    printed = [json.loads(line.partition("cluster ")[2]) for line in answer.stdout.splitlines() if "| cluster " in line]
    assert ["chief", 0, cluster] in printed, f"the chief printed {printed}: {answer.stdout[-1600:]}{answer.stderr[-800:]}"


# Runs tasks on every node of the cluster, and prints their nodes.
RAY_PROGRAM = """\
import socket, time
import ray
ray.init(logging_level="warning")
until = time.monotonic() + 60
while ray.cluster_resources().get("CPU", 0) < 2 and time.monotonic() < until:
    time.sleep(0.2)
@ray.remote(num_cpus=1)
def node(number):
    time.sleep(1)
    return socket.gethostname(), number * number
found = ray.get([node.remote(number) for number in range(4)])
print("nodes", sorted({name for name, _ in found}), "sum", sum(square for _, square in found), flush=True)
"""


@pytest.mark.slow
def test_ray_runs_tasks_on_head_and_worker(jobs):
    """The job succeeds with the script."""
    need(RAY)
    resources = {"cpu": 1, "memory": "3GiB", "shm": "512MiB", "gpu": 0}
    files = {"/opt/program.py": {"content": RAY_PROGRAM}}
    job = of_template("ray", {"script": "/opt/program.py", "workers": 1, "gpus": 0}, network="job", env={"PATH": f"{RAY}/bin:{PATH}"},
                      roles={"head": {"resources": resources, "files": files}, "worker": {"resources": resources}})
    answer = run_job(jobs, job)
    check_lines(answer, "head-0   | nodes ['head-0', 'worker-0'] sum 14")


def torch_script(program):
    """Python 3.11 does not list members of value 0, so Debian's release finds no `Std.NONE`, the default of both options."""
    return f"--redirects 1 --tee 1 {program}"


def torch_command(words):
    return f"torchrun {torch_script(words)}"


def run_torch(jobs, name, given, program, **more):
    need(DEBIAN)
    files = {"/opt/program.py": {"content": program}, "/opt/bin/python": {"content": '#!/bin/sh\nexec python3 "$@"\n', "mode": "0755"}}
    role = {"resources": SMALL, "files": files, "env": {"PATH": f"/opt/bin:{PATH}"}}
    return run_job(jobs, of_template(name, given, network="job", roles={"train": role}, **more), "--root", DEBIAN)


def of_template(name, given, **more):
    """A job of a template on the host's file system."""
    return {"version": 1, "name": name, "uses": f"std/{name}", "with": given, "image": "host", **more}


def run_job(jobs, job, *words, **environment):
    path = jobs.directory / f"{job['name']}.json"
    path.write_text(json.dumps(job))
    return jobs.call("run", *map(str, words), str(path), seconds=60, **environment)
