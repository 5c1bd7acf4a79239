#!/usr/bin/env python3
"""Tests what a build may reach: `ADD` of URLs and git repositories, contexts from git, networks of `RUN`, SSH agents.

Servers listen on loopback. `--user range` and `--user single` run networks and agents as an unprivileged user.
"""

import contextlib
import gzip
import hashlib
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import tarfile
import threading
import time
from pathlib import Path

from home import Home
from harness import Harness, scratch
import user
from registry import certificate
from runtime import binary
import web

BASE = "FROM scratch AS base\nCOPY busybox /bin/busybox\nRUN [\"/bin/busybox\", \"--install\", \"-s\", \"/bin\"]\nFROM base\n"


class Builder:
    """A home, a context with busybox, and the program as a user may run it."""

    def __init__(self, directory, account=None):
        self.account, self.directory = account, directory
        # A command that enters namespaces and executes what follows.
        self.entering = []
        self.program = directory / "jobc"
        shutil.copy2(binary(), self.program)
        self.program.chmod(0o755)
        self.home = Home(directory / "home")
        self.context = directory / "context"
        for path in (self.home.directory, self.context):
            path.mkdir()
            if account:
                os.chown(path, account.uid, account.gid)
        shutil.copy2("/bin/busybox", self.context / "busybox")

    def run(self, text, *words, context=None, seconds=60, **environment):
        """Builds a Dockerfile."""
        (self.context / "Dockerfile").write_text(text)
        return self.command("image", "build", "--builder", "embedded", *words, context or self.context, seconds=seconds, **environment)

    def command(self, *words, seconds=60, **environment):
        prefix = [*self.entering, *(self.account.prefix() if self.account else [])]
        return subprocess.run([*prefix, self.program, *map(str, words)], env=self.home.environment | environment, cwd=self.home.directory,
                              capture_output=True, text=True, timeout=seconds, check=False)

    def files(self, result):
        """The files of the image that was built: path, and its entry with its content."""
        read = lambda digest: (self.home.store / "blobs/sha256" / digest.split(":")[1]).read_bytes()  # noqa: E731
        found = {}
        for layer in json.loads(read(result.stdout.split()[-1]))["layers"]:
            with tarfile.open(fileobj=io.BytesIO(gzip.decompress(read(layer["digest"])))) as archive:
                for entry in archive:
                    content = archive.extractfile(entry).read() if entry.isfile() else b""
                    found[entry.name.removeprefix("./").strip("/")] = (entry, content)
        return found


def succeeded(result):
    if result.returncode != 0:
        yield f"exit code {result.returncode}: {result.stderr}"


def refused(result, *words, code=1):
    if result.returncode != code:
        yield f"exit code {result.returncode}, not {code}: {result.stdout}{result.stderr}"
    yield from (f"`{word}` is not in the output: {result.stderr}" for word in words if word not in result.stderr)


