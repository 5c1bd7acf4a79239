"""Tests containers of jobc inside steps that Slurm confines: they see the GPUs, CPUs and memory of their step and no others.

The kernel keeps the limits: cgroup v1 with `task/cgroup` and `proctrack/cgroup`. GPUs are those of a simulated driver, since
hosts of tests have none, with nodes that only the device cgroup can deny. The registry is a stand-in that counts requests and changes bytes,
which a real one does not. The cgroups are named after the node, and removed at the end.
"""

import contextlib
import gzip
import io
import json
import os
import re
import statistics
import subprocess
import tarfile
from pathlib import Path

import needs
import pytest

from cluster import Cluster, cluster, until
from fake_gpus import fake_gpus
from fake_registry import CONFIG, LAYER, MANIFEST, FakeRegistry, Image, digest
from place import LOOP, one

pytestmark = [pytest.mark.isolated, pytest.mark.duration(25)]

CGROUPS = Path("/sys/fs/cgroup")
CONTROLLERS = ("cpuset", "devices", "freezer", "memory")
# In MiB: of a job and of a node.
MEMORY, NODE_MEMORY = 192, 3000
IMAGE = "example.org/tools:1"
LIMITS = """\
CgroupPlugin=cgroup/v1
CgroupMountpoint=/sys/fs/cgroup
ConstrainCores=yes
ConstrainDevices=yes
ConstrainRAMSpace=yes
AllowedSwapSpace=0
"""
JOB = """\
version: 1
name: {name}
image: {image}
{more}
roles:
  main:
    resources: {{{resources}}}
    shell: sh
    run: |
{run}
"""


class Confined(Cluster):
    """A cluster of one node that confines its steps, with the driver of simulated GPUs."""

    nodes, gpus, memory = 1, 8, NODE_MEMORY
    cpus = len(os.sched_getaffinity(0))
    proctrack, task = "cgroup", "cgroup"

    def make_gpus(self):
        self.driver = self.place / "driver"
        subprocess.run([fake_gpus(needs), "h100", str(self.driver)], check=True)
        (self.place / "cgroup.conf").write_text(LIMITS)
        return self.driver / "dev/nvidia"

    def store(self):
        """Where scripts have images unpacked on the node."""
        return Path(f"/tmp/jobc-{self.account.uid}/images")

    def stop(self):
        super().stop()
        for path in sorted(CGROUPS.glob("*/slurm_n0"), key=str):
            for group in sorted([path, *path.rglob("*")], key=lambda path: -len(path.parts)):
                if group.is_dir():
                    with contextlib.suppress(OSError):
                        group.rmdir()


@pytest.fixture(scope="module")
def slurm():
    if why := cannot_confine():
        needs.missing(why)
    with cluster(Confined) as slurm:
        make_images(slurm)
        slurm.log_in(f"JOBC_DRIVER_ROOT={slurm.driver}")
        yield slurm


def job(name, run, resources=f"cpu: 1, memory: {MEMORY}MiB", image=IMAGE, more=""):
    return JOB.format(name=name, run="\n".join(f"      {line}" for line in run.splitlines()), resources=resources, image=image, more=more)


def build(slurm, name, text, more=""):
    return slurm.build(name, text, f"container: jobc, images: {slurm.home}/images{more}", backends="[oci, slurm]")


def finishes(slurm, directory, seconds=60):
    """Submits a job and waits for its end; returns its state and what its task printed."""
    number = slurm.submit(directory)
    state = slurm.ends(number, seconds)
    return number, state, "".join(slurm.logs_of(directory, number).values())


def test_an_instance_has_a_directory_of_its_node(slurm):
    """It is empty at the start, and removed at the end."""
    data = 'data: {own: {source: "instance:", mount: /scratch, writable: true}}'
    run = 'for file in /scratch/*; do [ ! -e "$file" ] || exit 3; done\necho made >/scratch/x\nread -r said </scratch/x\necho $said'
    number, state, said = finishes(slurm, build(slurm, "scratch", job("scratch", run, more=data)))
    assert state == "COMPLETED" and said.split()[-1:] == ["made"], f"{state}: {said}\n{slurm.output(number)}"
    assert not [*Path("/tmp").glob(f"jobc-{number}-*")]


SAVES = """\
import signal, sys, time
def save(*_):
    time.sleep(1)
    print("saving", flush=True)
    open(sys.argv[1], "a").write("saved")
    sys.exit()
signal.signal(signal.SIGTERM, save)
print("up", flush=True)
time.sleep(300)
"""


