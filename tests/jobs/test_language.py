"""Tests parts of the language with real tasks: another role's port, a directory of the job, elastic torchrun, a Ray cluster.

torchrun and Ray are stand-ins, which show what they were given and meet in a second: test_frameworks.py and test_templates.py run the real
ones, which take gigabytes and minutes.
"""

import json
import os
import signal
import time
from pathlib import Path

import pytest

from command_line import SERVE, run_roles as run

pytestmark = [pytest.mark.isolated, pytest.mark.duration(20), pytest.mark.accounts("root", slow="range")]


def logs(jobs, name, task):
    return jobs.call("logs", name, task).stdout


@pytest.mark.parametrize("network", ("host", "job"))
def test_a_role_reaches_each_instance_of_another_by_its_port(jobs, network):
    """By the port that it has there, whatever number was free."""
    ask = "python3 -c \"import urllib.request as r; print(r.urlopen('http://$1').read().decode().strip())\""
    name = f"tested-ports-{network}"
    url = "${{ hosts.web[%d] }}:${{ ports.web.http[%d] }}/number"
    roles = {
        "web": {"run": f"cd /tmp; echo answer $JOBC_INDEX >number; {SERVE}", "instances": 2, "resources": {"ports": {"http": "auto"}},
                "ready": {"port": "http", "every": "1s"}},
        "client": {"run": "\n".join(ask.replace("$1", url % (n, n)) for n in (0, 1)), "needs": {"web": "ready"},
                   "completion": {"min_succeeded": 1}},
    }
    run(jobs, name, roles, 0, "succeeded: .*", network=network)
    output = logs(jobs, name, "client-0")
    assert "answer 0" in output and "answer 1" in output


def test_a_role_finds_what_another_wrote(jobs):
    """Also at a later attempt of the job, and nothing is left of it; a second job starts with an empty directory."""
    prepare = "test -e /work/first || { count=$(ls /work | wc -l); echo $count >/work/count; echo 7 >/work/first; exit 1; }; echo again >>/work/first"
    roles = {
        "prepare": {"run": prepare, "retry": {"max": 1, "scope": "job"}},
        "train": {"run": "cat /data/first /data/count; ! (echo x >/data/y) 2>/dev/null", "needs": ["prepare"],
                  "data": {"work": {"mount": "/data", "writable": False}}},
    }
    data = {"work": {"source": "job:", "mount": "/work", "writable": True}}
    for _ in range(2):
        run(jobs, "tested-volume", roles, 0, "succeeded: all 2 tasks succeeded", data=data)
        output = logs(jobs, "tested-volume", "train-0").split()
        assert output[-3:] == ["7", "again", "0"], f"the second role saw {output}"
        left = [path for place in (jobs.home, Path("/run/jobc")) for path in place.rglob("fetched") if any(path.rglob("first"))]
        assert not left


def test_each_instance_has_a_directory_of_its_own(jobs):
    """It is empty and its own; devices are there, and nothing is left of it."""
    look = "ls -A /scratch; touch /scratch/$JOBC_INDEX; sleep 1; ls -A /scratch; test -c /dev/full && test -c /dev/net/tun"
    roles = {"each": {"instances": 2, "run": look, "resources": {"devices": ["/dev/full", "/dev/net"]}}}
    data = {"scratch": {"source": "instance:1MiB", "mount": "/scratch", "writable": True}}
    run(jobs, "tested-scratch", roles, 0, "succeeded: all 2 tasks succeeded", data=data)
    for index in range(2):
        assert logs(jobs, "tested-scratch", f"each-{index}").split() == [str(index)]
    assert not [path for path in jobs.home.rglob("scratch") if path.is_dir() and any(path.iterdir())]


def test_directories_in_memory(jobs):
    """One of each instance, of its size; and one at /dev/shm that the roles share, of which nothing is left."""
    fill = "stat -f -c %T /fast; ! dd if=/dev/zero of=/fast/f bs=64k count=32 2>/dev/null; stat -c %s /fast/f; ls /dev/shm"
    roles = {
        "first": {"instances": 2, "run": "echo $JOBC_INDEX >/dev/shm/from-$JOBC_INDEX"},
        "second": {"needs": ["first"], "run": fill, "user": "1000:1000" if not jobs.account else "0"},
        "third": {"needs": ["first"], "run": "ls -A /dev/shm", "data": []},
    }
    data = {"fast": {"source": "memory:1MiB", "mount": "/fast", "writable": True},
            "shared": {"source": "job:memory", "mount": "/dev/shm", "writable": True}}
    run(jobs, "tested-memory", roles, 0, "succeeded: all 4 tasks succeeded", data=data)
    assert logs(jobs, "tested-memory", "second-0").split() == ["tmpfs", str(1 << 20), "from-0", "from-1"]
    assert logs(jobs, "tested-memory", "third-0") == ""
    assert not [path for path in Path("/dev/shm").rglob("from-*")]


