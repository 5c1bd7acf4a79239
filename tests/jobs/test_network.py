"""Tests the networks of jobs: who reaches whom, by which names, what the host sees of it, and what is left.

"The host" is one that it has set up in its own namespaces, since a test must not need the network of the real one: with a neighbor's
address (203.0.113.1) with a web server, another server on the loopback address, and a name server.
"""

import contextlib
import http.server
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time
import urllib.request
from pathlib import Path

import needs
import pytest

from harness import REPOSITORY
from leftovers import kill, leftovers, processes_with_argument, snapshot, still_running

pytestmark = [pytest.mark.isolated, pytest.mark.duration(22), pytest.mark.accounts("root", slow=("range", "single"))]
uplinks = pytest.mark.parametrize("program", ["pasta", "slirp4netns"])
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
    subprocess.run([REPOSITORY / "tests/fresh", "/dev/net", "755"], check=True)
    os.mknod("/dev/net/tun", 0o20666, os.makedev(10, 200))
    os.chmod("/dev/net/tun", 0o666)
    # IPv6 addresses appear later, after duplicate address detection.
    Path("/proc/sys/net/ipv6/conf/all/disable_ipv6").write_text("1")
    for line in ("link add outside type veth peer name far", "link set far up",
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


@pytest.fixture(scope="module")
def before(all_jobs):
    """What was there after a first run, which creates what is left on purpose."""
    set_up_host()
    all_jobs.run(write(all_jobs, "network-tested-warm", yaml("network-tested-warm", {"a": {"run": "true"}}))).communicate(timeout=SECONDS)
    all_jobs.call("rm", "--force", "network-tested-warm")
    return snapshot(all_jobs, "network-tested-")


@pytest.fixture
def jobs(all_jobs, before):
    """Jobs whose tests must leave nothing."""
    yield all_jobs
    for path in sorted(all_jobs.directory.glob("network-tested-*.yaml")):
        all_jobs.call("kill", path.stem)
        all_jobs.call("rm", "--force", path.stem)
        path.unlink()
    assert not (left := leftovers(all_jobs, "network-tested-", before)), "\n".join(left)


def test_tasks_reach_each_other_by_both_names(jobs):
    """At its own address, and the host's network does not change."""
    names = ["left-0", "left-1", "right-0"]
    env = {"OTHERS": " ".join(names), "STAY": "2.5"}
    job = write(jobs, "network-tested-talk", yaml("network-tested-talk", {
        "left": python(SERVER, instances=2, env=env), "right": python(SERVER, env=env)}))
    before = host_network()
    run = jobs.run(job)
    record = jobs.running("network-tested-talk")
    time.sleep(1)
    assert host_network() == before, f"the host's network changed: {host_network()}"
    inside = jobs.call("exec", "network-tested-talk", "left-1", "--", "python3", "-c", "import socket; print(socket.gethostname(), socket.gethostbyname(socket.gethostname()))")
    out = finish(run)
    replies = {one["own"]: one for one in answers(out)}
    assert run.returncode == 0 and sorted(replies) == sorted(names), f"exit code {run.returncode}: {out[-2000:]}"
    addresses = {task: one["address"] for task, one in replies.items()}
    assert len(set(addresses.values())) == len(names), f"addresses are not distinct: {addresses}"
    recorded = {task["task"]: task.get("address") for task in record["tasks"]}
    assert recorded == addresses, f"the record says {recorded}, the tasks {addresses}"
    for task, one in replies.items():
        assert one["file"] == task and one["interfaces"] == ["eth0", "lo"] and one["sys"] == ["eth0", "lo"], f"{task}: {one}"
        for name in names:
            for asked in (one["asked"][name], one["full"][name]):
                # A task that requests its own name also does so from its own address.
                assert asked == [name, one["address"]], f"{task} requested {name}: {asked}"
    assert inside.stdout.split() == ["left-1", addresses["left-1"]], f"`jobc exec` is in another namespace: {inside.stdout}{inside.stderr}"


def directory_of_programs(jobs, *wanted):
    """A `PATH` with only these programs and those that an unprivileged user needs."""
    directory = jobs.directory / ("path-" + "-".join(wanted))
    directory.mkdir(exist_ok=True)
    for program in ("newuidmap", "newgidmap", "setpriv", *wanted):
        link = directory / program
        if not link.exists():
            link.symlink_to(shutil.which(program))
    return str(directory)


def connect(jobs, *programs):
    """What two tasks reach on a host with these programs, and the notes about the uplink."""
    name = "network-tested-out"
    run = jobs.run(write(jobs, name, yaml(name, {"a": python(CONNECT, instances=2)})), PATH=directory_of_programs(jobs, *programs))
    out = finish(run)
    replies = answers(out)
    assert run.returncode == 0 and len(replies) == 2, f"exit code {run.returncode}: {out[-2000:]}"
    return replies, [note for note in jobs.record(name).get("notes", []) if "uplink" in note]


@uplinks
def test_tasks_reach_neighbors_but_not_the_loopback_of_the_host(jobs, program):
    """With an uplink program, tasks reach the host's neighbors and name server, but not servers on the host's loopback address."""
    needs.tool(program)
    replies, notes = connect(jobs, program)
    for one in replies:
        assert one["neighbor"][0] == "connected" and one["name"] == NEIGHBOR and not notes, f"no uplink: {one} {notes}"
        assert one["loopback"] and "connected" not in one["loopback"], f"the host's loopback address is reached: {one}"


# A task that looks up the names of the job file, and tries to reach the host by one of them.
NAMES = CONNECT.split("lines =")[0] + """
import os
print("ANSWER", json.dumps({"db": look_up("db.lab"), "host": look_up("host.lab"), "reached": attempt("host.lab", 8001)[0],
    "resolver": [line for line in open("/etc/resolv.conf").read().splitlines() if not line.startswith("#")]}), flush=True)
"""
EXTRA = {"extra_hosts": {"db.lab": "192.0.2.7", "host.lab": "host-gateway"},
         "dns": {"servers": ["192.0.2.53"], "search": ["corp.example"], "options": ["ndots:2"]}}


@uplinks
def test_a_host_gateway_leads_to_the_loopback_of_the_host(jobs, program):
    needs.tool(program)
    name = f"network-tested-gateway-{program[:5]}"
    run = jobs.run(write(jobs, name, yaml(name, {"a": python(NAMES)}, **EXTRA)), PATH=directory_of_programs(jobs, program))
    out = finish(run)
    replies = answers(out)
    assert run.returncode == 0 and len(replies) == 1, f"exit code {run.returncode}: {out[-2000:]}"
    assert replies[0]["db"] == "192.0.2.7" and replies[0]["reached"] == "connected", replies
    assert replies[0]["resolver"] == ["search corp.example", "options ndots:2", "nameserver 192.0.2.53"]


@pytest.mark.parametrize("network", ("host", "none"))
def test_names_of_the_job_file_without_a_network_of_its_own(jobs, network):
    name = f"network-tested-names-{network}"
    hosts = {"db.lab": "192.0.2.7"} | ({"host.lab": "host-gateway"} if network == "host" else {})
    out = finish(jobs.run(write(jobs, name, yaml(name, {"a": python(NAMES)}, network=network, **EXTRA | {"extra_hosts": hosts}))))
    replies = answers(out)
    assert len(replies) == 1 and replies[0]["db"] == "192.0.2.7", out[-2000:]
    assert replies[0]["resolver"] == ["search corp.example", "options ndots:2", "nameserver 192.0.2.53"]
    assert replies[0]["host"] == "127.0.0.1" or network == "none"


def test_without_an_uplink_program_tasks_reach_nothing(jobs):
    """At once, and it is reported."""
    replies, notes = connect(jobs)
    assert notes, "the missing uplink is not reported"
    for one in replies:
        assert one["neighbor"][0] != "connected" and one["neighbor"][1] <= 3 and not one["resolver"], one


@pytest.mark.accounts(slow=("range", "single"))
def test_without_dev_net_tun_the_job_runs_without_an_uplink(jobs):
    """At once, and it reports why."""
    os.chmod("/dev/net/tun", 0o600)
    try:
        began = time.monotonic()
        run = jobs.run(write(jobs, "network-tested-tun", yaml("network-tested-tun", {"a": {"run": "true"}})))
        out = finish(run)
        notes = jobs.record("network-tested-tun").get("notes", [])
        assert run.returncode == 0 and time.monotonic() - began <= 4, f"exit code {run.returncode} after {time.monotonic() - began:.1f} s: {out}"
        assert any("/dev/net/tun" in note for note in notes), f"the reason is not reported: {notes}"
    finally:
        os.chmod("/dev/net/tun", 0o666)


@uplinks
def test_what_holds_the_network_ends_with_the_supervisor(jobs, program):
    """And the uplink program."""
    needs.tool(program)
    name = "network-tested-killed"
    run = jobs.run(write(jobs, name, yaml(name, {"a": {"run": "sleep 600", "instances": 2}})), PATH=directory_of_programs(jobs, program))
    record = jobs.running(name)
    holders = processes_with_argument("hold-network")
    assert len(holders) == 2, f"not one process for the network and one for the uplink: {holders}"
    kill(record["supervisor"]["pid"])
    still = still_running(holders, run)
    assert not still, f"processes {still} are still running"
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


@uplinks
def test_an_uplink_program_that_is_killed_is_restarted(jobs, program):
    """It is reported, and tasks reach the network again."""
    needs.tool(program)
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
    assert before and after and not set(before) & set(after) and changes() == ["lost", "restored"] and answer.returncode == 0, \
        f"processes {before}, then {after}: {changes()}: {answer.stderr}"
    jobs.call("kill", name)
    output = finish(run)
    assert f"the uplink of the job network is lost: {program} has ended" in output and f"the uplink of the job network is restored: {program}" in output, \
        f"it is not reported: {output}"


def fetch(port, address="127.0.0.1"):
    for _ in range(100):
        with contextlib.suppress(OSError):
            return urllib.request.urlopen(f"http://{address}:{port}/", timeout=2).read().decode().split()[0]
        time.sleep(0.05)
    return None


def test_published_ports_are_reachable_on_the_host(jobs):
    """Ports of the job file and of the command line, and no others."""
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
            assert found == task, f"{address}:{number} leads to {found}, not to {task}"
        turns = {fetch(9090) for _ in range(4)}
        assert turns == {"each-0", "each-1"}, f"the instances of `each` do not take turns: {turns}"
        notes = "\n".join(jobs.record(name).get("notes", []))
        any_port = re.search(rf"{re.escape(NEIGHBOR)}:(\d+)", notes)
        assert any_port and fetch(any_port[1], NEIGHBOR) == "turns-0", f"port 0 is not reported or not reachable: {notes}"
        second = jobs.run(write(jobs, "network-tested-second", yaml("network-tested-second", {"a": {"run": "sleep 600", "resources": port("none")}})), "--publish", "7070:a-0:http")
        out = finish(second)
        assert second.returncode == 125 and "127.0.0.1:7070 is taken by the job `" in out and "`a-0`" in out, f"a taken port: exit code {second.returncode}: {out}"
    finally:
        jobs.call("kill", name)
        finish(run)
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", 7070), 1)


def test_each_attempt_has_a_new_namespace_and_the_same_address(jobs):
    name = "network-tested-again"
    out = finish(jobs.run(write(jobs, name, yaml(name, {"a": python(RECONNECT, retry={"max": 2, "backoff": "0s"})}))))
    replies = answers(out)
    # The kernel may reuse the first inode number for the third.
    namespaces = [namespace for namespace, _ in replies]
    assert len(replies) == 3 and namespaces[1] not in (namespaces[0], namespaces[2]) and len({address for _, address in replies}) == 1, \
        f"{replies}: {out[-1500:]}"


def test_without_a_network_a_task_has_only_lo(jobs):
    name = "network-tested-alone"
    program = "import os, socket; print('ANSWER', os.readlink('/proc/self/ns/net').count('net'), len(socket.if_nameindex()))"
    roles = {"a": python(program)}
    out = finish(jobs.run(write(jobs, name, yaml(name, roles, network="none"))))
    assert "ANSWER 1 1" in out, f"it has other interfaces: {out[-1500:]}"


@pytest.mark.parametrize("network", ("job", "none"))
def test_a_task_becomes_ready_when_its_port_answers(jobs, network):
    name = f"network-tested-ready-{network}"
    serve = {"run": "sleep 0.5; exec python3 -m http.server 8080", "resources": {"ports": {"http": 8080}},
             "ready": {"port": "http", "every": "1s", "timeout": "20s"}, "completion": {"min_failed": "none"}}
    roles = {"a": serve, "b": {"run": "true", "needs": {"a": "ready"}, "completion": {"min_succeeded": 1}}}
    run = jobs.run(write(jobs, name, yaml(name, roles, network=network)))
    out = finish(run)
    assert run.returncode == 0, f"exit code {run.returncode}: {out[-1500:]}"


def test_a_hundred_tasks_have_names(jobs):
    name = "network-tested-many"
    run = jobs.run(write(jobs, name, yaml(name, {"a": {"run": "getent hosts a-99 | grep -q a-99.network-tested-many", "instances": 100}})))
    out = finish(run)
    assert run.returncode == 0, f"exit code {run.returncode}: {out[-1500:]}"
