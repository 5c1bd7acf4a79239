"""Tests how a container ends: exit code, what is passed on, and that nothing of it is left.

The codes are those of docs/reference/exit-codes.md: the program's own; 1 where the runtime failed; 126 and 127 where
the program cannot be executed or found; 128 and the number of the signal that killed it.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from bundle import configuration, give, rootless
from runtime import running, unique_sleep

pytestmark = [pytest.mark.duration(6), pytest.mark.needs("root", "busybox", "cc"), pytest.mark.accounts("root", "range", "single")]

PROGRAMS = [
    # name, process.args, exit code, text that the error must contain
    ("true", ["/bin/true"], 0, None),
    ("false", ["/bin/false"], 1, None),
    ("by name in PATH", ["true"], 0, None),
    ("three", ["/bin/sh", "-c", "exit 3"], 3, None),
    ("the highest exit code", ["/bin/sh", "-c", "exit 255"], 255, None),
    ("absent", ["/bin/not-there"], 127, "not-there"),
    ("absent with a directory", ["/no/directory/here"], 127, "/no/directory/here"),
    ("absent in PATH", ["not-there"], 127, "not-there"),
    ("not executable", ["/etc/passwd"], 126, "/etc/passwd"),
    ("a directory", ["/etc"], 126, "/etc"),
    ("neither program nor script", ["/nonsense"], 126, "/nonsense"),
    ("a script without its interpreter", ["/orphan"], 127, "/orphan"),
    ("a script", ["/script", "9"], 9, None),
]


READY = """
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
int main(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, getenv("NOTIFY_SOCKET"));
    int socket_ = socket(AF_UNIX, SOCK_DGRAM, 0);
    const char *said[] = {"STATUS=loading", "STATUS=loaded\\nREADY=1"};
    for (int i = 0; i < 2; i++)
        if (sendto(socket_, said[i], strlen(said[i]), 0, (struct sockaddr *)&address, sizeof address) < 0) return 9;
    return sleep(60);
}
"""


def files(root):
    for name, content in (("nonsense", "\0\1\2 nothing\n"), ("orphan", "#!/no/interpreter\n"), ("script", '#!/bin/sh\nexit "$1"\n'),
                          ("killed", '#!/bin/sh\n# The first process of a pid namespace cannot be killed from within.\nkill -"$1" $$\nexit 99\n')):
        (root / name).write_text(content)
        (root / name).chmod(0o755)


def unchanged(config):
    pass


def pid_shared(config):
    linux = config["linux"]
    linux["namespaces"] = [namespace for namespace in linux["namespaces"] if namespace["type"] != "pid"]


class Exits:
    """Runs similar bundles, one after another."""

    def __init__(self, runtime, roots, account):
        self.runtime, self.roots, self.directory, self.account = runtime, roots, runtime.states.parent, account
        self.count = 0

    def bundle(self, args, change=unchanged):
        self.count += 1
        config = configuration()
        config["process"]["args"] = args
        if self.account:
            rootless(config, self.account)
        change(config)
        place = self.directory / f"bundle-{self.count}"
        place.mkdir()
        self.roots.bundle(place, config)
        files(place / "rootfs")
        if self.account:
            give(place, (self.account.uid, self.account.gid))
        return place, f"exits-{os.getpid()}-{self.count}"

    def assert_state_removed(self, name):
        assert self.runtime.state(name) is None, "its state is left"

    def finish(self, started, name, wanted):
        try:
            _, errors = started.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            started.kill()
            started.communicate()
            self.runtime.delete(name)
            pytest.fail("timed out after 20 s")
        assert_code(started.returncode, wanted, errors)
        self.assert_state_removed(name)

    def notifier(self):
        """A static program that says it is ready, and sleeps."""
        made = self.directory / "ready"
        if not made.exists():
            source = self.directory / "ready.c"
            source.write_text(READY)
            subprocess.run(["cc", "-static", "-o", made, source], check=True)
        return made


@pytest.fixture(scope="module")
def exits(runtime, roots, account):
    return Exits(runtime, roots, account)


def run_program(exits, args, wanted, words, change=unchanged):
    """A program ends with this exit code, and an error of the runtime has these words."""
    place, name = exits.bundle(args, change)
    result = exits.runtime.run(place, name)
    assert_code(result.returncode, wanted, result.stderr)
    assert not words or words in result.stderr, f"the error does not contain `{words}`: {result.stderr.strip()!r}"
    exits.assert_state_removed(name)


@pytest.mark.parametrize("args, wanted, words", [pytest.param(*rest, id=name.replace(" ", "_")) for name, *rest in PROGRAMS])
def test_the_exit_code_is_the_programs_or_says_why_it_did_not_start(exits, args, wanted, words):
    run_program(exits, args, wanted, words)


@pytest.mark.accounts("root")
@pytest.mark.parametrize("name, wanted", [("TERM", 143), ("KILL", 137), ("SEGV", 139)])
def test_the_exit_code_has_the_signal_that_killed_the_program(exits, name, wanted):
    run_program(exits, ["/bin/sh", "-c", f"exec /killed {name}"], wanted, None, pid_shared)


def test_an_invalid_configuration_is_an_error_of_the_runtime(exits):
    run_program(exits, ["/bin/true"], 1, "cwd", lambda config: config["process"].update(cwd="not/absolute"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT], ids=lambda number: number.name)
def test_a_signal_to_the_runtime_reaches_the_program(exits, number):
    """A signal to the runtime reaches the program, which exits with its own code."""
    place, name = exits.bundle(["/bin/sh", "-c", f"trap 'exit 42' {number.value}; echo ready; while :; do sleep 0.1; done"])
    started = exits.runtime.spawn(place, name)
    started.stdout.readline()
    os.kill(started.pid, number)
    exits.finish(started, name, 42)


@pytest.mark.parametrize("word", ["KILL", "SIGKILL", "9"])
def test_kill_takes_a_signal_by_name_or_number(exits, word):
    place, name = exits.bundle(["/bin/sh", "-c", "echo ready; read line"])
    started = exits.runtime.spawn(place, name)
    started.stdout.readline()
    answer = exits.runtime.call("kill", name, word)
    assert answer.returncode == 0, f"kill fails: {answer.stderr.strip()}"
    exits.finish(started, name, 137)


def test_streams_pass_a_megabyte_and_the_end_of_file(exits):
    """A megabyte goes in and comes out unchanged, and the program sees the end of file."""
    place, name = exits.bundle(["/bin/sh", "-c", "cat; echo done >&2"])
    sent = "0123456789abcdef" * 65536
    started = exits.runtime.spawn(place, name)
    got, errors = started.communicate(sent, timeout=30)
    assert_code(started.returncode, 0, errors)
    assert got == sent, f"{len(got)} of {len(sent)} bytes came back"
    assert "done" in errors, "there is no standard error"


def test_processes_that_the_program_leaves_end_with_it(exits):
    """Processes that the program leaves end with it, even one that closed every stream and created its own session."""
    place, name = exits.bundle(["/bin/sh", "-c", f"(setsid sh -c 'exec >/dev/null 2>&1 </dev/null; {unique_sleep(1)}') & sleep 0.2; exit 5"])
    started = exits.runtime.spawn(place, name)
    exits.finish(started, name, 5)
    time.sleep(0.2)
    assert not running(unique_sleep(1)), "its orphan is still running"


def test_a_container_ends_with_its_foreground_runtime(exits):
    """When a foreground runtime is killed, its container ends."""
    place, name = exits.bundle(["/bin/sh", "-c", f"echo ready; exec {unique_sleep(2)}"])
    started = exits.runtime.spawn(place, name)
    started.stdout.readline()
    os.kill(started.pid, signal.SIGKILL)
    started.wait(timeout=10)
    deadline = time.monotonic() + 10
    while running(unique_sleep(2)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not running(unique_sleep(2)), "its container is still running"
    exits.runtime.delete(name)
    exits.assert_state_removed(name)


def test_create_and_start_are_the_two_halves_of_run(exits):
    """`create` returns before the program runs; `start` runs it; `delete` is rejected before the exit and works after it."""
    place, name = exits.bundle(["/bin/sh", "-c", "echo ran > /tmp/ran; exec sleep 4323"])
    with open(place / "out", "wb") as out:
        made = subprocess.run(exits.runtime.argv("create", "--bundle", str(place), name), stdin=subprocess.DEVNULL, stdout=out,
                              stderr=out, timeout=20, env=exits.runtime.environment(), check=False)
    assert made.returncode == 0, f"create fails: {(place / 'out').read_text()}"
    assert_status(exits.runtime, name, "created")
    assert not (place / "rootfs/tmp/ran").exists(), "the program ran before `start`"
    assert exits.runtime.call("create", "--bundle", str(place), name).returncode != 0, "the same id is accepted twice"
    for words, wanted in ((("start", name), 0), (("start", name), None), (("delete", name), None), (("kill", name, "KILL"), 0)):
        answer = exits.runtime.call(*words)
        assert (answer.returncode == 0) == (wanted == 0), f"{words[0]} returns {answer.returncode}: {answer.stderr.strip()}"
        if words[0] == "start" and wanted == 0:
            time.sleep(0.1)
            assert_status(exits.runtime, name, "running")
            assert (place / "rootfs/tmp/ran").exists(), "the program did not run after `start`"
    deadline = time.monotonic() + 5
    while (exits.runtime.state(name) or {}).get("status") != "stopped" and time.monotonic() < deadline:
        time.sleep(0.02)
    assert_status(exits.runtime, name, "stopped")
    answer = exits.runtime.call("delete", name)
    assert answer.returncode == 0, f"delete fails: {answer.stderr.strip()}"
    exits.assert_state_removed(name)


def test_exec_joins_every_namespace(exits):
    """`exec` joins every namespace, with the ids and capabilities of the container, and returns the exit code."""
    place, name = exits.bundle(["/bin/sh", "-c", "echo ready; exec sleep 4324"])
    started = exits.runtime.spawn(place, name)
    started.stdout.readline()
    answer = exits.runtime.call("exec", "--env", "A=b", "--cwd", "/tmp", name, "/bin/sh", "-c",
                               'echo "$A $(pwd) $(hostname) $(id -u)"; grep -E "^(CapBnd|NoNewPrivs)" /proc/self/status; exit 6')
    assert_code(answer.returncode, 6, answer.stderr)
    assert answer.stdout.splitlines()[:1] == ["b /tmp tested 0"], f"its output is {answer.stdout!r}"
    assert "CapBnd:\t0000000020000420" in answer.stdout and "NoNewPrivs:\t1" in answer.stdout, f"its capabilities are not the container's: {answer.stdout!r}"
    answer = exits.runtime.call("exec", name, "/not/there")
    assert_code(answer.returncode, 255, answer.stderr)
    answer = exits.runtime.call("exec", "--cap", "CAP_OF_TOMORROW", name, "/bin/true")
    assert_code(answer.returncode, 0, answer.stderr)
    answer = exits.runtime.call("exec", name, "/bin/sh", "-c", "kill -9 $$")
    assert_code(answer.returncode, 137, answer.stderr)
    exits.runtime.call("kill", name, "KILL")
    exits.finish(started, name, 137)


@pytest.mark.accounts("root")
def test_exec_puts_a_process_into_a_cgroup_below_the_containers(exits):
    """`exec --cgroup` puts the process into a cgroup below the container's."""
    place, name = exits.bundle(["/bin/sh", "-c", "echo ready; exec sleep 4325"])
    started = exits.runtime.spawn(place, name)
    started.stdout.readline()
    # The first words of a process may come before its runtime has written its number down.
    deadline = time.monotonic() + 5
    while not (pid := (exits.runtime.state(name) or {}).get("pid")) and time.monotonic() < deadline:
        time.sleep(0.02)
    own = {words[1]: Path(f"/sys/fs/cgroup/{words[1]}{words[2]}") for words in
           (line.split(":", 2) for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines())}
    version_1 = "memory" in own
    below = own["memory" if version_1 else ""] / "below"
    below.mkdir()
    answer = exits.runtime.call("exec", "--cgroup", "memory:below" if version_1 else "below", name, "/bin/sleep", "0.5")
    assert_code(answer.returncode, 0, answer.stderr)
    running_there = exits.runtime.call("exec", "--detach", "--pid-file", str(place / "pid"), "--cgroup", "memory:/below" if version_1 else "/below",
                                      name, "/bin/sh", "-c", "exec sleep 4326 >/dev/null 2>&1 </dev/null")
    assert_code(running_there.returncode, 0, running_there.stderr)
    assert below.joinpath("cgroup.procs").read_text().split() == [(place / "pid").read_text()], "the process is in another cgroup"
    for wrong in ("../other", "nothing"):
        answer = exits.runtime.call("exec", "--cgroup", wrong, name, "/bin/true")
        assert_code(answer.returncode, 255, answer.stderr)
    exits.runtime.call("kill", name, "KILL")
    exits.finish(started, name, 137)


