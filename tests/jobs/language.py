#!/usr/bin/env python3
"""Tests parts of the language with real tasks: another role's port, a directory of the job, elastic torchrun, a Ray cluster.

`--user range` and `--user single` run as an unprivileged user.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "runtime"))

from isolation import jobs_of, problems  # noqa: E402
from lifecycle import SERVE, run  # noqa: E402
from harness import Harness  # noqa: E402


def main():
    harness = Harness("language", __doc__)
    with jobs_of(harness) as jobs:
        for case in (ports, job_volume, elastic, ray):
            if harness.wants(case.__name__):
                harness.check(case.__name__, problems(case, jobs))
    harness.end()


def logs(jobs, name, task):
    return jobs.call("logs", name, task).stdout


def ports(jobs):
    """A role reaches each instance of another by the port that it has there, whatever number was free."""
    ask = "python3 -c \"import urllib.request as r; print(r.urlopen('http://$1').read().decode().strip())\""
    for network in ("host", "job"):
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
        if "answer 0" not in output or "answer 1" not in output:
            yield f"{network}: {output}"


def job_volume(jobs):
    """A role finds what another wrote, also at a later attempt of the job, and nothing is left of it; a second job starts with an empty one."""
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
        if output[-3:] != ["7", "again", "0"]:
            yield f"the second role saw {output}"
        left = [path for place in (jobs.home, Path("/run/jobc")) for path in place.rglob("fetched") if any(path.rglob("first"))]
        yield from (f"{path} is left" for path in left)


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


def elastic(jobs):
    """One instance is killed: the others continue without it, and it joins again if it can be retried; below `min` the job fails."""
    program = jobs.directory / "torchrun"
    program.write_text(TORCHRUN)
    roles = {"train": {"instances": 3, "run": "torchrun train.py", "shell": "bash",
                       "env": STAND_INS, "files": {"/tested/torchrun": {"from": "torchrun", "mode": "0755"}}}}
    more = {"data": {"store": {"source": "job:", "mount": "/store", "writable": True}}}
    for name, retry, least in (("tested-elastic", 0, 2), ("tested-rejoin", 1, 2), ("tested-least", 0, 3)):
        distributed = {"framework": "torchrun", "roles": ["train"], "elastic": {"min": least, "max": 4}}
        path = jobs.directory / f"{name}.json"
        path.write_text(json.dumps({"version": 1, "name": name, "image": "host", "roles": roles, "distributed": distributed,
                                    "retry": {"max": retry}, **more}))
        words = ["--allow-unenforced"] if jobs.account else []
        answer = jobs.call("run", "--detach", *words, str(path))
        assert answer.returncode == 0, answer.stderr
        record = jobs.running(name)
        until(lambda: all("world 3 of" in logs(jobs, name, f"train-{index}") for index in range(3)), f"{name}: three meet")
        victim = next(task for task in record["tasks"] if task["task"] == "train-2")
        os.kill(victim["process"]["pid"], signal.SIGKILL)
        if least == 3:
            record = jobs.until(name, lambda record: record.get("end"))
            if record["end"]["explanation"] != "failed: train-2: killed by SIGKILL":
                yield f"{name}: {record['end']}"
            continue
        until(lambda: "world 2 of" in logs(jobs, name, "train-0") or retry, f"{name}: two continue")
        if retry:
            until(lambda: jobs.call("logs", name, "train-2").stdout.count("world 3 of") == 2, f"{name}: it joins again")
        jobs.call("exec", name, "train-0", "--", "touch", "/store/done")
        record = jobs.until(name, lambda record: record.get("end"))
        states = [(task["task"], task["state"], task["attempt"]) for task in record["tasks"]]
        if record["state"] != "succeeded" or [attempt for *_, attempt in states] != [1, 1, 1 + retry]:
            yield f"{name}: {record['end']} {states}"


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


def ray(jobs):
    """The head's command finds all nodes with their resources, and the job ends with it; so does a head that fails."""
    for name, text in (("ray", RAY), ("driver.py", DRIVER)):
        (jobs.directory / name).write_text(text)
    files = {"/tested/ray": {"from": "ray", "mode": "0755"}}
    distributed = {"framework": "ray", "roles": ["head", "worker"]}
    for network in ("host", "job"):
        name = f"tested-ray-{network}"
        roles = {
            "worker": {"instances": 2, "env": STAND_INS, "files": files, "resources": {"cpu": 0.5, "memory": "64MiB", "gpu": 0}},
            "head": {"files": {**files, "/tested/driver.py": {"from": "driver.py"}}, "run": "", "shell": "bash", "env": STAND_INS,
                     "resources": {"cpu": 1, "memory": "128MiB"}},
        }
        path = jobs.directory / f"{name}.json"
        job = {"version": 1, "name": name, "image": "host", "network": network, "roles": roles, "distributed": distributed}
        words = ["--allow-unenforced"] if jobs.account else []
        for command, code, state in (("python3 /tested/driver.py", 0, "succeeded"), ("python3 /tested/driver.py; exit 3", 1, "failed")):
            roles["head"]["run"] = command
            path.write_text(json.dumps(job))
            answer = jobs.call("run", *words, str(path), seconds=60)
            record = jobs.record(name)
            if answer.returncode != code or record["state"] != state:
                yield f"{network}: exit {answer.returncode}, {record.get('end')}: {answer.stderr[-800:]}"
            nodes = [{"cpus": "1", "gpus": None, "name": "head-0"}, *({"cpus": "1", "gpus": "0", "name": f"worker-{n}"} for n in (0, 1))]
            if f"NODES {json.dumps(nodes)}" not in logs(jobs, name, "head-0"):
                yield f"{network}, {state}: {jobs.call('logs', name).stdout} {answer.stdout[-800:]}"
            if code == 0 and {task["state"] for task in record["tasks"] if task["task"] != "head-0"} != {"stopped"}:
                yield f"{network}: {record['tasks']}"


def until(what, about, seconds=20):
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, about
        time.sleep(0.1)


if __name__ == "__main__":
    main()
