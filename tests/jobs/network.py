#!/usr/bin/env python3
"""Tests the networks of jobs: who reaches whom, by which names, what the host sees of it, and what is left.

It runs in a pid, mount and network namespace of its own, so that "the machine" is one it has made: with a neighbour's
address (203.0.113.1) that a web server listens at, another server on the loopback address, and a name server.
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
from faults import Jobs, copied, counted, gone, groups_of, kill, named  # noqa: E402
from harness import REPOSITORY, Harness, scratch  # noqa: E402
from leaks import listed, reap  # noqa: E402

SECONDS = 40
NEIGHBOUR = "203.0.113.1"

# What a task runs: it serves its own name at 8080, asks all others for theirs, and tells what it saw.
TALK = """
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

# What it runs to look for a way out.
OUT = """
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
print("ANSWER", json.dumps({"neighbour": attempt("203.0.113.1", 8000), "name": look_up("names.example"),
    "loopback": [attempt(place.rsplit(".", 1)[0] + ".2", 8001)[0] for place in gateway],
    "resolver": gateway}), flush=True)
"""

# Each attempt tells its namespace and leaves a connection that the kernel remembers for a minute.
AGAIN = """
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
    """What the tasks of a finished run said, in order."""
    return [json.loads(found) for found in re.findall(r"ANSWER (.*)$", text, re.MULTILINE)]


def ended(run, seconds=SECONDS):
    try:
        return run.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        run.kill()
        return run.communicate()[0] + f"\nno end within {seconds} s"


def machine():
    """What the machine's own network shows."""
    def show(*words):
        return subprocess.run(["ip", "-o", *words], capture_output=True, text=True, check=True).stdout
    return show("link"), show("addr"), show("route"), show("rule")


def talk(jobs):
    """Every task reaches every other by both of its names, at an address of its own, and none is seen outside."""
    names = ["left-0", "left-1", "right-0"]
    env = {"OTHERS": " ".join(names), "STAY": "2.5"}
    job = write(jobs, "network-tested-talk", yaml("network-tested-talk", {
        "left": python(TALK, instances=2, env=env), "right": python(TALK, env=env)}))
    before = machine()
    run = jobs.run(job)
    record = jobs.running("network-tested-talk")
    time.sleep(1)
    if machine() != before:
        yield f"the machine's own network shows it: {machine()}"
    inside = jobs.call("exec", "network-tested-talk", "left-1", "--", "python3", "-c", "import socket; print(socket.gethostname(), socket.gethostbyname(socket.gethostname()))")
    out = ended(run)
    said = {one["own"]: one for one in answers(out)}
    if run.returncode or sorted(said) != sorted(names):
        yield f"exit code {run.returncode}: {out[-2000:]}"
        return
    addresses = {own: one["address"] for own, one in said.items()}
    if len(set(addresses.values())) != len(names):
        yield f"addresses are not distinct: {addresses}"
    recorded = {task["task"]: task.get("address") for task in record["tasks"]}
    if recorded != addresses:
        yield f"the record says {recorded}, the tasks {addresses}"
    for own, one in said.items():
        if one["file"] != own or one["interfaces"] != ["eth0", "lo"] or one["sys"] != ["eth0", "lo"]:
            yield f"{own}: {one}"
        for name in names:
            for asked in (one["asked"][name], one["full"][name]):
                # Who asks itself does so from its own address too.
                if asked != [name, one["address"]]:
                    yield f"{own} asked {name}: {asked}"
    if inside.stdout.split() != ["left-1", addresses["left-1"]]:
        yield f"`jobc exec` is elsewhere: {inside.stdout}{inside.stderr}"


def directory_of_programs(jobs, *wanted):
    """A `PATH` with what a user needs and these programs alone."""
    directory = jobs.directory / ("path-" + "-".join(wanted))
    directory.mkdir(exist_ok=True)
    for program in ("newuidmap", "newgidmap", "setpriv", *wanted):
        link = directory / program
        if not link.exists():
            link.symlink_to(shutil.which(program))
    return str(directory)


