"""Tests seccomp notifications: an agent gets the filter's listener with the container's state, and decides in the kernel's place.

Each case runs with jobc, runc and crun: what the agent is told and what the program sees must be what the case says, for each
runtime that supports it.
"""

import array
import errno
import fcntl
import json
import os
import select
import socket
import struct
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest

import needs
from bundle import configuration, rootless
from runtime import Runtime, remove_groups

pytestmark = [pytest.mark.duration(5), pytest.mark.needs("root", "busybox")]
PEERS = ("runc", "crun")

# linux/seccomp.h: SECCOMP_IOCTL_NOTIF_RECV and _SEND with the sizes of their structures; SECCOMP_USER_NOTIF_FLAG_CONTINUE.
RECEIVE, SEND, NOTIFICATION, ANSWER, CONTINUE = 0xC0502100, 0xC0182101, 80, "=QqiI", 1
METADATA = "metadata of an agent"
# An error that the kernel does not return for mkdir(2), so only the agent can have chosen it.
CHOSEN_ERROR = errno.ENOMSG
DECIDED_CALLS = ("mkdir", "mkdirat")


class Agent:
    """Listens at a socket, and answers the calls of every listener that it gets: mkdir with an error, others as the kernel would."""

    def __init__(self, path):
        self.path, self.messages, self.calls = Path(path), [], 0
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.bind(str(path))
        self.path.chmod(0o777)
        self.socket.listen(8)
        self.server = threading.Thread(target=self.serve, daemon=True)
        self.server.start()

    def serve(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.receive_listener, args=(connection,), daemon=True).start()

    def receive_listener(self, connection):
        text, descriptors = b"", array.array("i")
        while True:
            piece, ancillary, _, _ = connection.recvmsg(65536, socket.CMSG_SPACE(4))
            for _, kind, data in ancillary:
                if kind == socket.SCM_RIGHTS:
                    descriptors.frombytes(data)
            if not piece:
                break
            text += piece
            try:
                self.messages.append(json.loads(text) | {"descriptors": len(descriptors)})
            except ValueError:
                continue
            break
        for listener in descriptors:
            threading.Thread(target=self.decide, args=(listener,), daemon=True).start()

    def decide(self, listener):
        waiting = select.poll()
        waiting.register(listener, select.POLLIN)
        while True:
            # After the last process with the filter has ended, there is nothing to receive or to wait for.
            if not any(happened & select.POLLIN for _, happened in waiting.poll()):
                os.close(listener)
                return
            notification = bytearray(NOTIFICATION)
            try:
                fcntl.ioctl(listener, RECEIVE, notification)
                number, call = struct.unpack_from("=Q", notification)[0], struct.unpack_from("=i", notification, 16)[0]
                self.calls += 1
                decided = call in (83, 258) if os.uname().machine == "x86_64" else call == 34
                answer = struct.pack(ANSWER, number, 0, -CHOSEN_ERROR if decided else 0, 0 if decided else CONTINUE)
                fcntl.ioctl(listener, SEND, bytearray(answer))
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.EINTR, errno.EINPROGRESS):
                    continue
                os.close(listener)
                return

    def close(self):
        # The server must not accept at the next agent's socket, which may have the same number.
        self.socket.shutdown(socket.SHUT_RDWR)
        self.server.join()
        self.socket.close()
        self.path.unlink(missing_ok=True)


@dataclass
class Case:
    """A container with an agent: which calls it decides, how the container is started, and the expected result."""

    name: str
    calls: tuple = DECIDED_CALLS
    change: object = None
    commands: tuple = ("run",)
    lacking: tuple = ()
    listens: bool = True
    error: str = ""
    messages: int = 1
    rootless: bool = True
    flags: tuple = ()
    default: str = "SCMP_ACT_ALLOW"
    allowed: tuple = ()


def privileged(config):
    config["process"]["noNewPrivileges"] = False


def in_user_namespace(config):
    config["linux"]["namespaces"].append({"type": "user"})
    config["linux"]["uidMappings"] = config["linux"]["gidMappings"] = [{"containerID": 0, "hostID": 100000, "size": 65536}]


def another_user(config):
    config["process"]["user"] = {"uid": 1000, "gid": 1000}


def without_listener(config):
    config["linux"]["seccomp"].pop("listenerPath")
    config["linux"]["seccomp"].pop("listenerMetadata")


