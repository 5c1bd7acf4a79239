"""Tests GPU leases on a simulated host: sharing, queues, gangs, names, slices, and what is left when something is killed.

The host has two whole A100 and two that are partitioned by MIG. No GPU is needed; device nodes are null devices.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
from fake_gpus import fake_gpus
import needs
import pytest

pytestmark = [pytest.mark.isolated, pytest.mark.duration(40), pytest.mark.accounts("root", slow=("range", "single"))]


@pytest.fixture(scope="module")
def simulated(all_jobs):
    return Host(all_jobs)


@pytest.fixture
def host(simulated, jobs):
    return cleaned(simulated)

ANSWERS = "usr/lib/x86_64-linux-gnu/nvml.answers"
NODES = "{ ls /dev | grep -x 'nvidia[0-9]*' || true; } | tr '\\n' ' '"
SLICE = {"memory": "8GiB", "cores": 30}


class Host:
    """The simulated host, and jobs on it."""

    def __init__(self, jobs):
        self.jobs, self.root = jobs, jobs.directory / "host"
        subprocess.run([fake_gpus(needs), "a100", str(self.root), "--nodes", "null"], check=True)
        programs = self.root / "usr/bin"
        programs.mkdir(parents=True, exist_ok=True)
        for program in (HERE / "fake/mps").iterdir():
            shutil.copy2(program, programs)
        # The server runs until it is killed, also after its daemon has ended.
        shutil.copy2(needs.tool("sleep"), programs / "nvidia-cuda-mps-server")
        self.mps_mode = programs / "fake-mps"
        self.output = jobs.directory / "out"
        self.output.mkdir()
        self.output.chmod(0o1777)
        if jobs.account:
            os.chmod(jobs.directory, 0o755)

    def environment(self, **more):
        return {"JOBC_DRIVER_ROOT": str(self.root), **more}

    def file(self, name, gpu=1, run="true", targets=None, **role):
        """A job file with one role, whose tasks can write to /out."""
        role = {"run": run, "shell": "bash", "resources": {"gpu": gpu}, **role}
        job = {"version": 1, "name": name, "image": "host", "outputs": {"out": {"source": str(self.output), "mount": "/out"}},
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
        """Starts a detached job, and returns its id."""
        answer = self.run(path, "--detach", *words, **environment)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout.strip()

    def start_in_background(self, path, *words):
        """Starts a run in the background."""
        return subprocess.Popen(self.jobs.words("run", *self.words(path, *words)), env=self.jobs.environment(**self.environment()),
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def call(self, *words):
        return self.jobs.call(*words, **self.environment())

    def json(self, *words):
        answer = self.call(*words, "--format", "json")
        assert answer.returncode == 0, answer.stderr
        return json.loads(answer.stdout)

    def devices_of(self, job):
        """The devices that a job has leased."""
        return [device_name(lease["device"]) for lease in self.json("gpu", "leases")["leases"] if lease["job"] == job]

    def until(self, what, seconds=20):
        deadline = time.monotonic() + seconds
        while not (found := what()):
            assert time.monotonic() < deadline, f"timed out after {seconds} s; daemons {self.daemons()}, leases {self.call('gpu', 'leases').stdout}"
            time.sleep(0.05)
        return found

    def wait_until_running(self, job):
        def there():
            record = self.json("inspect", job)
            assert record["state"] in ("queued", "preparing", "running"), f"{record['state']}: {record.get('end')}"
            return record["state"] == "running"
        self.until(there)

    def wait(self, job):
        return self.jobs.call("wait", job, seconds=60, **self.environment()).returncode

    def supervisor(self, job):
        return self.json("inspect", job)["supervisor"]["pid"]

    def read_output(self, name):
        """The content of a file that tasks wrote; empty if there is none."""
        try:
            return (self.output / name).read_text()
        except FileNotFoundError:
            return ""

    def answer(self, *lines):
        """Appends answers of the simulated NVML; the last line of a name counts."""
        with (self.root / ANSWERS).open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    def clean(self):
        self.answer(*(f"gpu.{card}.{line}" for card in (0, 1) for line in ("processes=", "utilization=0 0")))
        for path in self.output.iterdir():
            path.unlink()
        self.mps_mode.unlink(missing_ok=True)

    def daemons(self):
        """Processes of MPS daemons, by name, without zombies."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                name, state = (entry / "comm").read_text().strip(), (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
            except (OSError, IndexError):
                continue
            if state != "Z" and re.match("nvidia-cuda-mps|jobc-mps", name):
                found.append((name, int(entry.name)))
        return sorted(found)