@pytest.mark.accounts("root")
def test_groups_are_kept_by_an_annotation(exits):
    """With the annotation of `podman run --group-add keep-groups` the program keeps the supplementary groups of who starts it."""
    place, name = exits.bundle(["/bin/sh", "-c", "id -G"], lambda config: config.update(annotations={"run.oci.keep_original_groups": "1"}))
    answer = exits.runtime.call("run", "--bundle", str(place), name, extra_groups=[4242, 4243])
    assert {"4242", "4243"} <= set(answer.stdout.split()), f"its groups are {answer.stdout!r} {answer.stderr!r}"


def test_errors_have_the_words_and_codes_that_callers_know(exits):
    """What callers look for in errors, and the exit codes they know from runc."""
    missing = "container does not exist"
    for command, wanted, text in (
            (("state", "nobody"), 1, missing), (("kill", "nobody"), 1, missing), (("delete", "nobody"), 1, missing), (("start", "nobody"), 1, missing),
            (("pause", "nobody"), 1, missing), (("ps", "nobody"), 1, missing), (("exec", "nobody", "true"), 255, missing), (("delete", "--force", "nobody"), 0, ""),
            # podman takes the exit code of `checkpoint --help` for its support.
            (("checkpoint", "--help"), 1, "not supported"), (("restore", "--image-path", "/tmp", "nobody"), 1, "not supported")):
        answer = exits.runtime.call(*command)
        assert_code(answer.returncode, wanted, f"{command}: {answer.stderr}")
        assert text in answer.stderr, f"{command}: `{text}` is not in {answer.stderr!r}"
    place, name = exits.bundle(["/bin/true"])
    answer = exits.runtime.run(place, name, "--keep")
    assert_code(answer.returncode, 0, answer.stderr)
    answer = exits.runtime.call("kill", name, "TERM")
    assert_code(answer.returncode, 1, answer.stderr)
    assert "container not running" in answer.stderr, f"kill: {answer.stderr!r}"
    for command in (("exec", name, "/bin/true"), ("exec", "--cap", "CAP_CHOWN", name, "/bin/true")):
        assert_code(exits.runtime.call(*command).returncode, 255, "exec in a stopped container")
    answer = exits.runtime.call("list", "--format", "json")
    assert len(answer.stdout.splitlines()) == 1 and [entry["id"] for entry in json.loads(answer.stdout)] == [name], f"list: {answer.stdout!r}"
    assert_code(exits.runtime.delete(name).returncode, 0, "delete")