HANDOVER_CALLS = ("write", "read", "close", "sendmsg", "futex", "ppoll", "sched_yield", "execve")
# What busybox needs to report the result, without the calls that pass a listener.
BUSYBOX_CALLS = ("execve", "brk", "arch_prctl", "set_tid_address", "set_robust_list", "rseq", "prlimit64", "readlink", "readlinkat", "getrandom",
          "mprotect", "write", "writev", "exit", "exit_group", "open", "openat", "close", "newfstatat", "fstat", "stat", "statx", "lstat", "fork", "vfork",
          "clone", "wait4", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "getuid", "geteuid", "getgid", "getegid", "getpid", "getppid",
          "mmap", "munmap", "ioctl", "fcntl", "getdents64", "dup2", "dup3", "umask", "getcwd", "poll", "setuid", "setgid", "prctl", "uname", "read",
          "access", "faccessat", "faccessat2", "sysinfo", "chdir", "readv", "lseek", "gettid", "pipe2", "pipe", "futex", "madvise", "mremap", "sigaltstack")

CASES = [
    Case("a call is decided"),
    Case("by another user", change=another_user, rootless=False),
    Case("in a user namespace", change=in_user_namespace, rootless=False),
    Case("with new privileges", change=privileged),
    Case("with new privileges, in a user namespace",
         change=lambda config: (privileged(config), in_user_namespace(config)), rootless=False),
    Case("create and start", commands=("create", "start")),
    Case("create and start, with new privileges", change=privileged, commands=("create", "start")),
    # crun 1.8 reports no bundle and no pid for `exec`.
    Case("exec", commands=("create", "start", "exec"), messages=2, lacking=("crun",)),
    Case("exec, with new privileges", change=privileged, commands=("create", "start", "exec"), messages=2, rootless=False, lacking=("crun",)),
    # runc rejects `write`; runc and crun make such calls themselves once the filter is loaded.
    Case("the calls that pass the listener", calls=(*DECIDED_CALLS, *HANDOVER_CALLS), lacking=PEERS),
    Case("the calls that pass the listener, create and start", calls=(*DECIDED_CALLS, *HANDOVER_CALLS), commands=("create", "start"), lacking=PEERS),
    Case("the calls that pass the listener, with new privileges", change=privileged, calls=(*DECIDED_CALLS, *HANDOVER_CALLS), lacking=PEERS),
    Case("the calls that pass the listener, with new privileges, exec", change=privileged, calls=(*DECIDED_CALLS, *HANDOVER_CALLS),
         commands=("create", "start", "exec"), messages=2, lacking=PEERS),
    Case("every call", default="SCMP_ACT_NOTIFY", lacking=PEERS),
    Case("every call, with new privileges", change=privileged, default="SCMP_ACT_NOTIFY", lacking=PEERS),
    Case("a filter that forbids passing the listener", default="SCMP_ACT_ERRNO", allowed=BUSYBOX_CALLS, lacking=PEERS),
    Case("a filter that forbids passing the listener, with new privileges", change=privileged, default="SCMP_ACT_ERRNO", allowed=BUSYBOX_CALLS,
         lacking=PEERS),
    Case("a program that can be killed while it waits", flags=("SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV",), lacking=PEERS),
    # crun sends a file descriptor anyway.
    Case("no call is decided by an agent", calls=(), messages=0, lacking=("crun",)),
    Case("no agent", listens=False, error="listenerPath", messages=0),
    Case("no agent, create", listens=False, error="listenerPath", messages=0, commands=("create",)),
    Case("no listenerPath", change=without_listener, error="listenerPath", messages=0, lacking=("crun",)),
]

# Reports the error that the agent chose, and the open file descriptors.
TRY_MKDIR = "mkdir /tmp/made; echo; ls /proc/self/fd; [ -d /tmp/made ] && echo made; exit 7"
WAIT = "read -r _ </tmp/go"


def run_case(runtime, case, roots, account):
    place = runtime.states.parent / f"{CASES.index(case)}-{runtime.name}"
    place.mkdir()
    path = place / "agent"
    config = configuration()
    further = "exec" in case.commands
    config["process"]["args"] = ["/bin/sh", "-c", WAIT if further else TRY_MKDIR]
    config["linux"]["cgroupsPath"] = f"/check-{os.getpid()}/notify"
    config["linux"]["seccomp"] = {
        "defaultAction": case.default, "architectures": ["SCMP_ARCH_AARCH64" if os.uname().machine == "aarch64" else "SCMP_ARCH_X86_64"],
        "listenerPath": str(path), "listenerMetadata": METADATA,
        "syscalls": [{"names": list(names), "action": action} for names, action in
                     ((case.calls, "SCMP_ACT_NOTIFY"), (case.allowed, "SCMP_ACT_ALLOW")) if names]}
    if case.flags:
        config["linux"]["seccomp"]["flags"] = list(case.flags)
    if account:
        rootless(config, account)
        config["linux"].pop("cgroupsPath")
    if case.change:
        case.change(config)
    config["annotations"] = {"tested.by": "an agent"}
    owner = (account.uid, account.gid) if account else \
        (100000, 100000) if any(space["type"] == "user" for space in config["linux"]["namespaces"]) else None
    roots.bundle(place, config, owner)
    os.mkfifo(place / "rootfs/tmp/go")
    (place / "rootfs/tmp/go").chmod(0o666)
    agent = Agent(path) if case.listens else None
    name = f"notify-{os.getpid()}-{CASES.index(case)}"
    try:
        assert_result(case, *run_commands(runtime, case, place, name), agent, name, place, runtime.name == "ours")
    finally:
        runtime.delete(name)
        if agent:
            agent.close()
        remove_groups(f"check-{os.getpid()}")


