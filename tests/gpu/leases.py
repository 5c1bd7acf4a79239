#!/usr/bin/env python3
"""Judges who gets which GPU, on a made-up machine: turns, queues, gangs, names, slices, and what is left when something is killed.

The machine has two whole A100 and two that are cut up. No GPU is needed; its nodes are null devices. With `--user range` or
`--user single` everything is done as an unprivileged user.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "jobs"), str(HERE.parent / "runtime")]

from alone import jobs_of, problems  # noqa: E402
from made_up import fake_gpus  # noqa: E402
from judge import Judge  # noqa: E402

NODES = "{ ls /dev | grep -x 'nvidia[0-9]*' || true; } | tr '\\n' ' '"
SLICE = {"memory": "8GiB", "cores": 30}


class Machine:
    """The made-up machine, and jobs on it."""

    def __init__(self, jobs, judge):
        self.jobs, self.root = jobs, jobs.directory / "machine"
        subprocess.run([fake_gpus(judge), "a100", str(self.root), "--nodes", "null"], check=True)
        programs = self.root / "usr/bin"
        programs.mkdir(parents=True, exist_ok=True)
        for program in (HERE / "fake/mps").iterdir():
            shutil.copy2(program, programs)
        # The server is there until it is ended, also where its daemon is not.
        shutil.copy2(judge.tool("sleep"), programs / "nvidia-cuda-mps-server")
        self.mps_mode = programs / "fake-mps"
        self.told = jobs.directory / "told"
        self.told.mkdir()
        self.told.chmod(0o1777)
        if jobs.account:
            os.chmod(jobs.directory, 0o755)

    def environment(self, **more):
        return {"JOBC_DRIVER_ROOT": str(self.root), **more}

    def file(self, name, gpu=1, run="true", targets=None, **role):
        """A job file with one role, whose tasks may write to /told."""
        role = {"run": run, "shell": "bash", "resources": {"gpu": gpu}, **role}
        job = {"version": 1, "name": name, "image": "host", "outputs": {"told": {"source": str(self.told), "mount": "/told"}},
               "roles": {"main": role}}
        directory = self.jobs.directory / f"job-{name}"
        directory.mkdir(exist_ok=True)
        (directory / "job.json").write_text(json.dumps(job))
        if targets is not None:
            (directory / "targets.yaml").write_text(json.dumps({"version": 1, "default": ["here"],
                                                               "targets": {"here": {"oci": targets, "backends": ["oci"]}}}))
        return str(directory / "job.json")

    def words(self, *words):
        return [*words, *(["--allow-unenforced"] if self.jobs.account else [])]

    def run(self, path, *words, **environment):
        return self.jobs.call("run", *self.words(path, *words), seconds=60, **self.environment(**environment))

    def start(self, path, *words, **environment):
        """Leaves a job running; returns its id."""
        answer = self.run(path, "--detach", *words, **environment)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout.strip()

    def behind(self, path, *words):
        """A run that goes on meanwhile."""
        return subprocess.Popen(self.jobs.words("run", *self.words(path, *words)), env=self.jobs.environment(**self.environment()),
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def call(self, *words):
        return self.jobs.call(*words, **self.environment())

    def json(self, *words):
        answer = self.call(*words, "--format", "json")
        assert answer.returncode == 0, answer.stderr
        return json.loads(answer.stdout)

    def has(self, job):
        """The numbers of the devices that a job has."""
        return [number(lease["device"]) for lease in self.json("gpu", "leases")["leases"] if lease["job"] == job]

    def until(self, what, seconds=20):
        deadline = time.monotonic() + seconds
        while not (found := what()):
            assert time.monotonic() < deadline, f"nothing within {seconds} s; daemons {self.daemons()}, leases {self.call('gpu', 'leases').stdout}"
            time.sleep(0.05)
        return found

    def runs(self, job):
        def there():
            record = self.json("inspect", job)
            assert record["state"] in ("queued", "preparing", "running"), f"{record['state']}: {record.get('end')}"
            return record["state"] == "running"
        self.until(there)

    def ends(self, job):
        return self.jobs.call("wait", job, seconds=60, **self.environment()).returncode

    def supervisor(self, job):
        return self.json("inspect", job)["supervisor"]["pid"]

    def said(self, name):
        """What tasks wrote to a file; nothing where none did."""
        try:
            return (self.told / name).read_text()
        except FileNotFoundError:
            return ""

    def clean(self):
        for path in self.told.iterdir():
            path.unlink()
        self.mps_mode.unlink(missing_ok=True)

    def daemons(self):
        """Processes of MPS daemons, by name; those that only wait to be reaped are none."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                name, state = (entry / "comm").read_text().strip(), (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
            except (OSError, IndexError):
                continue
            if state != "Z" and re.match("nvidia-cuda-mps|jobc-mps", name):
                found.append((name, int(entry.name)))
        return sorted(found)