@pytest.mark.parametrize("network", ("host", "job", "none"))
def test_roles_with_one_dev_shm_share_system_v_and_posix_ipc(jobs, network):
    """Also after the task that made it has ended; a role without that /dev/shm sees nothing of it, and nothing is left."""
    name = f"tested-ipc-{network}"
    make = """perl -e '$id = shmget(74, 64, 01666) // die $!; shmwrite($id, "left", 0, 4) or die $!'; touch /dev/mqueue/queue"""
    look = """perl -e '$id = shmget(74, 64, 0) // die "none\n"; shmread($id, $_, 0, 4) or die $!; print "$_\n"' 2>&1 || :; ls /dev/mqueue"""
    roles = {
        "first": {"run": make},
        "second": {"needs": ["first"], "run": look},
        "third": {"needs": ["first"], "run": look, "data": []},
    }
    data = {"shared": {"source": "job:memory", "mount": "/dev/shm", "writable": True}}
    run(jobs, name, roles, 0, "succeeded: all 3 tasks succeeded", data=data, network=network)
    assert [logs(jobs, name, f"{role}-0").split() for role in ("second", "third")] == [["left", "queue"], ["none"]]
    assert "74" not in [line.split()[0] for line in Path("/proc/sysvipc/shm").read_text().splitlines()], "it is the host's"


def test_a_device_that_the_host_lacks_is_named(jobs):
    """So are RDMA devices."""
    for resources, said in (({"devices": ["/dev/not-there"]}, "/dev/not-there"), ({"rdma": 99}, "RDMA devices, and the task requests 99")):
        path = jobs.directory / "lacking.json"
        path.write_text(json.dumps({"version": 1, "name": "lacking", "image": "host", "roles": {"one": {"run": "true", "resources": resources}}}))
        answer = jobs.call("run", *jobs.unenforced, str(path))
        assert answer.returncode != 0 and said in answer.stdout + answer.stderr, answer.stdout + answer.stderr