def device_name(device):
    return f"{device['gpu']}" + (f":{device['mig']}" if device.get("mig") is not None else "")


def expect(answer, code, *patterns):
    """The exit code must be this, and the output must match the patterns."""
    text = answer.stdout + answer.stderr
    missing = [pattern for pattern in patterns if not re.search(pattern, text)]
    assert answer.returncode == code and not missing, f"exit {answer.returncode}, without {missing}: {text}"


def test_a_job_waits_for_the_card_that_another_job_has(host):
    """Two jobs request one card: without `--queue` the second is rejected; with it, it reports what it waits for, and then runs."""
    script = "echo $(date +%s.%N) >> /out/times; sleep 0.7; echo $(date +%s.%N) >> /out/times"
    first = host.start(host.file("first", run=script.replace("0.7", "2")), "--devices", "0")
    host.wait_until_running(first)
    second = host.file("second", run=script)
    expect(host.run(second, "--devices", "0"), 125, "`first.1` has GPU 0", "--queue")
    waits = host.start_in_background(second, "--devices", "0", "--queue")
    line = host.until(lambda: host.json("gpu", "leases")["waiting"])[0]
    assert (line["place"], line["job"]) == (1, "second.2") and "`first.1` has GPU 0" in line["waits_for"], f"it waits with: {line}"
    shown = host.call("gpu", "leases").stdout
    assert re.search(r"(?m)^0 .* first\.1 ", shown) and re.search(r"(?m)^1 +second\.2 .* needs 1 GPU", shown), f"`gpu leases` shows {shown}"
    text, _ = waits.communicate(timeout=60)
    times = [float(line) for line in host.read_output("times").split()]
    assert waits.returncode == 0 and len(times) == 4 and times == sorted(times), f"exit {waits.returncode}, times {times}: {text}"
    assert host.json("gpu", "leases") == {"leases": [], "waiting": []}, "a lease is left"


def test_a_second_job_gets_the_other_card_and_sees_only_it(host):
    """A second job gets the other card, and sees only it. A request that never fits is rejected with what is available."""
    first = host.start(host.file("first", run="sleep 30"))
    host.wait_until_running(first)
    second = host.file("second", run=f"{NODES} > /out/nodes")
    expect(host.run(second), 0)
    nodes, other = host.read_output("nodes").split(), host.devices_of(first)
    assert len(nodes) == 1 and nodes != [f"nvidia{other[0]}"], f"{nodes}, the first job has {other}"
    three = host.file("three", instances=3)
    expect(host.run(three), 125, "the job needs 3 GPUs, this host has 2", "--scale main=2", "--no-gpu")
    expect(host.run(host.file("large", gpu=3)), 125, "requests 3 GPUs of one host, and this host has")
    expect(host.run(host.file("zero", gpu=0, run=f"{NODES} > /out/none")), 0)
    assert not host.read_output("none").split(), "a job without GPUs sees one"