def number(device):
    return f"{device['gpu']}" + (f":{device['mig']}" if device.get("mig") is not None else "")


def expect(answer, code, *patterns):
    """What an answer is not, of what it must be."""
    text = answer.stdout + answer.stderr
    missing = [pattern for pattern in patterns if not re.search(pattern, text)]
    if answer.returncode != code or missing:
        yield f"exit {answer.returncode}, without {missing}: {text}"


def one_after_the_other(machine):
    """Two jobs that ask for one card: without a queue the second is refused, with one it says what it waits for and follows."""
    script = "echo $(date +%s.%N) >> /told/times; sleep 0.7; echo $(date +%s.%N) >> /told/times"
    first = machine.start(machine.file("first", run=script.replace("0.7", "2")), "--devices", "0")
    machine.runs(first)
    second = machine.file("second", run=script)
    yield from expect(machine.run(second, "--devices", "0"), 125, "`first.1` has GPU 0", "--queue")
    waits = machine.behind(second, "--devices", "0", "--queue")
    line = machine.until(lambda: machine.json("gpu", "leases")["waiting"])[0]
    if (line["place"], line["job"]) != (1, "second.2") or "`first.1` has GPU 0" not in line["waits_for"]:
        yield f"it waits so: {line}"
    shown = machine.call("gpu", "leases").stdout
    if not re.search(r"(?m)^0 .* first\.1 ", shown) or not re.search(r"(?m)^1 +second\.2 .* needs 1 GPU", shown):
        yield f"`gpu leases` shows {shown}"
    text, _ = waits.communicate(timeout=60)
    times = [float(line) for line in machine.said("times").split()]
    if waits.returncode or len(times) != 4 or times != sorted(times):
        yield f"exit {waits.returncode}, times {times}: {text}"
    if machine.json("gpu", "leases") != {"leases": [], "waiting": []}:
        yield "something is leased to nobody"


def other_cards(machine):
    """A second job gets the other card, at once, and sees no other; what never fits is refused with what is there."""
    first = machine.start(machine.file("first", run="sleep 30"))
    machine.runs(first)
    second = machine.file("second", run=f"{NODES} > /told/nodes")
    yield from expect(machine.run(second), 0)
    nodes, other = machine.said("nodes").split(), machine.has(first)
    if len(nodes) != 1 or nodes == [f"nvidia{other[0]}"]:
        yield f"{nodes} beside {other}"
    three = machine.file("three", instances=3)
    yield from expect(machine.run(three), 125, "the job needs 3 GPUs, this host has 2", "--scale main=2", "--no-gpu")
    yield from expect(machine.run(machine.file("large", gpu=3)), 125, "requests 3 GPUs of one host, and this host has")
    yield from expect(machine.run(machine.file("zero", gpu=0, run=f"{NODES} > /told/none")), 0)
    if machine.said("none").split():
        yield "a job with no GPU sees one"


