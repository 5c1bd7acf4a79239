"""Tests the examples on a Slurm cluster: the cluster takes every script, tasks get the environment that `jobc run` gives, and the
examples run to their end.

Programs that no test host has (`python` with frameworks, `torchrun`, `mpirun`) are stand-ins that do nothing; what they would have read is
recorded before they start, and compared.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
from functools import cache
from pathlib import Path

import needs
import pytest

from cluster import mount
from harness import REPOSITORY

pytestmark = [pytest.mark.isolated, pytest.mark.duration(120)]
EXAMPLES = REPOSITORY / "examples"
# What shellcheck cannot know: variables of a file that is sourced (SC1090, SC2034, SC2154), that names of nodes have no spaces (SC2207), that
# words are put together of pieces with quotes of their own (SC2140), and that lists of nodes cannot fail (SC2155).
UNCHECKED = "SC1090,SC2034,SC2140,SC2154,SC2155,SC2207"
STUBS = ["python", "torchrun", "mpirun", "ray", "jupyter", "uvicorn"]
# Frameworks that no example has, as jobs of their own.
FRAMEWORKS = ["ddp", "deepspeed", "jax", "mpi"]
FRAMEWORK = """\
version: 1
name: {name}
image: host
roles:
  train:
    instances: 3
    resources: {{cpu: 2, memory: 64MiB, gpu: 2}}
    run: bash -c true