def downloads(harness, directory):
    builder = Builder(directory)
    certificates = directory / "certificates"
    certificates.mkdir()
    certificate(certificates)
    trusted = {"SSL_CERT_FILE": str(certificates / "ca.pem")}
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as made:
        made.addfile(tarfile.TarInfo("inner"), io.BytesIO())
    with web.Web(certificates) as server, web.Web() as plain:
        server.files = {"/a/file.txt": b"content\n", "/tree.tar.gz": archive.getvalue()}
        plain.files = {"/plain": b"plain\n"}
        add = lambda words: f"FROM scratch\nADD {words}\n"  # noqa: E731
        digest = hashlib.sha256(b"content\n").hexdigest()

        result = builder.run(add(f"{server.url}/a/file.txt?x=1 /to/"), **trusted)
        problems = list(succeeded(result))
        if not problems:
            entry, content = builder.files(result)["to/file.txt"]
            seen = (entry.mode & 0o7777, entry.uid, entry.gid, entry.mtime, content)
            problems += [] if seen == (0o600, 0, 0, web.MODIFIED, b"content\n") else [f"the file is {seen}"]
        harness.check("add a file by https", problems)

        text = add(f"{server.url}/a/file.txt /to/")
        results = [builder.run(text, **trusted) for _ in range(2)]
        statuses = server.statuses("/a/file.txt")
        problems = [line for result in results for line in succeeded(result)]
        problems += [] if statuses == [200, 304] else [f"the requests were answered {statuses}"]
        problems += [] if results[0].stdout == results[1].stdout else ["the images differ"]
        server.files["/a/file.txt"] = b"changed\n"
        changed = builder.run(text, **trusted)
        problems += list(succeeded(changed))
        if not problems and builder.files(changed)["to/file.txt"][1] != b"changed\n":
            problems.append("a changed file is not fetched")
        server.files["/a/file.txt"] = b"content\n"
        harness.check("a file is fetched again only if it has changed", problems)

        server.statuses("/a/file.txt")
        text = add(f"--checksum=sha256:{digest} --chown=5:6 --chmod=640 {server.url}/a/file.txt /named")
        results = [builder.run(text, **trusted) for _ in range(2)]
        statuses = server.statuses("/a/file.txt")
        problems = [line for result in results for line in succeeded(result)]
        problems += [] if statuses == [200] else [f"the requests were answered {statuses}"]
        if not problems:
            entry, _ = builder.files(results[0])["named"]
            seen = (entry.mode & 0o7777, entry.uid, entry.gid)
            problems += [] if seen == (0o640, 5, 6) else [f"the file is {seen}"]
        harness.check("a file with a checksum is fetched once", problems)

        wrong = builder.run(add(f"--checksum=sha256:{'0' * 64} {server.url}/a/file.txt /x"), **trusted)
        harness.check("a checksum that does not match", refused(wrong, "does not match: expected `sha256:000", digest))
        absent = builder.run(add(f"{server.url}/absent /x"), **trusted)
        harness.check("a file that is absent", refused(absent, "404 Not Found", "Dockerfile:2"))
        harness.check("an unknown certificate", refused(builder.run(add(f"{server.url}/tree.tar.gz /x")), "cannot download"))

        for flag, expected in (("", "tree.tar.gz"), ("--unpack ", "inner"), ("--unpack=false ", "tree.tar.gz")):
            result = builder.run(add(f"{flag}{server.url}/tree.tar.gz /x/"), **trusted)
            problems = list(succeeded(result))
            if not problems and f"x/{expected}" not in builder.files(result):
                problems.append(f"the files are {list(builder.files(result))}")
            harness.check(f"an archive by URL {flag}", problems)

        server.hooks = {"/moved": web.redirect("/a/file.txt"), "/loop": web.redirect("/loop"), "/down": web.redirect(f"{plain.url}/plain"),
                        "/huge": web.huge, "/short": web.truncated, "/slow": web.slow}
        result = builder.run(add(f"{server.url}/moved /x"), **trusted)
        problems = list(succeeded(result))
        if not problems and builder.files(result)["x"][1] != b"content\n":
            problems.append("the content is not that of the target")
        harness.check("a redirect", problems)
        harness.check("endless redirects", refused(builder.run(add(f"{server.url}/loop /x"), **trusted), "more than 10 times"))
        harness.check("a redirect without TLS", refused(builder.run(add(f"{server.url}/down /x"), **trusted), "without TLS"))
        harness.check("a body that is too large", refused(builder.run(add(f"{server.url}/huge /x"), **trusted), "larger than"))
        result = builder.run(add(f"{server.url}/short /x"), **trusted)
        harness.check("a body that breaks off", refused(result, "broke off after 4"))
        harness.check("plain http", succeeded(builder.run(add(f"{plain.url}/plain /x"))))
        left = [path for path in (builder.home.store / "cache/work").glob("*")]
        harness.check("nothing is left of failed downloads", [f"left: {path}" for path in left])

        with interrupted(builder, add(f"{server.url}/slow /x"), trusted) as (process, began):
            code = process.wait(timeout=20)
            problems = [] if code == 130 and time.monotonic() - began < 5 else [f"exit code {code} after {time.monotonic() - began:.1f} s"]
        harness.check("Ctrl-C ends a download", problems)
        several = builder.run(f"FROM scratch\nADD --checksum=sha256:{digest} {server.url}/a {server.url}/b /x/\n")
        harness.check("a checksum for two files", refused(several, "`--checksum` needs a single URL"))


