#!/usr/bin/env python3
"""Tests the networks of jobs: who reaches whom, by which names, what the host sees of it, and what is left.

It runs in its own pid, mount and network namespaces, so that "the host" is one it has set up: with a neighbor's address
(203.0.113.1) with a web server, another server on the loopback address, and a name server.
"""

import contextlib
import http.server
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "runtime"))

import user  # noqa: E402
from faults import Jobs, copy_program, snapshot, still_running, groups_of, kill, processes_with_argument  # noqa: E402
from harness import REPOSITORY, Harness, scratch  # noqa: E402
from leaks import describe_changes, reap  # noqa: E402

SECONDS = 40
NEIGHBOR = "203.0.113.1"

# A task that serves its own name at 8080, requests the names of all others, and prints what it saw.
SERVER = """
import http.server, json, os, socket, threading, time, urllib.request
own = socket.gethostname()
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
        self.wfile.write((own + " " + self.client_address[0]).encode())
    def log_message(self, *words): pass
server = http.server.ThreadingHTTPServer(("", 8080), Page)
threading.Thread(target=server.serve_forever, daemon=True).start()
def ask(name):
    for _ in range(100):
        try: return urllib.request.urlopen(f"http://{name}:8080/", timeout=2).read().decode().split()
        except OSError as error: why = error; time.sleep(0.1)
    return [str(why)]
names = os.environ["OTHERS"].split()
print("ANSWER", json.dumps({"own": own, "address": socket.gethostbyname(own), "file": open("/etc/hostname").read().strip(),
    "asked": {name: ask(name) for name in names}, "full": {name: ask(name + ".network-tested-talk") for name in names},
    "interfaces": sorted(name for _, name in socket.if_nameindex()), "sys": sorted(os.listdir("/sys/class/net"))}), flush=True)
time.sleep(float(os.environ["STAY"]))
"""

# A task that tries to reach the host's network.
CONNECT = """
import json, socket, time
def attempt(address, port):
    began = time.monotonic()
    try: socket.create_connection((address, port), 4).close(); said = "connected"
    except OSError as error: said = str(error)
    return [said, time.monotonic() - began]
def look_up(name):
    try: return socket.gethostbyname(name)
    except OSError as error: return str(error)
lines = open("/etc/resolv.conf").read().split()
gateway = [word for word in lines if word.count(".") == 3]
print("ANSWER", json.dumps({"neighbor": attempt("203.0.113.1", 8000), "name": look_up("names.example"),
    "loopback": [attempt(place.rsplit(".", 1)[0] + ".2", 8001)[0] for place in gateway],
    "resolver": gateway}), flush=True)
"""

# Each attempt prints its namespace, and leaves a connection in TIME_WAIT for a minute.
RECONNECT = """
import json, os, socket, sys
listener = socket.socket(); listener.bind(("", 8080)); listener.listen()
client = socket.create_connection((socket.gethostname(), 8080)); accepted, _ = listener.accept()
accepted.close(); client.close()
print("ANSWER", json.dumps([os.readlink("/proc/self/ns/net"), socket.gethostbyname(socket.gethostname())]), flush=True)
sys.exit(1)
"""


def yaml(name, roles, network="job", **more):
    return json.dumps({"version": 1, "name": name, "image": "host", "network": network, "roles": roles} | more)


def python(program, **more):
    return {"run": ["python3", "-u", "-c", program]} | more


def write(jobs, name, text):
    path = jobs.directory / f"{name}.yaml"
    path.write_text(text)
    return str(path)


def answers(text):
    """The replies that the tasks of a finished run printed, in order."""
    return [json.loads(found) for found in re.findall(r"ANSWER (.*)$", text, re.MULTILINE)]


def finish(run, seconds=SECONDS):
    try:
        return run.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        run.kill()
        return run.communicate()[0] + f"\ntimed out after {seconds} s"


def host_network():
    """The host's network: links, addresses, routes, rules."""
    def show(*words):
        return subprocess.run(["ip", "-o", *words], capture_output=True, text=True, check=True).stdout
    return show("link"), show("addr"), show("route"), show("rule")


