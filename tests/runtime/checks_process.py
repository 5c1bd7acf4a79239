"""Checks 4, 5, 6 and 8: what the program inherits, the runtime's own program, privileges, seccomp."""

import os
import subprocess
from pathlib import Path

from checks_paths import capabilities
from podman import until
from scene import SECRET, hung
from security import check


@check(4, "no descriptor is inherited", mutations=("descriptors",))
def inherited(scene):
    nine = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    os.dup2(nine, 9)
    secret = os.open(scene.sentinel / "secret", os.O_RDWR)
    os.dup2(secret, 50)
    try:
        ended = scene.run(["descriptors"], pass_fds=(9, 50))
        yield from hung(ended)
        if ended.returncode or ended.stdout:
            yield f"open inside: {ended.stdout!r} {ended.stderr.strip()}"
        started, name = scene.start(["/bin/sh", "-c", "echo ready; exec sleep 99"])
        if not started:
            yield name
            return
        ended = scene.runtime.call("exec", name, "/inside", "descriptors", pass_fds=(9, 50))
        if ended.returncode or ended.stdout:
            yield f"open after `exec`: {ended.stdout!r} {ended.stderr.strip()}"
        scene.end(started, name)
    finally:
        for descriptor in (nine, 9, secret, 50):
            os.close(descriptor)


@check(4, "the working directory is inside the root", mutations=("working-directory",))
def working_directory(scene):
    """CVE-2024-21626: a working directory that is a descriptor of the host's, left open by the runtime."""
    up = "../" * 20
    wanted = f"{up}{str(scene.sentinel / 'secret').lstrip('/')}"
    seven = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    os.dup2(seven, 9)
    try:
        for number in range(3, 12):
            for place, link in ((f"/proc/self/fd/{number}", None), (f"/proc/1/fd/{number}", None), ("/linked", f"/proc/self/fd/{number}")):
                ended = scene.run(["/bin/cat", wanted], lambda config, place=place: config["process"].update(cwd=place),
                                  (lambda root, link=link: (root / "linked").symlink_to(link)) if link else None, pass_fds=(9,))
                yield from hung(ended)
                if SECRET in ended.stdout:
                    yield f"with cwd `{place}` the host's files can be read"
        started, name = scene.start(["/bin/sh", "-c", "echo ready; exec sleep 99"])
        if not started:
            yield name
            return
        for number in range(3, 12):
            ended = scene.runtime.call("exec", "--cwd", f"/proc/self/fd/{number}", name, "/bin/cat", wanted, pass_fds=(9,))
            if SECRET in ended.stdout:
                yield f"with `exec --cwd /proc/self/fd/{number}` the host's files can be read"
        scene.end(started, name)
    finally:
        os.close(seven)
        os.close(9)


@check(5, "the runtime's own program cannot be written from inside", mutations=("own-program",))
def own_program(scene):
    """CVE-2019-5736, with the program and its interpreter given as /proc/self/exe while a container looks for a handle."""
    program = Path(os.environ.get("TEST_NSENTER") or scene.runtime.program)
    if scene.account:
        os.chown(program, *scene.owner)
    before = program.read_bytes()

    def planted(root):
        (root / "script").write_text("#!/proc/self/exe\n")
        (root / "script").chmod(0o755)

    for args in (["/proc/self/exe"], ["/script"], ["/proc/self/exe", "--version"]):
        ended = scene.run(args, prepare=planted, seconds=10)
        if "crun" not in str(program) and ended.returncode == 0 and "version" in ended.stdout:
            yield f"{args} runs the host's program: {ended.stdout!r}"
    # With CAP_SYS_PTRACE, which containers are given to debug programs, no dumpable flag keeps the program away. It is
    # started by `create` and `start`: a `run` that waits would keep its program busy, which the kernel lets nobody write.
    place, name = scene.bundle(["overwrite", "3"], lambda config: capabilities(config, "CAP_SYS_PTRACE"), planted)
    told = scene.directory / "told"
    with open(told, "w", encoding="utf-8") as out:
        made = subprocess.run(scene.runtime.argv("create", "--bundle", str(place), name), stdin=subprocess.DEVNULL, stdout=out,
                              stderr=out, timeout=20, env=scene.runtime.environment(), check=False)
    begun = scene.runtime.call("start", name)
    if made.returncode or begun.returncode:
        yield f"does not start: {told.read_text()} {begun.stderr.strip()}"
        return
    until(lambda: "ready" in told.read_text())
    try:
        for _ in range(scene.harness.options.races):
            for args in (["/proc/self/exe", "--help"], ["/script"], ["/inside", "hello"]):
                scene.runtime.call("exec", name, *args, seconds=10)
            if "opened" in told.read_text():
                break
    except OSError as error:
        yield f"`{program.name}` cannot be executed any longer: {error}"
    until(lambda: "opened" in told.read_text())
    out = told.read_text()
    if program.read_bytes() != before:
        yield f"`{program.name}` was overwritten: {out.strip()}"
        # The checks that follow need it as it was.
        program.unlink()
        program.write_bytes(before)
        program.chmod(0o755)
    scene.runtime.delete(name)
    if "opened" not in out:
        yield f"the attack did not end: {out!r}"
    if "written 0" not in out and "written" in out:
        scene.harness.note("a sealed copy or another program was written to: " + out.strip())