@contextlib.contextmanager
def interrupted(builder, text, environment):
    """A build that is interrupted after a second."""
    (builder.context / "Dockerfile").write_text(text)
    process = subprocess.Popen([builder.program, "image", "build", "--builder", "embedded", builder.context], cwd=builder.home.directory,
                               env=builder.home.environment | environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        yield process, time.monotonic()
    finally:
        process.kill()
        process.wait()


def git(directory, *words):
    environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1",
                   "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@x", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@x",
                   "GIT_AUTHOR_DATE": f"{web.MODIFIED} +0000", "GIT_COMMITTER_DATE": f"{web.MODIFIED} +0000"}
    return subprocess.run(["git", *map(str, words)], cwd=directory, env=environment, capture_output=True, text=True, check=True).stdout.strip()


def repository(root, name, files, submodule=None):
    """A repository with a commit, a branch `other`, an annotated tag `v1`, and hooks that must not run."""
    work = root / f"{name}-work"
    work.mkdir(parents=True)
    git(work, "init", "--quiet", "--initial-branch=main")
    for path, content in files.items():
        (work / path).parent.mkdir(parents=True, exist_ok=True)
        (work / path).write_text(content)
    if submodule:
        (work / ".gitmodules").write_text(f"[submodule \"sub\"]\n\tpath = sub\n\turl = {submodule[0]}\n")
        git(work, "update-index", "--add", "--cacheinfo", f"160000,{submodule[1]},sub")
    git(work, "add", "--all", *(["--", ":!sub"] if submodule else []))
    git(work, "commit", "--quiet", "-m", "one")
    git(work, "tag", "-a", "v1", "-m", "v1")
    git(work, "checkout", "--quiet", "-b", "other")
    (work / "file").write_text("other\n")
    git(work, "add", "file")
    git(work, "commit", "--quiet", "-m", "two")
    git(work, "checkout", "--quiet", "main")
    git(root, "clone", "--quiet", "--bare", work, f"{name}.git")
    return git(work, "rev-parse", "main")