def way_out(jobs, *programs):
    """With a program for it tasks reach the machine's neighbours and names, and not what listens on the machine alone."""
    name = "network-tested-out"
    job = write(jobs, name, yaml(name, {"a": python(OUT, instances=2)}))
    run = jobs.run(job, PATH=directory_of_programs(jobs, *programs))
    out = ended(run)
    said = answers(out)
    notes = [note for note in jobs.record(name).get("notes", []) if "uplink" in note]
    if run.returncode or len(said) != 2:
        yield f"exit code {run.returncode}: {out[-2000:]}"
        return
    for one in said:
        if programs and (one["neighbour"][0] != "connected" or one["name"] != NEIGHBOUR or notes):
            yield f"no way out: {one} {notes}"
        if programs and (not one["loopback"] or "connected" in one["loopback"]):
            yield f"the machine's loopback address is reached: {one}"
        if not programs and (one["neighbour"][0] == "connected" or one["neighbour"][1] > 3 or one["resolver"]):
            yield f"a way out without a program, or silence: {one}"
    if not programs and not notes:
        yield "nobody says that there is no way out"


def closed_tun(jobs):
    """Where /dev/net/tun may not be opened the job runs at once without a way out, and says why."""
    os.chmod("/dev/net/tun", 0o600)
    try:
        began = time.monotonic()
        run = jobs.run(write(jobs, "network-tested-tun", yaml("network-tested-tun", {"a": {"run": "true"}})))
        out = ended(run)
        notes = jobs.record("network-tested-tun").get("notes", [])
        if run.returncode or time.monotonic() - began > 4:
            yield f"exit code {run.returncode} after {time.monotonic() - began:.1f} s: {out}"
        if not any("/dev/net/tun" in note for note in notes):
            yield f"it does not say why: {notes}"
    finally:
        os.chmod("/dev/net/tun", 0o666)


def killed(jobs, *programs):
    """SIGKILL to the supervisor: the process that holds the network ends, and the program of the way out with it."""
    name = "network-tested-killed"
    run = jobs.run(write(jobs, name, yaml(name, {"a": {"run": "sleep 600", "instances": 2}})), PATH=directory_of_programs(jobs, *programs))
    record = jobs.running(name)
    holders = named("hold-network")
    if len(holders) != 2:
        yield f"not one process for the network and one for the way out: {holders}"
    kill(record["supervisor"]["pid"])
    still = gone(holders, run)
    if still:
        yield f"processes {still} live on"
    ended(run)


