"""Denies each syscall that a start makes, one at a time, with and without `noNewPrivileges`, and compares with runc and crun.

Where one of them starts the program, ours must. Where ours does not, it must end soon, leave nothing behind, and name `execve`
only if that is what was denied.
"""

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from bundle import configuration, write

pytestmark = [pytest.mark.duration(15), pytest.mark.needs("root", "busybox", "cc")]

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

    def __init__(self, roots, directory, user, no_new_privileges):
        directory.mkdir()
        self.directory, self.count, self.user, self.no_new_privileges = directory, 0, user, no_new_privileges
        self.place = directory / "bundle"
        self.place.mkdir()
        roots.bundle(self.place, configuration())
        source = directory / "program.s"
        source.write_text(PROGRAM)
        subprocess.run(["cc", "-nostdlib", "-static", "-o", self.place / "rootfs/program", source], check=True)

    def write(self, calls, arguments):
        config = configuration()
        config["process"] |= {"args": arguments, "noNewPrivileges": self.no_new_privileges, "user": {"uid": self.user, "gid": self.user}}
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

    def check(self, calls, ours, peers):
        who = f"user {self.user}, noNewPrivileges {self.no_new_privileges}"
        self.write(calls, ["/program"])
        code, errors, left = self.start(ours)
        if code != 7:
            for peer in peers:
                assert self.start(peer)[0] != 7, f"{who}: ours exits with {code}, with {peer.name} it starts: {errors}"
            assert code != 124, f"{who}: ours does not end"
            assert not re.search(r"\bexecve\b", errors) or "execve" in calls, f"{who}: `execve` is blamed: {errors}"
        elif "execve" not in calls:
            works, errors = self.create(ours)
            assert works, f"{who}: `run` starts it, `create` and `start` do not: {errors}"
        assert not left, f"{who}: its state is left"
        self.write(calls, ["/not-there"])
        code, errors, left = self.start(ours)
        assert code not in (0, 7, 124), f"{who}: an absent program: ours exits with {code}: {errors}"
        assert not left, f"{who}: an absent program: its state is left"


@pytest.fixture(scope="module")
def starts(directory, roots):
    """Bundles for root and another user, with and without `noNewPrivileges`."""
    return [Denied(roots, directory / f"denied-{user}-{promise}", user, promise) for user in (0, 1000) for promise in (False, True)]


GROUPS = {"exit_group": ["exit_group"], "exit": ["exit_group", "exit"], "exit_and_write": ["exit_group", "exit", "write"],
          "capset_prctl_close_range": ["capset", "prctl", "close_range"], "all_but_execve": [call for call in CALLS if call not in ("execve", "exit_group")]}


@pytest.mark.parametrize("call", CALLS)
def test_a_denied_call_prevents_no_start_that_another_runtime_makes(starts, runtime, peers, call):
    # Without the promise our own calls once followed the filter; with it they never did.
    another_user, = (each for each in starts if each.user and not each.no_new_privileges)
    another_user.check([call], runtime, peers)


@pytest.mark.parametrize("calls", GROUPS.values(), ids=GROUPS)
def test_denied_calls_prevent_no_start_that_another_runtime_makes(starts, runtime, peers, calls):
    # A program that can't exit is waited for, so the users are side by side.
    with ThreadPoolExecutor(len(starts)) as threads:
        list(threads.map(lambda each: each.check(calls, runtime, peers), starts))
