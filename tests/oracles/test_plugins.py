"""Checks what the plug-ins in examples/plugins write with the tools that read it: `docker-compose config` and `systemd-analyze verify`.

They are built by the test, after `jobc backend test`.
"""

import json
import os
import subprocess

import pytest
from artifacts import REPOSITORY
from documents import yaml
from problems import reports_problems

PLUGINS = REPOSITORY / "examples/plugins"
TIMEOUT = 120


def run(*words, cwd, env=None):
    done = subprocess.run([str(word) for word in words], cwd=cwd, env=env, capture_output=True, text=True, timeout=TIMEOUT)
    return done.returncode, done.stdout, done.stderr


def build(jobc, directory, out, env):
    """What `jobc backend test` and `jobc build` find wrong."""
    for words in (["backend", "test", directory.name], ["build", "--output", out]):
        code, stdout, stderr = run(jobc, *words, cwd=directory, env=env)
        if code:
            yield f"`jobc {words[0]}` exits with {code}: {stdout}{stderr}"


def compose_problems(file):
    """What Compose says of the file, and what of it does not come through."""
    code, stdout, stderr = run("docker-compose", "--file", file, "config", cwd=file.parent)
    if code:
        yield stderr.strip()
        return
    read = yaml.safe_load(stdout)["services"]
    if sorted(read) != ["prepare-0", "train-0", "train-1"]:
        yield f"its services are {sorted(read)}"
        return
    train = read["train-1"]
    gpus = train["deploy"]["resources"]["reservations"]["devices"]
    if [device["count"] for device in gpus] != [1]:
        yield f"its GPUs are {json.dumps(gpus)}"
    if train["environment"]["PET_NODE_RANK"] != "1" or train["environment"]["PRICE"].replace("$$", "$") != "5$":
        yield f"its environment is {json.dumps(train['environment'])}"
    if list(train["depends_on"]) != ["prepare-0"]:
        yield f"it depends on {train['depends_on']}"


def unit_problems(directory, scratch):
    """What systemd says of the units; a template is read as one of its instances."""
    units = []
    for path in sorted(directory.iterdir()):
        units.append(scratch / path.name.replace("@.", "@1."))
        units[-1].write_text(path.read_text())
    if not units:
        yield "there are no units"
    code, stdout, stderr = run("systemd-analyze", "verify", "--man=no", *units, cwd=scratch, env={**os.environ, "SYSTEMD_UNIT_PATH": f"{scratch}:"})
    remarks = [line for line in (stdout + stderr).splitlines() if any(unit.name in line for unit in units)]
    if code or remarks:
        yield f"exit code {code}: {remarks or stderr.strip()}"


@pytest.fixture
def environment(note):
    env = {**os.environ, "PATH": f"{PLUGINS / 'compose'}:{os.environ['PATH']}"}
    if subprocess.run(["unshare", "--user", "--mount", "true"], capture_output=True, check=False).returncode:
        note("this host allows no user namespaces: the program ran without the sandbox")
        env["JOBC_PLUGIN_SANDBOX"] = "off"
    return env


@pytest.mark.needs("docker-compose")
@reports_problems
def test_compose_reads_what_its_plug_in_writes(jobc, environment, tmp_path):
    problems = list(build(jobc, PLUGINS / "compose", tmp_path, environment))
    return problems or compose_problems(tmp_path / "desk/compose/compose.yaml")


@pytest.mark.needs("systemd-analyze")
@reports_problems
def test_systemd_accepts_the_units_that_its_plug_in_writes(jobc, environment, tmp_path):
    problems = list(build(jobc, PLUGINS / "systemd", tmp_path / "out", environment))
    return problems or unit_problems(tmp_path / "out/host/systemd", tmp_path)
