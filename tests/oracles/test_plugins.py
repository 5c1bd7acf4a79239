"""Checks what the plug-ins in examples/plugins write with the tools that read it: `docker-compose config` and `systemd-analyze verify`.

They are built by the test, after `jobc backend test`.
"""

import os
import subprocess

import needs
import pytest
from artifacts import REPOSITORY
from documents import yaml

PLUGINS = REPOSITORY / "examples/plugins"
TIMEOUT = 120


def run(*words, cwd, env=None):
    done = subprocess.run([str(word) for word in words], cwd=cwd, env=env, capture_output=True, text=True, timeout=TIMEOUT)
    return done.returncode, done.stdout, done.stderr


def build(jobc, directory, out, env):
    """`jobc backend test` and `jobc build` must succeed."""
    for words in (["backend", "test", directory.name], ["build", "--output", out]):
        code, stdout, stderr = run(jobc, *words, cwd=directory, env=env)
        assert code == 0, f"`jobc {words[0]}` exits with {code}: {stdout}{stderr}"


@pytest.fixture
def environment(note):
    env = {**os.environ, "PATH": f"{PLUGINS / 'compose'}:{os.environ['PATH']}"}
    if subprocess.run(["unshare", "--user", "--mount", "true"], capture_output=True, check=False).returncode:
        note("this host allows no user namespaces: the program ran without the sandbox")
        env["JOBC_PLUGIN_SANDBOX"] = "off"
    return env


@pytest.mark.needs("docker-compose")
def test_compose_reads_what_its_plug_in_writes(jobc, environment, tmp_path):
    build(jobc, PLUGINS / "compose", tmp_path, environment)
    file = tmp_path / "desk/compose/compose.yaml"
    code, stdout, stderr = run("docker-compose", "--file", file, "config", cwd=file.parent)
    assert code == 0, stderr
    services = yaml.safe_load(stdout)["services"]
    assert sorted(services) == ["prepare-0", "train-0", "train-1"]
    train = services["train-1"]
    gpus = train["deploy"]["resources"]["reservations"]["devices"]
    assert [device["count"] for device in gpus] == [1], gpus
    assert train["environment"]["PET_NODE_RANK"] == "1" and train["environment"]["PRICE"].replace("$$", "$") == "5$", train["environment"]
    assert list(train["depends_on"]) == ["prepare-0"]


PROJECT = """\
services:
  prepare:
    image: python:3.12-slim
    command: python /app/prepare.py --out "a b"
    volumes: [./lib:/app:ro, ./data:/data]
    user: "1000:1000"
  train:
    image: pytorch/pytorch:2.4.0-cuda12.4-cudnn9-runtime
    entrypoint: [python, -u]
    command: [/app/train.py, "--price=5$$"]
    depends_on:
      prepare: {condition: service_completed_successfully}
    environment: {MODE: train, PRICE: "5$$"}
    working_dir: /app
    volumes: [./lib:/app:ro, ./data:/data:ro]
    shm_size: 2gb
    mem_limit: 8g
    cpus: 4
    pids_limit: 512
    stop_grace_period: 45s
    read_only: true
    deploy:
      resources:
        reservations:
          devices: [{driver: nvidia, count: 2, capabilities: [gpu]}]
  watch:
    image: busybox:1.37
    depends_on: [train]
    privileged: true
    environment: [WATCHED=train]
"""
# What the plug-in adds: an address and a name for each instance, and that nothing restarts it.
ADDED = {"hostname", "restart", "networks"}


def meaning(service):
    """What Docker Compose reads of a service, with each amount where it is written, and names of services for those of instances."""
    out = {key: value for key, value in service.items() if key not in ADDED and value is not None}
    words = [*(out.pop("entrypoint", None) or []), *(out.pop("command", None) or [])]
    environment = {name: value for name, value in out.pop("environment", {}).items() if not name.startswith("JOBC_")}
    limits = out.get("deploy", {}).get("resources", {}).pop("limits", {})
    amounts = {"cpus": float(out.pop("cpus", limits.get("cpus", 0))), "memory": int(out.pop("mem_limit", limits.get("memory", 0))),
               "pids": out.pop("pids_limit", limits.get("pids"))}
    # jobc waits for 30 seconds where a job says nothing, Compose for 10.
    out.setdefault("stop_grace_period", "30s")
    if not out.get("deploy", {}).get("resources"):
        out.pop("deploy", None)
    waits = {name.removesuffix("-0"): wait for name, wait in out.pop("depends_on", {}).items()}
    return {**out, **amounts, "words": words, "environment": environment, "depends_on": waits}


def test_an_imported_project_means_the_same_to_docker_compose(jobc, environment, tmp_path):
    compose = REPOSITORY / ".oracles/compose/docker-compose"
    if not compose.exists():
        needs.missing("Docker Compose 2", "`tests/oracles/install`")
    project = tmp_path / "project"
    (project / "lib").mkdir(parents=True)
    (project / "data").mkdir()
    (project / "compose.yaml").write_text(PROJECT)
    (project / "targets.yaml").write_text("version: 1\ntargets:\n  desk: {backends: [compose]}\n")
    for words in (["import", "compose.yaml", "-o", "job.yaml"], ["build", "job.yaml"]):
        code, stdout, stderr = run(jobc, *words, cwd=project, env=environment)
        assert code == 0, f"`jobc {words[0]}` exits with {code}: {stdout}{stderr}"
    built, = project.glob("out/**/compose.yaml")
    services = []
    for path in (project / "compose.yaml", built):
        code, stdout, stderr = run(compose, "--file", path, "config", "--format", "json", cwd=path.parent)
        assert code == 0, stderr
        services.append({name.removesuffix("-0"): meaning(service) for name, service in yaml.safe_load(stdout)["services"].items()})
    assert services[0] == services[1]


@pytest.mark.needs("systemd-analyze")
def test_systemd_accepts_the_units_that_its_plug_in_writes(jobc, environment, tmp_path):
    build(jobc, PLUGINS / "systemd", tmp_path / "out", environment)
    units = []
    for path in sorted((tmp_path / "out/host/systemd").iterdir()):
        # A template is read as one of its instances.
        units.append(tmp_path / path.name.replace("@.", "@1."))
        units[-1].write_text(path.read_text())
    assert units, "there are no units"
    code, stdout, stderr = run("systemd-analyze", "verify", "--man=no", *units, cwd=tmp_path, env={**os.environ, "SYSTEMD_UNIT_PATH": f"{tmp_path}:"})
    remarks = [line for line in (stdout + stderr).splitlines() if any(unit.name in line for unit in units)]
    assert code == 0 and not remarks, f"exit code {code}: {remarks or stderr.strip()}"
