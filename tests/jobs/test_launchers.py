"""Tests how launchers of training jobs are started: how often, on which instance, and what they reach from there.

The launchers are stand-ins that leave a line for each start, which real ones do not; test_frameworks.py runs those. Their ssh is a stand-in
too, since not every host has an sshd: a server that runs what it is sent, at the port of the settings that jobc wrote. The host file is read
by DeepSpeed's own parser, which `tests/prepare` takes out of its package.
"""

import ast
import json
import os
import re
from pathlib import Path

import needs
import pytest

from harness import REPOSITORY

pytestmark = [pytest.mark.isolated, pytest.mark.duration(30), pytest.mark.accounts("root", slow=("range", "single"))]
# Users with more than one id.
with_ids = pytest.mark.accounts("root", slow="range")
RUNNER = REPOSITORY / ".oracles/deepspeed/runner.py"
PROGRAMS = "/opt/tested"
SECONDS = 60

# Reads a command and a line break, runs it without the task's variables, and answers with its exit code and its output.
SSHD = """\
#!/usr/bin/env python3
import os, socketserver, subprocess, sys
port = int(sys.argv[sys.argv.index("-p") + 1])
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address, daemon_threads = True, True
class Login(socketserver.StreamRequestHandler):
    def handle(self):
        command = self.rfile.readline().decode()
        done = subprocess.run(["sh", "-c", command], stdin=subprocess.DEVNULL, capture_output=True,
                              env={"PATH": "/usr/bin:/bin", "HOME": os.path.expanduser("~")})
        self.wfile.write(b"%d\\n" % done.returncode + done.stdout + done.stderr)
server = Server(("", port), Login)
if "-D" not in sys.argv and os.fork():
    os._exit(0)
server.serve_forever()
"""

SSH = """\
#!/usr/bin/env python3
import os, re, socket, sys
words = sys.argv[1:]
while words[0] == "-o":
    words = words[2:]
port = int(re.search(r"Port (\\d+)", open(os.path.expanduser("~/.ssh/config")).read())[1])
try:
    connection = socket.create_connection((words[0], port), 2)
except OSError as error:
    sys.exit(f"ssh: {error}")
connection.sendall((" ".join(words[1:]) + "\\n").encode())
code, _, output = connection.makefile("rb").read().partition(b"\\n")
sys.stdout.buffer.write(output)
sys.exit(int(code))
"""

# What every launcher does: one line a start, and one for each host that it starts a process on.
START = """
import os, subprocess, sys
own = os.environ["JOBC_ROLE"] + "-" + os.environ["JOBC_INDEX"]
def leave(line):
    with open("/counts/" + own, "a") as file: file.write(line + "\\n")
def start(hosts):
    for rank, (host, slots) in enumerate(hosts.items()):
        done = subprocess.run(["ssh", "-o", "BatchMode=yes", host, f"echo {rank} {slots} >>/counts/node-$(hostname)"])
        if done.returncode: sys.exit(f"{host} was not reached")
"""

DEEPSPEED = """\
#!/usr/bin/env python3
import collections, logging, re
logger = logging.getLogger()
{parser}
{start}
leave("deepspeed")
if os.path.isfile("{hostfile}"):
    start(_parse_hostfile(open("{hostfile}").readlines()))
"""

MPIRUN = """\
#!/usr/bin/env python3
{start}
leave("mpirun")
lines = open(os.environ["OMPI_MCA_orte_default_hostfile"]).read().split("\\n")
start({{line.split()[0]: line.split()[1].removeprefix("slots=") for line in lines if line}})
"""

TORCHRUN = """\
#!/usr/bin/env python3
{start}
leave("torchrun " + " ".join(os.environ["PET_" + name] for name in ("NNODES", "NODE_RANK", "NPROC_PER_NODE")))
"""

# The rendezvous of a framework without a launcher: all connect to the first, which gives up when one has not come.
MEET = """
import os, socket, sys, time
port = int(os.environ["MASTER_PORT"])
if os.environ["RANK"] == os.environ["STUCK"]:
    time.sleep({seconds})
if os.environ["RANK"] == "0":
    server = socket.create_server(("", port))
    server.settimeout(9)
    peers = []
    try:
        while len(peers) < int(os.environ["WORLD_SIZE"]) - 1:
            peers.append(server.accept())
    except TimeoutError:
        sys.exit("timed out")
deadline = time.monotonic() + 12
while True:
    try:
        peer = socket.create_connection((os.environ["MASTER_ADDR"], port), 1)
        break
    except OSError:
        if time.monotonic() > deadline:
            sys.exit("timed out")
        time.sleep(0.1)
peer.settimeout(None)
peer.recv(1)
"""

# As far as it is needed where the package is not installed.
OWN_PARSER = """
def _parse_hostfile(lines):
    return dict(re.match(r"(\\S+) slots=(\\d+)$", line).groups() for line in lines)
"""