def all_of_them(machine):
    """`gpu: all` is as many as the machine has whole: the plan says how many, and the task sees them."""
    path = machine.file("all", gpu="all", run=f"{NODES} > /told/nodes")
    yield from expect(machine.run(path), 0)
    if machine.said("nodes").split() != ["nvidia0", "nvidia1"]:
        yield f"it saw {machine.said('nodes')}"
    plans = [json.loads(plan.read_text()) for plan in machine.jobs.home.rglob("plan.json") if "all." in str(plan)]
    plans += [json.loads(plan.read_text()) for plan in Path("/run/jobc").rglob("plan.json") if "/all." in str(plan)]
    gpus = [plan.get("jobs", [plan])[0]["roles"][0]["resources"]["gpu"] for plan in plans]
    if not gpus or any((gpu["count"], gpu.get("all")) != (2, True) for gpu in gpus):
        yield f"the plan has {gpus}"
    holder = machine.start(machine.file("holder", run="sleep 30"), "--devices", "1")
    machine.runs(holder)
    yield from expect(machine.run(path), 125, "needs 2 GPUs, and 1 of 2 are free", "`holder.1` has GPU 1")
    yield from expect(machine.run(path, "--no-gpu"), 0)


def all_or_none(machine):
    """A gang has all of its cards or none, and keeps none while it waits."""
    holder = machine.start(machine.file("holder", run="sleep 30"), "--devices", "1")
    machine.runs(holder)
    gang = machine.file("gang", run=f"{NODES} > /told/gang-$JOBC_INDEX", instances=2)
    yield from expect(machine.run(gang), 125, "needs 2 GPUs, and 1 of 2 are free", "`holder.1` has GPU 1")
    waiting = machine.start(gang, "--queue")
    machine.until(lambda: machine.json("gpu", "leases")["waiting"])
    if machine.has(waiting):
        yield f"while it waits it has {machine.has(waiting)}"
    # Who comes later does not pass, though a card is free.
    late = machine.start(machine.file("late", run="true"), "--queue")
    places = machine.until(lambda: (places := [(one["place"], one["job"]) for one in machine.json("gpu", "leases")["waiting"]])[1:] and places)
    if places != [(1, waiting), (2, late)]:
        yield f"places {places}"
    machine.call("kill", holder)
    if machine.ends(waiting) or machine.ends(late):
        yield "one of them failed"
    nodes = sorted(machine.said(f"gang-{index}").strip() for index in (0, 1))
    if nodes != ["nvidia0", "nvidia1"]:
        yield f"the gang had {nodes}"


def killed(machine):
    """A lease ends with its owner, however that dies."""
    first = machine.start(machine.file("first", gpu=2, run="sleep 60"))
    machine.runs(first)
    waiting = machine.start(machine.file("second", gpu=2), "--queue")
    machine.until(lambda: machine.json("gpu", "leases")["waiting"])
    os.kill(machine.supervisor(first), signal.SIGKILL)
    if machine.ends(waiting):
        yield f"what waited failed: {machine.json('inspect', waiting)['end']}"
    if machine.json("gpu", "leases")["leases"]:
        yield "the dead has its cards"


def names(machine):
    """Cards by number, by the beginning of their names, instances, by role, by the target; and what is refused."""
    path = machine.file("pinned", run=f"{NODES} > /told/nodes")
    for words, nodes in [(["1"], ["nvidia1"]), (["GPU-00000001"], ["nvidia1"]), (["main=0"], ["nvidia0"]), (["2:1"], ["nvidia2"])]:
        yield from expect(machine.run(path, "--devices", *words), 0)
        if machine.said("nodes").split() != nodes:
            yield f"{words}: {machine.said('nodes')}"
    for words, pattern in [(["9"], "this host has no GPU `9`"), (["GPU-0000000"], "is a prefix of"), (["0,0"], "name one device"),
                           (["2"], "partitioned into MIG instances"), (["other=0"], "unknown role `other`"), ([""], "names no device")]:
        yield from expect(machine.run(path, "--devices", *words), 125, pattern)
    yield from expect(machine.run(machine.file("pair", gpu=2), "--devices", "1"), 125, "needs 2 GPUs, but 1 are named")
    by_target = machine.file("target", run=f"{NODES} > /told/nodes", targets={"devices": {"main": [1], "other": [0]}})
    yield from expect(machine.run(by_target), 0)
    if machine.said("nodes").split() != ["nvidia1"]:
        yield f"the target's device: {machine.said('nodes')}"
    yield from expect(machine.run(by_target, "--devices", "0"), 0)
    if machine.said("nodes").split() != ["nvidia0"]:
        yield f"instead of the target's device: {machine.said('nodes')}"


