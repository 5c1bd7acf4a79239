#!/usr/bin/env python3
"""Tests seccomp notifications: an agent gets the filter's listener with the container's state, and decides in the kernel's place.

Each case runs under ours, runc and crun alike; what the agent is told and what the program sees must be what the case names, under
each runtime that knows it.
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
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import user
from bundle import Roots, configuration, rootless
from differential import PEERS, remove_groups
from harness import Harness, scratch
from runtime import Runtime, program

# linux/seccomp.h: SECCOMP_IOCTL_NOTIF_RECV and _SEND with the sizes of their structures; SECCOMP_USER_NOTIF_FLAG_CONTINUE.
RECEIVE, SEND, NOTIFICATION, ANSWER, CONTINUE = 0xC0502100, 0xC0182101, 80, "=QqiI", 1
METADATA = "an agent's own word"
# No error that a kernel gives for mkdir(2), so nobody but the agent can have chosen it.
CHOSEN = errno.ENOMSG
ASKED = ("mkdir", "mkdirat")


class Agent:
    """Listens at a socket, and answers calls of every listener it gets: those of mkdir with an error, others as the kernel would."""

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
            threading.Thread(target=self.hear, args=(connection,), daemon=True).start()

    def hear(self, connection):
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
            # Where the last process with the filter has gone there is nothing to receive, and no wait for it.
            if not any(happened & select.POLLIN for _, happened in waiting.poll()):
                os.close(listener)
                return
            asked = bytearray(NOTIFICATION)
            try:
                fcntl.ioctl(listener, RECEIVE, asked)
                number, made = struct.unpack_from("=Q", asked)[0], struct.unpack_from("=i", asked, 16)[0]
                self.calls += 1
                chosen = made in (83, 258) if os.uname().machine == "x86_64" else made == 34
                answer = struct.pack(ANSWER, number, 0, -CHOSEN if chosen else 0, 0 if chosen else CONTINUE)
                fcntl.ioctl(listener, SEND, bytearray(answer))
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.EINTR, errno.EINPROGRESS):
                    continue
                os.close(listener)
                return

    def close(self):
        # It must not accept at the next agent's socket, which may have the same number.
        self.socket.shutdown(socket.SHUT_RDWR)
        self.server.join()
        self.socket.close()
        self.path.unlink(missing_ok=True)


@dataclass
class Case:
    """A container with an agent: what asks it, how it is started, and what must come of it."""

    name: str
    calls: tuple = ASKED
    change: object = None
    commands: tuple = ("run",)
    lacking: tuple = ()
    listens: bool = True
    refused: str = ""
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


def nowhere(config):
    config["linux"]["seccomp"].pop("listenerPath")
    config["linux"]["seccomp"].pop("listenerMetadata")


HANDING_OVER = ("write", "read", "close", "sendmsg", "futex", "ppoll", "sched_yield", "execve")
# What busybox needs to tell what came of it, and nothing that hands a listener over.
NEEDED = ("execve", "brk", "arch_prctl", "set_tid_address", "set_robust_list", "rseq", "prlimit64", "readlink", "readlinkat", "getrandom",
          "mprotect", "write", "writev", "exit", "exit_group", "open", "openat", "close", "newfstatat", "fstat", "stat", "statx", "lstat", "fork", "vfork",
          "clone", "wait4", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "getuid", "geteuid", "getgid", "getegid", "getpid", "getppid",
          "mmap", "munmap", "ioctl", "fcntl", "getdents64", "dup2", "dup3", "umask", "getcwd", "poll", "setuid", "setgid", "prctl", "uname", "read",
          "access", "faccessat", "faccessat2", "sysinfo", "chdir", "readv", "lseek", "gettid", "pipe2", "pipe", "futex", "madvise", "mremap", "sigaltstack")

CASES = [
    Case("a call is decided"),
    Case("by another user", change=another_user, rootless=False),
    Case("in a user namespace", change=in_user_namespace, rootless=False),
    Case("while privileges may be gained", change=privileged, rootless=False),
    Case("while privileges may be gained, in a user namespace",
         change=lambda config: (privileged(config), in_user_namespace(config)), rootless=False),
    Case("created and started", commands=("create", "start")),
    Case("created and started while privileges may be gained", change=privileged, commands=("create", "start"), rootless=False),
    # crun 1.8 tells no bundle and no number of a further process.
    Case("a further program", commands=("create", "start", "exec"), messages=2, lacking=("crun",)),
    Case("a further program while privileges may be gained", change=privileged, commands=("create", "start", "exec"), messages=2, rootless=False, lacking=("crun",)),
    # runc refuses `write`; it and crun make such calls themselves once the filter is loaded.
    Case("the calls that handing over takes", calls=(*ASKED, *HANDING_OVER), lacking=PEERS),
    Case("the calls that handing over takes, created and started", calls=(*ASKED, *HANDING_OVER), commands=("create", "start"), lacking=PEERS),
    Case("every call", default="SCMP_ACT_NOTIFY", lacking=PEERS),
    Case("a filter that refuses handing over", default="SCMP_ACT_ERRNO", allowed=NEEDED, lacking=PEERS),
    Case("an agent that can be killed meanwhile", flags=("SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV",), lacking=PEERS),
    # crun sends a descriptor all the same.
    Case("nobody asks", calls=(), messages=0, lacking=("crun",)),
    Case("nobody listens", listens=False, refused="listenerPath", messages=0),
    Case("nobody listens, created", listens=False, refused="listenerPath", messages=0, commands=("create",)),
    Case("nobody is named", change=nowhere, refused="listenerPath", messages=0, lacking=("crun",)),
]

# What it is told is the error's number, where nobody else may have chosen it; and that nothing of ours is open.
TRY = "mkdir /tmp/made; echo; ls /proc/self/fd; [ -d /tmp/made ] && echo made; exit 7"
HELD = "read -r _ </tmp/go"


def checked(runtime, case, roots, directory, account):
    place = directory / f"{CASES.index(case)}-{runtime.name}"
    place.mkdir()
    path = place / "agent"
    config = configuration()
    further = "exec" in case.commands
    config["process"]["args"] = ["/bin/sh", "-c", HELD if further else TRY]
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
        yield from told(case, *carried_out(runtime, case, place, name), agent, name, place, runtime.name == "ours")
    finally:
        runtime.delete(name)
        if agent:
            agent.close()
        remove_groups(f"check-{os.getpid()}")


def carried_out(runtime, case, place, name):
    """The exit code, what the program said, what the runtime said, and the numbers of the processes."""
    with open(place / "out", "w+", encoding="utf-8") as out, open(place / "err", "w+", encoding="utf-8") as err:
        def command(*words):
            try:
                return subprocess.run(runtime.argv(*words), env=runtime.environment(), stdin=subprocess.DEVNULL, stdout=out, stderr=err,
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
                code = command("exec", name, "/bin/sh", "-c", TRY)
            if code:
                break
        if "start" in case.commands and "exec" not in case.commands and code == 0:
            code = ended(runtime, name)
        out.seek(0)
        err.seek(0)
        return code, out.read(), err.read(), pids


def ended(runtime, name):
    """Waits for the end of a container that nobody stays with; its program's exit code is not told."""
    for _ in range(200):
        state = runtime.state(name)
        if not state or state["status"] == "stopped":
            return 7
        threading.Event().wait(0.05)
    return 124