def repositories(harness, directory):
    builder = Builder(directory)
    certificates, root = directory / "certificates", directory / "repositories"
    certificates.mkdir()
    root.mkdir()
    certificate(certificates)
    trusted = {"SSL_CERT_FILE": str(certificates / "ca.pem")}
    inner = repository(root, "inner", {"file": "inner\n"})
    mark = directory / "mark"
    files = {"file": "main\n", "dir/Dockerfile": "FROM scratch\nCOPY x /x\n", "dir/x": "x\n", ".gitattributes": "* filter=run\n"}
    # Were the user's configuration read, each command would leave a mark.
    (builder.home.directory / ".gitconfig").write_text(f"[core]\n\tfsmonitor = touch {mark}\n\thooksPath = {directory}/hooks\n"
                                                       f"[filter \"run\"]\n\tsmudge = touch {mark}; cat\n[protocol]\n\tallow = always\n")
    (directory / "hooks").mkdir()
    hook = directory / "hooks/post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
    hook.chmod(0o755)
    with web.Web(certificates, git=root) as server:
        commit = repository(root, "main", files, submodule=(f"{server.url}/git/inner.git", inner))
        repository(root, "strange", {"file": "x\n"}, submodule=(f"file://{root}/inner.git", inner))
        address = f"{server.url}/git/main.git"
        add = lambda words: f"FROM scratch\nADD {words}\n"  # noqa: E731
        for name, fragment, expected in (("default branch", "", "main\n"), ("branch", "#other", "other\n"), ("tag", "#v1", "main\n"),
                                         ("commit", f"#{commit}", "main\n")):
            result = builder.run(add(f"{address}{fragment} /src"), **trusted)
            problems = list(succeeded(result))
            if not problems:
                found = builder.files(result)
                entry, content = found["src/file"]
                seen = (content.decode(), entry.mode & 0o7777, entry.uid, entry.mtime)
                problems += [] if seen == (expected, 0o644, 0, web.MODIFIED) else [f"the file is {seen}"]
                problems += [f"there is {path}" for path in found if ".git" in path.split("/")]
                if found.get("src/sub/file", (0, 0))[1] != b"inner\n":
                    problems.append("the submodule's files are missing")
            harness.check(f"add a repository by its {name}", problems)
        harness.check("no command of the user's configuration runs", [f"{mark} is there"] if mark.exists() else [])

        before = len(server.requests)
        result = builder.run(add(f"{address}#{commit} /src"), **trusted)
        problems = list(succeeded(result))
        problems += [f"{len(server.requests) - before} requests"] if len(server.requests) != before else []
        harness.check("a commit is fetched once", problems)
        result = builder.run(add(f"--keep-git-dir {address}#v1:dir /src"), **trusted)
        problems = list(succeeded(result))
        if not problems and set(builder.files(result)) != {"src", "src/Dockerfile", "src/x"}:
            problems.append(f"the files are {set(builder.files(result))}")
        harness.check("a directory of a repository", problems)
        result = builder.run(add(f"--keep-git-dir {address}#v1 /src"), **trusted)
        problems = list(succeeded(result))
        if not problems and "src/.git/HEAD" not in builder.files(result):
            problems.append("there is no .git")
        harness.check("--keep-git-dir", problems)
        harness.check("--checksum of a commit", succeeded(builder.run(add(f"--checksum={commit} {address}#v1 /src"), **trusted)))
        other = builder.run(add(f"--checksum={commit} {address}#other /src"), **trusted)
        harness.check("another commit", refused(other, f"does not match: expected `{commit}`"))
        harness.check("no such branch", refused(builder.run(add(f"{address}#none /src"), **trusted), "no branch or tag `none`"))
        harness.check("no such directory", refused(builder.run(add(f"{address}#main:none /src"), **trusted), "no directory `none`"))
        strange = builder.run(add(f"{server.url}/git/strange.git /src"), **trusted)
        harness.check("a submodule of a strange protocol", refused(strange, "clone of 'file://", "`https://` and `ssh://` only"))
        harness.check("an unknown certificate", refused(builder.run(add(f"{address} /src")), "ls-remote", "certificate"))
        harness.check("a reference like an option", refused(builder.run(add(f"{address}#--upload-pack=x /src")), "invalid git reference"))
        path = directory / "no-git"
        path.mkdir()
        missing = builder.run(add(f"{address} /src"), **trusted, PATH=str(path))
        harness.check("without git", refused(missing, "`git` is not installed"))

        result = builder.run("", context=f"{address}#{commit}:dir", **trusted)
        problems = list(succeeded(result))
        if not problems and builder.files(result)["x"][1] != b"x\n":
            problems.append("the file is another")
        harness.check("a context from git", problems)
        result = builder.run("", "-f", "dir/Dockerfile", context=address, **trusted)
        harness.check("a context without that file", refused(result, "no such file or directory"))
        missing = builder.run("", context=f"{address}#none", **trusted)
        harness.check("a context of no such branch", refused(missing, "no branch or tag `none`", code=missing.returncode or 1))
        strange = builder.run("", context="http://localhost:1/x.tar.gz")
        harness.check("a context that is no repository", refused(strange, "is not supported", code=2))
        left = list((builder.home.store / "cache/work").glob("*"))
        harness.check("nothing is left of contexts", [f"left: {path}" for path in left])


@contextlib.contextmanager
def ssh_server(directory, key):
    """A real sshd on loopback that lets root in with a key; its port, and its line for known_hosts."""
    place = directory / "sshd"
    place.mkdir(mode=0o700)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", place / "host"], check=True)
    shutil.copy2(f"{key}.pub", place / "authorized")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = {"ListenAddress": f"127.0.0.1:{port}", "HostKey": place / "host", "AuthorizedKeysFile": place / "authorized", "PidFile": "none",
                "PermitRootLogin": "prohibit-password", "PasswordAuthentication": "no", "UsePAM": "no", "StrictModes": "no"}
    (place / "config").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    # sshd wants this directory, which a service would make.
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    process = subprocess.Popen([shutil.which("sshd") or "/usr/sbin/sshd", "-D", "-e", "-f", place / "config"], stderr=(place / "log").open("w"))
    try:
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.05)
        kind, public = (place / "host.pub").read_text().split()[:2]
        yield port, f"[127.0.0.1]:{port} {kind} {public}\n"
    finally:
        process.terminate()
        process.wait()


