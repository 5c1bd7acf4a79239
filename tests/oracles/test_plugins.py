"""Checks what the plug-ins in examples/plugins write with the tools that read it: `docker-compose config` and `systemd-analyze verify`.

They are built by the test, after `jobc backend test`.
"""

import os
import subprocess

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
