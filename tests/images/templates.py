#!/usr/bin/env python3
"""Tests templates from Git by real servers on loopback: git-http-backend behind TLS with and without a login, and sshd.

What goes wrong is an error at the line of `uses`, and leaves neither a lock nor files.
"""

import base64
import contextlib
import shutil
import socket
import subprocess
import time
from pathlib import Path

from home import Home
from harness import Harness, scratch
from registry import certificate
from remote import agent, git, refused, repository, ssh_server, succeeded
from runtime import binary
import web

SECONDS = 60
TEMPLATE = "template: 1\nkind: job\nparams: {word: one}\nbody:\n  image: host\n  roles: {main: {run: \"echo ${{ with.word }}\"}}\n"
JOB = "version: 1\nname: locked\nuses: \"git+{}//{}@{}\"\n"
PLACE = "job.yaml:3:7"
LOGIN = ("me", "w0rd")


class Job:
    """A directory with a job that uses a template, and a home directory with a cache."""

    def __init__(self, directory, **environment):
        self.directory, self.environment, self.prefix = directory, environment, []
        self.home = Home(directory)
        self.directory.mkdir()

    def run(self, *words, seconds=SECONDS, **environment):
        variables = self.home.environment | self.environment | environment
        return subprocess.run([*self.prefix, binary(), *words], env=variables, cwd=self.directory, capture_output=True, text=True,
                              timeout=seconds, check=False)

    def lock(self, address, path="train", reference="main", **environment):
        """Locks a job without a lock and without a cache."""
        (self.directory / "job.yaml").write_text(JOB.format(address, path, reference))
        shutil.rmtree(self.directory / ".cache", ignore_errors=True)
        (self.directory / "jobc.lock").unlink(missing_ok=True)
        return self.run("lock", **environment)

    def good(self, result, commit, offline=False):
        """Problems of a job that has been locked; with `offline`, a plan must be made without the network."""
        yield from succeeded(result)
        lock = self.directory / "jobc.lock"
        if not lock.exists() or commit not in lock.read_text():
            yield f"jobc.lock does not have {commit}"
        if not offline:
            return
        offline = self.run("plan", "--format", "json", GIT_SSH_COMMAND="false", https_proxy="http://127.0.0.1:1")
        yield from succeeded(offline)
        if "echo one" not in offline.stdout:
            yield f"the plan is {offline.stdout}"

    def failed(self, result, *words):
        """Problems of a lock that must have failed."""
        yield from refused(result, "J0297", PLACE, *words)
        if (self.directory / "jobc.lock").exists():
            yield "jobc.lock was written"
        yield from (f"{path} is left" for path in (self.directory / ".cache").rglob("fetch-*"))


def protect(server, login):
    """Lets only requests with a login through to the repositories below /git/private; without one they get 401."""
    def hooked(request):
        given = request.headers.get("Authorization", "")
        if given != "Basic " + base64.b64encode(":".join(login).encode()).decode():
            request.rfile.read(int(request.headers.get("Content-Length") or 0))
            return request.answer(401, b"no\n", WWW_Authenticate='Basic realm="here"')
        return web.backend(request, server)
    for path in ("info/refs", "git-upload-pack"):
        server.hooks[f"/git/private.git/{path}"] = hooked