def test_a_missing_program_is_an_error_of_create(exits):
    """A missing program, and what is none, is an error of `create`, as with runc: docker deletes no container whose `start` fails."""
    for path, text in (("/not/there", "no such file or directory"), ("/etc", "permission denied"), ("/etc/passwd", "permission denied")):
        place, name = exits.bundle([path])
        with exits.runtime.null() as null, open(place / "errors", "w+", encoding="utf-8") as errors:
            answer = subprocess.run(exits.runtime.argv("create", "--bundle", str(place), name), stdin=null, stdout=errors, stderr=errors, timeout=20, check=False,
                                    env=exits.runtime.environment())
            errors.seek(0)
            words = errors.read()
        assert_code(answer.returncode, 1, f"{path}: {words}")
        assert text in words, f"{path}: {words!r}"
        exits.assert_state_removed(name)
        exits.runtime.delete(name)


def test_what_spec_writes_runs(exits):
    """What `spec` writes runs, with a root file system beside it."""
    place, name = exits.bundle(["/bin/true"])
    (place / "config.json").unlink()
    flags = ("--rootless",) if exits.account else ()
    if exits.account:
        give(place, (exits.account.uid, exits.account.gid))
    answer = exits.runtime.call("spec", "--bundle", str(place), *flags)
    assert_code(answer.returncode, 0, answer.stderr)
    again = exits.runtime.call("spec", "--bundle", str(place), *flags)
    assert_code(again.returncode, 1, again.stderr)
    text = (place / "config.json").read_text()
    (place / "config.json").write_text(text.replace('"sh"', '"sh", "-c", "exit 7"').replace('"terminal": true', '"terminal": false'))
    answer = exits.runtime.run(place, name)
    assert_code(answer.returncode, 7, answer.stderr)
    assert not answer.stderr, f"there are warnings: {answer.stderr!r}"


