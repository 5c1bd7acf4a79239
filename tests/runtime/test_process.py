"""Checks 4, 5, 6 and 8: inherited file descriptors, the runtime's own program, privileges, seccomp."""

import contextlib
import os
import re
import subprocess
from pathlib import Path

from bundle import capabilities
from podman import until
from fixture import SECRET, assert_ended
from security import promise


@contextlib.contextmanager
def passing(**paths):
    """Arguments of `Popen` with which a child has file descriptors of these paths, `_NUMBER=PATH`; this process keeps those of pytest."""
    opened = {int(name[1:]): os.open(path, os.O_RDONLY if os.path.isdir(path) else os.O_RDWR) for name, path in paths.items()}
    try:
        yield {"close_fds": False, "preexec_fn": lambda: [os.dup2(one, number) for number, one in opened.items()]}
    finally:
        for one in opened.values():
            os.close(one)


@promise(4, mutations=("descriptors",))
def test_no_file_descriptor_is_inherited(fixture):
    with passing(_9="/", _50=fixture.sentinel / "secret") as passed:
        result = fixture.run(["descriptors"], **passed)
        assert_ended(result)
        assert result.returncode == 0 and not result.stdout, f"open inside: {result.stdout!r} {result.stderr.strip()}"
        started, name = fixture.start(["/bin/sh", "-c", "echo ready; exec sleep 99"])
        assert started, name
        result = fixture.runtime.call("exec", name, "/inside", "descriptors", **passed)
        assert result.returncode == 0 and not result.stdout, f"open after `exec`: {result.stdout!r} {result.stderr.strip()}"
        fixture.end(started, name)


@promise(4, mutations=("working-directory",))
def test_the_working_directory_is_inside_the_root(fixture):
    """CVE-2024-21626: a working directory that is a file descriptor of the host, left open by the runtime."""
    up = "../" * 20
    wanted = f"{up}{str(fixture.sentinel / 'secret').lstrip('/')}"
    with passing(_9="/") as passed:
        for number in range(3, 12):
            for place, link in ((f"/proc/self/fd/{number}", None), (f"/proc/1/fd/{number}", None), ("/linked", f"/proc/self/fd/{number}")):
                result = fixture.run(["/bin/cat", wanted], lambda config, place=place: config["process"].update(cwd=place),
                                  (lambda root, link=link: (root / "linked").symlink_to(link)) if link else None, **passed)
                assert_ended(result)
                assert SECRET not in result.stdout, f"with cwd `{place}` the host's files can be read"
        started, name = fixture.start(["/bin/sh", "-c", "echo ready; exec sleep 99"])
        assert started, name
        for number in range(3, 12):
            result = fixture.runtime.call("exec", "--cwd", f"/proc/self/fd/{number}", name, "/bin/cat", wanted, **passed)
            assert SECRET not in result.stdout, f"with `exec --cwd /proc/self/fd/{number}` the host's files can be read"
        fixture.end(started, name)