distributed: {{framework: {name}, roles: [train]}}
"""
# What is refused without a container.
REFUSED = re.compile(r"^ +(?:user|security): .*\n|, publish: service", re.MULTILINE)
# Examples with settings that containers of a kind cannot express, so that nothing is built: `network: job`, services, ssh and slices of
# GPUs with all, `image: host` where Slurm starts images.
IN_CONTAINERS = {"gpu-slice", "gpu-turns", "horovod-mpi", "jupyter", "local-jax", "local-ps", "local-tune"}
OF_IMAGES = IN_CONTAINERS | {"local-dag", "local-handoff", "local-sweep"}
REFUSES = {
    "none": {"gpu-turns", "local-tune", "tune"}, "jobc": IN_CONTAINERS, "apptainer": OF_IMAGES, "pyxis": OF_IMAGES,
    "oci": OF_IMAGES | {"dag", "ray", "resnet-1gpu", "tensorflow-ps", "torchrun-4x8", "torchrun-elastic", "tune"},
}
SECRET = re.compile(r"\{env: (\w+)\}")
# Run to their end, the first also with `--quick`. Examples with `subpath` need a container.
RUNS = ["local-dag", "torchrun-4x8", "tensorflow-ps", "local-handoff", "hello-cpu", "dag", "sweep", "torchrun-elastic", "horovod-mpi",
        "local-ps", "local-sweep", "all-gpus", "gpu-slice", "jupyter", "ray", "resnet-1gpu", *FRAMEWORKS]
QUICK = RUNS[:4]
# Ways to run containers, the first also with `--quick`.
CONTAINERS = ["none", "jobc", *(pytest.param(name, marks=pytest.mark.slow) for name in ("apptainer", "pyxis", "oci"))]
ALL = sorted(path.name for path in EXAMPLES.iterdir() if any(path.glob("job.*")))
SETTINGS = ("container: {container}, exclusive: true, images: /images, storage: {storage}, gpu_types: {{1g.10gb: a100}}, "
            "gpu_features: {{A100-80GB: a100_80g, H100: skylake}}, constraint: skylake")
# Writes the environment of what a task runs; the last program of a task has all of it. That of
# the script of a role, and of a check beside it, is before.
RECORD = """\
[ -z "${{SLURM_STEP_ID-}}" ] || [ -n "${{jobc_index-}}${{jobc_ready-}}" ] || env -0 >{place}/$SLURM_JOB_ID.$SLURM_STEP_ID.$SLURM_PROCID
"""


def volumes(job):
    """Data and outputs of a job file with where they are mounted."""
    found = {}
    for name, mount_at in re.findall(r"^  (\w+): \{.*mount: ([^ ,}]+)", job, re.MULTILINE):
        found[name] = mount_at
    return found


@cache
def built(slurm, example, container):
    """Builds an example for the cluster; returns the directories with scripts."""
    name = f"{example}-{container}"
    home = slurm.home / name
    if example in FRAMEWORKS:
        slurm.write(f"{name}/job.yaml", FRAMEWORK.format(name=example))
    elif not home.exists():
        shutil.copytree(EXAMPLES / example, home, ignore=shutil.ignore_patterns("out", "targets.yaml"))
        subprocess.run(["chown", "-R", slurm.account.name, home], check=True)
    job_file = next(path for path in sorted(home.iterdir()) if path.name in ("job.yaml", "job.json"))
    # All nodes are this host, where a port is taken once.
    text = job_file.read_text().replace("weights: 4000", "weights: auto")
    if container == "none":
        text = REFUSED.sub("", text)
    job_file.write_text(text)
    storage = volumes(job_file.read_text())
    backends = "[oci, slurm]" if container in ("jobc", "oci") else "[slurm]"
    settings = SETTINGS.format(container=container, storage=json.dumps(storage)) + f", jobc: {slurm.program}"
    gpus = "gpus: {driver: '570.0', cards: [{model: A100-80GB, count: 8}]}"
    slurm.write(f"{name}/targets.yaml", "version: 1\ntargets:\n"
                f"  cluster:\n    backends: {backends}\n    {gpus}\n    slurm: {{{settings}}}\n"
                f"  here: {{backends: [oci], {gpus}, oci: {{storage: {json.dumps(storage)}}}}}\n")
    done = slurm.user(slurm.program, "build", job_file.name, "--target", "cluster", "--allow-lossy", cwd=home)
    # What containers of a kind cannot express is refused, such as ssh between them; a part of a volume needs one, and turns on GPUs a host.
    if (container != "none" or "subpath" in text or "time: true" in text) and set(re.findall(r"^error\[(J\d+)\]", done.stderr, re.MULTILINE)) == {"J0401"}:
        return []
    if done.returncode:
        raise ValueError(f"build: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return sorted((home / "out").glob("*/cluster/slurm"))


@pytest.mark.together(3)
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("example", ALL)
def test_the_cluster_takes_every_script(slurm, example, container):
    directories = built(slurm, example, container)
    scripts = [path for directory in directories for path in sorted(directory.glob("*.sbatch"))]
    assert bool(scripts) != (example in REFUSES[container]), "no scripts" if not scripts else "it is not refused"
    for script in scripts:
        done = slurm.user("sbatch", "--test-only", script.name, cwd=script.parent)
        assert done.returncode == 0, f"{script.name}: {done.stderr.strip()}"


@pytest.mark.together(3)
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("example", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in ALL if name not in QUICK)])
def test_shellcheck_finds_nothing_in_the_scripts(slurm, example, container):
    # Of a matrix all are alike.
    directories = built(slurm, example, container)[:1]
    paths = [path for directory in directories for path in sorted(directory.rglob("*")) if path.suffix in (".sbatch", ".sh")]
    if not paths:
        return
    done = slurm.user(needs.tool("shellcheck"), "--severity=warning", "--format=gcc", f"--exclude={UNCHECKED}", *paths)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"


class Addresses:
    """Where tasks are on the cluster, or on one host."""

    def __init__(self, plan, hosts, first_port=None):
        self.plan, self.hosts, self.first_port = plan, hosts, first_port
        self.roles = {role["name"]: role for role in plan["roles"]}
        self.offsets, taken = {}, 0
        for role in plan["roles"]:
            for port in role.get("ports", []):
                if port["auto"] or "shared_base" in port:
                    self.offsets[role["name"], port["label"]] = taken
                    taken += port["count"] * role["instances"]

    def host(self, role, index):
        if self.hosts is not None:
            hosts = self.hosts.get(role, [])
            return hosts[index] if index < len(hosts) else ""
        return f"{role}-{index}" if self.plan["network"] == "job" else "127.0.0.1"

    def port(self, role, label, index):
        port = next(port for port in self.roles[role]["ports"] if port["label"] == label)
        if self.hosts is not None and (role, label) in self.offsets:
            return self.first_port + self.offsets[role, label] + index * port["count"]
        if self.hosts is None and self.plan["network"] != "job" and "shared_base" in port:
            return port["shared_base"] + index * port["count"]
        return port["number"]

    def count(self, role):
        return self.roles[role]["instances"] if self.hosts is None else len(self.hosts.get(role, []))

    def text(self, text, index):
        """A text of the plan as a task sees it."""
        if isinstance(text, str):
            return text
        return "".join(piece if isinstance(piece, str) else self.hole(*next(iter(piece.items())), index) for piece in text)

    def hole(self, kind, of, index):
        own = of.get("index", index) if isinstance(of, dict) else index
        if kind == "index":
            return str(index)
        if kind == "rank":
            return str(index + of["offset"])
        if kind == "host":
            return self.host(of["role"], own)
        if kind == "port":
            return str(self.port(of["role"], of["label"], own))
        if kind == "ports":
            return ",".join(str(self.port(of["role"], of["label"], own) + more) for more in range(of["count"]))
        one = [self.host(of["role"], other) + (f":{self.port(of['role'], of['label'], other)}" if of.get("label") else "")
               for other in range(self.count(of["role"]))]
        return of.get("separator", "").join(of.get("before", "") + address + of.get("after", "") for address in one)


def assigned(path):
    """The nodes of roles and the first port, as jobc wrote them."""
    text = path.read_text()
    lists = re.findall(r"^jobc_hosts_(\w+)=\((.*)\)$", text, re.MULTILINE)
    return {name: words.split() for name, words in lists}, int(re.search(r"jobc_port=(\d+)", text)[1])


def environment_of(slurm, directory, record):
    """The problems of the environments of the tasks of a job, on the cluster and in the bundles of `jobc run`."""
    target = directory.parent
    plan = json.loads((target / "plan.json").read_text())["jobs"][0]
    here = target.with_name("here") / "oci"
    plan_here = json.loads((here.parent / "plan.json").read_text())["jobs"][0]
    checked = 0
    for path in sorted(target.with_name("cluster.slurm").glob("jobc-*/state/*.addresses")):
        hosts, first_port = assigned(path)
        nodes = {role["name"]: hosts.get(role["name"].replace("-", "_"), []) for role in plan["roles"]}
        there = Addresses(plan, nodes, first_port)
        local = Addresses(plan_here, None)
        environments = {(found.get("SLURM_JOB_NAME"), found.get("SLURMD_NODENAME")): found for found in recorded(record)
                        if found.get("SLURM_SUBMIT_DIR") == str(directory)}
        for role in plan["roles"]:
            for index in range(len(nodes[role["name"]])):
                task = f"{role['name']}-{index}"
                found = environments.get((role["name"], nodes[role["name"]][index]))
                if not found:
                    continue
                bundle = dict(item.split("=", 1) for item in json.loads((here / task / "config.json").read_text())["process"]["env"])
                etc = f"{path.parents[1]}/etc/{task}/etc/jobc/"
                names = [name for name in role.get("provided_env", {}) if name not in role.get("env", {})]
                # Launchers take what says that processes start by Slurm.
                extra = {name for name in found if name.startswith("JOBC_")} - {name for name in bundle if name.startswith("JOBC_")}
                for name in names:
                    text = role.get("provided_env", {})[name]
                    expected = there.text(text, index)
                    expected = etc + expected.removeprefix("/etc/jobc/") if expected.startswith("/etc/jobc/") else expected
                    assert found.get(name) == expected, f"{task}: {name} is {found.get(name)!r} in the step, not {expected!r}"
                    assert bundle.get(name) == local.text(text, index), \
                        f"{task}: {name} is {bundle.get(name)!r} in the bundle, not {local.text(text, index)!r}"
                    checked += 1
                assert not extra - {"JOBC_COLOR"}, f"{task}: more variables in the step: {sorted(extra)}"
    for script in directory.glob("*.sbatch"):
        found = re.search(r"^(?:exec )?srun --job-name=(\S+)", script.read_text(), re.MULTILINE)
        if found:
            checked += environment_by_slurm(directory, plan, found[1], record)
    assert checked or not any(role.get("provided_env") for role in plan["roles"]), "nothing was recorded"


def recorded(record):
    """The environments of tasks, those of a step that came later after others."""
    for path in sorted(record.iterdir(), key=lambda path: path.stat().st_mtime):
        yield dict(item.split("=", 1) for item in path.read_text().split("\0") if "=" in item)


def environment_by_slurm(directory, plan, name, record):
    """The same of a role that one `srun` starts: it has the variables of its framework, and those of jobc that it asks for."""
    role = next(role for role in plan["roles"] if role["name"] == name)
    ports = sum(port["count"] * role["instances"] for role in plan["roles"] for port in role.get("ports", [])
                if port["auto"] or "shared_base" in port)
    checked = 0
    for found in recorded(record):
        if (found.get("SLURM_SUBMIT_DIR"), found.get("SLURM_JOB_NAME")) != (str(directory), name):
            continue
        index = int(found["SLURM_PROCID"])
        nodes = [f"n{number}" for first, last in re.findall(r"(\d+)(?:-(\d+))?", found["SLURM_JOB_NODELIST"])
                 for number in range(int(first), int(last or first) + 1)]
        there = Addresses(plan, {name: nodes}, 10240 + int(found["SLURM_JOB_ID"]) % (22528 // max(ports, 1)) * max(ports, 1))
        for variable, text in role.get("provided_env", {}).items():
            if variable not in role.get("env", {}):
                expected = there.text(text, index)
                assert found.get(variable) == expected, f"{name}-{index}: {variable} is {found.get(variable)!r}, not {expected!r}"
                checked += 1
    return checked


@pytest.fixture(scope="module")
def record(slurm):
    """Stand-ins in PATH, and a shell that records its environment."""
    record = slurm.home / "record"
    record.mkdir(mode=0o755)
    os.chown(record, slurm.account.uid, slurm.account.gid)
    for name in STUBS:
        stub = slurm.place / "bin" / name
        stub.write_text("#!/bin/bash\nexit 0\n")
        stub.chmod(0o755)
    (slurm.place / "record.sh").write_text(RECORD.format(place=shlex.quote(str(record))))
    slurm.log_in(f"BASH_ENV={slurm.place}/record.sh")
    return record


@pytest.mark.parametrize("example", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in RUNS if name not in QUICK)])
def test_an_example_runs_to_its_end(slurm, example, record):
    """With the environment that `jobc run` gives."""
    directories = built(slurm, example, "none")
    home = slurm.home / f"{example}-none"
    done = slurm.user(slurm.program, "build", "--target", "here", "--allow-lossy", cwd=home)
    if "write `network: job`" in done.stderr:
        # Several sshd need addresses of their own here, and have them on nodes.
        (home / "here.yaml").write_text((home / "job.yaml").read_text() + "network: job\n")
        done = slurm.user(slurm.program, "build", "here.yaml", "--target", "here", "--allow-lossy", cwd=home)
    assert done.returncode == 0, f"build: {done.stderr}"
    for name, place in volumes((home / "job.yaml").read_text()).items():
        source = home / "code" if name == "code" and (home / "code").exists() else slurm.home / f"{example}-{name}"
        source.mkdir(exist_ok=True)
        os.chown(source, slurm.account.uid, slurm.account.gid)
        Path(place).mkdir(exist_ok=True, parents=True)
        mount(source, place)
    try:
        jobs = []
        for directory in directories:
            if (directory / "array.sbatch").exists():
                jobs = [slurm.submit(directory, "array.sbatch")]
                break
            if (directory / "submit.sh").exists():
                done = slurm.user("./submit.sh", cwd=directory, **dict.fromkeys(SECRET.findall((home / "job.yaml").read_text()), "value"))
                assert done.returncode == 0, f"submit.sh: exit {done.returncode}\n{done.stderr}"
                jobs += [line.split()[-1] for line in done.stdout.splitlines()]
            elif not directory.parent.parent.name.rpartition("-")[2].isdigit() or len(directories) == 1:
                jobs.append(slurm.submit(directory))
        for job in jobs:
            state = slurm.ends(job, 120)
            # The parts of a heterogeneous job end with the first.
            assert state in ("COMPLETED", ["CANCELLED", "COMPLETED"]), f"job {job}: {state} {slurm.show(job).get('Reason')}\n{slurm.output(job)}"
        assert jobs, "nothing was submitted"
        # Tasks of an array are those of the directory where it was submitted.
        for directory in directories[:1] if (directories[0] / "array.sbatch").exists() else directories:
            environment_of(slurm, directory, record)
    finally:
        for place in volumes((home / "job.yaml").read_text()).values():
            subprocess.run(["umount", "--lazy", place], check=False)