def repositories_by_ssh(harness, directory):
    """Repositories by a real sshd: the key is the agent's, and only hosts that the user knows are trusted."""
    if not (shutil.which("sshd") or Path("/usr/sbin/sshd").exists()):
        harness.tool("sshd")
    builder = Builder(directory)
    root = directory / "repositories"
    root.mkdir()
    inner = repository(root, "inner", {"file": "inner\n"})
    home = directory / "ssh"
    home.mkdir(mode=0o700)
    # ssh takes the user's home from the account, not from HOME: this user's own files are hidden meanwhile.
    own = Path("~root/.ssh").expanduser()
    with contextlib.ExitStack() as stack:
        if not own.exists():
            own.mkdir(mode=0o700)
            stack.callback(own.rmdir)
        by_ssh(harness, directory, builder, root, inner, home)


def by_ssh(harness, directory, builder, root, inner, home):
    hide = 'mount --bind "$0" ~root/.ssh && exec "$@"'
    builder.entering = ["unshare", "--mount", "--propagation", "private", "sh", "-c", hide, str(home)]
    with agent(directory) as (path, key), ssh_server(directory, key) as (port, known):
        address = f"ssh://root@127.0.0.1:{port}{root}"
        repository(root, "main", {"file": "main\n"}, submodule=(f"{address}/inner.git", inner))
        add = f"FROM scratch\nADD {address}/main.git#v1 /src\n"
        sock = {"SSH_AUTH_SOCK": str(path)}
        strange = builder.run(add, "--ssh", "default", **sock)
        harness.check("a host that is not known", refused(strange, "Host key verification failed", "known_hosts"))
        (home / "known_hosts").write_text(known.replace("AAAA", "AAAB", 1))
        harness.check("a host with another key", refused(builder.run(add, "--ssh", "default", **sock), "ls-remote", "known_hosts"))
        (home / "known_hosts").write_text(known)
        harness.check("no agent", refused(builder.run(add), "Permission denied", "--ssh default"))
        # Even with a key in the home directory, only the agent's keys are used.
        shutil.copy2(key, home / "id_ed25519")
        harness.check("the user's own keys are not used", refused(builder.run(add), "Permission denied", "--ssh default"))
        result = builder.run(add, "--ssh", "default", **sock)
        problems = list(succeeded(result))
        if not problems:
            found = builder.files(result)
            if (found["src/file"][1], found.get("src/sub/file", (0, 0))[1]) != (b"main\n", b"inner\n"):
                problems.append(f"the files are {sorted(found)}")
        harness.check("a repository and its submodule by ssh", problems)
        harness.check("by a key", succeeded(builder.run(add, "--no-cache", "--ssh", f"default={key}")))
        # This form has no port: what counts is that it is taken for a repository, and not for the path of a file.
        other = builder.run(f"FROM scratch\nADD git@127.0.0.1:{root}/main.git#other /src\n", "--ssh", "default", **sock)
        harness.check("the form of scp", refused(other, "`git ls-remote` for `git@127.0.0.1:", "failed"))
        repository(root, "context", {"Dockerfile": "FROM scratch\nCOPY x /x\n", "x": "by ssh\n"})
        result = builder.run("", "--ssh", "default", context=f"{address}/context.git#main", **sock)
        problems = list(succeeded(result))
        if not problems and builder.files(result)["x"][1] != b"by ssh\n":
            problems.append("the file is another")
        harness.check("a context by ssh", problems)