def reachability(jobs):
    """Every task reaches every other by both names, at its own address, and the host's network does not change."""
    names = ["left-0", "left-1", "right-0"]
    env = {"OTHERS": " ".join(names), "STAY": "2.5"}
    job = write(jobs, "network-tested-talk", yaml("network-tested-talk", {
        "left": python(SERVER, instances=2, env=env), "right": python(SERVER, env=env)}))
    before = host_network()
    run = jobs.run(job)
    record = jobs.running("network-tested-talk")
    time.sleep(1)
    if host_network() != before:
        yield f"the host's network changed: {host_network()}"
    inside = jobs.call("exec", "network-tested-talk", "left-1", "--", "python3", "-c", "import socket; print(socket.gethostname(), socket.gethostbyname(socket.gethostname()))")
    out = finish(run)
    replies = {one["own"]: one for one in answers(out)}
    if run.returncode or sorted(replies) != sorted(names):
        yield f"exit code {run.returncode}: {out[-2000:]}"
        return
    addresses = {task: one["address"] for task, one in replies.items()}
    if len(set(addresses.values())) != len(names):
        yield f"addresses are not distinct: {addresses}"
    recorded = {task["task"]: task.get("address") for task in record["tasks"]}
    if recorded != addresses:
        yield f"the record says {recorded}, the tasks {addresses}"
    for task, one in replies.items():
        if one["file"] != task or one["interfaces"] != ["eth0", "lo"] or one["sys"] != ["eth0", "lo"]:
            yield f"{task}: {one}"
        for name in names:
            for asked in (one["asked"][name], one["full"][name]):
                # A task that requests its own name also does so from its own address.
                if asked != [name, one["address"]]:
                    yield f"{task} requested {name}: {asked}"
    if inside.stdout.split() != ["left-1", addresses["left-1"]]:
        yield f"`jobc exec` is in another namespace: {inside.stdout}{inside.stderr}"


def directory_of_programs(jobs, *wanted):
    """A `PATH` with only these programs and those that an unprivileged user needs."""
    directory = jobs.directory / ("path-" + "-".join(wanted))
    directory.mkdir(exist_ok=True)
    for program in ("newuidmap", "newgidmap", "setpriv", *wanted):
        link = directory / program
        if not link.exists():
            link.symlink_to(shutil.which(program))
    return str(directory)


def uplink(jobs, *programs):
    """With an uplink program, tasks reach the host's neighbors and name server, but not servers on the host's loopback address."""
    name = "network-tested-out"
    job = write(jobs, name, yaml(name, {"a": python(CONNECT, instances=2)}))
    run = jobs.run(job, PATH=directory_of_programs(jobs, *programs))
    out = finish(run)
    replies = answers(out)
    notes = [note for note in jobs.record(name).get("notes", []) if "uplink" in note]
    if run.returncode or len(replies) != 2:
        yield f"exit code {run.returncode}: {out[-2000:]}"
        return
    for one in replies:
        if programs and (one["neighbor"][0] != "connected" or one["name"] != NEIGHBOR or notes):
            yield f"no uplink: {one} {notes}"
        if programs and (not one["loopback"] or "connected" in one["loopback"]):
            yield f"the host's loopback address is reached: {one}"
        if not programs and (one["neighbor"][0] == "connected" or one["neighbor"][1] > 3 or one["resolver"]):
            yield f"an uplink without a program, or no immediate error: {one}"
    if not programs and not notes:
        yield "the missing uplink is not reported"


def closed_tun(jobs):
    """If /dev/net/tun cannot be opened, the job runs at once without an uplink, and reports why."""
    os.chmod("/dev/net/tun", 0o600)
    try:
        began = time.monotonic()
        run = jobs.run(write(jobs, "network-tested-tun", yaml("network-tested-tun", {"a": {"run": "true"}})))
        out = finish(run)
        notes = jobs.record("network-tested-tun").get("notes", [])
        if run.returncode or time.monotonic() - began > 4:
            yield f"exit code {run.returncode} after {time.monotonic() - began:.1f} s: {out}"
        if not any("/dev/net/tun" in note for note in notes):
            yield f"the reason is not reported: {notes}"
    finally:
        os.chmod("/dev/net/tun", 0o666)


