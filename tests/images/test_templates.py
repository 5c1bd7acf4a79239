"""Tests templates from Git by real servers on loopback: git-http-backend behind TLS with and without a login, and sshd.

What goes wrong is an error at the line of `uses`, and leaves neither a lock nor files.
"""

import base64
import shutil
import socket
import subprocess
import time

import pytest

import web
from harness import scratch
from home import Home, assert_result
from remote import agent, git, repository, ssh_home, ssh_server
from runtime import binary

pytestmark = [pytest.mark.duration(9), pytest.mark.needs("git", "openssl")]

SECONDS = 60
TEMPLATE = "template: 1\nkind: job\nparams: {word: one}\nbody:\n  image: host\n  roles: {main: {run: \"echo ${{ with.word }}\"}}\n"
JOB = "version: 1\nname: locked\nuses: \"git+{}//{}@{}\"\n"
PLACE = "job.yaml:3:7"
LOGIN = ("me", "w0rd")


class Job:
    """A directory with a job that uses a template, and a home directory with a cache."""

    def __init__(self, directory):
        self.prefix, self.home = [], Home(directory)
        self.directory = self.home.directory

    def run(self, *words, **environment):
        return subprocess.run([*self.prefix, binary(), *words], env=self.home.environment | environment, cwd=self.directory, capture_output=True,
                              text=True, timeout=SECONDS, check=False)

    def lock(self, address, path="train", reference="main", **environment):
        """Locks a job without a lock and without a cache."""
        (self.directory / "job.yaml").write_text(JOB.format(address, path, reference))
        shutil.rmtree(self.directory / ".cache", ignore_errors=True)
        (self.directory / "jobc.lock").unlink(missing_ok=True)
        return self.run("lock", **environment)

    def locked(self, result, commit):
        """The job has been locked, and a plan can be made without the network."""
        assert_result(result)
        assert commit in (self.directory / "jobc.lock").read_text()
        offline = self.run("plan", "--format", "json", GIT_SSH_COMMAND="false", https_proxy="http://127.0.0.1:1")
        assert_result(offline)
        assert "echo one" in offline.stdout

    def failed(self, result, *words):
        """A lock has failed, and leaves neither a lock nor files."""
        assert_result(result, 1, "J0297", PLACE, *words)
        assert not (self.directory / "jobc.lock").exists()
        assert not list((self.directory / ".cache").rglob("fetch-*"))


def basic(login):
    """The value of a header with a login."""
    return "Basic " + base64.b64encode(":".join(login).encode()).decode()


def protect(server, login):
    """Lets only requests with a login through to the repositories below /git/private; without one they get 401."""
    def hooked(request):
        if request.headers.get("Authorization") != basic(login):
            request.rfile.read(int(request.headers.get("Content-Length") or 0))
            return request.answer(401, b"no\n", WWW_Authenticate='Basic realm="here"')
        return web.backend(request, server)
    for path in ("info/refs", "git-upload-pack"):
        server.hooks[f"/git/private.git/{path}"] = hooked


@pytest.fixture(scope="module")
def root(shared):
    """Repositories: `main` and `private`, which needs a login."""
    root = shared / "repositories"
    root.mkdir()
    return root


@pytest.fixture(scope="module")
def commit(root):
    files = {"train/template.yaml": TEMPLATE, "huge/template.yaml": TEMPLATE, "huge/data": "x" * (5 << 20), "file": "main\n"}
    repository(root, "private", files)
    return repository(root, "main", files)


@pytest.fixture(scope="module")
def unused(root, commit):
    """A commit that no branch has."""
    return git(root, "--git-dir=main.git", "commit-tree", "-m", "x", f"{commit}^{{tree}}")


@pytest.fixture(scope="module")
def server(ca, root, commit):
    with web.Web(ca, git=root) as server:
        protect(server, LOGIN)
        server.main, server.private = f"{server.url}/git/main.git", f"{server.url}/git/private.git"
        yield server


@pytest.fixture
def job(directory, ca):
    """A job of a user who trusts the CA of the server."""
    job = Job(directory)
    (directory / ".gitconfig").write_text(f"[http]\n\tsslCAInfo = {ca}/ca.pem\n")
    return job