def test_all_gpus_of_the_host_can_be_requested(host):
    """`gpu: all` requests as many as the host has whole: the plan has the number, and the task sees them."""
    path = host.file("all", gpu="all", run=f"{NODES} > /out/nodes")
    expect(host.run(path), 0)
    assert host.read_output("nodes").split() == ["nvidia0", "nvidia1"], f"it saw {host.read_output('nodes')}"
    plans = [json.loads(plan.read_text()) for plan in host.jobs.home.rglob("plan.json") if "all." in str(plan)]
    plans += [json.loads(plan.read_text()) for plan in Path("/run/jobc").rglob("plan.json") if "/all." in str(plan)]
    gpus = [plan.get("jobs", [plan])[0]["roles"][0]["resources"]["gpu"] for plan in plans]
    assert gpus and all((gpu["count"], gpu.get("all")) == (2, True) for gpu in gpus), f"the plan has {gpus}"
    holder = host.start(host.file("occupant", run="sleep 30"), "--devices", "1")
    host.wait_until_running(holder)
    expect(host.run(path), 125, "needs 2 GPUs, and 1 of 2 are free", "`occupant.1` has GPU 1")
    expect(host.run(path, "--no-gpu"), 0)


def test_a_gang_gets_all_of_its_cards_or_none(host):
    """A gang gets all of its cards or none, and holds none while it waits."""
    holder = host.start(host.file("holder", run="sleep 30"), "--devices", "1")
    host.wait_until_running(holder)
    gang = host.file("gang", run=f"{NODES} > /out/gang-$JOBC_INDEX", instances=2)
    expect(host.run(gang), 125, "needs 2 GPUs, and 1 of 2 are free", "`holder.1` has GPU 1")
    waiting = host.start(gang, "--queue")
    host.until(lambda: host.json("gpu", "leases")["waiting"])
    assert not host.devices_of(waiting), f"while it waits it holds {host.devices_of(waiting)}"
    # A later job does not overtake it, even if a card is free.
    later = host.start(host.file("late", run="true"), "--queue")
    places = host.until(lambda: (places := [(one["place"], one["job"]) for one in host.json("gpu", "leases")["waiting"]])[1:] and places)
    assert places == [(1, waiting), (2, later)], f"places {places}"
    host.call("kill", holder)
    assert host.wait(waiting) == host.wait(later) == 0, "one of them failed"
    nodes = sorted(host.read_output(f"gang-{index}").strip() for index in (0, 1))
    assert nodes == ["nvidia0", "nvidia1"], f"the gang had {nodes}"


def test_a_lease_ends_when_its_supervisor_is_killed(host):
    """A lease ends when its supervisor is killed."""
    first = host.start(host.file("first", gpu=2, run="sleep 60"))
    host.wait_until_running(first)
    waiting = host.start(host.file("second", gpu=2), "--queue")
    host.until(lambda: host.json("gpu", "leases")["waiting"])
    os.kill(host.supervisor(first), signal.SIGKILL)
    assert host.wait(waiting) == 0, f"the waiting job failed: {host.json('inspect', waiting)['end']}"
    assert not host.json("gpu", "leases")["leases"], "the killed job still has its cards"


def test_devices_are_named_in_several_ways(host):
    """`--devices`: cards by index, by UUID prefix, MIG instances, by role, in the target; and what is rejected."""
    path = host.file("pinned", run=f"{NODES} > /out/nodes")
    for words, nodes in [(["1"], ["nvidia1"]), (["GPU-00000001"], ["nvidia1"]), (["main=0"], ["nvidia0"]), (["2:1"], ["nvidia2"])]:
        expect(host.run(path, "--devices", *words), 0)
        assert host.read_output("nodes").split() == nodes, f"{words}: {host.read_output('nodes')}"
    for words, pattern in [(["9"], "this host has no GPU `9`"), (["GPU-0000000"], "is a prefix of"), (["0,0"], "name one device"),
                           (["2"], "partitioned into MIG instances"), (["other=0"], "unknown role `other`"), ([""], "names no device")]:
        expect(host.run(path, "--devices", *words), 125, pattern)
    expect(host.run(host.file("pair", gpu=2), "--devices", "1"), 125, "needs 2 GPUs, but 1 are named")
    by_target = host.file("target", run=f"{NODES} > /out/nodes", targets={"devices": {"main": [1], "other": [0]}})
    expect(host.run(by_target), 0)
    assert host.read_output("nodes").split() == ["nvidia1"], f"the target's device: {host.read_output('nodes')}"
    expect(host.run(by_target, "--devices", "0"), 0)
    assert host.read_output("nodes").split() == ["nvidia0"], f"`--devices` over the target's device: {host.read_output('nodes')}"


