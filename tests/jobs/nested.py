#!/usr/bin/env python3
"""Tests jobs inside containers: those of podman as root and as a user without root, with its own defaults and with Docker's.

podman's defaults leave root without CAP_SYS_ADMIN, mask parts of /proc, mount /etc/hosts, /etc/hostname and /etc/resolv.conf as files and
the cgroups read-only, and forbid sethostname(2). Docker's seccomp filter forbids user namespaces too; here a filter does that denies the same
calls. The image is busybox with a program interpreter for `jobc`, which is bound into it.

`--user range` starts the containers without root.
"""

import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "runtime"))

import podman as engine  # noqa: E402
import user  # noqa: E402
from faults import copy_program  # noqa: E402
from harness import Harness, scratch  # noqa: E402

JOB = """\
version: 1
name: inside
image: host
roles:
  main: {shell: sh, run: "RUN", resources: {RESOURCES}}
"""

# What Docker's default filter denies to a container without CAP_SYS_ADMIN (docs.docker.com/engine/security/seccomp).
DENIED = ["bpf", "fsconfig", "fsmount", "fsopen", "mount", "mount_setattr", "move_mount", "open_tree", "setdomainname", "sethostname", "setns",
          "umount2", "unshare"]
NEW_USER = 0x10000000
FILTER = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
    {"names": DENIED, "action": "SCMP_ACT_ERRNO", "errnoRet": 1},
    {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38},
    {"names": ["clone"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1,
     "args": [{"index": 0, "value": NEW_USER, "valueTwo": NEW_USER, "op": "SCMP_CMP_MASKED_EQ"}]},
]}
# More entries than jobc takes other directories apart for.
ETC_FILES = 100
READY = "[ -s /etc/jobc/job.json ]"


class Containers:
    """Containers of podman with `jobc` inside."""

    def __init__(self, harness, directory, account):
        place = directory / "podman"
        place.mkdir()
        # Rootless, crun refuses a hybrid tree of cgroups.
        self.podman = engine.Podman(harness, place, harness.tool("runc"), account)
        self.program, self.directory = copy_program(directory), directory
        (directory / "docker.json").write_text(json.dumps(FILTER))

    def run(self, script, *words, seconds=60):
        """Runs a script of sh in a container that shares the host's network, so that it has its name servers."""
        command = ["--volume", f"{self.program}:/usr/bin/jobc:ro", *words, "nested", "sh", "-c", script]
        return self.podman("run", "--rm", "--network", "host", *command, seconds=seconds)

    def job(self, run, *words, options="", resources=""):
        """Runs a job in a container; returns what was printed by it and by `jobc`, and its exit code."""
        text = JOB.replace("RUN", run).replace("RESOURCES", resources)
        return self.run(f"cat >/tmp/job.yaml <<'END'\n{text}END\njobc run {options} /tmp/job.yaml", *words)


def image(harness, program, path):
    """busybox with what a dynamically linked program needs, and a full /etc."""
    root = path.with_suffix("")
    engine.image(harness.tool("busybox"), path)
    listed = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False).stdout
    with tarfile.open(path, "a") as tar:
        for library in re.findall(r"(/\S+) \(0x", listed):
            tar.add(os.path.realpath(library), library.lstrip("/"))
        for number in range(ETC_FILES):
            tar.addfile(tarfile.TarInfo(f"etc/file-{number}"))
        for name, text in (("passwd", "root:x:0:0::/root:/bin/sh\ndev:x:1000:1000::/tmp:/bin/sh\n"), ("group", "root:x:0:\ndev:x:1000:\n")):
            entry = tarfile.TarInfo(f"etc/{name}")
            entry.size = len(text)
            (root.parent / name).write_text(text)
            tar.addfile(entry, (root.parent / name).open("rb"))


def expect(answer, code=0, out=None, error=None):
    """The differences from an exit code and from patterns of the output."""
    if answer.returncode != code:
        yield f"exit code {answer.returncode}, not {code}"
    for pattern, stream in ((out, answer.stdout), (error, answer.stderr)):
        if pattern and not re.search(pattern, stream, re.MULTILINE):
            yield f"no {pattern!r}"