@pytest.mark.parametrize("name", ["GIT_SSL_CAINFO", "SSL_CERT_FILE", None])
def test_a_certificate_is_trusted_by_a_variable_or_the_configuration(job, ca, server, commit, name):
    if name:
        (job.directory / ".gitconfig").unlink()
    job.locked(job.lock(server.main, **({name: f"{ca}/ca.pem"} if name else {})), commit)


def test_a_template_is_locked_by_a_commit_or_a_tag(job, server, commit, unused):
    job.locked(job.lock(server.main, reference=commit), commit)
    job.locked(job.lock(server.main, reference="v1"), commit)
    job.locked(job.lock(server.main, reference=unused), unused)


@pytest.mark.parametrize("name, more, words", [
    ("main", {"reference": "12" * 20}, ["has no commit `1212"]),
    ("main", {"reference": "v9"}, ["no branch or tag `v9`"]),
    ("main", {"path": "none"}, ["the repository has no `none`"]),
    ("main", {"path": "huge"}, ["more than 256 files or 4 MiB"]),
    ("none", {}, ["not found", "check the name"]),
    ("main", {"GIT_CONFIG_GLOBAL": "/dev/null"}, ["certificate", "`http.sslCAInfo`"]),
], ids=["commit", "branch", "path", "too_large", "repository", "unknown_certificate"])
def test_a_template_that_cannot_be_locked_is_reported_at_its_line(job, server, name, more, words):
    job.failed(job.lock(f"{server.url}/git/{name}.git", **more), *words)


def test_a_login_that_is_needed_is_reported_without_a_question(job, server):
    before = time.monotonic()
    job.failed(job.lock(server.private), f"`{server.private}` requires a login", "credential helper")
    assert time.monotonic() - before < 20


def store_login(job, server, login):
    (job.directory / ".git-credentials").write_text(server.url.replace("://", "://{}:{}@".format(*login)) + "\n")
    git(job.directory, "config", "--file", ".gitconfig", "credential.helper", "store")


def test_a_login_of_a_credential_helper_is_used_and_not_written(job, server, commit):
    store_login(job, server, LOGIN)
    job.locked(job.lock(server.private), commit)
    assert LOGIN[1] not in (job.directory / "jobc.lock").read_text()


def test_a_login_by_GIT_ASKPASS_or_a_header_is_used(job, ca, server, commit):
    askpass = job.directory / "askpass"
    askpass.write_text(f"#!/bin/sh\ncase $1 in User*) echo {LOGIN[0]};; *) echo {LOGIN[1]};; esac\n")
    askpass.chmod(0o755)
    plain = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_SSL_CAINFO": f"{ca}/ca.pem"}
    job.locked(job.lock(server.private, GIT_ASKPASS=str(askpass), **plain), commit)
    # As in CI.
    header = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "http.extraHeader", "GIT_CONFIG_VALUE_0": f"Authorization: {basic(LOGIN)}"}
    job.locked(job.lock(server.private, **header, **plain), commit)


def test_a_login_that_is_refused_is_reported_without_its_password(job, server):
    store_login(job, server, ("me", "w0rng"))
    wrong = job.lock(server.private)
    job.failed(wrong, "refused the login", "credential helper")
    assert "w0rng" not in wrong.stderr


def test_a_repository_that_moved_is_followed_but_not_to_plain_http(job, root, server, commit):
    server.hooks["/git/old.git/info/refs"] = lambda request: request.answer(301, Location=f"{server.main}/info/refs?service=git-upload-pack")
    job.locked(job.lock(f"{server.url}/git/old.git"), commit)
    with web.Web(git=root) as open_server:
        down = f"{open_server.url}/git/main.git/info/refs?service=git-upload-pack"
        server.hooks["/git/down.git/info/refs"] = lambda request: request.answer(301, Location=down)
        job.failed(job.lock(f"{server.url}/git/down.git"), "failed")


def test_insteadOf_of_the_user_is_used_but_no_command_of_the_configuration_runs(job, server, commit):
    marks = job.directory / "mark"
    with (job.directory / ".gitconfig").open("a") as configuration:
        configuration.write(
            f"[core]\n\tfsmonitor = touch {marks}\n\thooksPath = {job.directory}\n[protocol]\n\tallow = always\n[url \"ext::touch {marks} \"]\n"
            f"\tinsteadOf = https://strange.example/\n[url \"{server.url}/git/\"]\n\tinsteadOf = https://short.example/\n")
    job.locked(job.lock("https://short.example/main.git"), commit)
    job.failed(job.lock("https://strange.example/main.git"), "https://")
    assert not marks.exists()