def test_a_task_keeps_its_device_for_all_attempts(host):
    """A task keeps its device for all attempts; with `parallel`, tasks share few devices one after another."""
    script = f"{NODES} >> /out/try-$JOBC_INDEX; [ $(wc -w < /out/try-$JOBC_INDEX) -ge 3 ]"
    expect(host.run(host.file("again", run=script, instances=2, retry={"max": 4})), 0)
    tries = [host.read_output(f"try-{index}").split() for index in (0, 1)]
    assert all(len(set(nodes)) == 1 for nodes in tries) and tries[0][0] != tries[1][0], f"the attempts had {tries}"
    script = f"node=$({NODES}); echo $node >> /out/turns; flock -n /out/$node sleep 0.3"
    turns = host.start(host.file("turns", run=script, instances=6, parallel=2))
    assert host.wait(turns) == 0, f"{host.json('inspect', turns)['end']}"
    used = host.read_output("turns").split()
    assert len(used) == 6 and set(used) == {"nvidia0", "nvidia1"}, f"used devices: {used}"


def test_another_attempt_waits_for_the_memory_of_its_card(host):
    """The driver gives back the memory of killed processes late: the attempt starts once it has, or is stopped at once."""
    script = "date +%s >> /out/begins; [ $(wc -l < /out/begins) -ge 2 ]"
    host.answer(f"gpu.0.processes=1:{70 << 30}", f"gpu.1.processes=1:{70 << 30}")
    job = host.start(host.file("freed", run=script, retry={"max": 1, "backoff": "0s"}))
    host.until(lambda: host.json("inspect", job)["tasks"][0]["attempt"] == 2)
    time.sleep(2)
    host.answer("gpu.0.processes=", "gpu.1.processes=")
    assert host.wait(job) == 0, host.json("inspect", job)["end"]
    first, second = map(int, host.read_output("begins").split())
    assert 2 <= second - first < 30, (first, second)
    (host.output / "begins").unlink()
    host.answer(f"gpu.0.processes=1:{70 << 30}", f"gpu.1.processes=1:{70 << 30}")
    job = host.start(host.file("stopped", run=script, retry={"max": 1, "backoff": "0s"}))
    host.until(lambda: host.json("inspect", job)["tasks"][0]["attempt"] == 2)
    begin = time.monotonic()
    host.call("stop", job)
    assert host.wait(job) == 130 and time.monotonic() - begin < 10, host.json("inspect", job)["end"]


SMI = """\
#!/bin/sh
case $1 in
  -L) [ -z "{broken}" ] || {{ echo "{broken}"; exit 18; }}
    for node in /dev/nvidia[0-9]*; do [ "$node" = "{lost}" ] || echo "GPU ${{node#/dev/nvidia}}: NVIDIA A100"; done ;;
  *) echo {driver} ;;
esac
"""


@pytest.mark.accounts("root")
def test_checks_before_the_command_see_the_cards_of_the_task(host):
    """A lost card and a driver that is too old are named before the command runs."""
    smi = host.root / "usr/bin/nvidia-smi"

    def checked(preflight, lost="", broken="", driver="550.54.15", gpu=2):
        smi.write_text(SMI.format(lost=lost, broken=broken, driver=driver))
        smi.chmod(0o755)
        return host.run(host.file("seen", gpu=gpu, run="echo the command", preflight=preflight))
    before = smi.read_bytes()
    try:
        expect(checked(["gpus", "driver"]), 0, "gpus: 2 visible", r"driver: 550\.54\.15", "the command")
        lost = checked(["gpus"], lost="/dev/nvidia1")
        expect(lost, 1, r"preflight failed: gpus: 1 of 2 are visible \(main-0 on \S+: the node is at fault\)", "main-0: node")
        assert "the command" not in lost.stdout
        expect(checked(["gpus"], broken="Failed to initialize NVML: Driver/library version mismatch"), 1, "nvidia-smi says: Failed to initialize NVML")
        # Another one than NVML has said.
        old = {"driver": "525.60.13"}
        expect(checked(["driver"], gpu={"count": 1, "driver": "535"}, **old), 1, r"the driver is 525\.60\.13, and `gpu\.driver` needs 535 .*the node is at fault")
        expect(checked(["driver"], gpu={"count": 1, "cuda": "12.0"}, driver="470.42"), 1,
               r"the driver is 470\.42, and CUDA 12\.0 of the program needs 525 .*the job is at fault", "main-0: user error")
    finally:
        smi.write_bytes(before)