def carriers(program):
    """The processes of a program that is a way out, without those that keep it."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            # pasta's file is one of several for several processors.
            if Path(f"/proc/{entry}/comm").read_text().startswith({"pasta": "pas", "slirp4netns": "slirp4netns"}[program]):
                found.append(int(entry))
    return found


def replaced(jobs, program):
    """SIGKILL to the way out: it is said, another is started, and what tasks send leaves again."""
    name = "network-tested-replaced"
    run = jobs.run(write(jobs, name, yaml(name, {"a": {"run": "sleep 600"}})), PATH=directory_of_programs(jobs, program))
    jobs.running(name)
    before = carriers(program)
    for pid in before:
        kill(pid)
    def changes():
        events = map(json.loads, jobs.call("events", "--format", "json", name).stdout.splitlines())
        return [event["detail"]["way_out"] for event in events if event["event"] == "network-changed"]
    deadline = time.monotonic() + 20
    while changes() != ["lost", "restored"] and time.monotonic() < deadline:
        time.sleep(0.1)
    reach = f"import socket; socket.create_connection(('{NEIGHBOUR}', 8000), 5)"
    answer = jobs.call("exec", name, "a-0", "--", "python3", "-c", reach)
    after = carriers(program)
    if not before or not after or set(before) & set(after) or changes() != ["lost", "restored"] or answer.returncode:
        yield f"processes {before}, then {after}: {changes()}: {answer.stderr}"
    jobs.call("kill", name)
    told = ended(run)
    if f"the uplink of the job network is lost: {program} has ended" not in told or f"the uplink of the job network is restored: {program}" not in told:
        yield f"it is not told: {told}"


def page(port, address="127.0.0.1"):
    for _ in range(100):
        with contextlib.suppress(OSError):
            return urllib.request.urlopen(f"http://{address}:{port}/", timeout=2).read().decode().split()[0]
        time.sleep(0.05)
    return None


def publish(jobs):
    """Ports that the job file or the command line publishes are reached on the machine, and no others."""
    name = "network-tested-talk"
    def port(publish):
        return {"ports": {"http": {"port": 8080, "publish": publish}}}
    env = {"OTHERS": "", "STAY": "600"}
    job = write(jobs, name, yaml(name, {
        "host": python(TALK, instances=2, env=env, resources=port("host")),
        "turns": python(TALK, instances=2, env=env, resources={"ports": {"http": {"port": 8080, "publish": "none"}}}),
        "each": python(TALK.replace("8080", "9090"), instances=2, env=env, resources={"ports": {"http": {"port": 9090, "publish": "service"}}}),
    }))
    run = jobs.run(job, "--publish", "7070:turns-1:http", "--publish", f"{NEIGHBOUR}:0:turns-0:http")
    try:
        jobs.running(name)
        expected = {(8080, "127.0.0.1"): "host-0", (8081, "127.0.0.1"): "host-1", (8080, NEIGHBOUR): "host-0", (7070, "127.0.0.1"): "turns-1"}
        for (number, address), task in expected.items():
            found = page(number, address)
            if found != task:
                yield f"{address}:{number} leads to {found}, not to {task}"
        turns = {page(9090) for _ in range(4)}
        if turns != {"each-0", "each-1"}:
            yield f"the instances of `each` do not take turns: {turns}"
        notes = "\n".join(jobs.record(name).get("notes", []))
        any_port = re.search(rf"{re.escape(NEIGHBOUR)}:(\d+)", notes)
        if not any_port or page(any_port[1], NEIGHBOUR) != "turns-0":
            yield f"port 0 is not told or leads nowhere: {notes}"
        second = jobs.run(write(jobs, "network-tested-second", yaml("network-tested-second", {"a": {"run": "sleep 600", "resources": port("none")}})), "--publish", "7070:a-0:http")
        out = ended(second)
        if second.returncode != 125 or "127.0.0.1:7070 is taken" not in out or "`a-0`" not in out:
            yield f"a taken port: exit code {second.returncode}: {out}"
    finally:
        jobs.call("kill", name)
        ended(run)
    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", 7070), 1).close()
        yield "the port is open after the job's end"


def again(jobs):
    """Each attempt of a task has a network namespace that none had before, and the task keeps its address."""
    name = "network-tested-again"
    out = ended(jobs.run(write(jobs, name, yaml(name, {"a": python(AGAIN, retry={"max": 2, "backoff": "0s"})}))))
    said = answers(out)
    # The kernel may give the first one's number to the third.
    namespaces = [namespace for namespace, _ in said]
    if len(said) != 3 or namespaces[1] in (namespaces[0], namespaces[2]) or len({address for _, address in said}) != 1:
        yield f"{said}: {out[-1500:]}"


def alone(jobs):
    """With `network: none` a task has `lo` and nobody."""
    name = "network-tested-alone"
    program = "import os, socket; print('ANSWER', os.readlink('/proc/self/ns/net').count('net'), len(socket.if_nameindex()))"
    roles = {"a": python(program)}
    out = ended(jobs.run(write(jobs, name, yaml(name, roles, network="none"))))
    if "ANSWER 1 1" not in out:
        yield f"not alone: {out[-1500:]}"


def probes(jobs):
    """A task on a network of its own is seen ready when its port answers, and with `none` too."""
    for network in ("job", "none"):
        name = f"network-tested-ready-{network}"
        serve = {"run": "sleep 0.5; exec python3 -m http.server 8080", "resources": {"ports": {"http": 8080}},
                 "ready": {"port": "http", "every": "1s", "timeout": "20s"}, "completion": {"min_failed": "none"}}
        roles = {"a": serve, "b": {"run": "true", "needs": {"a": "ready"}, "completion": {"min_succeeded": 1}}}
        run = jobs.run(write(jobs, name, yaml(name, roles, network=network)))
        out = ended(run)
        if run.returncode:
            yield f"{network}: exit code {run.returncode}: {out[-1500:]}"


def many(jobs):
    """A hundred tasks."""
    name = "network-tested-many"
    run = jobs.run(write(jobs, name, yaml(name, {"a": {"run": "getent hosts a-99 | grep -q a-99.network-tested-many", "instances": 100}})))
    out = ended(run)
    if run.returncode:
        yield f"exit code {run.returncode}: {out[-1500:]}"


def there(jobs):
    """What a job may leave behind, with the cgroups of these jobs only: another test may run."""
    return counted(jobs) | {"cgroups": sorted(groups_of(jobs, ["/jobc/network-tested-"]))}


def left(jobs, before, seconds=8):
    """The differences, once there are none or the time is up."""
    deadline = time.monotonic() + seconds
    while True:
        reap()
        after = there(jobs)
        differences = [f"{what}: {listed(before[what], after[what])}" for what in before if before[what] != after[what]]
        if not differences or time.monotonic() > deadline:
            return differences
        time.sleep(0.05)


class Names(threading.Thread):
    """A name server that has one answer."""

    def __init__(self, address):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((address, 53))

    def run(self):
        while True:
            question, sender = self.socket.recvfrom(512)
            end = question.index(b"\0", 12) + 5
            is_address = question[end - 4:end - 2] == b"\0\1"
            answer = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + socket.inet_aton(NEIGHBOUR) if is_address else b""
            counts = b"\0\1" + (b"\0\1" if is_address else b"\0\0") + b"\0\0\0\0"
            self.socket.sendto(question[:2] + b"\x81\x80" + counts + question[12:end] + answer, sender)


def make_machine():
    """Interfaces, servers and files of the host."""
    for place, mode in (("/tmp", "1777"), ("/run", "755"), ("/dev/shm", "1777"), ("/dev/net", "755")):
        subprocess.run([REPOSITORY / "tests/fresh", place, mode], check=True)
    Path("/run/lock").mkdir(mode=0o1777)
    os.chmod("/run/lock", 0o1777)
    os.mknod("/dev/net/tun", 0o20666, os.makedev(10, 200))
    os.chmod("/dev/net/tun", 0o666)
    # Addresses that are first tried out would seem to come and go.
    Path("/proc/sys/net/ipv6/conf/all/disable_ipv6").write_text("1")
    for line in ("link set lo up", "link add outside type veth peer name far", "link set far up",
                 f"addr add {NEIGHBOUR}/24 dev outside", "link set outside up", "route add default via 203.0.113.254"):
        subprocess.run(["ip", *line.split()], check=True)
    # Another file at its place would be a mount below /etc, where an unprivileged user's tasks could then make nothing.
    found = re.search(r"^nameserver +([0-9.]+)$", Path("/etc/resolv.conf").read_text(), re.MULTILINE)
    server = found[1] if found else "127.0.0.1"
    if not server.startswith("127."):
        subprocess.run(["ip", "addr", "add", f"{server}/32", "dev", "lo"], check=True)
    Names(server).start()
    for address, port in ((NEIGHBOUR, 8000), ("127.0.0.1", 8001)):
        server = http.server.ThreadingHTTPServer((address, port), http.server.BaseHTTPRequestHandler)
        threading.Thread(target=server.serve_forever, daemon=True).start()


def main():
    harness = Harness("network", __doc__.split("\n", maxsplit=1)[0])
    harness.parser.add_argument("--user", choices=("root", "range", "single"), default="root")
    options = harness.parse()
    if os.geteuid() != 0:
        harness.skip("root creates the namespaces that it runs in")
    if os.getpid() != 1:
        own = ["unshare", "--pid", "--mount", "--net", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"]
        os.execvp(own[0], [*own, sys.executable, __file__, *sys.argv[1:]])
    account = {"root": None, "range": user.with_range, "single": user.without_range}[options.user]
    account = account() if account else None
    make_machine()
    with scratch() as directory:
        jobs = Jobs(copied(directory), directory, account)
        cases = [("tasks talk", lambda: talk(jobs))]
        for programs in (("pasta",), ("slirp4netns",), ()):
            if all(shutil.which(program) for program in programs):
                cases.append((f"a way out by {' '.join(programs) or 'nothing'}", lambda programs=programs: way_out(jobs, *programs)))
            else:
                harness.note(f"`{programs[0]}` is not installed")
        for program in filter(shutil.which, ("pasta", "slirp4netns")):
            cases.append((f"the supervisor is killed beside {program}", lambda program=program: killed(jobs, program)))
        for program in filter(shutil.which, ("pasta", "slirp4netns")):
            cases.append((f"{program} is replaced", lambda program=program: replaced(jobs, program)))
        if account:
            cases.append(("a closed /dev/net/tun", lambda: closed_tun(jobs)))
        cases += [
            ("ports are published", lambda: publish(jobs)),
            ("a task is tried again", lambda: again(jobs)),
            ("no network", lambda: alone(jobs)),
            ("ports are probed", lambda: probes(jobs)),
            ("a hundred tasks", lambda: many(jobs)),
        ]
        jobs.run(write(jobs, "network-tested-warm", yaml("network-tested-warm", {"a": {"run": "true"}}))).communicate(timeout=SECONDS)
        jobs.call("rm", "--force", "network-tested-warm")
        before = there(jobs)
        for name, attempt in cases:
            if harness.wants(name):
                try:
                    problems = list(attempt())
                except (TimeoutError, subprocess.TimeoutExpired, KeyError) as late:
                    problems = [f"hangs: {late!r}"]
                for path in sorted(directory.glob("network-tested-*.yaml")):
                    jobs.call("kill", path.stem)
                    jobs.call("rm", "--force", path.stem)
                    path.unlink()
                harness.check(name, problems[:10] + left(jobs, before))
    harness.end()


if __name__ == "__main__":
    main()