@promise(5, mutations=("own-program",))
def test_the_runtimes_program_cannot_be_written_from_inside(fixture):
    """CVE-2019-5736: the program and its interpreter are /proc/self/exe while a container looks for a file descriptor of it."""
    program = Path(os.environ.get("JOBC_NSENTER") or fixture.runtime.program)
    if fixture.account:
        os.chown(program, *fixture.owner)
    before = program.read_bytes()

    def planted(root):
        (root / "script").write_text("#!/proc/self/exe\n")
        (root / "script").chmod(0o755)

    for args in (["/proc/self/exe"], ["/script"], ["/proc/self/exe", "--version"]):
        result = fixture.run(args, prepare=planted, seconds=10)
        assert "crun" in str(program) or result.returncode != 0 or "version" not in result.stdout, f"{args} runs the host's program: {result.stdout!r}"
    # With CAP_SYS_PTRACE, which containers get to debug programs, no dumpable flag protects the program. It is started
    # by `create` and `start`: a `run` that waits would keep its program busy, and the kernel refuses writes (ETXTBSY).
    place, name = fixture.bundle(["overwrite", "3"], lambda config: capabilities(config, "CAP_SYS_PTRACE"), planted)
    log = fixture.directory / "log"
    with open(log, "w", encoding="utf-8") as out:
        create_result = subprocess.run(fixture.runtime.argv("create", "--bundle", str(place), name), stdin=subprocess.DEVNULL, stdout=out,
                              stderr=out, timeout=20, env=fixture.runtime.environment(), check=False)
    start_result = fixture.runtime.call("start", name)
    assert create_result.returncode == 0 and start_result.returncode == 0, f"does not start: {log.read_text()} {start_result.stderr.strip()}"
    until(lambda: "ready" in log.read_text())
    failure = None
    try:
        for _ in range(fixture.races):
            for args in (["/proc/self/exe", "--help"], ["/script"], ["/inside", "hello"]):
                fixture.runtime.call("exec", name, *args, seconds=10)
            if "opened" in log.read_text():
                break
    except OSError as error:
        failure = error
    until(lambda: "opened" in log.read_text())
    out, overwritten = log.read_text(), program.read_bytes() != before
    if overwritten:
        # The next tests need the original.
        program.unlink()
        program.write_bytes(before)
        program.chmod(0o755)
    fixture.runtime.delete(name)
    assert not failure, f"`{program.name}` cannot be executed any more: {failure}"
    assert not overwritten, f"`{program.name}` was overwritten: {out.strip()}"
    assert "opened" in out, f"the attack did not end: {out!r}"
    if "written 0" not in out and "written" in out:
        fixture.note("a sealed copy or another program was written to: " + out.strip())


