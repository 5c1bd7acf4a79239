#!/usr/bin/env python3
"""Tests how launchers of training jobs are started: how often, on which instance, and what they reach from there.

The launchers are stand-ins that leave a line for each start. Their ssh is a stand-in too, since no sshd is installed on the machine: a
server that runs what it is sent, at the port of the settings that jobc wrote. The host file is read by DeepSpeed's own parser, which
`tests/oracles/install` takes out of its package.

With `--user range` or `--user single` everything is done as an unprivileged user.
"""

import ast
import contextlib
import json
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "runtime"))

from isolation import jobs_of, problems  # noqa: E402
from harness import REPOSITORY, Harness  # noqa: E402

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


def main():
    harness = Harness("launchers", __doc__)
    parser, hostfile = real_parser()
    programs = {
        "ssh": SSH,
        "sshd": SSHD,
        "deepspeed": DEEPSPEED.format(parser=parser or OWN_PARSER, start=START, hostfile=hostfile),
        "mpirun": MPIRUN.format(start=START),
        "torchrun": TORCHRUN.format(start=START),
    }
    with jobs_of(harness) as jobs, closed_directory(jobs):
        by_ssh = (deepspeed, deepspeed_from_a_role, mpi, mpi_from_a_role, absent, absent_head)
        for case in (*(by_ssh if jobs.has_ids() else (without_ids,)), deepspeed_alone, torchrun, refused, missing):
            if harness.wants(case.__name__):
                harness.check(case.__name__, problems(case, jobs, programs))
    if not parser:
        harness.lacks("host files are read by DeepSpeed's own parser", "deepspeed")
    harness.end()


@contextlib.contextmanager
def closed_directory(jobs):
    """As an unprivileged user, root's home directory on the host has an .ssh that is closed to this user: the tasks have their own."""
    closed = Path("~root/.ssh").expanduser()
    if not jobs.account or closed.exists():
        yield
        return
    closed.mkdir(mode=0o700)
    try:
        yield
    finally:
        closed.rmdir()


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
    words = ["--allow-unenforced"] if jobs.account else []
    answer = jobs.call("run", *words, str(path), seconds=SECONDS)
    return answer, {file.name: file.read_text().splitlines() for file in sorted(counts.iterdir())}


def expect(answer, left, expected):
    if answer.returncode != 0:
        yield f"exit {answer.returncode}: {answer.stdout}{answer.stderr}"
    if left != expected:
        yield f"it left {left}, not {expected}: {answer.stdout}{answer.stderr}"


def nodes(*names):
    """What each instance leaves that is started by ssh: its rank and its slots, once."""
    return {f"node-{name}": [f"{rank} 2"] for rank, name in enumerate(names)}


def deepspeed(jobs, programs):
    """The form that people write: the launcher runs once, finds the host file where it looks, and reaches every host, its own too."""
    roles = {"train": {"instances": 3, "run": "deepspeed train.py"}}
    done = run(jobs, programs, "tested-deepspeed", roles, ["train"], framework="deepspeed")
    yield from expect(*done, {**nodes("train-0", "train-1", "train-2"), "train-0": ["deepspeed"]})


def deepspeed_alone(jobs, programs):
    """One instance needs no ssh and no host file."""
    without = {name: text for name, text in programs.items() if not name.startswith("ssh")}
    roles = {"train": {"run": "deepspeed train.py"}}
    done = run(jobs, without, "tested-alone", roles, ["train"], framework="deepspeed")
    yield from expect(*done, {"train-0": ["deepspeed"]})


def deepspeed_from_a_role(jobs, programs):
    """A launcher of its own is not among the hosts."""
    roles = {"start": {"run": "deepspeed train.py"}, "train": {"instances": 2}}
    done = run(jobs, programs, "tested-start", roles, {"start": "launcher", "train": "worker"}, framework="deepspeed")
    yield from expect(*done, {**nodes("train-0", "train-1"), "start-0": ["deepspeed"]})


def mpi(jobs, programs):
    """mpirun runs once, when the others answer; it starts the processes of its own host itself, which the stand-in does not."""
    roles = {"train": {"instances": 3, "run": "mpirun python3 train.py"}}
    only_others = {**programs, "mpirun": programs["mpirun"].replace("if line}", "if line and not line.startswith(os.uname().nodename)}")}
    answer, left = run(jobs, only_others, "tested-mpi", roles, ["train"], framework="mpi")
    started = {name: lines for name, lines in left.items() if not name.startswith("node-")}
    yield from expect(answer, started, {"train-0": ["mpirun"]})
    if not {"node-train-1", "node-train-2"} <= set(left):
        yield f"it left {left}"