def killed(jobs, *programs):
    """SIGKILL to the supervisor: the process that holds the network and the uplink program end."""
    name = "network-tested-killed"
    run = jobs.run(write(jobs, name, yaml(name, {"a": {"run": "sleep 600", "instances": 2}})), PATH=directory_of_programs(jobs, *programs))
    record = jobs.running(name)
    holders = processes_with_argument("hold-network")
    if len(holders) != 2:
        yield f"not one process for the network and one for the uplink: {holders}"
    kill(record["supervisor"]["pid"])
    still = still_running(holders, run)
    if still:
        yield f"processes {still} are still running"
    finish(run)


def uplink_processes(program):
    """The processes of an uplink program, without the processes that supervise it."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            # pasta has several executables, one per instruction set.
            if Path(f"/proc/{entry}/comm").read_text().startswith({"pasta": "pas", "slirp4netns": "slirp4netns"}[program]):
                found.append(int(entry))
    return found


def replaced(jobs, program):
    """SIGKILL to the uplink program: it is reported, restarted, and tasks reach the network again."""
    name = "network-tested-replaced"
    run = jobs.run(write(jobs, name, yaml(name, {"a": {"run": "sleep 600"}})), PATH=directory_of_programs(jobs, program))
    jobs.running(name)
    before = uplink_processes(program)
    for pid in before:
        kill(pid)
    def changes():
        events = map(json.loads, jobs.call("events", "--format", "json", name).stdout.splitlines())
        return [event["detail"]["uplink"] for event in events if event["event"] == "network-changed"]
    deadline = time.monotonic() + 20
    while changes() != ["lost", "restored"] and time.monotonic() < deadline:
        time.sleep(0.1)
    reach = f"import socket; socket.create_connection(('{NEIGHBOR}', 8000), 5)"
    answer = jobs.call("exec", name, "a-0", "--", "python3", "-c", reach)
    after = uplink_processes(program)
    if not before or not after or set(before) & set(after) or changes() != ["lost", "restored"] or answer.returncode:
        yield f"processes {before}, then {after}: {changes()}: {answer.stderr}"
    jobs.call("kill", name)
    output = finish(run)
    if f"the uplink of the job network is lost: {program} has ended" not in output or f"the uplink of the job network is restored: {program}" not in output:
        yield f"it is not reported: {output}"


def fetch(port, address="127.0.0.1"):
    for _ in range(100):
        with contextlib.suppress(OSError):
            return urllib.request.urlopen(f"http://{address}:{port}/", timeout=2).read().decode().split()[0]
        time.sleep(0.05)
    return None


def publish(jobs):
    """Ports that the job file or the command line publishes are reachable on the host, and no others."""
    name = "network-tested-talk"
    def port(publish):
        return {"ports": {"http": {"port": 8080, "publish": publish}}}
    env = {"OTHERS": "", "STAY": "600"}
    job = write(jobs, name, yaml(name, {
        "host": python(SERVER, instances=2, env=env, resources=port("host")),
        "turns": python(SERVER, instances=2, env=env, resources={"ports": {"http": {"port": 8080, "publish": "none"}}}),
        "each": python(SERVER.replace("8080", "9090"), instances=2, env=env, resources={"ports": {"http": {"port": 9090, "publish": "service"}}}),
    }))
    run = jobs.run(job, "--publish", "7070:turns-1:http", "--publish", f"{NEIGHBOR}:0:turns-0:http")
    try:
        jobs.running(name)
        expected = {(8080, "127.0.0.1"): "host-0", (8081, "127.0.0.1"): "host-1", (8080, NEIGHBOR): "host-0", (7070, "127.0.0.1"): "turns-1"}
        for (number, address), task in expected.items():
            found = fetch(number, address)
            if found != task:
                yield f"{address}:{number} leads to {found}, not to {task}"
        turns = {fetch(9090) for _ in range(4)}
        if turns != {"each-0", "each-1"}:
            yield f"the instances of `each` do not take turns: {turns}"
        notes = "\n".join(jobs.record(name).get("notes", []))
        any_port = re.search(rf"{re.escape(NEIGHBOR)}:(\d+)", notes)
        if not any_port or fetch(any_port[1], NEIGHBOR) != "turns-0":
            yield f"port 0 is not reported or not reachable: {notes}"
        second = jobs.run(write(jobs, "network-tested-second", yaml("network-tested-second", {"a": {"run": "sleep 600", "resources": port("none")}})), "--publish", "7070:a-0:http")
        out = finish(second)
        if second.returncode != 125 or "127.0.0.1:7070 is taken" not in out or "`a-0`" not in out:
            yield f"a taken port: exit code {second.returncode}: {out}"
    finally:
        jobs.call("kill", name)
        finish(run)
    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", 7070), 1).close()
        yield "the port is open after the job's end"


def retried(jobs):
    """Each attempt of a task has a new network namespace, and the task keeps its address."""
    name = "network-tested-again"
    out = finish(jobs.run(write(jobs, name, yaml(name, {"a": python(RECONNECT, retry={"max": 2, "backoff": "0s"})}))))
    replies = answers(out)
    # The kernel may reuse the first inode number for the third.
    namespaces = [namespace for namespace, _ in replies]
    if len(replies) != 3 or namespaces[1] in (namespaces[0], namespaces[2]) or len({address for _, address in replies}) != 1:
        yield f"{replies}: {out[-1500:]}"


def no_network(jobs):
    """With `network: none` a task has only `lo`."""
    name = "network-tested-alone"
    program = "import os, socket; print('ANSWER', os.readlink('/proc/self/ns/net').count('net'), len(socket.if_nameindex()))"
    roles = {"a": python(program)}
    out = finish(jobs.run(write(jobs, name, yaml(name, roles, network="none"))))
    if "ANSWER 1 1" not in out:
        yield f"it has other interfaces: {out[-1500:]}"


def probes(jobs):
    """A task on a job network, or without a network, becomes ready when its port answers."""
    for network in ("job", "none"):
        name = f"network-tested-ready-{network}"
        serve = {"run": "sleep 0.5; exec python3 -m http.server 8080", "resources": {"ports": {"http": 8080}},
                 "ready": {"port": "http", "every": "1s", "timeout": "20s"}, "completion": {"min_failed": "none"}}
        roles = {"a": serve, "b": {"run": "true", "needs": {"a": "ready"}, "completion": {"min_succeeded": 1}}}
        run = jobs.run(write(jobs, name, yaml(name, roles, network=network)))
        out = finish(run)
        if run.returncode:
            yield f"{network}: exit code {run.returncode}: {out[-1500:]}"


def many(jobs):
    """A hundred tasks."""
    name = "network-tested-many"
    run = jobs.run(write(jobs, name, yaml(name, {"a": {"run": "getent hosts a-99 | grep -q a-99.network-tested-many", "instances": 100}})))
    out = finish(run)
    if run.returncode:
        yield f"exit code {run.returncode}: {out[-1500:]}"


def snapshot_of_these_jobs(jobs):
    """What a job may leave behind, with the cgroups of these jobs only: another test may run."""
    return snapshot(jobs) | {"cgroups": sorted(groups_of(jobs, ["/jobc/network-tested-"]))}


def leftovers(jobs, before, seconds=8):
    """The differences, once there are none or after a timeout."""
    deadline = time.monotonic() + seconds
    while True:
        reap()
        after = snapshot_of_these_jobs(jobs)
        differences = [f"{what}: {describe_changes(before[what], after[what])}" for what in before if before[what] != after[what]]
        if not differences or time.monotonic() > deadline:
            return differences
        time.sleep(0.05)


class NameServer(threading.Thread):
    """A name server with one answer."""

    def __init__(self, address):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((address, 53))

    def run(self):
        while True:
            question, sender = self.socket.recvfrom(512)
            end = question.index(b"\0", 12) + 5
            is_address = question[end - 4:end - 2] == b"\0\1"
            answer = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + socket.inet_aton(NEIGHBOR) if is_address else b""
            counts = b"\0\1" + (b"\0\1" if is_address else b"\0\0") + b"\0\0\0\0"
            self.socket.sendto(question[:2] + b"\x81\x80" + counts + question[12:end] + answer, sender)


def set_up_host():
    """Creates interfaces, servers and files of the host."""
    for place, mode in (("/tmp", "1777"), ("/run", "755"), ("/dev/shm", "1777"), ("/dev/net", "755")):
        subprocess.run([REPOSITORY / "tests/fresh", place, mode], check=True)
    Path("/run/lock").mkdir(mode=0o1777)
    os.chmod("/run/lock", 0o1777)
    os.mknod("/dev/net/tun", 0o20666, os.makedev(10, 200))
    os.chmod("/dev/net/tun", 0o666)
    # IPv6 addresses appear later, after duplicate address detection.
    Path("/proc/sys/net/ipv6/conf/all/disable_ipv6").write_text("1")
    for line in ("link set lo up", "link add outside type veth peer name far", "link set far up",
                 f"addr add {NEIGHBOR}/24 dev outside", "link set outside up", "route add default via 203.0.113.254"):
        subprocess.run(["ip", *line.split()], check=True)
    # Replacing the file would be a mount below /etc, where an unprivileged user's tasks could then create nothing.
    found = re.search(r"^nameserver +([0-9.]+)$", Path("/etc/resolv.conf").read_text(), re.MULTILINE)
    server = found[1] if found else "127.0.0.1"
    if not server.startswith("127."):
        subprocess.run(["ip", "addr", "add", f"{server}/32", "dev", "lo"], check=True)
    NameServer(server).start()
    for address, port in ((NEIGHBOR, 8000), ("127.0.0.1", 8001)):
        server = http.server.ThreadingHTTPServer((address, port), http.server.BaseHTTPRequestHandler)
        threading.Thread(target=server.serve_forever, daemon=True).start()


def main():
    harness = Harness("network", __doc__.split("\n", maxsplit=1)[0])
    harness.parser.add_argument("--user", choices=("root", "range", "single"), default="root")
    options = harness.parse()
    if os.geteuid() != 0:
        harness.missing("root")
    for tool in ("unshare", "setpriv", "mount", "ip"):
        harness.tool(tool)
    if os.getpid() != 1:
        unshare = ["unshare", "--pid", "--mount", "--net", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"]
        os.execvp(unshare[0], [*unshare, sys.executable, __file__, *sys.argv[1:]])
    account = {"root": None, "range": user.with_range, "single": user.without_range}[options.user]
    account = account() if account else None
    set_up_host()
    with scratch() as directory:
        jobs = Jobs(copy_program(directory), directory, account)
        cases = [("tasks reach each other", lambda: reachability(jobs))]
        for programs in (("pasta",), ("slirp4netns",), ()):
            if all(shutil.which(program) for program in programs):
                cases.append((f"uplink by {' '.join(programs) or 'no program'}", lambda programs=programs: uplink(jobs, *programs)))
            else:
                harness.lacks(f"uplink by {programs[0]}", programs[0])
        for program in filter(shutil.which, ("pasta", "slirp4netns")):
            cases.append((f"the supervisor is killed, with {program}", lambda program=program: killed(jobs, program)))
        for program in filter(shutil.which, ("pasta", "slirp4netns")):
            cases.append((f"{program} is restarted", lambda program=program: replaced(jobs, program)))
        if account:
            cases.append(("a closed /dev/net/tun", lambda: closed_tun(jobs)))
        cases += [
            ("ports are published", lambda: publish(jobs)),
            ("a task is retried", lambda: retried(jobs)),
            ("no network", lambda: no_network(jobs)),
            ("ports are probed", lambda: probes(jobs)),
            ("a hundred tasks", lambda: many(jobs)),
        ]
        jobs.run(write(jobs, "network-tested-warm", yaml("network-tested-warm", {"a": {"run": "true"}}))).communicate(timeout=SECONDS)
        jobs.call("rm", "--force", "network-tested-warm")
        before = snapshot_of_these_jobs(jobs)
        for name, run_case in cases:
            if harness.wants(name):
                try:
                    problems = list(run_case())
                except (TimeoutError, subprocess.TimeoutExpired, KeyError) as timeout:
                    problems = [f"hangs: {timeout!r}"]
                for path in sorted(directory.glob("network-tested-*.yaml")):
                    jobs.call("kill", path.stem)
                    jobs.call("rm", "--force", path.stem)
                    path.unlink()
                harness.check(name, problems[:10] + leftovers(jobs, before))
    harness.end()


if __name__ == "__main__":
    main()