def test_many_concurrent_jobs_of_which_some_are_killed_leave_no_lease(host):
    """Many concurrent jobs, some of them killed: no two have the same card."""
    script = f"node=$({NODES}); flock -n /out/$node sleep 0.2 || echo $JOBC_JOB > /out/shared"
    path = host.file("crowd", run=script)
    wait_until_running = [host.start_in_background(path, "--queue", "--detach", "--quiet") for _ in range(10)]
    jobs = [run.communicate(timeout=60)[0].strip() for run in wait_until_running]
    for job in jobs[::3]:
        record = host.json("inspect", job)
        if record.get("supervisor"):
            os.kill(record["supervisor"]["pid"], signal.SIGKILL)
    codes = {job: host.wait(job) for job in jobs if job not in jobs[::3]}
    assert not any(codes.values()), f"codes {codes}: " + "; ".join(str(host.json("inspect", job)["end"]) for job in codes if codes[job])
    assert not (host.output / "shared").exists(), "two jobs had the same card"


def test_mig_instances_are_leased_by_profile_and_by_hard_isolation(host):
    """MIG instances, by profile and by hard isolation: each task gets its own."""
    profile = host.file("profile", gpu={"share": {"profile": "1g.10gb"}}, run="sleep 30", instances=3)
    job = host.start(profile)
    host.wait_until_running(job)
    assert len(set(host.devices_of(job))) == 3 and all(":" in device for device in host.devices_of(job)), f"the job has {host.devices_of(job)}"
    record = host.json("inspect", job)
    enforcers = {slot["slice"]["enforced_by"] for slot in record["claim"]["leased"]["slots"]}
    assert enforcers == {"hardware"} and len({task["gpus"][0] for task in record["tasks"]}) == 3, f"the record has {record['claim']}, {[task['gpus'] for task in record['tasks']]}"
    hard = host.file("hard", gpu={"share": {"memory": "30GiB", "isolation": "hard"}}, run=f"{NODES} > /out/nodes")
    expect(host.run(hard), 0)
    assert host.read_output("nodes").split() == ["nvidia2"], f"hard isolation on {host.read_output('nodes')}"
    expect(host.run(host.file("absent", gpu={"share": {"profile": "7g.80gb"}})), 125, "requests MIG instances `7g.80gb`")


