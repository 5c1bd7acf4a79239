"""Tests jobs inside containers: those of podman as root and as a user without root, with its own defaults and with Docker's.

podman's defaults leave root without CAP_SYS_ADMIN, mask parts of /proc, mount /etc/hosts, /etc/hostname and /etc/resolv.conf as files and
the cgroups read-only, and forbid sethostname(2). Docker's seccomp filter forbids user namespaces too; here a filter does that denies the same
calls. The image is busybox with a program interpreter for `jobc`, which is bound into it.
"""

import json
import os
import re
import subprocess
import tarfile

import needs
import pytest

import podman as engine
from command_line import copy_program
from harness import scratch

pytestmark = [pytest.mark.duration(35), pytest.mark.accounts("range", slow="root")]

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

    def __init__(self, directory, account):
        place = directory / "podman"
        place.mkdir()
        # Rootless, crun refuses a hybrid tree of cgroups.
        self.podman = engine.Podman(needs, place, needs.tool("runc"), account)
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


def image(program, path):
    """busybox with what a dynamically linked program needs, and a full /etc."""
    root = path.with_suffix("")
    engine.image(needs.tool("busybox"), path)
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
    """Checks an exit code and patterns of the output."""
    shown = f"--- out\n{answer.stdout}--- err\n{answer.stderr}"
    assert answer.returncode == code, shown
    for pattern, stream in ((out, answer.stdout), (error, answer.stderr)):
        assert not pattern or re.search(pattern, stream, re.MULTILINE), f"no {pattern!r}: {shown}"


@pytest.fixture(scope="module")
def containers(account):
    needs.root()
    with scratch() as directory:
        containers = Containers(directory, account)
        image(containers.program, directory / "image.tar")
        expect(containers.podman("import", str(directory / "image.tar"), "localhost/nested"))
        yield containers
        containers.podman("rm", "--all", "--force", "--time", "0")
        containers.podman("pod", "rm", "--all", "--force", "--time", "0")
        # Files of a rootless engine belong to ids of its user.
        containers.podman("system", "reset", "--force")


def test_a_job_runs_in_an_ordinary_container(containers):
    """As root: files are read and written, and the container around is not changed."""
    script = f"{READY} && echo found; touch /etc/new && echo written; grep -q . /etc/resolv.conf && echo resolved; cat /proc/self/comm; exit 7"
    answer = containers.job(script, options="--verbose")
    expect(answer, 1, "^found\nwritten\nresolved\ncat$", r"`podman run --security-opt unmask=ALL")
    answer = containers.run("jobc doctor; test ! -e /etc/jobc -a ! -e /etc/new")
    expect(answer, 0, r"job\.run +ran\n(.|\n)*job\.network +ran with a network")


@pytest.mark.parametrize("name", ("1000", "4321"))
def test_a_job_runs_as_another_user(containers, name):
    """As in most development containers, also one that /etc/passwd does not have."""
    answer = containers.job(f"{READY} && touch /etc/new && echo written; id -u", "--user", name, "--env", "HOME=/tmp")
    expect(answer, 0, f"^written\n{name}$")


def test_each_task_has_its_own_proc_where_nothing_is_masked(containers):
    """With another filter it has its own host name."""
    answer = containers.job("echo $$; ls -d /proc/[0-9]*; hostname", "--security-opt", "unmask=ALL", "--security-opt", "seccomp=unconfined")
    expect(answer, 0, r"^2\n/proc/1\n(/proc/\d+\n)+main-0$")
    assert "/proc` is that of" not in answer.stderr, answer.stderr


def test_commands_work_in_a_container(containers):
    """Jobs are listed, followed, entered and stopped."""
    script = """\
id=$(jobc run --detach /tmp/job.yaml) || exit 1
n=0; until jobc logs $id | grep -q up; do sleep 0.1; n=$((n+1)); [ $n -lt 100 ] || exit 2; done
jobc ps; echo entered | jobc exec -i $id main-0 sh -c 'read word; echo $word' && jobc stop $id && jobc logs $id && jobc ps --all"""
    job = JOB.replace("RUN", "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.1; done").replace("RESOURCES", "")
    answer = containers.run(f"cat >/tmp/job.yaml <<'END'\n{job}END\n{script}")
    expect(answer, 0, r"inside\.1 +running(.|\n)*^entered\n(.|\n)*^up\nbye\n(.|\n)*inside\.1 +stopped")


def test_tasks_reach_each_other(containers):
    """They have addresses of their own."""
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
    expect(answer, 0, "page")