def shown(answer, problems):
    problems = list(problems)
    return [*problems, f"--- out\n{answer.stdout}--- err\n{answer.stderr}"] if problems else []


def defaults(containers):
    """An ordinary container, as root: files are read and written, and the container around is not changed."""
    script = f"{READY} && echo found; touch /etc/new && echo written; grep -q . /etc/resolv.conf && echo resolved; cat /proc/self/comm; exit 7"
    answer = containers.job(script)
    yield from shown(answer, expect(answer, 1, "^found\nwritten\nresolved\ncat$", r"`podman run --security-opt unmask=ALL"))
    answer = containers.run("jobc doctor; test ! -e /etc/jobc -a ! -e /etc/new")
    yield from shown(answer, expect(answer, 0, r"job\.run +ran\n(.|\n)*job\.network +ran with a network"))


def another_user(containers):
    """A user other than root of the container, as in most development containers, also one that /etc/passwd does not have."""
    for name in ("1000", "4321"):
        answer = containers.job(f"{READY} && touch /etc/new && echo written; id -u", "--user", name, "--env", "HOME=/tmp")
        yield from shown(answer, expect(answer, 0, "^written\n0$"))


def own_proc(containers):
    """Where nothing is masked each task has its own /proc, and with another filter its own host name."""
    answer = containers.job("echo $$; ls -d /proc/[0-9]*; hostname", "--security-opt", "unmask=ALL", "--security-opt", "seccomp=unconfined")
    problems = [*expect(answer, 0, r"^1\n/proc/1\n(/proc/\d+\n)?main-0$")]
    if "/proc` is that of" in answer.stderr:
        problems.append("a note about /proc")
    yield from shown(answer, problems)


def commands(containers):
    """Jobs are listed, followed, entered and stopped; a retried job ends well."""
    script = """\
id=$(jobc run --detach /tmp/job.yaml) || exit 1
n=0; until jobc logs $id | grep -q up; do sleep 0.1; n=$((n+1)); [ $n -lt 100 ] || exit 2; done
jobc ps; echo entered | jobc exec -i $id main-0 sh -c 'read word; echo $word' && jobc stop $id && jobc logs $id && jobc ps --all"""
    job = JOB.replace("RUN", "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.1; done").replace("RESOURCES", "")
    answer = containers.run(f"cat >/tmp/job.yaml <<'END'\n{job}END\n{script}")
    yield from shown(answer, expect(answer, 0, r"inside\.1 +running(.|\n)*^entered\n(.|\n)*^up\nbye\n(.|\n)*inside\.1 +stopped"))


def network(containers):
    """Tasks with addresses of their own reach each other."""
    job = """\
version: 1
name: linked
image: host
network: job
roles:
  server:
    ready: {port: http}
    resources: {ports: {http: 8000}}
    shell: sh
    run: "mkdir /tmp/www; echo page >/tmp/www/index.html; httpd -f -p 8000 -h /tmp/www"
  client: {needs: {server: ready}, shell: sh, run: "wget -qO- http://server-0:8000/", completion: {min_succeeded: 1}}
"""
    answer = containers.run(f"cat >/tmp/job.yaml <<'END'\n{job}END\njobc run /tmp/job.yaml")
    yield from shown(answer, expect(answer, 0, "page"))


def images(containers):
    """A job with an image instead of the container's own files."""
    job = "version: 1\nname: packed\nimage: ./root.tar\nroles:\n  main: {shell: sh, run: 'echo packed; test ! -e /etc/file-1'}\n"
    script = "cd /tmp; mkdir -p root/bin; cp /bin/busybox root/bin/sh; ln -s sh root/bin/test; tar -C root -cf root.tar ."
    answer = containers.run(f"{script}; cat >job.yaml <<'END'\n{job}END\njobc run job.yaml")
    yield from shown(answer, expect(answer, 0, "^packed$"))


def limits(containers):
    """Limits that nothing enforces are refused once, with what works; then the job runs without them."""
    answer = containers.job("echo ran", resources="memory: 64MiB")
    yield from shown(answer, expect(answer, 125, "^$", r"\Aerror: limits on `memory` are not enforced: [^\n]+\n = help: [^\n]*`--allow-unenforced`[^\n]*\n\Z"))
    answer = containers.job("echo ran", options="--allow-unenforced", resources="memory: 64MiB")
    yield from shown(answer, expect(answer, 0, "^ran$"))