def by_https(harness, directory):
    certificates, root = directory / "certificates", directory / "repositories"
    certificates.mkdir()
    root.mkdir()
    certificate(certificates)
    ca = str(certificates / "ca.pem")
    files = {"train/template.yaml": TEMPLATE, "huge/template.yaml": TEMPLATE, "huge/data": "x" * (5 << 20), "file": "main\n"}
    commit = repository(root, "main", files)
    repository(root, "private", files)
    job = Job(directory / "https")
    with web.Web(certificates, git=root) as server:
        main, private = f"{server.url}/git/main.git", f"{server.url}/git/private.git"
        protect(server, LOGIN)
        for name, variables in (("GIT_SSL_CAINFO", {"GIT_SSL_CAINFO": ca}), ("SSL_CERT_FILE", {"SSL_CERT_FILE": ca})):
            harness.check(f"a certificate by {name}", job.good(job.lock(main, **variables), commit, offline=True))
        (job.directory / ".gitconfig").write_text(f"[http]\n\tsslCAInfo = {ca}\n")
        harness.check("a certificate by the user's configuration", job.good(job.lock(main), commit))
        harness.check("a commit", job.good(job.lock(main, reference=commit), commit))
        harness.check("a tag", job.good(job.lock(main, reference="v1"), commit))
        unused = git(root, "--git-dir=main.git", "commit-tree", "-m", "x", f"{commit}^{{tree}}")
        harness.check("a commit that no branch has", job.good(job.lock(main, reference=unused), unused))
        for name, reference, words in (("no such commit", "12" * 20, ["has no commit `1212"]), ("no such branch", "v9", ["no branch or tag `v9`"])):
            harness.check(name, job.failed(job.lock(main, reference=reference), *words))
        harness.check("no such path", job.failed(job.lock(main, path="none"), "the repository has no `none`"))
        harness.check("too large a template", job.failed(job.lock(main, path="huge"), "more than 256 files or 4 MiB"))
        harness.check("no such repository", job.failed(job.lock(f"{server.url}/git/none.git"), "not found", "check the name"))
        harness.check("an unknown certificate", job.failed(job.lock(main, GIT_CONFIG_GLOBAL="/dev/null"), "certificate", "`http.sslCAInfo`"))

        before = time.monotonic()
        harness.check("a login is needed", job.failed(job.lock(private), f"`{private}` requires a login", "credential helper"))
        harness.check("no question is asked", [] if time.monotonic() - before < 20 else [f"it took {time.monotonic() - before:.0f} s"])
        (job.directory / ".git-credentials").write_text(server.url.replace("://", "://{}:{}@".format(*LOGIN)) + "\n")
        git(job.directory, "config", "--file", ".gitconfig", "credential.helper", "store")
        harness.check("a credential helper's login", job.good(job.lock(private), commit))
        locked = (job.directory / "jobc.lock").read_text()
        harness.check("no password is in the lock", [locked] if LOGIN[1] in locked else [])
        askpass = job.directory / "askpass"
        askpass.write_text(f"#!/bin/sh\ncase $1 in User*) echo {LOGIN[0]};; *) echo {LOGIN[1]};; esac\n")
        askpass.chmod(0o755)
        plain = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_SSL_CAINFO": ca}
        harness.check("a login by GIT_ASKPASS", job.good(job.lock(private, GIT_ASKPASS=str(askpass), **plain), commit))
        header = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "http.extraHeader",
                  "GIT_CONFIG_VALUE_0": "Authorization: Basic " + base64.b64encode(":".join(LOGIN).encode()).decode()}
        harness.check("a login by a header, as in CI", job.good(job.lock(private, **header, **plain), commit))
        (job.directory / ".git-credentials").write_text(server.url.replace("://", "://me:w0rng@") + "\n")
        wrong = job.lock(private)
        harness.check("a login that is refused", job.failed(wrong, "refused the login", "credential helper"))
        harness.check("no password is shown", [wrong.stderr] if "w0rng" in wrong.stderr else [])

        server.hooks["/git/old.git/info/refs"] = lambda request: request.answer(301, Location=f"{main}/info/refs?service=git-upload-pack")
        harness.check("a repository that moved", job.good(job.lock(f"{server.url}/git/old.git"), commit, offline=True))
        with web.Web(git=root) as open_server:
            down = f"{open_server.url}/git/main.git/info/refs?service=git-upload-pack"
            server.hooks["/git/down.git/info/refs"] = lambda request: request.answer(301, Location=down)
            harness.check("a repository that moved to plain http", job.failed(job.lock(f"{server.url}/git/down.git"), "failed"))
        marks = directory / "mark"
        (job.directory / ".gitconfig").open("a").write(
            f"[core]\n\tfsmonitor = touch {marks}\n\thooksPath = {directory}\n[protocol]\n\tallow = always\n[url \"ext::touch {marks} \"]\n"
            f"\tinsteadOf = https://strange.example/\n[url \"{server.url}/git/\"]\n\tinsteadOf = https://short.example/\n")
        harness.check("insteadOf of the user", job.good(job.lock("https://short.example/main.git"), commit))
        harness.check("insteadOf of another protocol", job.failed(job.lock("https://strange.example/main.git"), "https://"))
        harness.check("no command of the configuration runs", [f"{marks} is there"] if marks.exists() else [])

        job.lock(main)
        moved = root / "gone.git"
        (root / "main.git").rename(moved)
        harness.check("the repository is not needed any more", job.good(job.run("lock"), commit, offline=True))
        shutil.rmtree(job.directory / ".cache")
        without = job.run("lock")
        harness.check("without the cache it is", refused(without, "J0297", PLACE, "not found"))
    harness.check("a server that is not there", job.failed(job.lock(main), "onnect"))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"https://localhost:{silent.getsockname()[1]}/r"
        (job.directory / "job.yaml").write_text(JOB.format(address, "train", "main"))
        process = subprocess.Popen([binary(), "lock"], env=job.home.environment, cwd=job.directory, stderr=subprocess.PIPE, text=True)
        time.sleep(0.7)
        process.terminate()
        try:
            error = process.communicate(timeout=10)[1]
            harness.check("a server that says nothing, until the command is ended", [] if "canceled" in error else [error])
        finally:
            process.kill()