def test_a_configuration_has_another_name(exits):
    """`--config` names another file than config.json."""
    place, name = exits.bundle(["/bin/sh", "-c", "exit 8"])
    (place / "config.json").rename(place / "other.json")
    answer = exits.runtime.run(place, name, "--config", "other.json")
    assert_code(answer.returncode, 8, answer.stderr)
    answer = exits.runtime.run(place, name, "--config", "none.json")
    assert_code(answer.returncode, 1, answer.stderr)
    assert "none.json" in answer.stderr, f"the error does not name the file: {answer.stderr!r}"


@pytest.mark.parametrize("link", ["/proc/self/attr", "/sys/kernel", "/dev", "/dev/pts", "/dev/none/deep", "dev/../proc"], ids=lambda link: link.strip("/").replace("/", "_"))
def test_a_volume_through_a_link_to_a_file_system_of_the_kernel_is_rejected(exits, link):
    """A volume whose place the image links to a file system of the kernel is rejected, and nothing is made there."""
    place, name = exits.bundle(["/bin/true"], lambda config: config["mounts"].append(
        {"destination": "/data/volume", "type": "tmpfs", "source": "tmpfs"}))
    os.symlink(link, place / "rootfs/data")
    result = exits.runtime.run(place, name)
    assert_code(result.returncode, 1, result.stderr)
    assert "symbolic links lead to /proc, /sys or /dev" in result.stderr, f"the error does not say why: {result.stderr.strip()!r}"
    exits.assert_state_removed(name)