def test_the_repository_of_a_locked_template_is_needed_only_without_the_cache(job, root, server, commit):
    shutil.copytree(root / "main.git", root / "gone.git")
    job.lock(f"{server.url}/git/gone.git")
    shutil.rmtree(root / "gone.git")
    job.locked(job.run("lock"), commit)
    shutil.rmtree(job.directory / ".cache")
    assert_result(job.run("lock"), 1, "J0297", PLACE, "not found")


def test_a_server_that_is_not_there_is_reported(job):
    job.failed(job.lock("https://localhost:1/r"), "onnect")


def test_a_lock_that_waits_for_a_server_can_be_ended(job):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        (job.directory / "job.yaml").write_text(JOB.format(f"https://localhost:{silent.getsockname()[1]}/r", "train", "main"))
        process = subprocess.Popen([binary(), "lock"], env=job.home.environment, cwd=job.directory, stderr=subprocess.PIPE, text=True)
        time.sleep(0.7)
        process.terminate()
        try:
            assert "canceled" in process.communicate(timeout=10)[1]
        finally:
            process.kill()


@pytest.fixture
def ssh(root, commit):
    """A job with ~/.ssh, where a host is known; the address of `main` there, a key, and the variable of an agent that has it."""
    with scratch() as directory, agent(directory) as (path, key), ssh_server(directory, key) as (port, known):
        job, (home, prefix) = Job(directory / "job"), ssh_home(directory)
        job.prefix, job.ssh, job.key, job.port, job.sock = prefix, home, key, port, {"SSH_AUTH_SOCK": str(path)}
        job.address = f"ssh://root@127.0.0.1:{port}{root}/main.git"
        (home / "known_hosts").write_text(known)
        yield job


@pytest.mark.needs("root", "sshd", "ssh-agent", "ssh-add", "ssh-keygen")
class TestSsh:
    def test_a_host_that_is_not_known_is_not_trusted(self, ssh):
        (ssh.ssh / "known_hosts").unlink()
        ssh.failed(ssh.lock(ssh.address, **ssh.sock), "Host key verification failed", "known_hosts")

    def test_keys_are_those_of_the_agent_the_user_and_the_configuration(self, ssh, commit):
        ssh.failed(ssh.lock(ssh.address), "Permission denied", "ssh-add")
        ssh.locked(ssh.lock(ssh.address, **ssh.sock), commit)
        ssh.locked(ssh.lock(ssh.address, GIT_SSH_COMMAND=f"ssh -i {ssh.key}"), commit)
        configuration = ssh.directory / ".gitconfig"
        configuration.write_text(f"[core]\n\tsshCommand = ssh -i {ssh.key}\n")
        ssh.locked(ssh.lock(ssh.address), commit)
        configuration.unlink()
        shutil.copy2(ssh.key, ssh.ssh / "id_ed25519")
        ssh.locked(ssh.lock(ssh.address), commit)

    def test_a_template_is_locked_by_a_commit_of_a_branch(self, ssh, commit, unused):
        ssh.locked(ssh.lock(ssh.address, reference=commit, **ssh.sock), commit)
        ssh.failed(ssh.lock(ssh.address, reference=unused, **ssh.sock), f"no commit `{unused}")
        ssh.failed(ssh.lock(ssh.address, reference="12" * 20, **ssh.sock), "has no commit `1212")
        ssh.failed(ssh.lock(ssh.address.replace("main.git", "none.git"), **ssh.sock), "not appear to be a git", "check the name")
        ssh.failed(ssh.lock("ssh://root@127.0.0.1:1/r"), "Connection refused")

    def test_a_host_is_that_of_the_users_configuration(self, ssh, root, commit):
        (ssh.ssh / "config").write_text(f"Host box\n  HostName 127.0.0.1\n  Port {ssh.port}\n  User root\n  IdentityFile {ssh.key}\n"
                                        f"  HostKeyAlias [127.0.0.1]:{ssh.port}\n")
        (ssh.ssh / "config").chmod(0o600)
        ssh.locked(ssh.lock(f"ssh://box{root}/main.git"), commit)