def test_mps_slices_share_a_card(host):
    """MPS slices: limits, one daemon for all jobs on a card, which ends after the last."""
    script = "env | grep CUDA_MPS | sort > /out/env-$JOBC_INDEX; stat -c %F /tmp/nvidia-mps/control > /out/control; df --output=target /dev/shm > /out/shm"
    path = host.file("slices", gpu={"share": SLICE}, run=f"{script}; sleep 1.5", instances=2)
    first = host.start(path)
    host.wait_until_running(first)
    daemons = host.daemons()
    assert [name for name, _ in daemons] == ["jobc-mps", "nvidia-cuda-mps", "nvidia-cuda-mps"], f"daemons {daemons}"
    second = host.start(host.file("more", gpu={"share": {"memory": "60GiB", "cores": 40}}, run="sleep 2.5"))
    host.wait_until_running(second)
    assert host.daemons() == daemons and len(set(host.devices_of(first) + host.devices_of(second))) == 1, f"with a second job {host.daemons()}, {host.devices_of(first)}, {host.devices_of(second)}"
    expected = ["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=30", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=8192M", "CUDA_MPS_PIPE_DIRECTORY=/tmp/nvidia-mps"]
    host.until((host.output / "control").exists)
    env = host.read_output("env-0").split()
    assert env == expected and host.read_output("control").strip() == "socket", f"a task has {env}, {host.read_output('control')}"
    # 76 of 80 GiB are leased: a slice of 8 GiB gets the other card.
    third = host.start(host.file("third", gpu={"share": SLICE}, run="sleep 4"))
    host.wait_until_running(third)
    assert not set(host.devices_of(third)) & set(host.devices_of(first)), f"the third has {host.devices_of(third)}, the first {host.devices_of(first)}"
    shown = host.call("gpu", "leases").stdout
    assert "mps, 8GiB, 30 %" in shown and "driver" in shown, f"`gpu leases` shows {shown}"
    assert host.wait(first) == host.wait(second) == host.wait(third) == 0, "one of them failed"
    host.until(lambda: not host.daemons())
    expect(host.run(host.file("large", gpu={"share": {"memory": "81GiB"}})), 125, "requests a slice of 81GiB")


def test_stats_of_an_mps_slice_has_the_use_of_the_card(host):
    """NVML reports the MPS server instead of the tasks: they have the use of the card, which slices share, and their limits."""
    job = host.start(host.file("served", gpu={"share": SLICE}, run="sleep 60", instances=2))
    host.wait_until_running(job)
    card, tasks = host.devices_of(job)[0], [task["process"]["pid"] for task in host.json("inspect", job)["tasks"]]
    host.answer(f"gpu.{card}.processes=" + " ".join(f"{pid}:{1 << 30}" for pid in tasks), f"gpu.{card}.utilization=97 5")
    processes = next(gpu["processes"] for gpu in host.json("gpu", "ls")["gpus"] if str(gpu["index"]) == card)
    assert [process["memory_bytes"] for process in processes] == [2 << 30], f"NVML reports {processes}, the tasks are {tasks}"
    assert processes[0]["pid"] in [pid for _, pid in host.daemons()], f"NVML reports {processes}, the tasks are {tasks}"

    def use(slices):
        rows = [json.loads(row) for row in host.call("stats", "--no-stream", "--format", "json", job).stdout.splitlines()]
        uses = [use for row in rows for use in row.get("gpu", [])]
        wanted = {"utilization": 97, "mps": {"memory_limit": 8 << 30, "slices": slices}}
        return len(uses) == 2 and all({key: value for key, value in use.items() if key != "gpu"} == wanted for use in uses)
    host.until(lambda: use(2), 60)
    second = host.start(host.file("more", gpu={"share": {"memory": "60GiB"}}, run="sleep 60"), "--devices", card)
    host.wait_until_running(second)
    host.until(lambda: use(3), 60)
    shown = host.call("stats", "--no-stream", job).stdout
    assert shown.count("card 97% (3 slices) max 8.0 GiB") == 2, f"`jobc stats` shows {shown}"
    report = host.output / "report.html"
    expect(host.call("report", job, "--output", str(report)), 0)
    assert "Tasks with slices by MPS share" in report.read_text(), "the report does not say whose use it shows"


def test_an_mps_daemon_ends_after_the_last_supervisor_is_killed(host):
    """A daemon ends after the last supervisor is killed; if its holder is killed too, the next command removes the rest."""
    job = host.start(host.file("slices", gpu={"share": SLICE}, run="sleep 60"))
    host.wait_until_running(job)
    os.kill(host.supervisor(job), signal.SIGKILL)
    host.until(lambda: not host.daemons())
    job = host.start(host.file("slices", gpu={"share": SLICE}, run="sleep 60"))
    host.wait_until_running(job)
    holder = next(pid for name, pid in host.daemons() if name == "jobc-mps")
    os.kill(host.supervisor(job), signal.SIGSTOP)
    os.kill(holder, signal.SIGKILL)
    os.kill(host.supervisor(job), signal.SIGKILL)
    # The kernel needs a moment to end them.
    host.until(lambda: host.call("ps") and not host.daemons())
    # When a daemon crashes, its holder ends, and the next job gets a new daemon.
    job = host.start(host.file("slices", gpu={"share": SLICE}, run="sleep 60"))
    host.wait_until_running(job)
    control = next(pid for name, pid in host.daemons() if name != "jobc-mps")
    os.kill(control, signal.SIGKILL)
    host.until(lambda: not host.daemons())
    expect(host.run(host.file("next", gpu={"share": SLICE})), 0)
    host.call("kill", job)
    host.wait(job)
    host.until(lambda: not host.daemons())


def test_an_mps_daemon_that_does_not_start_is_an_error_with_its_output(host):
    """A daemon that does not start is an error with its output; one that does not end is killed."""
    path = host.file("slices", gpu={"share": SLICE})
    host.mps_mode.write_text("refuse")
    expect(host.run(path), 125, "the MPS daemon of GPU .* does not start.*cards are used by others", "--gpu-share")
    host.mps_mode.write_text("stubborn")
    expect(host.run(path), 0)
    host.until(lambda: not host.daemons())


def test_hami_core_slices_share_a_card(host):
    """HAMi-core slices: the library is loaded, with its limits; selected by option and by target."""
    library = host.jobs.directory / "libvgpu.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-xc", "-", "-o", str(library)], input="int jobc_vgpu;", text=True, check=True)
    script = "env | grep -E 'CUDA_DEVICE|LD_PRELOAD' | sort > /out/env; grep -c libvgpu /proc/self/maps > /out/maps; touch /tmp/vgpulock/x"
    share = {"share": SLICE}
    expected = {"CUDA_DEVICE_MEMORY_LIMIT_0=8192m", "CUDA_DEVICE_SM_LIMIT=30", "CUDA_DEVICE_MEMORY_SHARED_CACHE=/tmp/jobc-vgpu.cache",
                "LD_PRELOAD=/tmp/jobc-vgpu/libvgpu.so"}
    for words, targets in ([["--gpu-share", "hami"], None], [[], {"gpu_share": "hami"}]):
        path = host.file("hami", gpu=share, run=script, targets=targets)
        expect(host.run(path, *words, JOBC_HAMI_LIBRARY=str(library)), 0)
        env = set(host.read_output("env").split())
        assert env == expected and host.read_output("maps").strip() != "0", f"{words}: {env}, {host.read_output('maps')}"
    expect(host.run(host.file("absent", gpu=share), "--gpu-share", "hami"), 125, "`/usr/local/vgpu/libvgpu.so` does not exist")
    assert not host.daemons(), "MPS is running"