def networks(harness, directory, account):
    builder = Builder(directory, account)
    listener = socket.create_server(("127.0.0.1", 0))
    abstract = socket.socket(socket.AF_UNIX)
    name = f"jobc-test-{os.getpid()}"
    abstract.bind(f"\0{name}")
    abstract.listen()
    port = listener.getsockname()[1]
    threading.Thread(target=close_connections, args=(listener,), daemon=True).start()
    # busybox's nc exits with 0 if it connects. A name in /proc/net/unix is visible in the socket's network namespace only.
    look = (f"RUN {{flag}} nc -w 2 127.0.0.1 {port} </dev/null && echo loopback >>/found; "
            f"grep -q @{name} /proc/net/unix && echo abstract >>/found; ls /sys/class/net >/interfaces; touch /found\n")

    def found(result, path="found"):
        return builder.files(result).get(path, (0, b"missing"))[1].decode().split()

    def case(label, flag, words, expected):
        result = builder.run(BASE + look.format(flag=flag), "--no-cache", *words)
        problems = list(succeeded(result))
        if not problems and found(result) != expected:
            problems.append(f"the command reaches {found(result)}, expected {expected}; interfaces {found(result, 'interfaces')}")
        harness.check(label, problems)
        return result

    with listener, abstract:
        case("a command reaches nothing of the host", "", [], [])
        case("--network=default is the same", "--network=default", [], [])
        result = case("--network=none has loopback only", "--network=none", [], [])
        harness.check("--network=none has one interface", [] if found(result, "interfaces") == ["lo"] else [found(result, "interfaces")])
        case("--network none as the default", "", ["--network", "none"], [])
        case("--network=host where it is allowed", "--network=host", ["--allow", "network.host"], ["loopback", "abstract"])
        case("--network host as the default", "", ["--network", "host"], ["loopback", "abstract"])
        case("none in a build on the host's network", "--network=none", ["--network", "host"], [])
        result = builder.run(BASE + look.format(flag="--network=host"))
        harness.check("--network=host must be allowed", refused(result, "`RUN --network=host` is not allowed", "--allow network.host", "Dockerfile:5"))
        text = "FROM base1 AS x\n".replace("base1", "base") + "ONBUILD RUN --network=host true\nFROM x\nRUN true\n"
        result = builder.run(BASE.removesuffix("FROM base\n") + text)
        harness.check("nor does a trigger use it", refused(result, "`RUN --network=host` is not allowed"))
        several = BASE + "".join(f"FROM base AS s{n}\nRUN ip -o -4 addr show eth0 | tr -s ' ' | cut -d' ' -f4 >/a{n}\n" for n in range(3))
        result = builder.run(several + "FROM base\n" + "".join(f"COPY --from=s{n} /a{n} /\n" for n in range(3)))
        harness.check("commands at the same time", succeeded(result))
    other_host(harness, builder)
    processes = [path.parent.name for path in Path("/proc").glob("[0-9]*/comm") if is_helper_of(path, builder)]
    harness.check("no process is left", [f"process {pid}" for pid in processes])


@contextlib.contextmanager
def two_hosts():
    """Two network namespaces with a cable between them: paths of both, and the address of the second."""
    names = [f"jobc-test-{os.getpid()}-{letter}" for letter in "ab"]
    ip = lambda *words: subprocess.run(["ip", *words], check=True)  # noqa: E731
    try:
        for name in names:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("-n", names[0], "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", names[1])
        for name, address in zip(names, ("192.0.2.1", "192.0.2.2")):
            ip("-n", name, "address", "add", f"{address}/24", "dev", "cable")
            ip("-n", name, "link", "set", "cable", "up")
        ip("-n", names[0], "route", "add", "default", "via", "192.0.2.2")
        yield *(f"/run/netns/{name}" for name in names), "192.0.2.2"
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False)


def other_host(harness, builder):
    """By default a command reaches other hosts, through the uplink of its own network, and with `none` it does not."""
    if not (shutil.which("pasta") or shutil.which("slirp4netns")):
        harness.tool("pasta")
    with two_hosts() as (here, there, address):
        pages = builder.directory / "pages"
        pages.mkdir()
        (pages / "index.html").write_text("of another host\n")
        server = subprocess.Popen(["nsenter", f"--net={there}", "/bin/busybox", "httpd", "-f", "-p", f"{address}:8000", "-h", pages])
        try:
            # Distributions let every user open /dev/net/tun; on a minimal host it may be root's alone.
            device = 'mount -t tmpfs tmpfs /dev/net && mknod -m 666 /dev/net/tun c 10 200 && exec "$@"'
            builder.entering = ["nsenter", f"--net={here}", "unshare", "--mount", "--propagation", "private", "sh", "-c", device, "sh"]
            text = f"RUN {{flag}} (printf 'GET / HTTP/1.0\\r\\n\\r\\n'; sleep 2) | timeout 10 nc -w 5 {address} 8000 | tail -n 1 >/answer\n"
            for label, flag, words, expected in (("another host by the default network", "", [], b"of another host\n"),
                                                 ("no other host with none", "--network=none", [], b""),
                                                 ("another host by the host's network", "", ["--network", "host"], b"of another host\n")):
                result = builder.run(BASE + text.format(flag=flag), "--no-cache", *words)
                problems = list(succeeded(result))
                if not problems and (answer := builder.files(result)["answer"][1]) != expected:
                    problems.append(f"the answer is {answer}: {result.stderr}")
                harness.check(label, problems)
        finally:
            builder.entering = []
            server.kill()
            server.wait()


