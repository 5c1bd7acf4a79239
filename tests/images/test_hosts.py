"""Tests what builds have of the host: proxies, certificates of a CA, secrets and limits; the same in `jobc image build` and in `jobc run` of a
job that names an image block or a Dockerfile."""

import json
import shlex
import shutil
import subprocess

import pytest

import web
from home import Home, assert_result
from registry import command, registry
from runtime import binary

pytestmark = [pytest.mark.duration(15), pytest.mark.needs("root", "busybox", "openssl", "docker-registry", "skopeo")]

BASE = "FROM scratch\nCOPY busybox /bin/sh\nCOPY busybox /bin/cat\nCOPY busybox /bin/env\nCOPY busybox /bin/grep\nCOPY busybox /bin/ls\nCOPY --chmod=755 <<'EOF' /bin/bash\n#!/bin/sh\nexec /bin/sh \"$@\"\nEOF\n"
DOORS = ["image build", "jobc run of a Dockerfile", "jobc run of a block"]


@pytest.fixture
def context(home):
    context = home.directory / "context"
    context.mkdir()
    shutil.copy(shutil.which("busybox"), context / "busybox")
    (context / "Dockerfile").write_text(BASE)
    assert_result(home.run("image", "build", "--builder", "embedded", "-t", "bb:1", context))
    return context


def build(home, context, door, run, *words, mount="", **environment):
    """Builds an image whose only step is a command, through a door of this program; returns what the command printed."""
    shutil.rmtree(home.store / "cache/steps", ignore_errors=True)
    (context / "Dockerfile").write_text(f"FROM bb:1\nRUN {mount}{run}\n")
    job = {"version": 1, "name": "a", "image": {"dockerfile": "Dockerfile"}, "roles": {"main": {"shell": "sh", "run": "true"}}}
    if door == DOORS[2]:
        job["image"] = {"from": "bb:1", "run": [run]}
    if mount:
        job["secrets"] = {"token": {"env": "TOKEN"}}
        if door == DOORS[2]:
            job["image"]["secrets"] = ["token"]
    (context / "job.yaml").write_text(json.dumps(job))
    secret = ["--secret", "id=token,env=TOKEN"] if mount else []
    words = ["image", "build", "--builder", "embedded", "--no-cache", *secret, *words, context] if door == DOORS[0] else ["run", context / "job.yaml"]
    result = home.run(*words, seconds=120, **environment)
    return result, [line.split("] ", 1)[-1] for line in result.stderr.splitlines() if line.startswith("[")]


@pytest.mark.parametrize("door", DOORS)
def test_commands_have_the_proxies_of_the_user(home, context, door):
    docker = home.directory / ".docker/config.json"
    docker.parent.mkdir()
    docker.write_text(json.dumps({"proxies": {"default": {"httpProxy": "http://docker.test:1", "noProxy": "n.test"}}}))
    result, lines = build(home, context, door, "env", HTTPS_PROXY="http://environment.test:2")
    expected = {"HTTPS_PROXY=http://environment.test:2", "HTTP_PROXY=http://docker.test:1", "http_proxy=http://docker.test:1", "NO_PROXY=n.test"}
    assert expected <= set(lines), f"{lines}: {result.stderr}"
    names = [entry["name"] for entry in json.loads(home.run("image", "ls", "--format", "json").stdout)]
    assert not [name for name in names if "PROXY" in home.run("image", "inspect", name).stdout.upper()], "a proxy is in an image"


@pytest.mark.parametrize("door", DOORS)
def test_commands_trust_a_ca_while_the_image_is_built(home, context, ca, door):
    own = (ca / "ca.pem").read_text().split("\n")[1]
    script = f"echo $SSL_CERT_FILE $PIP_CERT; grep -c -F {own} $SSL_CERT_FILE; cat $APT_CONFIG; ls /run/jobc/certificates"
    words = []
    if door == DOORS[0]:
        words = ["--ca", ca / "ca.pem", "-t", "trusting:1"]
    else:
        home.registries(json.dumps({"ca": [str(ca / "ca.pem")]}))
    result, lines = build(home, context, door, script, *words)
    path = "/run/jobc/certificates/ca.pem"
    assert [f"{path} {path}", "1", f'Acquire::https::CAInfo "{path}";'] == lines[-5:-2] or f"{path} {path}" in lines and "1" in lines, result.stderr
    if door == DOORS[0]:
        manifest = json.loads(home.run("image", "inspect", "trusting:1").stdout)
        assert "jobc/certificates" not in json.dumps(manifest["config"]["config"]), "a variable is in the image"
        out = home.directory / "out"
        assert_result(home.run("image", "build", "--builder", "embedded", "-o", out, *words, context))
        assert not (out / "run/jobc/certificates").exists() or not list((out / "run/jobc/certificates").iterdir()), "the CA is in the image"


def test_the_image_decides_about_its_own_variables(home, context, ca):
    (context / "Dockerfile").write_text("FROM bb:1\nENV SSL_CERT_FILE=/own\nARG PIP_CERT=/arg\nRUN echo $SSL_CERT_FILE $PIP_CERT\n")
    result = home.run("image", "build", "--builder", "embedded", "--ca", ca / "ca.pem", context)
    assert_result(result, 0, "/own /arg")


