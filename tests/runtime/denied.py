#!/usr/bin/env python3
"""Denies each syscall that a start makes, one at a time, with and without `noNewPrivileges`, and compares with runc and crun.

Where one of them starts the program, ours must. Where ours does not, it must end soon, leave nothing behind, and name `execve`
only if that is what was denied.
"""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from bundle import Roots, configuration
from harness import Harness, scratch
from runtime import Runtime, program

PEERS = ("runc", "crun")
SECONDS = 20

# What jobc, runc and crun call between the fork and the program.
CALLS = """access arch_prctl brk capget capset chdir clone clone3 close close_range dup2 dup3 epoll_create1 epoll_ctl epoll_pwait
    eventfd2 execve execveat exit exit_group faccessat faccessat2 fchdir fchown fcntl fsconfig fsmount fsopen fstat fstatfs futex
    getcwd getdents64 getegid geteuid getgid getpid getppid getrandom gettid getuid ioctl kill lseek lstat madvise mkdirat mmap
    mount mount_setattr move_mount mprotect munmap nanosleep newfstatat open openat openat2 open_tree open_tree_attr personality pipe2
    pivot_root poll ppoll prctl pread64 prlimit64 pwrite64 read readlink readlinkat recvmsg rseq rt_sigaction rt_sigprocmask
    rt_sigreturn sched_getaffinity sched_yield seccomp sendmsg sendto set_robust_list set_tid_address setgid setgroups setns
    setresgid setresuid setsid setuid sigaltstack socket stat statfs statx symlinkat tgkill umask umount2 uname unshare
    wait4 waitid write""".split()

# It makes one call, or another one where that is denied.
PROGRAM = """
    .globl _start
_start:
    mov $231, %eax
    mov $7, %edi
    syscall
    mov $60, %eax
    syscall
    ud2
"""


class Denied:
    """Starts a container for each call."""

    def __init__(self, roots, directory, harness):
        directory.mkdir()
        self.directory, self.count = directory, 0
        self.place = directory / "bundle"
        self.place.mkdir()
        self.roots = roots
        roots.bundle(self.place, configuration())
        source = directory / "program.s"
        source.write_text(PROGRAM)
        subprocess.run([harness.tool("cc"), "-nostdlib", "-static", "-o", self.place / "rootfs/program", source], check=True)

    def write(self, calls, user, no_new_privileges, arguments):
        from bundle import write

        config = configuration()
        config["process"] |= {"args": arguments, "noNewPrivileges": no_new_privileges, "user": {"uid": user, "gid": user}}
        config["process"]["capabilities"] = {kind: ["CAP_KILL"] for kind in ("bounding", "effective", "permitted", "inheritable", "ambient")}
        config["linux"]["seccomp"] = {"defaultAction": "SCMP_ACT_ALLOW", "architectures": ["SCMP_ARCH_X86_64"],
                                      "syscalls": [{"names": calls, "action": "SCMP_ACT_ERRNO", "errnoRet": 1}]}
        write(self.place, config)

    def start(self, runtime):
        """The exit code of a container, and what the runtime says."""
        self.count += 1
        name = f"denied-{os.getpid()}-{self.directory.name}-{self.count}"
        result = runtime.call("run", "--bundle", str(self.place), name, seconds=SECONDS)
        left = runtime.state(name)
        if left is not None or result.returncode == 124:
            runtime.delete(name)
        return result.returncode, result.stderr.strip(), left is not None

    def create(self, runtime):
        """Whether `create` and `start` work: the program is looked for before."""
        self.count += 1
        name = f"denied-{os.getpid()}-{self.directory.name}-{self.count}"
        # Its streams are the container's, which waits: a pipe would never end.
        with open(self.directory / "errors", "w+", encoding="utf-8") as errors:
            made = subprocess.run(runtime.argv("create", "--bundle", str(self.place), name), stdin=subprocess.DEVNULL,
                                  stdout=errors, stderr=errors, timeout=SECONDS, check=False)
            started = runtime.call("start", name, seconds=SECONDS)
            runtime.delete(name)
            errors.seek(0)
            return made.returncode == 0 and started.returncode == 0, f"{errors.read()} {started.stderr}".strip()

    def check(self, calls, user, no_new_privileges, ours, peers):
        self.write(calls, user, no_new_privileges, ["/program"])
        code, errors, left = self.start(ours)
        if code != 7:
            for peer in peers:
                if self.start(peer)[0] == 7:
                    yield f"ours exits with {code}, with {peer.name} it starts: {errors}"
            if code == 124:
                yield "ours does not end"
            if re.search(r"\bexecve\b", errors) and "execve" not in calls:
                yield f"`execve` is blamed: {errors}"
        elif "execve" not in calls:
            works, errors = self.create(ours)
            if not works:
                yield f"`run` starts it, `create` and `start` do not: {errors}"
        if left:
            yield "its state is left"
        self.write(calls, user, no_new_privileges, ["/not-there"])
        code, errors, left = self.start(ours)
        if code in (0, 7, 124):
            yield f"an absent program: ours exits with {code}: {errors}"
        if left:
            yield "an absent program: its state is left"


def main():
    harness = Harness("denied", __doc__.split("\n", maxsplit=1)[0])
    harness.parser.add_argument("--all", action="store_true", help="every call with every user, not only those of a usual start")
    options = harness.parse()
    if os.geteuid() != 0:
        harness.missing("root")
    with scratch() as directory:
        ours = Runtime(program(harness, directory), directory)
        peers = [Runtime(harness.tool(name), directory) for name in PEERS]
        roots = Roots(directory, harness.tool("busybox"))
        users = [(user, no_new_privileges) for user in (0, 1000) for no_new_privileges in (False, True)]
        places = [Denied(roots, directory / f"denied-{number}", harness) for number in range(len(users))]

        def check(denied, user, no_new_privileges):
            # Without the promise our own calls once followed the filter; with it they never did.
            every = options.all or (user, no_new_privileges) == (1000, False)
            groups = [[call] for call in CALLS] if every else []
            groups += [["exit_group"], ["exit_group", "exit"], ["exit_group", "exit", "write"], ["capset", "prctl", "close_range"]]
            groups.append([call for call in CALLS if call not in ("execve", "exit_group")])
            results = []
            for calls in groups:
                name = f"{','.join(calls) if len(calls) < 5 else 'all but execve'}, user {user}, {no_new_privileges=!s}"
                if harness.wants(name):
                    results.append((name, list(denied.check(calls, user, no_new_privileges, ours, peers))))
            return results

        # A program that can't exit is waited for, so the users are side by side.
        with ThreadPoolExecutor(len(users)) as threads:
            for results in threads.map(check, places, *zip(*users)):
                for name, problems in results:
                    harness.check(name, problems)
    harness.end()


if __name__ == "__main__":
    sys.exit(main())