def close_connections(listener):
    """Accepts connections and closes them, until the listener is closed."""
    with contextlib.suppress(OSError):
        while True:
            listener.accept()[0].close()


def is_helper_of(comm, builder):
    with contextlib.suppress(OSError):
        return comm.read_text() == "jobc-network\n" and os.readlink(comm.parent / "exe") == str(builder.program)
    return False


@contextlib.contextmanager
def agent(directory, account=None):
    """A real agent with a new key; its socket, and the key's public part."""
    prefix = account.prefix() if account else []
    place = directory / "agent"
    place.mkdir()
    if account:
        os.chown(place, account.uid, account.gid)
    path = place / "socket"
    process = subprocess.Popen([*prefix, "ssh-agent", "-D", "-a", str(path)], stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 5
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        key = place / "key"
        subprocess.run([*prefix, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "of-test", "-f", key], check=True)
        subprocess.run([*prefix, "ssh-add", "-q", key], env={"PATH": os.environ["PATH"], "SSH_AUTH_SOCK": str(path)}, check=True)
        yield path, key
    finally:
        process.kill()
        process.wait()


def agents(harness, directory, account):
    for tool in ("ssh-agent", "ssh-add", "ssh-keygen"):
        harness.tool(tool)
    builder = Builder(directory, account)
    # The agent protocol by hand: a request for the keys, and one that would remove them all.
    ask = "printf '\\000\\000\\000\\001\\{kind}' | nc -w 3 local:$SSH_AUTH_SOCK"
    ask_keys = ask.format(kind="013")
    with agent(directory, account) as (path, key):
        sock = {"SSH_AUTH_SOCK": str(path)}
        client = context_client(builder)
        run = "RUN --mount=type=ssh /client $SSH_AUTH_SOCK 11 >/keys; /client $SSH_AUTH_SOCK 19 >/removed; /client $SSH_AUTH_SOCK 11 >/again\n"
        if not client:
            harness.note("no C compiler, so nothing in the build speaks with the agent")
            run = f"RUN --mount=type=ssh test -S $SSH_AUTH_SOCK && {ask_keys} >/keys; touch /removed /again\n"
        text = BASE + ("COPY client /client\n" if client else "") + run
        for label, words, environment in (("the user's agent", ["--ssh", "default"], sock),
                                          ("an agent by its socket", ["--ssh", f"default={path}"], {}),
                                          ("a key", ["--ssh", f"default={key}"], {})):
            result = builder.run(text, "--no-cache", *words, **environment)
            problems = list(succeeded(result))
            if not problems:
                files = builder.files(result)
                if client and (b"of-test" not in files["keys"][1] or b"of-test" not in files["again"][1]):
                    problems.append(f"the keys are {files['keys'][1]} and {files['again'][1]}")
                if client and files["removed"][1] != b"\x05":
                    problems.append(f"a request to remove all keys is answered {files['removed'][1]}")
                problems += [f"the image has {name}" for name in files if "agent" in name or "buildkit" in name or "ssh" in name]
            harness.check(label, problems)
        listed = subprocess.run(["ssh-add", "-l"], env={"PATH": os.environ["PATH"], **sock}, capture_output=True, text=True, check=False)
        harness.check("the keys are still there", [] if "of-test" in listed.stdout else [listed.stdout + listed.stderr])
        options = "id=deploy,target=/run/own.sock,mode=0666"
        result = builder.run(BASE + f"RUN --mount=type=ssh,{options} test \"$SSH_AUTH_SOCK\" = /run/own.sock && test -S /run/own.sock\n",
                             "--ssh", f"deploy={path}")
        harness.check("id, target and mode", succeeded(result))
        if not account or account.subuids:
            other = BASE.replace("FROM base\n", "FROM base\nUSER 1000:1000\n") + "RUN --mount=type=ssh,uid=1000,gid=1000 test -w $SSH_AUTH_SOCK\n"
            harness.check("a socket of another user", succeeded(builder.run(other, "--ssh", f"default={path}")))
        harness.check("a killed build leaves no process", killed(builder, key))
    result = builder.run(BASE + "RUN --mount=type=ssh test -z \"$SSH_AUTH_SOCK\"\n")
    harness.check("no agent, and none required", succeeded(result))
    result = builder.run(BASE + "RUN --mount=type=ssh,required true\n")
    harness.check("an agent that is required", refused(result, "the SSH agent `default` is missing", "--ssh default"))
    harness.check("no agent to pass", refused(builder.run(BASE, "--ssh", "default"), "`SSH_AUTH_SOCK` is not set", code=2))
    gone = builder.run(BASE + "RUN --mount=type=ssh true\n", "--ssh", f"default={path}")
    harness.check("an agent that has ended", refused(gone, "cannot connect to the SSH agent", code=gone.returncode or 1))
    left = list((builder.home.store / "cache/work").glob("*"))
    harness.check("nothing is left of agents", [f"left: {path}" for path in left])


def killed(builder, key):
    """Kills a build whose command has an agent and a network; what is left of it."""
    (builder.context / "Dockerfile").write_text(BASE + "RUN --mount=type=ssh echo started; sleep 60\n")
    prefix = builder.account.prefix() if builder.account else []
    temporary = builder.home.directory / "tmp"
    temporary.mkdir()
    if builder.account:
        os.chown(temporary, builder.account.uid, builder.account.gid)
    words = ["image", "build", "--builder", "embedded", "--no-cache", "--ssh", f"default={key}", str(builder.context)]
    process = subprocess.Popen([*prefix, builder.program, *words], env=builder.home.environment | {"TMPDIR": str(temporary)},
                               cwd=builder.home.directory, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    timer = threading.Timer(30, process.kill)
    timer.start()
    started = any("] started" in line for line in process.stderr)
    process.kill()
    process.wait()
    timer.cancel()
    if not started:
        yield "the command did not start"
    deadline = time.monotonic() + 5
    while (left := remains(builder, temporary)) and time.monotonic() < deadline:
        time.sleep(0.05)
    yield from left


def remains(builder, temporary):
    """Processes and files of a build."""
    left = [f"{path} is left" for path in temporary.iterdir()]
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if str(temporary).encode() in path.read_bytes() or is_helper_of(path.parent / "comm", builder):
                left.append(f"process {path.parent.name}: {path.read_bytes()!r}")
    return left


CLIENT = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* client SOCKET TYPE: sends an agent request without content, writes the response without its length. */
int main(int argc, char **argv)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    unsigned char request[5] = {0, 0, 0, 1, atoi(argv[2])}, data[65536];
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    long length, done = 0, n;
    strncpy(address.sun_path, argv[1], sizeof address.sun_path - 1);
    if (argc < 3 || connect(s, (void *)&address, sizeof address) || write(s, request, 5) != 5 || read(s, data, 4) != 4)
        return 1;
    length = data[2] << 8 | data[3];
    while (done < length && (n = read(s, data + done, length - done)) > 0)
        done += n;
    return fwrite(data, 1, done, stdout) != (size_t)done;
}
"""


def context_client(builder):
    """A static program that speaks with an agent; whether it could be made."""
    source = builder.directory / "client.c"
    source.write_text(CLIENT)
    if not shutil.which("cc"):
        return False
    made = subprocess.run(["cc", "-static", "-O", "-o", builder.context / "client", source], capture_output=True, check=False)
    return made.returncode == 0


def main():
    harness = Harness("remote", __doc__)
    harness.parser.add_argument("--user", choices=["root", "range", "single"], default="root")
    options = harness.parse()
    if not Path("/bin/busybox").exists():
        harness.missing("busybox-static")
    account = {"root": lambda: None, "range": user.with_range, "single": user.without_range}[options.user]()
    cases = [("networks", lambda place: networks(harness, place, account)), ("agents", lambda place: agents(harness, place, account))]
    if not account:
        for tool in ("git", "openssl"):
            harness.tool(tool)
        cases = [("downloads", lambda place: downloads(harness, place)), ("repositories", lambda place: repositories(harness, place)),
                 ("ssh", lambda place: repositories_by_ssh(harness, place)), *cases]
    for name, run in cases:
        if harness.wants(name):
            with scratch() as directory:
                run(directory)
    harness.end()


if __name__ == "__main__":
    main()