def test_a_volume_is_mounted_through_a_link_to_a_volume(exits):
    """A volume below another one, also by a link of the image, is none of that."""
    def below(config):
        config["mounts"] += [{"destination": f"/mnt{end}", "type": "tmpfs", "source": "tmpfs"} for end in ("", "/a", "/a/b")]
        config["mounts"].append({"destination": "/data/volume", "type": "tmpfs", "source": "tmpfs"})
    place, name = exits.bundle(["/bin/sh", "-c", "grep -c -e ' /mnt/a/b ' -e ' /mnt/a/b/volume ' /proc/mounts"], below)
    os.symlink("/mnt/a/b", place / "rootfs/data")
    result = exits.runtime.run(place, name)
    assert_code(result.returncode, 0, result.stderr)
    assert result.stdout == "2\n", f"the mounts are not there: {result.stdout!r}"


@pytest.mark.accounts("root")
def test_a_user_opens_the_pipes_of_its_streams_by_name(exits):
    """Of a container and of a process that is added, as with crun and runc."""
    words = ["/bin/sh", "-c", "echo out >/dev/stdout; echo err >/dev/stderr"]
    place, name = exits.bundle(words, lambda config: config["process"].update(user={"uid": 1000, "gid": 1000}))
    result = exits.runtime.run(place, name)
    assert (result.stdout, result.stderr, result.returncode) == ("out\n", "err\n", 0), result
    place, name = exits.bundle(["/bin/sh", "-c", "exec sleep 60 >/dev/null 2>&1"])
    started = exits.runtime.run(place, name, "--detach")
    assert_code(started.returncode, 0, started.stderr)
    result = exits.runtime.call("exec", "--user", "1000:1000", name, *words)
    assert (result.stdout, result.stderr, result.returncode) == ("out\n", "err\n", 0), result
    exits.runtime.delete(name)


DANGLING = {"etc/absolute": "/run/deep/file", "etc/relative": "../run/other", "etc/outside": "../../../../var/new/file", "etc/chain": "next", "etc/next": "/srv/a/b",
            "directory": "srv/new", "above": "/opt/none"}