@pytest.fixture(scope="module")
def all_jobs(all_jobs):
    """For a user, root's home directory on the host has an .ssh that is closed to this user: the tasks have their own."""
    closed = Path("~root/.ssh").expanduser()
    made = all_jobs.account and not closed.exists()
    if made:
        closed.mkdir(mode=0o700)
    yield all_jobs
    if made:
        closed.rmdir()


@pytest.fixture(scope="module")
def programs():
    parser, hostfile = real_parser()
    return {"ssh": SSH, "sshd": SSHD, "deepspeed": DEEPSPEED.format(parser=parser or OWN_PARSER, start=START, hostfile=hostfile),
            "mpirun": MPIRUN.format(start=START), "torchrun": TORCHRUN.format(start=START)}


def real_parser():
    """DeepSpeed's own function that reads a host file, and the place where it looks for one; no function without the package."""
    if not RUNNER.is_file():
        return None, "/job/hostfile"
    source = RUNNER.read_text()
    nodes = ast.parse(source).body
    function = next(node for node in nodes if isinstance(node, ast.FunctionDef) and node.name == "_parse_hostfile")
    constants = {node.targets[0].id: node.value for node in nodes if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)}
    return ast.get_source_segment(source, function), ast.literal_eval(constants["DLTS_HOSTFILE"])