def told(case, code, out, err, pids, agent, name, place, ours):
    """What is not as it must be."""
    messages = agent.messages if agent else []
    said = f"exit code {code}: {out!r} {err.strip()!r}, {len(messages)} messages, {agent.calls if agent else 0} calls"
    if len(messages) != case.messages:
        yield f"the agent heard {len(messages)} times, not {case.messages}: {said}"
    if case.refused:
        if code in (0, 7, 124) or out:
            yield f"is not refused: {said}"
        elif ours and case.refused not in err:
            yield f"is not refused at `{case.refused}`: {said}"
        return
    if code != 7:
        yield f"does not end as the program does: {said}"
    chosen = os.strerror(CHOSEN) in err + out
    if chosen != bool(case.messages) or ("made" in out.split()) == chosen:
        yield f"mkdir was not decided as it must be: {said}"
    # The program's three, and the one by which `ls` reads the directory.
    if [word for word in out.split() if word != "made"] != ["0", "1", "2", "3"]:
        yield f"descriptors are left open: {said}"
    for index, message in enumerate(messages):
        state = message.get("state", {})
        fields = {
            "fds": (message.get("fds"), ["seccompFd"]), "metadata": (message.get("metadata"), METADATA),
            "the descriptors sent": (message["descriptors"], 1), "state.id": (state.get("id"), name),
            "state.bundle": (state.get("bundle"), str(place)), "state.annotations": (state.get("annotations"), {"tested.by": "an agent"}),
            "state.status": (state.get("status") in ("creating", "created", "running"), True),
            "ociVersion": (bool(message.get("ociVersion")), True),
            "pid": (message.get("pid") == state.get("pid"), index == 0),
        }
        if pids:
            fields["state.pid"] = (state.get("pid"), pids[0])
        for key, (found, wanted) in fields.items():
            if found != wanted:
                yield f"message {index}: {key} is {found!r}, not {wanted!r}: {message}"


def main():
    harness = Harness("notify", __doc__.split("\n", maxsplit=1)[0])
    harness.parser.add_argument("--user", choices=("root", "range", "single"), default="root")
    harness.parser.add_argument("--peer", action="append", help="test this runtime too, instead of the default peers")
    options = harness.parse()
    if os.geteuid() != 0:
        harness.skip("root makes the bundles, also those of an unprivileged user")
    account = {"root": None, "range": user.with_range, "single": user.without_range}[options.user]
    account = account() if account else None
    with scratch() as directory:
        roots = Roots(directory, harness.tool("busybox"))
        runtime = Runtime(program(harness, directory), directory, account)
        peers = [] if account else [Runtime(harness.tool(name), directory) for name in options.peer or PEERS if name != runtime.name]
        for case in CASES:
            if not harness.wants(case.name) or account and not case.rootless:
                continue
            for each in (runtime, *peers):
                if each.name not in case.lacking:
                    name = case.name if each is runtime else f"{case.name} ({each.name})"
                    harness.check(name, checked(each, case, roots, directory, account))
    harness.end()


if __name__ == "__main__":
    sys.exit(main())