def mpi_from_a_role(jobs, programs):
    """A first role of one instance waits for the workers as well, however late they begin."""
    roles = {"first": {"run": "mpirun python3 train.py"}, "more": {"instances": 2}}
    done = run(jobs, programs, "tested-mpi-role", roles, ["first", "more"], framework="mpi")
    yield from expect(*done, {**nodes("first-0", "more-0", "more-1"), "first-0": ["mpirun"]})


def torchrun(jobs, programs):
    """torchrun runs on every instance, each with its own rank."""
    roles = {"train": {"instances": 3, "run": "torchrun train.py"}}
    done = run(jobs, programs, "tested-torchrun", roles, ["train"], framework="torchrun")
    yield from expect(*done, {f"train-{rank}": [f"torchrun 3 {rank} 2"] for rank in range(3)})


def without_ids(jobs, programs):
    """A user with one id gets an error at once: sshd could not log anybody in."""
    roles = {"train": {"instances": 2, "run": "mpirun python3 train.py"}}
    answer, left = run(jobs, programs, "tested-ids", roles, ["train"], framework="mpi")
    if answer.returncode == 0 or left or "let root grant ids in /etc/subuid" not in answer.stderr:
        yield f"exit {answer.returncode}, left {left}: {answer.stderr}"


def absent(jobs, programs):
    """An instance that does not serve is named, first while the launcher waits, and then as the reason of its end."""
    roles = {"train": {"instances": 2, "run": "mpirun python3 train.py"}}
    # A second takes no time, so that the five minutes are over soon.
    silent = {**programs, "sshd": "#!/bin/sh\nexec /bin/sleep 60\n", "ssh": "#!/bin/sh\nexit 255\n", "sleep": "#!/bin/sh\n"}
    answer, left = run(jobs, silent, "tested-absent", roles, ["train"], framework="mpi")
    yield from absence(answer, left, "train-0 | jobc: waiting for train-1 to answer by ssh", "train-0 | jobc: train-1 does not answer by ssh")


def absent_head(jobs, programs):
    """A Ray worker names the head that does not listen."""
    roles = {"head": {"setup": "/bin/sleep 60", "run": "true"}, "worker": {}}
    quick = {**programs, "ray": "#!/bin/sh\n", "sleep": "#!/bin/sh\n"}
    answer, left = run(jobs, quick, "tested-head", roles, ["head", "worker"], framework="ray")
    yield from absence(answer, left, "worker-0 | jobc: waiting for the Ray head head-0 to listen at port 6379",
                       "worker-0 | jobc: the Ray head head-0 does not listen at port 6379")


def absence(answer, left, *lines):
    if answer.returncode == 0 or left:
        yield f"exit {answer.returncode}, left {left}"
    yield from (f"`{line}` is missing: {answer.stdout[-800:]}{answer.stderr[-400:]}" for line in lines if line not in answer.stdout + answer.stderr)


def missing(jobs, programs):
    """Where members of a rendezvous give up, the note says for whom they waited: PyTorch and JAX do not."""
    one = "`train-2` had no connection to port {} of `train-0` when `train-0` failed"
    first = "`train-0` did not listen at port {}, where the others meet, when `train-[123]` failed"
    cases = (("job", "2", one), ("host", "2", one), ("job", "0", first))
    with ThreadPoolExecutor() as pool:
        for found in [pool.submit(missing_from, jobs, *case) for case in cases]:
            yield from found.result()


def missing_from(jobs, network, stuck, expected):
    name = f"tested-missing-{network}-{stuck}"
    roles = {"train": {"instances": 4, "run": "python3 /opt/meet.py", "env": {"STUCK": stuck}}}
    programs = {"../meet.py": MEET.format(seconds=SECONDS)}
    answer, _ = run(jobs, programs, name, roles, ["train"], network=network, framework="ddp", processes_per_instance=1)
    notes = jobs.record(name).get("notes", [])
    found = [note for note in notes if re.fullmatch(expected.format(r"\d+"), note)]
    if answer.returncode == 0 or len(found) != 1 or found[0] not in answer.stderr:
        return [f"exit {answer.returncode}, notes {notes}, not `{expected}`: {answer.stderr[-600:]}"]
    return []


def refused(jobs, programs):
    """What would train several times does not start, and the finding says what to write."""
    for name, command, distributed, instead in (
        ("python", "python3 train.py", {"framework": "torchrun"}, "write `torchrun train.py`"),
        ("everywhere", "deepspeed train.py", {"framework": "deepspeed", "launch": "all"}, "remove `launch: all`"),
    ):
        roles = {"train": {"instances": 2, "run": command}}
        answer, left = run(jobs, programs, f"tested-{name}", roles, ["train"], **distributed)
        if answer.returncode == 0 or left or not re.search(r"error\[J0309\]", answer.stderr) or instead not in answer.stderr:
            yield f"{command}: exit {answer.returncode}, left {left}: {answer.stderr}"


if __name__ == "__main__":
    main()
