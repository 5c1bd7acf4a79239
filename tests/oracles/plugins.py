#!/usr/bin/env python3
"""Checks what the plug-ins in examples/plugins write with the tools that read it: `docker-compose config` and `systemd-analyze verify`.

It builds the examples itself, with JOBC or the debug build, and also runs `jobc backend test`.
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path

from common import REPOSITORY, Check, yaml

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


def compose_problems(program, file):
    """What Compose says of the file, and what of it does not come through."""
    code, stdout, stderr = run(program, "--file", file, "config", cwd=file.parent)
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


def unit_problems(program, directory):
    """What systemd says of the units; a template is read as one of its instances."""
    with tempfile.TemporaryDirectory(prefix="jobc-oracle-") as scratch:
        units = []
        for path in sorted(directory.iterdir()):
            unit = Path(scratch, path.name.replace("@.", "@1."))
            unit.write_text(path.read_text())
            units.append(unit)
        if not units:
            yield "there are no units"
        code, stdout, stderr = run(program, "verify", "--man=no", *units, cwd=scratch, env={**os.environ, "SYSTEMD_UNIT_PATH": f"{scratch}:"})
        remarks = [line for line in (stdout + stderr).splitlines() if any(unit.name in line for unit in units)]
        if code or remarks:
            yield f"exit code {code}: {remarks or stderr.strip()}"


def main():
    check = Check("plugins", "plug-ins")
    if check.given:
        check.skip("it builds its own examples")
    jobc = Path(os.environ.get("JOBC", REPOSITORY / "target/debug/jobc")).resolve()
    if not jobc.exists():
        check.missing("jobc", "`cargo build`")
    compose, systemd = check.tool("docker-compose"), check.tool("systemd-analyze")
    with tempfile.TemporaryDirectory(prefix="jobc-oracle-") as scratch:
        env = {**os.environ, "PATH": f"{PLUGINS / 'compose'}:{os.environ['PATH']}"}
        if subprocess.run(["unshare", "--user", "--mount", "true"], capture_output=True, check=False).returncode:
            check.note("this host allows no user namespaces: the program ran without the sandbox")
            env["JOBC_PLUGIN_SANDBOX"] = "off"
        out = Path(scratch, "compose")
        problems = list(build(jobc, PLUGINS / "compose", out, env))
        check.record(PLUGINS / "compose", problems or list(compose_problems(compose, out / "desk/compose/compose.yaml")))
        out = Path(scratch, "systemd")
        problems = list(build(jobc, PLUGINS / "systemd", out, env))
        check.record(PLUGINS / "systemd", problems or list(unit_problems(systemd, out / "host/systemd")))
    check.end()


main()