# Where the stand-ins for programs are: an unprivileged user cannot add files to the host's own directories.
STAND_INS = {"PATH": "/tested:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}

# Finds the other instances in the directory of the job as torchrun does in its store, and continues with those that are left.
TORCHRUN = """\
#!/usr/bin/env python3
import os, pathlib, sys, time
least, most = map(int, os.environ["PET_NNODES"].split(":"))
assert os.environ["PET_RDZV_BACKEND"] == "c10d" and int(os.environ["PET_MAX_RESTARTS"]) == 3, os.environ
assert not {"PET_NODE_RANK", "PET_MASTER_ADDR", "RANK", "WORLD_SIZE", "JOBC_RANK"} & set(os.environ), os.environ
host, port = os.environ["PET_RDZV_ENDPOINT"].split(":")
assert int(port) > 0 and os.environ["PET_RDZV_ID"] == os.environ["JOBC_JOB"]
store = pathlib.Path("/store")
own = store / os.environ["JOBC_INDEX"]
(store / f"started-{own.name}-{time.monotonic_ns()}").touch()
seen = None
while not (store / "done").exists():
    own.write_text(str(time.monotonic()))
    alive = sorted(p.name for p in store.iterdir() if p.name.isdigit() and time.monotonic() - float(p.read_text() or 0) < 1.5)
    if alive != seen:
        print("world", len(alive), "of", least, "to", most, flush=True)
        seen = alive
    time.sleep(0.1)
"""


@pytest.mark.parametrize("name, retry, least", [("tested-elastic", 0, 2), ("tested-rejoin", 1, 2), ("tested-least", 0, 3)])
def test_elastic_instances_continue_without_one_that_is_killed(jobs, name, retry, least):
    """It joins again if it can be retried; below `min` the job fails."""
    (jobs.directory / "torchrun").write_text(TORCHRUN)
    roles = {"train": {"instances": 3, "run": "torchrun train.py", "shell": "bash",
                       "env": STAND_INS, "files": {"/tested/torchrun": {"from": "torchrun", "mode": "0755"}}}}
    distributed = {"framework": "torchrun", "roles": ["train"], "elastic": {"min": least, "max": 4}}
    path = jobs.directory / f"{name}.json"
    path.write_text(json.dumps({"version": 1, "name": name, "image": "host", "roles": roles, "distributed": distributed, "retry": {"max": retry},
                                "data": {"store": {"source": "job:", "mount": "/store", "writable": True}}}))
    answer = jobs.call("run", "--detach", *jobs.unenforced, str(path))
    assert answer.returncode == 0, answer.stderr
    record = jobs.running(name)
    until(lambda: all("world 3 of" in logs(jobs, name, f"train-{index}") for index in range(3)), "three meet")
    victim = next(task for task in record["tasks"] if task["task"] == "train-2")
    os.kill(victim["process"]["pid"], signal.SIGKILL)
    if least == 3:
        record = jobs.until(name, lambda record: record.get("end"))
        assert record["end"]["explanation"] == "failed: train-2: killed by SIGKILL"
        return
    until(lambda: "world 2 of" in logs(jobs, name, "train-0") or retry, "two continue")
    if retry:
        until(lambda: jobs.call("logs", name, "train-2").stdout.count("world 3 of") == 2, "it joins again")
    jobs.call("exec", name, "train-0", "--", "touch", "/store/done")
    record = jobs.until(name, lambda record: record.get("end"))
    assert record["state"] == "succeeded" and [task["attempt"] for task in record["tasks"]] == [1, 1, 1 + retry], record["end"]


# The program `ray` as far as a cluster needs it: the head lists its nodes on request, and a worker runs until the head ends.
RAY = """\
#!/usr/bin/env python3
import json, os, socket, socketserver, sys, threading, time
flags = dict(word.lstrip("-").partition("=")[::2] for word in sys.argv[2:])
assert sys.argv[1] == "start", sys.argv
own = {"cpus": flags["num-cpus"], "gpus": flags.get("num-gpus"), "name": os.environ["JOBC_ROLE"] + "-" + os.environ["JOBC_INDEX"]}
if "head" in flags:
    assert "RAY_ADDRESS" not in os.environ, "the head must not look for another cluster"
    nodes = [own]
    class Node(socketserver.StreamRequestHandler):
        def handle(self):
            line = self.rfile.readline().decode()
            if line.startswith("{"):
                nodes.append(json.loads(line))
                self.rfile.read()
            elif line.strip() == "nodes":
                self.wfile.write(json.dumps(nodes).encode())
    socketserver.ThreadingTCPServer.allow_reuse_address = True
    server = socketserver.ThreadingTCPServer(("", int(flags["port"])), Node)
    server.daemon_threads = True
    if os.fork() == 0:
        os.setsid()
        server.serve_forever()
else:
    assert "block" in flags, sys.argv
    host, port = flags["address"].split(":")
    with socket.create_connection((host, int(port)), 10) as head:
        head.sendall((json.dumps(own) + "\\n").encode())
        print("joined", flags["address"], flush=True)
        head.recv(1)
    # As Ray, which notices the end of its head after seconds; the end of the job is what comes first.
    time.sleep(1)
    sys.exit("the head has ended")
"""

DRIVER = """\
import json, os, socket, time
host, port = os.environ["RAY_ADDRESS"].split(":")
for _ in range(200):
    with socket.create_connection((host, int(port)), 10) as head:
        head.sendall(b"nodes\\n")
        nodes = json.loads(head.makefile().read())
    if len(nodes) == 3: break
    time.sleep(0.1)
print("NODES", json.dumps(sorted(nodes, key=lambda node: node["name"])), flush=True)
"""


@pytest.mark.parametrize("command, code, state", [("python3 /tested/driver.py", 0, "succeeded"), ("python3 /tested/driver.py; exit 3", 1, "failed")], ids=["succeeds", "fails"])
@pytest.mark.parametrize("network", ("host", "job"))
def test_the_head_of_ray_finds_all_nodes(jobs, network, command, code, state):
    """With their resources, and the job ends with its command."""
    for name, text in (("ray", RAY), ("driver.py", DRIVER)):
        (jobs.directory / name).write_text(text)
    files = {"/tested/ray": {"from": "ray", "mode": "0755"}}
    name = f"tested-ray-{network}"
    roles = {
        "worker": {"instances": 2, "env": STAND_INS, "files": files, "resources": {"cpu": 0.5, "memory": "64MiB", "gpu": 0}},
        "head": {"files": {**files, "/tested/driver.py": {"from": "driver.py"}}, "run": command, "shell": "bash", "env": STAND_INS,
                 "resources": {"cpu": 1, "memory": "128MiB"}},
    }
    path = jobs.directory / f"{name}.json"
    path.write_text(json.dumps({"version": 1, "name": name, "image": "host", "network": network, "roles": roles,
                                "distributed": {"framework": "ray", "roles": ["head", "worker"]}}))
    answer = jobs.call("run", *jobs.unenforced, str(path), seconds=60)
    record = jobs.record(name)
    assert answer.returncode == code and record["state"] == state, f"{record.get('end')}: {answer.stderr[-800:]}"
    nodes = [{"cpus": "1", "gpus": None, "name": "head-0"}, *({"cpus": "1", "gpus": "0", "name": f"worker-{n}"} for n in (0, 1))]
    assert f"NODES {json.dumps(nodes)}" in logs(jobs, name, "head-0"), jobs.call("logs", name).stdout
    assert code or {task["state"] for task in record["tasks"] if task["task"] != "head-0"} == {"stopped"}, record["tasks"]


def until(what, about, seconds=20):
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, about
        time.sleep(0.1)