def run_commands(runtime, case, place, name):
    """The exit code, the program's output, the runtime's errors, and the pids."""
    with (open(place / "out", "w+", encoding="utf-8") as out, open(place / "err", "w+", encoding="utf-8") as err,
          runtime.null() as null):
        def command(*words):
            try:
                return subprocess.run(runtime.argv(*words), env=runtime.environment(), stdin=null, stdout=out, stderr=err,
                                      timeout=20, check=False).returncode
            except subprocess.TimeoutExpired:
                return 124

        pids = []
        for word in case.commands:
            if word in ("run", "create"):
                code = command(word, "--bundle", str(place), *(("--pid-file", str(place / "pid")) if word == "create" else ()), name)
                if word == "create" and code == 0:
                    pids.append(int((place / "pid").read_text(encoding="utf-8")))
            elif word == "start":
                code = command("start", name)
            else:
                code = command("exec", name, "/bin/sh", "-c", TRY_MKDIR)
            if code:
                break
        if "start" in case.commands and "exec" not in case.commands and code == 0:
            code = wait_until_stopped(runtime, name)
        out.seek(0)
        err.seek(0)
        return code, out.read(), err.read(), pids


def wait_until_stopped(runtime, name):
    """Waits for the end of a detached container, whose exit code is not reported."""
    for _ in range(200):
        state = runtime.state(name)
        if not state or state["status"] == "stopped":
            return 7
        threading.Event().wait(0.05)
    return 124


def assert_result(case, code, out, err, pids, agent, name, place, ours):
    """The result must be as the case says."""
    messages = agent.messages if agent else []
    summary = f"exit code {code}: {out!r} {err.strip()!r}, {len(messages)} messages, {agent.calls if agent else 0} calls"
    assert len(messages) == case.messages, f"the agent got {len(messages)} messages, not {case.messages}: {summary}"
    if case.error:
        assert code not in (0, 7, 124) and not out, f"is not rejected: {summary}"
        assert not ours or case.error in err, f"is not rejected at `{case.error}`: {summary}"
        return
    assert code == 7, f"does not return the program's exit code: {summary}"
    decided = os.strerror(CHOSEN_ERROR) in err + out
    assert decided == bool(case.messages) and ("made" in out.split()) != decided, f"mkdir was not decided as expected: {summary}"
    # The three standard streams, and the directory that `ls` reads.
    assert [word for word in out.split() if word != "made"] == ["0", "1", "2", "3"], f"file descriptors are left open: {summary}"
    for index, message in enumerate(messages):
        state = message.get("state", {})
        fields = {
            "fds": (message.get("fds"), ["seccompFd"]), "metadata": (message.get("metadata"), METADATA),
            "file descriptors sent": (message["descriptors"], 1), "state.id": (state.get("id"), name),
            "state.bundle": (state.get("bundle"), str(place)), "state.annotations": (state.get("annotations"), {"tested.by": "an agent"}),
            "state.status": (state.get("status") in ("creating", "created", "running"), True),
            "ociVersion": (bool(message.get("ociVersion")), True),
            "pid": (message.get("pid") == state.get("pid"), index == 0),
        }
        if pids:
            fields["state.pid"] = (state.get("pid"), pids[0])
        for key, (found, wanted) in fields.items():
            assert found == wanted, f"message {index}: {key} is {found!r}, not {wanted!r}: {message}"


def cases(*wanted):
    return pytest.mark.parametrize("case", [pytest.param(case, id=case.name.replace(" ", "_").replace(",", "")) for case in wanted])


@cases(*(case for case in CASES if case.rootless))
@pytest.mark.accounts("root", "range", slow="single")
def test_an_agent_decides_and_is_told_the_state(runtime, roots, account, case):
    run_case(runtime, case, roots, account)


@cases(*(case for case in CASES if not case.rootless))
def test_an_agent_of_root_decides_and_is_told_the_state(runtime, roots, account, case):
    run_case(runtime, case, roots, account)


@pytest.mark.parametrize("name, case", [pytest.param(name, case, id=f"{name}_{case.name}".replace(" ", "_").replace(",", ""))
                                        for case in CASES for name in PEERS if name not in case.lacking])
def test_an_agent_of_another_runtime_is_told_the_same(roots, account, directory, name, case):
    run_case(Runtime(needs.tool(name), directory), case, roots, account)