@promise(6, mutations=("privileges", "groups"))
def test_privileges_are_those_of_the_configuration(fixture):
    script = "cat /proc/$$/status; /setuid privileges"

    def planted(root):
        subprocess.run(["cp", fixture.inside, root / "setuid"], check=True)
        (root / "setuid").chmod(0o6755)

    def configure(config):
        if not fixture.account:
            config["process"]["user"] = {"uid": 1000, "gid": 1000}
        config["process"]["capabilities"] = {}

    more = {} if fixture.account else {"preexec_fn": lambda: os.setgroups([4, 27, 100])}
    result = fixture.run(["/bin/sh", "-c", script], configure, planted, **more)
    assert_ended(result)
    status = dict(line.split(":\t", 1) for line in result.stdout.splitlines() if ":\t" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert status.get(name) == "0" * 16, f"{name} is {status.get(name)}"
    assert status.get("NoNewPrivs") == "1", f"NoNewPrivs is {status.get('NoNewPrivs')}"
    groups = status.get("Groups", "").split()
    assert fixture.account or not groups, f"groups of the runtime are kept: {groups}"
    assert fixture.account or "uid 1000 1000 gid 1000 1000" in result.stdout, f"a set-user-id program gains privileges: {result.stdout.splitlines()[-2:]}"
    started, name = fixture.start(["/bin/sh", "-c", "echo ready; exec sleep 99"], configure)
    assert started, name
    result = fixture.runtime.call("exec", name, "/bin/cat", "/proc/self/status", **more)
    status = dict(line.split(":\t", 1) for line in result.stdout.splitlines() if ":\t" in line)
    for field, wanted in (("CapBnd", "0" * 16), ("CapEff", "0" * 16), ("CapInh", "0" * 16), ("CapAmb", "0" * 16), ("NoNewPrivs", "1")):
        assert status.get(field) == wanted, f"after `exec` {field} is {status.get(field)}: {result.stderr.strip()}"
    assert fixture.account or status.get("Uid", "").split()[:1] == ["1000"], f"after `exec` the user is {status.get('Uid')}, the container's is 1000"
    fixture.end(started, name)


ARCH = {"x86_64": "SCMP_ARCH_X86_64", "aarch64": "SCMP_ARCH_AARCH64"}[os.uname().machine]


@promise(8, mutations=("seccomp",))
def test_seccomp_is_enabled_for_every_architecture(fixture):
    def configure(config):
        config["linux"]["seccomp"] = {"defaultAction": "SCMP_ACT_ALLOW", "architectures": [ARCH],
                                      "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 95}]}

    result = fixture.run(["calls"], configure)
    assert_ended(result)
    assert "mkdir 95" in result.stdout or result.returncode >= 128, f"the syscall is not refused: {result.stdout!r} {result.stderr.strip()}"
    for name in ("x32", "i386"):
        assert f"{name} 0" not in result.stdout, f"the same syscall of {name} is allowed"
    result = fixture.run(["/bin/grep", "Seccomp:", "/proc/self/status"], configure)
    assert "Seccomp:\t2" in result.stdout, f"/proc/self/status says {result.stdout!r} {result.stderr.strip()}"


@promise(8, mutations=("seccomp-early",))
def test_seccomp_is_loaded_last(fixture):
    """A profile that allows only what a small static program needs, and nothing that a runtime needs, lets the program run."""
    def configure(config):
        config["linux"]["seccomp"] = {
            "defaultAction": "SCMP_ACT_KILL_PROCESS", "architectures": [ARCH],
            "syscalls": [{"names": ["execve", "write", "exit", "exit_group", "brk", "arch_prctl", "set_tid_address", "set_robust_list", "rseq",
                                    "prlimit64", "readlink", "readlinkat", "getrandom", "mprotect", "newfstatat", "fstat", "uname", "mmap", "munmap"],
                          "action": "SCMP_ACT_ALLOW"}]}

    result = fixture.run(["hello"], configure)
    assert result.stdout == "hello\n" or fixture.runtime.name in ("runc", "crun"), f"exit code {result.returncode}: {result.stdout!r} {result.stderr.strip()}"


@promise(8, mutations=("environment",))
def test_the_runtimes_memory_cannot_be_read_during_exec(fixture):
    """A program with CAP_SYS_PTRACE inside cannot read the memory of `exec` before it executes the program."""
    script = f"echo ready; while :; do grep -l \"{SECRET}\" /proc/[0-9]*/environ 2>/dev/null; done"
    started, name = fixture.start(["/bin/sh", "-c", script], lambda config: capabilities(config, "CAP_SYS_PTRACE"))
    assert started, name
    os.environ["TEST_CANARY"] = SECRET
    try:
        for _ in range(20):
            fixture.runtime.call("exec", name, "/bin/true")
    finally:
        del os.environ["TEST_CANARY"]
    out = fixture.end(started, name)
    assert "environ" not in (out or ""), f"the environment of the runtime can be read from inside: {out.split()[0]}"


@promise(8, mutations=("environment",))
def test_nothing_of_the_runtime_can_be_traced_during_exec(fixture):
    """A program with CAP_SYS_PTRACE inside attaches to each process of `exec`: none has more rights than the program that follows.

    As root there is no user namespace, so that CAP_SYS_PTRACE overrides the dumpable flag. Profiles that the runtime needs
    CAP_SYS_ADMIN to load are part of it."""
    profile = {"defaultAction": "SCMP_ACT_ALLOW", "architectures": [ARCH],
               "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 95}]}

    def configure(config, no_new_privileges, with_profile):
        capabilities(config, "CAP_SYS_PTRACE")
        config["process"]["noNewPrivileges"] = no_new_privileges
        if with_profile:
            config["linux"]["seccomp"] = profile

    attached = 0
    for no_new_privileges, with_profile in ((True, False), (False, False), (False, True), (True, True)):
        started, name = fixture.start(["attach", "4"], lambda config, n=no_new_privileges, w=with_profile: configure(config, n, w))
        assert started, name
        while started.poll() is None:
            fixture.runtime.call("exec", name, "/inside", "hello", seconds=10)
        out = fixture.end(started, name) or ""
        count = re.search(r"attached (\d+), beyond (\d+)", out)
        assert count is not None, f"the attack did not end: {out!r}"
        attached += int(count[1])
        assert not int(count[2]), f"noNewPrivileges {no_new_privileges}, seccomp {with_profile}: {out.splitlines()[0]}"
    if not attached:
        fixture.note("no process could be attached to")