@pytest.mark.parametrize("shell", ("bash", "sh"))
@pytest.mark.parametrize("form, script, more", [
    ("alone", "PROGRAM", ""),
    ("two", "PROGRAM\necho after", ""),
    ("pipe", "PROGRAM | cat", ""),
    ("limit", "PROGRAM\necho after", "    timeout: 10m\n"),
])
def test_a_program_behind_a_shell_saves_before_it_is_stopped(slurm, shell, form, script, more):
    """Slurm signals the first process of a task alone."""
    name, program = f"saves-{form}-{shell}", slurm.home / "saves.py"
    slurm.write("saves.py", SAVES)
    saved = slurm.home / f"{name}.out"
    text = one(name, script.replace("PROGRAM", f"python3 {program} {saved}"), role=f"    shell: {shell}\n{more}")
    number = slurm.submit(slurm.build(name, text))
    until(lambda: "up" in slurm.output(number))
    slurm.user("scancel", number)
    slurm.ends(number)
    assert saved.exists() and saved.read_text() == "saved", slurm.output(number)


LOOK = """\
echo gpus: $(cd /dev; echo nvidia[0-9]*)
for gpu in /dev/nvidia[0-9]*; do cat $gpu 2>&1 | sed "s/^/open: /"; done
echo cpus: $(grep Cpus_allowed_list /proc/self/status)
echo uid: $(id -u) $(id -g)
echo tmp: $(ls /tmp)
env | grep -c ^SLURM_ || :
"""


@pytest.mark.parametrize("count", (1, 2))
def test_a_container_sees_the_gpus_and_cpus_of_its_step(slurm, count):
    """A container sees its step's GPUs, CPUs and user, and starts without a warning."""
    text = job(f"gpus-{count}", LOOK, f"cpu: 1, memory: {MEMORY}MiB, gpu: {count}")
    number, state, said = finishes(slurm, build(slurm, f"gpus-{count}", text))
    nodes = re.search(r"^gpus: (.*)$", said, re.MULTILINE)
    cpus = re.search(r"Cpus_allowed_list:\s+(\S+)$", said, re.MULTILINE)
    assert state == "COMPLETED" and nodes and len(nodes[1].split()) == count and "*" not in nodes[1], \
        f"{state}\n{said}{slurm.output(number)}"
    # Nothing drives them, so an open that the cgroup allows finds no device.
    assert said.count("No such device or address") == count and "not permitted" not in said, f"they cannot be opened: {said}"
    assert cpus and len(numbers(cpus[1])) == 1, f"CPUs: {cpus and cpus[1]}"
    # The first one unpacks the image, and says so.
    own = [line for line in said.splitlines() if not line.startswith(("source ", "layer "))]
    assert "uid: 0 0" in own and len(own) == count + 5, said


def numbers(text):
    """The numbers of a list such as `0-2,5`."""
    parts = [part.split("-") for part in text.split(",")]
    return {number for part in parts for number in range(int(part[0]), int(part[-1]) + 1)}


def test_a_container_of_a_step_without_gpus_sees_none(slurm):
    text = job("none", "ls /dev | grep nvidia || echo none; echo ${CUDA_VISIBLE_DEVICES-unset}")
    number, state, said = finishes(slurm, build(slurm, "none", text))
    assert state == "COMPLETED" and "none" in said.split(), f"{state}: {said}{slurm.output(number)}"


def test_two_containers_have_different_gpus(slurm):
    """Two containers at once on one node have different GPUs, and never those of the other."""
    text = "ls /dev | grep -x 'nvidia[0-9]*'; sleep 2"
    numbers_of, seen = [], []
    for name in ("left", "right"):
        directory = build(slurm, name, job(name, text, "cpu: 1, memory: 64MiB, gpu: 3"))
        numbers_of.append((directory, slurm.submit(directory)))
    for directory, number in numbers_of:
        state = slurm.ends(number)
        said = "".join(slurm.logs_of(directory, number).values())
        seen.append(set(re.findall(r"nvidia\d+", said)))
        assert state == "COMPLETED" and len(seen[-1]) == 3, f"{state}: {said}{slurm.output(number)}"
    assert not seen[0] & seen[1], f"both have {seen[0] & seen[1]}"