def test_time_slicing_shares_a_card(host):
    """Time-slicing: two tasks on one card, a note that nothing is enforced, and an error if the job requests isolation."""
    path = host.file("taking", gpu={"share": {"memory": "8GiB", "isolation": "none"}}, run="sleep 0.5", instances=2)
    job = host.start(path)
    host.wait(job)
    record = host.json("inspect", job)
    slots = record["claim"]["leased"]["slots"]
    assert {slot["device"]["gpu"] for slot in slots} == {slots[0]["device"]["gpu"]} and slots[0]["slice"]["enforced_by"] == "nothing", f"its slots were {slots}"
    assert any("slices of `main` are not enforced" in note for note in record["notes"]), f"notes {record['notes']}"
    if not host.jobs.account:
        soft = host.file("soft", gpu={"share": SLICE})
        expect(host.run(soft, "--gpu-share", "none"), 125, "asks for soft isolation, and time-slicing gives none")
        expect(host.run(soft, "--gpu-share", "none", "--allow-unenforced"), 0)


def test_a_dry_run_leases_nothing_and_starts_nothing(host):
    """`--dry-run` leases nothing and starts nothing."""
    answer = host.run(host.file("dry", gpu={"share": SLICE}), "--dry-run")
    expect(answer, 0, "nvidia[01]")
    assert not host.daemons() and not host.json("gpu", "leases")["leases"], "something was leased"


def cleaned(host):
    """The host without files of earlier tests."""
    host.clean()
    return host