def seats(machine):
    """A task keeps its device through its attempts; with `parallel` tasks take few devices in turns."""
    script = f"{NODES} >> /told/try-$JOBC_INDEX; [ $(wc -w < /told/try-$JOBC_INDEX) -ge 3 ]"
    yield from expect(machine.run(machine.file("again", run=script, instances=2, retry={"max": 4})), 0)
    tries = [machine.said(f"try-{index}").split() for index in (0, 1)]
    if any(len(set(nodes)) != 1 for nodes in tries) or tries[0][0] == tries[1][0]:
        yield f"the attempts had {tries}"
    script = f"node=$({NODES}); echo $node >> /told/turns; flock -n /told/$node sleep 0.3"
    turns = machine.start(machine.file("turns", run=script, instances=6, parallel=2))
    if machine.ends(turns) or (used := machine.said("turns").split()) != sorted(used, key=str) and len(used) != 6:
        yield f"{machine.json('inspect', turns)['end']}"
    if set(machine.said("turns").split()) != {"nvidia0", "nvidia1"}:
        yield f"in turns: {machine.said('turns')}"


def crowd(machine):
    """Many jobs at once, and some of them killed: nobody ever has what another has."""
    script = f"node=$({NODES}); flock -n /told/$node sleep 0.2 || echo $JOBC_JOB > /told/shared"
    path = machine.file("crowd", run=script)
    runs = [machine.behind(path, "--queue", "--detach") for _ in range(10)]
    jobs = [run.communicate(timeout=60)[0].strip() for run in runs]
    for job in jobs[::3]:
        record = machine.json("inspect", job)
        if record.get("supervisor"):
            os.kill(record["supervisor"]["pid"], signal.SIGKILL)
    codes = {job: machine.ends(job) for job in jobs if job not in jobs[::3]}
    if any(codes.values()):
        yield f"codes {codes}: " + "; ".join(str(machine.json("inspect", job)["end"]) for job in codes if codes[job])
    if (machine.told / "shared").exists():
        yield "two had one card"


def instances(machine):
    """Instances of cards that are cut up, by profile and by hard isolation: each task its own."""
    profile = machine.file("profile", gpu={"share": {"profile": "1g.10gb"}}, run="sleep 30", instances=3)
    job = machine.start(profile)
    machine.runs(job)
    if len(set(machine.has(job))) != 3 or not all(":" in device for device in machine.has(job)):
        yield f"it has {machine.has(job)}"
    record = machine.json("inspect", job)
    enforcers = {slot["slice"]["enforced_by"] for slot in record["claim"]["leased"]["slots"]}
    if enforcers != {"hardware"} or len({task["gpus"][0] for task in record["tasks"]}) != 3:
        yield f"the record has {record['claim']}, {[task['gpus'] for task in record['tasks']]}"
    hard = machine.file("hard", gpu={"share": {"memory": "30GiB", "isolation": "hard"}}, run=f"{NODES} > /told/nodes")
    yield from expect(machine.run(hard), 0)
    if machine.said("nodes").split() != ["nvidia2"]:
        yield f"hard isolation on {machine.said('nodes')}"
    yield from expect(machine.run(machine.file("absent", gpu={"share": {"profile": "7g.80gb"}})), 125, "requests MIG instances `7g.80gb`")