def test_a_job_with_an_image_runs(containers):
    """Instead of the container's own files."""
    job = "version: 1\nname: packed\nimage: ./root.tar\nroles:\n  main: {shell: sh, run: 'echo packed; test ! -e /etc/file-1'}\n"
    script = "cd /tmp; mkdir -p root/bin; cp /bin/busybox root/bin/sh; ln -s sh root/bin/test; tar -C root -cf root.tar ."
    answer = containers.run(f"{script}; cat >job.yaml <<'END'\n{job}END\njobc run job.yaml")
    expect(answer, 0, "^packed$")


def test_limits_that_nothing_enforces_are_reported_or_refused_once(containers):
    """By `enforce: true` they are refused, with what works."""
    answer = containers.job("echo ran", resources="memory: 64MiB, enforce: true")
    expect(answer, 125, "^$", r"\Aerror: limits on `memory` are not enforced: [^\n]+\n = help: [^\n]*`--allow-unenforced`[^\n]*\n( = help: [^\n]+\n)*\Z")
    answer = containers.job("echo ran", options="--allow-unenforced", resources="memory: 64MiB, enforce: true")
    expect(answer, 0, "^ran$")
    answer = containers.job("echo ran", resources="memory: 64MiB")
    expect(answer, 0, "^ran$", "warning: limits on `memory` are not enforced: [^\n]+\n = help: [^\n]*`jobc config set allow-unenforced true`")


DOCKER = [
    ([], "podman container", "`podman run --security-opt seccomp=unconfined"),
    (["--user", "1000", "--env", "HOME=/tmp"], "podman container", "`podman run --security-opt seccomp=unconfined"),
    (["--env", "KUBERNETES_SERVICE_HOST=10.0.0.1"], "pod", "`securityContext: {seccompProfile: {type: Unconfined}"),
    (["--env", "REMOTE_CONTAINERS=true"], "development container", "devcontainer.json"),
]


@pytest.mark.parametrize("words, name, advice", DOCKER, ids=["podman", "user", "kubernetes", "devcontainer"])
def test_the_filter_of_docker_is_named_with_what_helps(containers, words, name, advice):
    """In one message with the options that help; nothing is started."""
    answer = containers.job("echo ran", "--security-opt", f"seccomp={containers.directory}/docker.json", *words)
    first = rf"\Aerror: this {name} does not allow user namespaces, without which no container can be started: operation not permitted \(EPERM\)\n"
    expect(answer, 125, "^$", first + " = help: [^\n]*" + re.escape(advice) + "[^\n]*\n\\Z")


def test_doctor_names_the_filter_of_docker(containers):
    answer = containers.run("jobc doctor", "--security-opt", f"seccomp={containers.directory}/docker.json")
    expect(answer, 1, "containers as root: no, see (kernel.calls, )?namespace.user")
    expect(answer, 1, r"job\.run +this podman container does not allow user namespaces")


def test_root_without_capabilities_cannot_map_itself(containers):
    answer = containers.job("echo ran", "--cap-drop", "all")
    expect(answer, 125, "^$", r"does not allow user namespaces[^\n]*\n = help: [^\n]*--cap-add SETFCAP")


@pytest.mark.parametrize("words", [["--cap-add", "SYS_ADMIN"], ["--privileged"], ["--privileged", "--user", "1000", "--env", "HOME=/tmp"]], ids=" ".join)
def test_a_job_runs_with_more_rights(containers, words):
    """CAP_SYS_ADMIN with the cgroups read-only, and all rights."""
    answer = containers.job(f"{READY} && touch /etc/new && echo written", *words)
    expect(answer, 0, "^written$")


def test_a_job_runs_in_a_pod(containers):
    """The namespaces are held by another container."""
    podman = containers.podman
    made = podman("pod", "create", "--name", "two", "--network", "none", "--infra-command", "/bin/sleep 99", "--infra-image", "localhost/nested")
    expect(made)
    text = JOB.replace("RUN", f"{READY} && echo found").replace("RESOURCES", "")
    command = ["run", "--rm", "--pod", "two", "--volume", f"{containers.program}:/usr/bin/jobc:ro", "nested", "sh", "-c"]
    answer = podman(*command, f"cat >/tmp/job.yaml <<'END'\n{text}END\njobc run /tmp/job.yaml")
    expect(answer, 0, "^found$")
    removed = podman("pod", "rm", "--force", "--time", "0", "two")
    expect(removed)