def test_what_a_dangling_link_names_is_made_below_the_root(exits):
    """As crun and runc do: for a file, a directory, a chain of links, and a path below a link. A loop is an error."""
    places = {"/etc/absolute": "/run/deep/file", "/etc/relative": "/run/other", "/etc/outside": "/var/new/file", "/etc/chain": "/srv/a/b"}
    source = exits.directory / "hello"
    source.write_text("hello\n")
    source.chmod(0o644)

    def linked(config):
        config["mounts"] += [{"destination": place, "type": "bind", "source": str(source), "options": ["bind", "ro"]} for place in places]
        config["mounts"] += [{"destination": place, "type": "tmpfs", "source": "t"} for place in ("/directory", "/above/in")]
    place, name = exits.bundle(["/bin/sh", "-c", f"cat {' '.join(places.values())}; grep -c -e ' /srv/new ' -e ' /opt/none/in ' /proc/mounts"], linked)
    for link, target in DANGLING.items():
        (place / "rootfs" / link).parent.mkdir(exist_ok=True)
        os.symlink(target, place / "rootfs" / link)
    result = exits.runtime.run(place, name)
    assert_code(result.returncode, 0, result.stderr)
    assert result.stdout == "hello\n" * 4 + "2\n", result.stdout
    os.symlink("loop", place / "rootfs/loop")
    config = json.loads((place / "config.json").read_text())
    config["mounts"].append({"destination": "/loop", "type": "tmpfs", "source": "t"})
    (place / "config.json").write_text(json.dumps(config))
    result = exits.runtime.run(place, name)
    assert_code(result.returncode, 1, result.stderr)
    assert "ELOOP" in result.stderr, result.stderr


@pytest.mark.parametrize("words", [[("run",)], [("run", "--detach")], [("create",), ("start",)]], ids=["run", "run_detached", "start"])
def test_a_program_notifies_the_service_manager_before_the_command_ends(exits, words):
    """What the program says on `NOTIFY_SOCKET` reaches the service manager, with the process to watch, before the command ends."""
    place, name = exits.bundle(["/bin/sh", "-c", 'test "$NOTIFY_SOCKET" = /run/notify/notify.sock && exec /ready'])
    ready = place / "rootfs/ready"
    shutil.copy2(exits.notifier(), ready)
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    address = place / "manager.sock"
    manager.bind(str(address))
    address.chmod(0o777)
    manager.settimeout(20)
    environment = (exits.runtime.environment() or dict(os.environ)) | {"NOTIFY_SOCKET": str(address)}
    started = [subprocess.Popen(exits.runtime.argv(*word, *(("--bundle", str(place)) if word[0] != "start" else ()), name),
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
               for word in words[:1]]
    if len(words) > 1:
        started[0].wait(timeout=20)
        started.append(subprocess.Popen(exits.runtime.argv(*words[1], name), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, env=environment))
    try:
        got = manager.recv(4096).decode()
        lines = dict(line.split("=", 1) for line in got.split())
        barrier, descriptors, *_ = socket.recv_fds(manager, 4096, 1)
        waits = started[-1].poll() is None
        for descriptor in descriptors:
            os.close(descriptor)
        assert barrier == b"BARRIER=1" and len(descriptors) == 1, f"no barrier, but {barrier!r}"
        assert waits, "the command ended before the service manager confirmed"
        pid = started[-1].pid if words[0] == ("run",) else (exits.runtime.state(name) or {}).get("pid")
        assert lines == {"READY": "1", "MAINPID": str(pid)}, f"the service manager gets {got!r}, the process is {pid}"
        if words[0] != ("run",):
            assert_code(started[-1].wait(timeout=20), 0, "")
    except TimeoutError:
        pytest.fail("the service manager is not notified")
    finally:
        manager.close()
        exits.runtime.delete(name)
        started[-1].wait(timeout=20)
    exits.assert_state_removed(name)


def assert_status(runtime, name, wanted):
    seen = (runtime.state(name) or {}).get("status")
    assert seen == wanted, f"its state is {seen}, it should be {wanted}"


def assert_code(seen, wanted, errors):
    assert seen == wanted, f"exit code is {seen}, it should be {wanted}: {errors.strip()!r}"