def mps(machine):
    """Slices by MPS: limits, one daemon for the jobs that share a card, nothing left after the last."""
    tell = "env | grep CUDA_MPS | sort > /told/env-$JOBC_INDEX; stat -c %F /tmp/nvidia-mps/control > /told/control; df --output=target /dev/shm > /told/shm"
    path = machine.file("slices", gpu={"share": SLICE}, run=f"{tell}; sleep 1.5", instances=2)
    first = machine.start(path)
    machine.runs(first)
    daemons = machine.daemons()
    if [name for name, _ in daemons] != ["jobc-mps", "nvidia-cuda-mps", "nvidia-cuda-mps"]:
        yield f"daemons {daemons}"
    second = machine.start(machine.file("more", gpu={"share": {"memory": "60GiB", "cores": 40}}, run="sleep 2.5"))
    machine.runs(second)
    if machine.daemons() != daemons or len(set(machine.has(first) + machine.has(second))) != 1:
        yield f"with a second job {machine.daemons()}, {machine.has(first)}, {machine.has(second)}"
    expected = ["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=30", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=8192M", "CUDA_MPS_PIPE_DIRECTORY=/tmp/nvidia-mps"]
    machine.until((machine.told / "control").exists)
    env = machine.said("env-0").split()
    if env != expected or machine.said("control").strip() != "socket":
        yield f"a task has {env}, {machine.said('control')}"
    # 76 of 80 GiB are taken: another of 8 goes to the other card.
    third = machine.start(machine.file("third", gpu={"share": SLICE}, run="sleep 1"))
    machine.runs(third)
    if set(machine.has(third)) & set(machine.has(first)):
        yield f"the third has {machine.has(third)} beside {machine.has(first)}"
    shown = machine.call("gpu", "leases").stdout
    if "mps, 8GiB, 30 %" not in shown or "driver" not in shown:
        yield f"`gpu leases` shows {shown}"
    if machine.ends(first) or machine.ends(second) or machine.ends(third):
        yield "one of them failed"
    machine.until(lambda: not machine.daemons())
    yield from expect(machine.run(machine.file("large", gpu={"share": {"memory": "81GiB"}})), 125, "needs 1 slice of 81 GiB")


def mps_killed(machine):
    """A daemon ends with the last supervisor that is killed; after its holder is killed the next command removes the rest."""
    job = machine.start(machine.file("slices", gpu={"share": SLICE}, run="sleep 60"))
    machine.runs(job)
    os.kill(machine.supervisor(job), signal.SIGKILL)
    machine.until(lambda: not machine.daemons())
    job = machine.start(machine.file("slices", gpu={"share": SLICE}, run="sleep 60"))
    machine.runs(job)
    holder = next(pid for name, pid in machine.daemons() if name == "jobc-mps")
    os.kill(machine.supervisor(job), signal.SIGSTOP)
    os.kill(holder, signal.SIGKILL)
    os.kill(machine.supervisor(job), signal.SIGKILL)
    # The kernel takes its time to end them.
    machine.until(lambda: machine.call("ps") and not machine.daemons())
    # A daemon that crashes leaves its holder nothing to hold, and the next job gets another.
    job = machine.start(machine.file("slices", gpu={"share": SLICE}, run="sleep 60"))
    machine.runs(job)
    control = next(pid for name, pid in machine.daemons() if name != "jobc-mps")
    os.kill(control, signal.SIGKILL)
    machine.until(lambda: not machine.daemons())
    yield from expect(machine.run(machine.file("next", gpu={"share": SLICE})), 0)
    machine.call("kill", job)
    machine.ends(job)
    machine.until(lambda: not machine.daemons())


def mps_fails(machine):
    """A daemon that does not start is an error with what it said; one that does not end is killed."""
    path = machine.file("slices", gpu={"share": SLICE})
    machine.mps_mode.write_text("refuse")
    yield from expect(machine.run(path), 125, "the MPS daemon of GPU .* does not start.*cards are used by others", "--gpu-share")
    machine.mps_mode.write_text("stubborn")
    yield from expect(machine.run(path), 0)
    machine.until(lambda: not machine.daemons())


def hami(machine):
    """Slices by HAMi-core: the library is loaded, with its limits; chosen by hand, by the target, and where MPS is not there."""
    library = machine.jobs.directory / "libvgpu.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-xc", "-", "-o", str(library)], input="int jobc_vgpu;", text=True, check=True)
    tell = "env | grep -E 'CUDA_DEVICE|LD_PRELOAD' | sort > /told/env; grep -c libvgpu /proc/self/maps > /told/maps; touch /tmp/vgpulock/x"
    share = {"share": SLICE}
    expected = {"CUDA_DEVICE_MEMORY_LIMIT_0=8192m", "CUDA_DEVICE_SM_LIMIT=30", "CUDA_DEVICE_MEMORY_SHARED_CACHE=/tmp/jobc-vgpu.cache",
                "LD_PRELOAD=/tmp/jobc-vgpu/libvgpu.so"}
    for words, targets in ([["--gpu-share", "hami"], None], [[], {"gpu_share": "hami"}]):
        path = machine.file("hami", gpu=share, run=tell, targets=targets)
        yield from expect(machine.run(path, *words, JOBC_HAMI_LIBRARY=str(library)), 0)
        env = set(machine.said("env").split())
        if env != expected or machine.said("maps").strip() == "0":
            yield f"{words}: {env}, {machine.said('maps')}"
    yield from expect(machine.run(machine.file("absent", gpu=share), "--gpu-share", "hami"), 125, "`/usr/local/vgpu/libvgpu.so` does not exist")
    if machine.daemons():
        yield "MPS runs all the same"