def test_downloads_git_and_pulls_trust_the_ca(home, context, ca, shared):
    repositories = home.directory / "git"
    repositories.mkdir()
    command("git", "init", "--quiet", "--bare", repositories / "r.git")
    work = home.directory / "work"
    command("git", "clone", "--quiet", repositories / "r.git", work)
    (work / "d").mkdir()
    (work / "d/f").write_text("in git\n")
    for words in (["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "x"], ["tag", "v1"], ["push", "--quiet", "--all"],
                  ["push", "--quiet", "--tags"]):
        command("git", "-C", work, *words)
    commit = command("git", "-C", work, "rev-parse", "HEAD").stdout.strip()
    with web.Web(ca, git=repositories) as server:
        server.files = {"/f": b"downloaded\n"}
        (context / "Dockerfile").write_text(f"FROM bb:1\nADD {server.url}/f /f\nADD {server.url}/git/r.git?tag=v1&subdir=d&commit={commit[:9]} /d/\n")
        words = ["image", "build", "--builder", "embedded", "--no-cache", "-o", home.directory / "out", context]
        assert_result(home.run(*words), 1, "certificate")
        assert_result(home.run(*words, "--ca", ca / "ca.pem"))
        assert (home.directory / "out/f").read_text() + (home.directory / "out/d/f").read_text() == "downloaded\nin git\n"
        (context / "Dockerfile").write_text(f"FROM bb:1\nADD {server.url}/git/r.git?tag=v1&commit={commit[1:9]} /d/\n")
        assert_result(home.run(*words, "--ca", ca / "ca.pem"), 1, "does not match", "Dockerfile:2")
    assert_result(home.run(*words, "--ca", "/nowhere"), 2, "/nowhere")
    with registry(home.directory / "registry", tls=lambda directory: [shutil.copy(ca / name, directory) for name in ("server.pem", "server.key")]) as host:
        (context / "Dockerfile").write_text("FROM bb:1\n")
        words = ["image", "build", "--builder", "embedded", "--push", "-t", f"{host}/pushed:1", context]
        home.registries(json.dumps({"ca": [str(ca / "ca.pem")]}))
        assert_result(home.run(*words), 0, f"pushed {host}/pushed@sha256:")
        shown = json.loads(command("skopeo", "inspect", "--tls-verify=false", f"docker://{host}/pushed:1").stdout)
        assert shown["Digest"] in home.run(*words).stderr
        # A base image through the same CA.
        other = Home(home.directory / "other")
        (context / "Dockerfile").write_text(f"FROM {host}/pushed:1\n")
        words = ["image", "build", "--builder", "embedded", "-t", "x", context]
        assert_result(other.run(*words), 1, "certificate")
        assert_result(other.run(*words, "--ca", ca / "ca.pem"))


@pytest.mark.parametrize("door", DOORS)
def test_a_secret_of_the_job_is_a_secret_of_its_build(home, context, door):
    mount = "--mount=type=secret,id=token,required "
    result, lines = build(home, context, door, "cat /run/secrets/token", mount=mount, TOKEN="hunter2-secret")
    assert "hunter2-secret" in lines or "hunter2-secret" in result.stderr, result.stderr


def test_commands_have_the_limits_of_the_options(home, context):
    result, lines = build(home, context, DOORS[0], "ulimit -n; ulimit -H -n", "--ulimit", "nofile=77:99", "--memory", "64m")
    assert_result(result)
    assert lines[-2:] == ["77", "99"], result.stderr
    eaten, _ = build(home, context, DOORS[0], "x=a; while :; do x=$x$x; done", "--memory", "32m")
    assert_result(eaten, 1, "killed by signal 9")
    for words, why in ((["--ulimit", "files=1"], "unknown limit `files`"), (["--ulimit", "nofile=2:1"], "larger than the hard"),
                       (["--memory", "much"], "invalid size `much`"), (["--push"], "`--push` needs a name")):
        assert_result(build(home, context, DOORS[0], "true", *words)[0], 2, why)


def test_check_builds_nothing(home, context):
    names = home.names()
    for text, code, words in (("FROM bb:1\nRUN true\n", 0, ["nothing was built"]), ("FROM bb:1 AS Upper\n", 0, ["J0615"]),
                              ("# check=error=true\nFROM bb:1\nMAINTAINER x\n", 1, ["error[J0620]"]), ("FROM bb:1\nRUNN x\n", 1, ["error[J0601]"]),
                              ("FROM bb:1\nRUN --security=insecure x\n", 0, ["J0612"]), ("FROM nowhere.test/x:1\n", 0, [])):
        (context / "Dockerfile").write_text(text)
        result = home.run("image", "build", "--check", "-t", "checked", context)
        assert_result(result, code, *words)
    assert home.names() == names


def test_plain_progress_has_no_bars(home, context):
    (context / "Dockerfile").write_text("FROM bb:1\nRUN true\n")
    words = [binary(), "image", "build", "--builder", "embedded", "--progress", "plain", context]
    script = subprocess.run(["script", "-qec", shlex.join(map(str, words)), "/dev/null"],
                            env=home.environment | {"TERM": "xterm"}, capture_output=True, text=True, check=False)
    assert script.returncode == 0 and "\x1b[" not in script.stdout and "RUN true" in script.stdout, script.stdout


def test_gc_frees_what_was_fetched_of_a_blob(home, context):
    partial = home.store / "partial" / ("sha256-" + "a" * 64)
    partial.write_bytes(b"x" * 100_000)
    assert "incomplete blob" in home.run("image", "gc", "--dry-run").stdout and partial.exists()
    result = home.run("image", "gc")
    assert_result(result)
    assert "1 incomplete blob" in result.stdout and not partial.exists(), result.stdout