@check(6, "privileges are what was asked for and no more", mutations=("privileges", "groups"))
def privileges(scene):
    script = "cat /proc/$$/status; /setuid privileges"

    def planted(root):
        subprocess.run(["cp", scene.inside, root / "setuid"], check=True)
        (root / "setuid").chmod(0o6755)

    def asked(config):
        if not scene.account:
            config["process"]["user"] = {"uid": 1000, "gid": 1000}
        config["process"]["capabilities"] = {}

    more = {} if scene.account else {"preexec_fn": lambda: os.setgroups([4, 27, 100])}
    ended = scene.run(["/bin/sh", "-c", script], asked, planted, **more)
    yield from hung(ended)
    status = dict(line.split(":\t", 1) for line in ended.stdout.splitlines() if ":\t" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        if status.get(name) != "0" * 16:
            yield f"{name} is {status.get(name)}"
    if status.get("NoNewPrivs") != "1":
        yield f"NoNewPrivs is {status.get('NoNewPrivs')}"
    groups = status.get("Groups", "").split()
    if not scene.account and groups:
        yield f"groups of the runtime are kept: {groups}"
    if not scene.account and "uid 1000 1000 gid 1000 1000" not in ended.stdout:
        yield f"a set-user-id program is obeyed: {ended.stdout.splitlines()[-2:]}"
    started, name = scene.start(["/bin/sh", "-c", "echo ready; exec sleep 99"], asked)
    if not started:
        yield name
        return
    ended = scene.runtime.call("exec", name, "/bin/cat", "/proc/self/status", **more)
    status = dict(line.split(":\t", 1) for line in ended.stdout.splitlines() if ":\t" in line)
    for field, wanted in (("CapBnd", "0" * 16), ("CapEff", "0" * 16), ("CapInh", "0" * 16), ("CapAmb", "0" * 16), ("NoNewPrivs", "1")):
        if status.get(field) != wanted:
            yield f"after `exec` {field} is {status.get(field)}: {ended.stderr.strip()}"
    if not scene.account and status.get("Uid", "").split()[:1] != ["1000"]:
        yield f"after `exec` the user is {status.get('Uid')}, the container's is 1000"
    scene.end(started, name)


ARCH = {"x86_64": "SCMP_ARCH_X86_64", "aarch64": "SCMP_ARCH_AARCH64"}[os.uname().machine]


@check(8, "seccomp is on, for every architecture", mutations=("seccomp",))
def seccomp(scene):
    def asked(config):
        config["linux"]["seccomp"] = {"defaultAction": "SCMP_ACT_ALLOW", "architectures": [ARCH],
                                      "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 95}]}

    ended = scene.run(["calls"], asked)
    yield from hung(ended)
    if "mkdir 95" not in ended.stdout and ended.returncode < 128:
        yield f"the call is not refused: {ended.stdout!r} {ended.stderr.strip()}"
    for name in ("x32", "i386"):
        if f"{name} 0" in ended.stdout:
            yield f"the {name} call for the same is allowed"
    ended = scene.run(["/bin/grep", "Seccomp:", "/proc/self/status"], asked)
    if "Seccomp:\t2" not in ended.stdout:
        yield f"/proc/self/status says {ended.stdout!r} {ended.stderr.strip()}"


@check(8, "seccomp is the last step", mutations=("seccomp-early",))
def seccomp_last(scene):
    """A profile that allows what a small static program needs, and nothing that a runtime does, lets the program run."""
    def asked(config):
        config["linux"]["seccomp"] = {
            "defaultAction": "SCMP_ACT_KILL_PROCESS", "architectures": [ARCH],
            "syscalls": [{"names": ["execve", "write", "exit", "exit_group", "brk", "arch_prctl", "set_tid_address", "set_robust_list", "rseq",
                                    "prlimit64", "readlink", "readlinkat", "getrandom", "mprotect", "newfstatat", "fstat", "uname", "mmap", "munmap"],
                          "action": "SCMP_ACT_ALLOW"}]}

    ended = scene.run(["hello"], asked)
    if ended.stdout != "hello\n" and scene.runtime.name not in ("runc", "crun"):
        yield f"exit code {ended.returncode}: {ended.stdout!r} {ended.stderr.strip()}"


@check(8, "the runtime gives no way around new privileges", mutations=("environment",))
def memory_of_the_runtime(scene):
    """A program with CAP_SYS_PTRACE inside cannot look into what `exec` brings in before it has become the program."""
    script = f"echo ready; while :; do grep -l \"{SECRET}\" /proc/[0-9]*/environ 2>/dev/null; done"
    started, name = scene.start(["/bin/sh", "-c", script], lambda config: capabilities(config, "CAP_SYS_PTRACE"))
    if not started:
        yield name
        return
    os.environ["TEST_CANARY"] = SECRET
    try:
        for _ in range(20):
            scene.runtime.call("exec", name, "/bin/true")
    finally:
        del os.environ["TEST_CANARY"]
    out = scene.end(started, name)
    if "environ" in (out or ""):
        yield f"the environment of the runtime can be read from inside: {out.split()[0]}"