def nothing(machine):
    """Time-slicing: two jobs on one card, a note that nothing is enforced, and a refusal where the job asks for more."""
    path = machine.file("taking", gpu={"share": {"memory": "8GiB", "isolation": "none"}}, run="sleep 0.5", instances=2)
    job = machine.start(path)
    machine.ends(job)
    record = machine.json("inspect", job)
    slots = record["claim"]["leased"]["slots"]
    if {slot["device"]["gpu"] for slot in slots} != {slots[0]["device"]["gpu"]} or slots[0]["slice"]["enforced_by"] != "nothing":
        yield f"it had {slots}"
    if not any("slices of `main` are not enforced" in note for note in record["notes"]):
        yield f"notes {record['notes']}"
    if not machine.jobs.account:
        soft = machine.file("soft", gpu={"share": SLICE})
        yield from expect(machine.run(soft, "--gpu-share", "none"), 125, "asks for soft isolation, and time-slicing gives none")
        yield from expect(machine.run(soft, "--gpu-share", "none", "--allow-unenforced"), 0)


def looked_at(machine):
    """`--dry-run` leases nothing and starts nothing."""
    answer = machine.run(machine.file("dry", gpu={"share": SLICE}), "--dry-run")
    yield from expect(answer, 0, "nvidia[01]")
    if machine.daemons() or machine.json("gpu", "leases")["leases"]:
        yield "something was leased"


def main():
    judge = Judge("leases", __doc__)
    with jobs_of(judge) as jobs:
        machine = Machine(jobs, judge)
        cases = (one_after_the_other, other_cards, all_of_them, all_or_none, killed, names, seats, crowd, instances, mps, mps_killed, mps_fails, hami,
                 nothing, looked_at)
        for case in cases:
            if judge.wants(case.__name__):
                judge.judge(case.__name__, problems(case, jobs_with(machine)))
    judge.end()


def jobs_with(machine):
    """The machine, cleaned, with the calls that ending jobs takes."""
    machine.clean()
    return machine


if __name__ == "__main__":
    main()