def run(jobs, programs, name, roles, members, network="job", **distributed):
    """Runs a job with the stand-ins to its end, and returns what each of its instances left, by name, and what was said."""
    counts = jobs.directory / f"counts-{name}"
    counts.mkdir()
    counts.chmod(0o777)
    files = {os.path.normpath(f"{PROGRAMS}/{program}"): {"content": text, "mode": "0755"} for program, text in programs.items()}
    env = {"PATH": f"{PROGRAMS}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
    job = {
        "version": 1, "name": name, "image": "host", "network": network, "env": env, "timeout": f"{SECONDS}s",
        "outputs": {"counts": {"source": str(counts), "mount": "/counts"}},
        "roles": {role: {"files": files, **what} for role, what in roles.items()},
        "distributed": {"roles": members, **({"processes_per_instance": 2} if distributed["framework"] != "ray" else {}), **distributed},
    }
    path = jobs.directory / f"{name}.json"
    path.write_text(json.dumps(job))
    answer = jobs.call("run", *jobs.unenforced, str(path), seconds=SECONDS)
    return answer, {file.name: file.read_text().splitlines() for file in sorted(counts.iterdir())}


def expect(answer, left, expected):
    assert answer.returncode == 0, f"exit {answer.returncode}: {answer.stdout}{answer.stderr}"
    assert left == expected, f"it left {left}, not {expected}: {answer.stdout}{answer.stderr}"


def nodes(*names):
    """What each instance leaves that is started by ssh: its rank and its slots, once."""
    return {f"node-{name}": [f"{rank} 2"] for rank, name in enumerate(names)}


@with_ids
def test_deepspeed_runs_once_and_reaches_every_host(jobs, programs):
    """The form that people write: it finds the host file where it looks, and reaches its own host too."""
    roles = {"train": {"instances": 3, "run": "deepspeed train.py"}}
    done = run(jobs, programs, "tested-deepspeed", roles, ["train"], framework="deepspeed")
    expect(*done, {**nodes("train-0", "train-1", "train-2"), "train-0": ["deepspeed"]})
    # It was checked with another parser of host files than DeepSpeed's own.
    if not RUNNER.is_file():
        needs.missing("deepspeed")


def test_deepspeed_alone_needs_no_ssh(jobs, programs):
    """And no host file."""
    without = {name: text for name, text in programs.items() if not name.startswith("ssh")}
    roles = {"train": {"run": "deepspeed train.py"}}
    done = run(jobs, without, "tested-alone", roles, ["train"], framework="deepspeed")
    expect(*done, {"train-0": ["deepspeed"]})


@with_ids
def test_a_launcher_in_a_role_of_its_own_is_not_among_the_hosts(jobs, programs):
    roles = {"start": {"run": "deepspeed train.py"}, "train": {"instances": 2}}
    done = run(jobs, programs, "tested-start", roles, {"start": "launcher", "train": "worker"}, framework="deepspeed")
    expect(*done, {**nodes("train-0", "train-1"), "start-0": ["deepspeed"]})


@with_ids
def test_mpirun_runs_once_when_the_others_answer(jobs, programs):
    """It starts the processes of its own host itself, which the stand-in does not."""
    roles = {"train": {"instances": 3, "run": "mpirun python3 train.py"}}
    only_others = {**programs, "mpirun": programs["mpirun"].replace("if line}", "if line and not line.startswith(os.uname().nodename)}")}
    answer, left = run(jobs, only_others, "tested-mpi", roles, ["train"], framework="mpi")
    started = {name: lines for name, lines in left.items() if not name.startswith("node-")}
    expect(answer, started, {"train-0": ["mpirun"]})
    assert {"node-train-1", "node-train-2"} <= set(left), f"it left {left}"


@with_ids
def test_a_first_role_waits_for_the_workers(jobs, programs):
    """However late they begin; it has one instance."""
    roles = {"first": {"run": "mpirun python3 train.py"}, "more": {"instances": 2}}
    done = run(jobs, programs, "tested-mpi-role", roles, ["first", "more"], framework="mpi")
    expect(*done, {**nodes("first-0", "more-0", "more-1"), "first-0": ["mpirun"]})


def test_torchrun_runs_on_every_instance(jobs, programs):
    """Each has its own rank."""
    roles = {"train": {"instances": 3, "run": "torchrun train.py"}}
    done = run(jobs, programs, "tested-torchrun", roles, ["train"], framework="torchrun")
    expect(*done, {f"train-{rank}": [f"torchrun 3 {rank} 2"] for rank in range(3)})


@pytest.mark.accounts(slow="single")
def test_a_user_with_one_id_gets_an_error_at_once(jobs, programs):
    """sshd could not log anybody in."""
    roles = {"train": {"instances": 2, "run": "mpirun python3 train.py"}}
    answer, left = run(jobs, programs, "tested-ids", roles, ["train"], framework="mpi")
    assert answer.returncode != 0 and not left and "let root grant ids in /etc/subuid" in answer.stderr, \
        f"exit {answer.returncode}, left {left}: {answer.stderr}"


@with_ids
def test_an_instance_that_does_not_serve_is_named(jobs, programs):
    """First while the launcher waits, and then as the reason of its end."""
    roles = {"train": {"instances": 2, "run": "mpirun python3 train.py"}}
    # A second takes no time, so that the five minutes are over soon.
    silent = {**programs, "sshd": "#!/bin/sh\nexec /bin/sleep 60\n", "ssh": "#!/bin/sh\nexit 255\n", "sleep": "#!/bin/sh\n"}
    answer, left = run(jobs, silent, "tested-absent", roles, ["train"], framework="mpi")
    absence(answer, left, "train-0 | jobc: waiting for train-1 to answer by ssh", "train-0 | jobc: train-1 does not answer by ssh")


@with_ids
def test_a_ray_worker_names_the_head_that_does_not_listen(jobs, programs):
    roles = {"head": {"setup": "/bin/sleep 60", "run": "true"}, "worker": {}}
    quick = {**programs, "ray": "#!/bin/sh\n", "sleep": "#!/bin/sh\n"}
    answer, left = run(jobs, quick, "tested-head", roles, ["head", "worker"], framework="ray")
    absence(answer, left, "worker-0 | jobc: waiting for the Ray head head-0 to listen at port 6379",
                       "worker-0 | jobc: the Ray head head-0 does not listen at port 6379")


def absence(answer, left, *lines):
    assert answer.returncode != 0 and not left, f"exit {answer.returncode}, left {left}"
    assert not [line for line in lines if line not in answer.stdout + answer.stderr], f"{answer.stdout[-800:]}{answer.stderr[-400:]}"


NOT_CONNECTED = "`train-2` had no connection to port {} of `train-0` when `train-0` failed"
NOT_LISTENING = "`train-0` did not listen at port {}, where the others meet, when `train-[123]` failed"


@pytest.mark.parametrize("network, stuck, expected", [("job", "2", NOT_CONNECTED), ("host", "2", NOT_CONNECTED), ("job", "0", NOT_LISTENING)],
                         ids=["member", "member on the host", "first"])
def test_a_note_says_for_whom_members_of_a_rendezvous_waited(jobs, network, stuck, expected):
    """PyTorch and JAX do not."""
    name = f"tested-missing-{network}-{stuck}"
    roles = {"train": {"instances": 4, "run": "python3 /opt/meet.py", "env": {"STUCK": stuck}}}
    programs = {"../meet.py": MEET.format(seconds=SECONDS)}
    answer, _ = run(jobs, programs, name, roles, ["train"], network=network, framework="ddp", processes_per_instance=1)
    found = [note for note in jobs.record(name).get("notes", []) if re.fullmatch(expected.format(r"\d+"), note)]
    assert answer.returncode != 0 and len(found) == 1 and found[0] in answer.stderr, answer


@pytest.mark.parametrize("name, command, distributed, instead", [
    ("python", "python3 train.py", {"framework": "torchrun"}, "write `torchrun train.py`"),
    ("everywhere", "deepspeed train.py", {"framework": "deepspeed", "launch": "all"}, "remove `launch: all`"),
], ids=["python", "everywhere"])
def test_what_would_train_several_times_does_not_start(jobs, programs, name, command, distributed, instead):
    """The finding says what to write."""
    roles = {"train": {"instances": 2, "run": command}}
    answer, left = run(jobs, programs, f"tested-{name}", roles, ["train"], **distributed)
    assert answer.returncode != 0 and not left and re.search(r"error\[J0309\]", answer.stderr) and instead in answer.stderr, \
        f"{command}: exit {answer.returncode}, left {left}: {answer.stderr}"