@pytest.mark.parametrize("name, size, expected", [("greedy", MEMORY * 2, ("FAILED", "OUT_OF_MEMORY")), ("modest", MEMORY // 4, ("COMPLETED",))])
def test_the_kernel_ends_what_takes_more_memory_than_the_step_has(slurm, name, size, expected):
    """The container is not the only one that is told so."""
    number, state, said = finishes(slurm, build(slurm, name, job(name, f"dd if=/dev/zero of=/dev/null bs={size}M count=1")))
    assert state in expected and (name == "greedy") == ("oom-kill" in slurm.output(number)), f"{state}: {said}{slurm.output(number)}"


def test_limits_that_the_site_does_not_enforce_are_named(slurm):
    """Those that it enforces are not."""
    directory = build(slurm, "weaker", job("weaker", "echo runs", "cpu: 1, memory: 64MiB"))
    bundle = directory.parent / "oci/main-0"
    inside = [slurm.program, "run", "--cgroup", "inherited", "--root", slurm.home / "root", bundle]
    done = slurm.user("srun", "--mem=128M", "--cpus-per-task=1", *inside)
    assert done.returncode == 0 and "runs" in done.stdout and "`memory`" in done.stderr + done.stdout and "cpu" not in done.stderr, \
        f"exit {done.returncode}: {done.stdout}{done.stderr}"
    done = slurm.user("srun", "--mem=64M", "--cpus-per-task=1", *inside)
    assert done.returncode == 0 and "runs" in done.stdout and "warning" not in done.stderr, f"exit {done.returncode}: {done.stdout}{done.stderr}"


@pytest.mark.parametrize("words, expected", [([], ["rank none none"]), (["--mpi"], ["rank 3 0", "reached"])], ids=["none", "mpi"])
def test_a_rank_of_mpi_gets_the_variables_of_its_server(slurm, words, expected):
    """And its directory; other containers do not."""
    server = slurm.home / "pmix"
    slurm.write("pmix/socket", "reached\n")
    run = f'echo "rank ${{PMIX_RANK-none}} ${{SLURM_PROCID-none}}"; cat {server}/socket || :'
    bundle = build(slurm, "mpi", job("mpi", run, "cpu: 1, memory: 64MiB")).parent / "oci/main-0"
    done = slurm.user("srun", "--mem=64M", "--cpus-per-task=1", slurm.program, "run", "--cgroup", "inherited", *words, "--root", slurm.home / "root",
                      bundle, PMIX_RANK="3", PMIX_SERVER_TMPDIR=server)
    assert done.returncode == 0 and done.stdout.splitlines() == expected, f"exit {done.returncode}: {done.stdout}{done.stderr}"


def test_a_bundle_that_requests_more_gpus_than_the_step_has_does_not_start(slurm):
    """A bundle that asks for more GPUs than the step has does not start."""
    directory = build(slurm, "fewer", job("fewer", "echo runs", "cpu: 1, memory: 64MiB, gpu: 2"))
    inside = [slurm.program, "run", "--cgroup", "inherited", "--root", slurm.home / "root", directory.parent / "oci/main-0"]
    done = slurm.user("srun", "--mem=64M", "--gpus-per-node=1", *inside, JOBC_DRIVER_ROOT=slurm.driver)
    assert done.returncode != 0 and "asks for 2 GPUs, and 1 are available" in done.stderr, f"exit {done.returncode}: {done.stdout}{done.stderr}"


def test_signals_of_scancel_reach_the_program(slurm):
    """TERM, CONT and USR1 of scancel reach the program, and nothing is left of the step."""
    mark = "sleep 87654"
    run = f"trap 'echo got TERM; exit 0' TERM\ntrap 'echo got USR1' USR1\ntrap 'echo got CONT' CONT\necho up\n{mark} &\nwhile :; do wait || :; done"
    directory = build(slurm, "signals", job("signals", run))
    number = slurm.submit(directory)
    log = lambda: "".join(slurm.logs_of(directory, number).values())  # noqa: E731
    until(lambda: "up" in log())
    for name in ("USR1", "CONT"):
        slurm.user("scancel", f"--signal={name}", number)
        with contextlib.suppress(TimeoutError):
            until(lambda name=name: f"got {name}" in log(), 10)
        assert f"got {name}" in log(), f"no {name}: {log()}"
    slurm.user("scancel", number)
    state = slurm.ends(number)
    until(lambda: not slurm.user("squeue", "--noheader", "--job", number).stdout.strip())
    left = subprocess.run(["pgrep", "--full", mark], capture_output=True, text=True, check=False).stdout.split()
    assert state == "CANCELLED" and not left and "got TERM" in log(), f"{state}, left {left}: {log()}{slurm.output(number)}"


def test_secrets_are_in_files_beside_the_job_alone(slurm):
    """Secrets are files of mode 600 beside the job: not in scripts, in Slurm's knowledge of the job or in what is left on the node."""
    value = "s3cret-inside"
    more = "secrets: {token: {env: WANDB_API_KEY}}"
    run = f"printf '%s ' \"$TOKEN\" >{slurm.home}/seen; cat /etc/token >>{slurm.home}/seen"
    text = job("secrets", run, more=more) + "    env: {TOKEN: '${{ secrets.token }}'}\n    files: {/etc/token: {secret: token}}\n    data: {}\n"
    text = text.replace("    data: {}\n", "").replace("roles:\n", f"outputs: {{home: {{source: {slurm.home}, mount: {slurm.home}}}}}\nroles:\n")
    directory = build(slurm, "secrets", text)
    done = slurm.user("./submit.sh", cwd=directory, WANDB_API_KEY=value)
    number = done.stdout.strip()
    shown = slurm.user("scontrol", "show", "job", "--details", number).stdout
    state = slurm.ends(number)
    seen = slurm.home / "seen"
    assert state == "COMPLETED" and seen.read_text() == f"{value} {value}", f"{done.stderr}{state}\n{slurm.output(number)}"
    file = directory.parent.with_name("cluster.slurm") / "secrets/token"
    assert file.stat().st_mode & 0o777 == 0o600, f"mode {file.stat().st_mode:o}"
    places = [*(slurm.place / "state").rglob("*"), *(slurm.home / "secrets").rglob("*"), *Path(f"/tmp/jobc-{slurm.account.uid}").rglob("*"), *Path("/dev/shm").rglob("*")]
    texts = [shown.encode(), *(path.read_bytes() for path in places if path.is_file() and path != file)]
    assert not any(value.encode() in text for text in texts), "the value is elsewhere, too"


def test_ranks_that_start_at_once_unpack_an_image_once(slurm):
    """Ranks that start at once on a node unpack an image once, and the next ones start from what is there."""
    store = slurm.store()
    slurm.user("rm", "-rf", store)
    bundle = build(slurm, "together", job("together", "cat /mark", "cpu: 1")).parent / "oci/main-0"
    archive = slurm.home / "images/example.org_tools_1.tar"
    inside = f"exec {slurm.program} run --cgroup inherited --root {archive} --image-root {store} --id rank-$SLURM_PROCID {bundle}"
    done = slurm.user("srun", "--overcommit", "--ntasks=8", "--mem=512M", "sh", "-c", inside)
    assert done.returncode == 0 and done.stdout.split() == ["here"] * 8, f"exit {done.returncode}: {done.stdout}{done.stderr}"
    unpacked = [path for path in store.glob("unpacked/*/*") if (path / "files").is_dir()]
    assert len(unpacked) == 1 and done.stderr.count("import") <= 1, f"unpacked {[str(path) for path in unpacked]}\n{done.stderr}"


def test_ranks_pull_an_image_once(slurm):
    """Ranks that need an image of a registry pull it once."""
    slurm.user("rm", "-rf", slurm.store())
    with FakeRegistry(files_of(slurm.home / "root")) as registry:
        slurm.write(".config/jobc/registries.yaml", f"registries: {{'{registry.host}': {{plain_http: true}}}}\n")
        bundle = build(slurm, "pulled", job("pulled", "cat /mark", "cpu: 1", registry.name)).parent / "oci/main-0"
        inside = f"exec {slurm.program} run --cgroup inherited --image-root {slurm.store()} --id rank-$SLURM_PROCID {bundle}"
        done = slurm.user("srun", "--overcommit", "--ntasks=8", "--mem=512M", "sh", "-c", inside)
        blobs = [request["path"] for request in registry.requests_for("/blobs/") if request["method"] == "GET"]
    assert done.returncode == 0 and done.stdout.split() == ["here"] * 8, f"exit {done.returncode}: {done.stdout}{done.stderr}"
    assert len(blobs) == 2 and len(set(blobs)) == 2, f"the configuration and the layer are pulled by {blobs}"


@pytest.mark.parametrize("broken, words", [("disk", "no space left in the image store"), ("bytes", "digest")])
def test_a_pull_that_fails_says_why_in_each_rank(slurm, broken, words):
    """It leaves nothing that the next one would take: a full disk, a layer with other bytes."""
    store = slurm.home / f"broken-{broken}"
    slurm.user("mkdir", store)
    if broken == "disk":
        subprocess.run(["mount", "--no-mtab", "-t", "tmpfs", "-o", "size=256k,mode=1777", "none", store], check=True)
    image = files_of(slurm.home / "root")
    layer = max(image.blobs.values(), key=len)

    def changed(answer, content):
        return answer.blob(content[:-1] + b"x" if content == layer else content)

    with FakeRegistry(image, blob=changed if broken == "bytes" else None) as registry:
        slurm.write(".config/jobc/registries.yaml", f"registries: {{'{registry.host}': {{plain_http: true}}}}\n")
        bundle = build(slurm, "broken", job("broken", "cat /mark", "cpu: 1", registry.name)).parent / "oci/main-0"
        inside = f"exec {slurm.program} run --cgroup inherited --image-root {store}/store --id rank-$SLURM_PROCID {bundle}"
        done = slurm.user("srun", "--overcommit", "--ntasks=2", "--mem=512M", "sh", "-c", inside)
    assert done.returncode != 0 and "here" not in done.stdout and done.stderr.lower().count(words) >= 2, f"exit {done.returncode}: {done.stdout}{done.stderr}"


def files_of(root):
    """An image with the files of a directory as its layer."""
    image = Image(sizes=(1,))
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.add(root, ".")
    plain = archive.getvalue()
    config = json.dumps({"architecture": "amd64", "os": "linux", "config": {}, "rootfs": {"type": "layers", "diff_ids": [digest(plain)]}}).encode()
    layer = gzip.compress(plain, 1, mtime=0)
    image.blobs = {digest(blob): blob for blob in (config, layer)}
    body = {"schemaVersion": 2, "mediaType": MANIFEST, "config": image.descriptor(config, CONFIG), "layers": [image.descriptor(layer, LAYER)]}
    image.manifest = json.dumps(body).encode()
    return image


def test_a_warm_start_is_fast(slurm, note):
    """How long a container takes in a step whose image is unpacked, next to the namespaces alone."""
    bundle = build(slurm, "warm", job("warm", "true", "cpu: 1, memory: 64MiB")).parent / "oci/main-0"
    archive = slurm.home / "images/example.org_tools_1.tar"
    jobc = f"{slurm.program} run --cgroup inherited --root {archive} --image-root {slurm.store()} --id warm {bundle}"
    floor = f"unshare --user --map-root-user --mount --pid --ipc --uts --cgroup --fork --mount-proc {slurm.home}/root/bin/busybox true"
    done = slurm.user("srun", "--mem=64M", "bash", "-c", LOOP, "bash", 12, jobc, floor)
    times = [[int(word) for word in line.split()] for line in done.stdout.splitlines()]
    assert done.returncode == 0 and len(times) == 12, f"exit {done.returncode}: {done.stdout}{done.stderr}"
    container, namespaces = (statistics.median(each) / 1000 for each in zip(*times[2:]))
    note(f"warm start in a step {container:.1f} ms, namespaces alone {namespaces:.1f} ms, ratio {container / namespaces:.1f}")
    assert container <= 1000, f"a warm start takes {container:.0f} ms"


def make_images(slurm):
    """The image of the jobs: busybox, as an archive of its files and as a directory."""
    root = slurm.home / "root"
    for directory in (root / "bin", root / "tmp", root / "etc", slurm.home / "images"):
        slurm.user("mkdir", "-p", directory)
    slurm.user("cp", "/bin/busybox", root / "bin/busybox")
    slurm.user("/bin/busybox", "--install", "-s", root / "bin")
    for link in (root / "bin").iterdir():
        if link.is_symlink():
            link.unlink()
            link.symlink_to("busybox")
    slurm.write("root/mark", "here\n")
    slurm.user("tar", "-C", root, "-cf", slurm.home / "images/example.org_tools_1.tar", ".")


def cannot_confine():
    """What keeps this host from confining steps, if anything."""
    missing = [name for name in CONTROLLERS if not (CGROUPS / name / "tasks").exists()]
    if missing:
        return "cgroup v1"  # with cgroup v2, Debian's slurmd needs systemd
    return None if os.access(CGROUPS / "devices", os.W_OK) else "writable cgroups"