def docker_filter(containers):
    """Docker's filter is named in one message with the options that help, also by `jobc doctor`; nothing is started."""
    security = ["--security-opt", f"seccomp={containers.directory}/docker.json"]
    first = r"\Aerror: this {0} does not allow user namespaces, without which no container can be started: operation not permitted \(EPERM\)\n"
    for words, name, advice in (
        ([], "podman container", "`podman run --security-opt seccomp=unconfined"),
        (["--user", "1000", "--env", "HOME=/tmp"], "podman container", "`podman run --security-opt seccomp=unconfined"),
        (["--env", "KUBERNETES_SERVICE_HOST=10.0.0.1"], "pod", "`securityContext: {seccompProfile: {type: Unconfined}"),
        (["--env", "REMOTE_CONTAINERS=true"], "development container", "devcontainer.json"),
    ):
        answer = containers.job("echo ran", *security, *words)
        pattern = first.format(name) + " = help: [^\n]*" + re.escape(advice) + "[^\n]*\n\\Z"
        yield from shown(answer, expect(answer, 125, "^$", pattern))
    answer = containers.run("jobc doctor", *security)
    yield from shown(answer, expect(answer, 1, "containers as root: no, see (kernel.calls, )?namespace.user"))
    yield from shown(answer, expect(answer, 1, r"job\.run +this podman container does not allow user namespaces"))


def no_capabilities(containers):
    """Root without any capability cannot map even itself."""
    answer = containers.job("echo ran", "--cap-drop", "all")
    yield from shown(answer, expect(answer, 125, "^$", r"does not allow user namespaces[^\n]*\n = help: [^\n]*--cap-add SETFCAP"))


def more_rights(containers):
    """With CAP_SYS_ADMIN and the cgroups read-only, and with all rights."""
    for words in (["--cap-add", "SYS_ADMIN"], ["--privileged"], ["--privileged", "--user", "1000", "--env", "HOME=/tmp"]):
        answer = containers.job(f"{READY} && touch /etc/new && echo written", *words)
        yield from shown(answer, expect(answer, 0, "^written$"))


def pod(containers):
    """A container of a pod, whose namespaces another container holds."""
    podman = containers.podman
    made = podman("pod", "create", "--name", "two", "--network", "none", "--infra-command", "/bin/sleep 99", "--infra-image", "localhost/nested")
    yield from shown(made, expect(made))
    text = JOB.replace("RUN", f"{READY} && echo found").replace("RESOURCES", "")
    command = ["run", "--rm", "--pod", "two", "--volume", f"{containers.program}:/usr/bin/jobc:ro", "nested", "sh", "-c"]
    answer = podman(*command, f"cat >/tmp/job.yaml <<'END'\n{text}END\njobc run /tmp/job.yaml")
    yield from shown(answer, expect(answer, 0, "^found$"))
    removed = podman("pod", "rm", "--force", "--time", "0", "two")
    yield from shown(removed, expect(removed))


CASES = [defaults, another_user, own_proc, commands, network, images, limits, docker_filter, no_capabilities, more_rights, pod]


def main():
    harness = Harness("nested", __doc__)
    harness.parser.add_argument("--user", choices=["root", "range"], default="root", help="start the containers as root, or as a user with a range of ids")
    options = harness.parse()
    if os.geteuid() != 0:
        harness.missing("root")
    account = {"root": lambda: None, "range": user.with_range}[options.user]()
    with scratch() as directory:
        containers = Containers(harness, directory, account)
        tarball = directory / "image.tar"
        image(harness, containers.program, tarball)
        made = containers.podman("import", str(tarball), "localhost/nested")
        if made.returncode:
            harness.check("import", [made.stderr.strip()])
            harness.end()
        try:
            for case in CASES:
                if harness.wants(case.__name__):
                    harness.check(case.__name__, case(containers))
        finally:
            containers.podman("rm", "--all", "--force", "--time", "0")
            containers.podman("pod", "rm", "--all", "--force", "--time", "0")
            # Files of a rootless engine belong to ids of its user.
            containers.podman("system", "reset", "--force")
    harness.end()


if __name__ == "__main__":
    main()