def by_ssh(harness, directory):
    for tool in ("ssh-agent", "ssh-add", "ssh-keygen"):
        harness.tool(tool)
    if not (shutil.which("sshd") or Path("/usr/sbin/sshd").exists()):
        harness.tool("sshd")
    root, home = directory / "repositories", directory / "ssh-home"
    root.mkdir()
    home.mkdir(mode=0o700)
    commit = repository(root, "main", {"train/template.yaml": TEMPLATE, "file": "x\n"})
    unused = git(root, "--git-dir=main.git", "commit-tree", "-m", "x", f"{commit}^{{tree}}")
    job = Job(directory / "ssh")
    # ssh takes the user's home from the account, not from HOME: this user's own files are hidden meanwhile.
    job.prefix = ["unshare", "--mount", "--propagation", "private", "sh", "-c", 'mount --bind "$0" ~root/.ssh && exec "$@"', str(home)]
    own = Path("~root/.ssh").expanduser()
    with contextlib.ExitStack() as stack:
        if not own.exists():
            own.mkdir(mode=0o700)
            stack.callback(own.rmdir)
        path, key = stack.enter_context(agent(directory))
        port, known = stack.enter_context(ssh_server(directory, key))
        address, sock = f"ssh://root@127.0.0.1:{port}{root}/main.git", {"SSH_AUTH_SOCK": str(path)}
        harness.check("a host that is not known", job.failed(job.lock(address, **sock), "Host key verification failed", "known_hosts"))
        (home / "known_hosts").write_text(known)
        harness.check("no key", job.failed(job.lock(address), "Permission denied", "ssh-add"))
        harness.check("a key of an agent", job.good(job.lock(address, **sock), commit, offline=True))
        harness.check("a commit", job.good(job.lock(address, reference=commit, **sock), commit))
        harness.check("a commit that no branch has", job.failed(job.lock(address, reference=unused, **sock), f"no commit `{unused}"))
        harness.check("no such commit", job.failed(job.lock(address, reference="12" * 20, **sock), "has no commit `1212"))
        harness.check("no such repository", job.failed(job.lock(address.replace("main.git", "none.git"), **sock), "not appear to be a git", "check the name"))
        harness.check("a key named by GIT_SSH_COMMAND", job.good(job.lock(address, GIT_SSH_COMMAND=f"ssh -i {key}"), commit))
        (job.directory / ".gitconfig").write_text(f"[core]\n\tsshCommand = ssh -i {key}\n")
        harness.check("a key named by core.sshCommand", job.good(job.lock(address), commit))
        (job.directory / ".gitconfig").unlink()
        shutil.copy2(key, home / "id_ed25519")
        harness.check("a key of the user", job.good(job.lock(address), commit))
        (home / "id_ed25519").unlink()
        (home / "config").write_text(f"Host box\n  HostName 127.0.0.1\n  Port {port}\n  User root\n  IdentityFile {key}\n  HostKeyAlias [127.0.0.1]:{port}\n")
        (home / "config").chmod(0o600)
        harness.check("a host of the user's ssh configuration", job.good(job.lock(f"ssh://box{root}/main.git"), commit))
        harness.check("a server that is not there", job.failed(job.lock("ssh://root@127.0.0.1:1/r"), "Connection refused"))


def main():
    harness = Harness("templates", __doc__)
    harness.parse()
    for tool in ("git", "openssl"):
        harness.tool(tool)
    with scratch() as directory:
        for name, case in (("https", by_https), ("ssh", by_ssh)):
            if harness.wants(name):
                place = Path(directory) / name
                place.mkdir()
                case(harness, place)
    harness.end()


if __name__ == "__main__":
    main()
