"""Checks 11 to 14: names and states, user namespaces, volumes, hooks."""

import os
import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from checks_paths import capabilities
from scene import SECRET, hung, refused
from security import check

NAMES = ["", ".", "..", "../out", "a/b", "/absolute", "a b", "a\nb", "é", "x" * 1025, "a;b", "*", "a%b", "a\\b"]


@check(11, "a container's name is no path", mutations=("names",))
def names(scene):
    place, _ = scene.bundle(["hello"])
    before = sorted(os.listdir(scene.runtime.states)), sorted(os.listdir(scene.runtime.states.parent))
    for name in NAMES:
        for words in (("run", "--bundle", str(place), name), ("create", "--bundle", str(place), name)):
            yield from refused(scene.runtime.call(*words), f"{words[0]} of {name[:20]!r}")
        for words in (("state", name), ("delete", "--force", name), ("kill", name, "KILL"), ("start", name), ("exec", name, "/bin/true")):
            ended = scene.runtime.call(*words)
            # `delete --force` of what is not there may be content, as long as it touches nothing.
            if ended.returncode == 0 and words[0] != "delete":
                yield f"{words[0]} of {name[:20]!r} is content"
    after = sorted(os.listdir(scene.runtime.states)), sorted(os.listdir(scene.runtime.states.parent))
    if before != after:
        yield f"the states' directory holds {after[0]}, beside it lies {after[1]}"
    yield from scene.untouched()


@check(11, "a state belongs to one container and to its owner", mutations=("state-open", "names"))
def states(scene):
    started, name = scene.start(["/bin/sh", "-c", "echo ready; exec sleep 99"])
    if not started:
        yield name
        return
    directory = scene.runtime.states / name
    if not directory.is_dir():
        scene.harness.note("the state's directory has another name than the container")
        directory = scene.runtime.states
    mode = stat.S_IMODE(directory.stat().st_mode)
    if mode & 0o077:
        yield f"the state's directory has mode {mode:o}"
    scene.end(started, name)
    # A link where the state would be must not be followed.
    (scene.runtime.states / "planted").symlink_to(scene.sentinel / "directory")
    place, _ = scene.bundle(["hello"])
    yield from refused(scene.runtime.call("run", "--bundle", str(place), "planted"), "a link in the place of a state")
    scene.runtime.call("delete", "--force", "planted")
    yield from scene.untouched()
    # Of several that ask for one name at once, one gets it.
    place, _ = scene.bundle(["/bin/sh", "-c", "sleep 1"])
    with ThreadPoolExecutor(8) as pool:
        ended = list(pool.map(lambda _: scene.runtime.call("run", "--bundle", str(place), "wanted"), range(8)))
    if sum(one.returncode == 0 for one in ended) != 1:
        yield f"of 8 that asked for one name {sum(one.returncode == 0 for one in ended)} got it: {ended[0].stderr.strip()}"


@check(12, "ids are the user's own", mutations=("fewer",))
def mappings(scene):
    account = scene.account
    if not account:
        def asked(config):
            config["linux"]["namespaces"].append({"type": "user"})
            for kind in ("uidMappings", "gidMappings"):
                config["linux"][kind] = [{"containerID": 0, "hostID": 300_000, "size": 10}]
        ended = scene.run(["/bin/cat", "/proc/self/uid_map", "/proc/self/gid_map"], asked,
                          lambda root: subprocess.run(["chown", "-R", "300000:300000", root], check=True))
        if ended.stdout.split() != ["0", "300000", "10"] * 2:
            yield f"the maps are {ended.stdout.split()}: {ended.stderr.strip()}"
        return
    ended = scene.run(["/bin/cat", "/proc/self/uid_map", "/proc/self/setgroups"])
    wanted = ["0", str(account.uid), "1"] + (["1", str(account.subuids[0]), str(account.subuids[1])] if account.subuids else [])
    if ended.stdout.split()[:-1] != wanted:
        yield f"the map is {ended.stdout.split()}, asked was {wanted}: {ended.stderr.strip()}"
    if not account.subgids and ended.stdout.split()[-1:] != ["deny"]:
        yield "setgroups is not denied"
    for what, first, size in (("the host's root", 0, 1), ("another user", 1, 1), ("a range of another's", 65534, 3), ("all", 0, 65536),
                              ("its own and a neighbour", account.uid, 2)):
        def stolen(config, first=first, size=size):
            config["linux"]["uidMappings"] = [{"containerID": 0, "hostID": first, "size": size}]
        yield from refused(scene.run(["hello"], stolen), f"mapping {what}")


@check(12, "without its namespaces a user gets no container", mutations=("fallback",), place="single")
def no_fewer(scene):
    if not scene.account:
        return
    def no_user(config):
        config["linux"]["namespaces"] = [n for n in config["linux"]["namespaces"] if n["type"] != "user"]
        config["linux"].pop("uidMappings")
        config["linux"].pop("gidMappings")
    yield from refused(scene.run(["hello"], no_user), "no user namespace")
    def limited(config):
        config["linux"]["resources"] = {"memory": {"limit": 32 << 20}}
    if scene.runtime.name not in ("runc", "crun"):
        yield from refused(scene.run(["hello"], limited), "a memory limit without a group of its own")
    def node(config):
        config["linux"]["devices"] = [{"path": "/dev/mem", "type": "c", "major": 1, "minor": 1}]
    ended = scene.run(["/bin/cat", "/dev/mem"], node)
    if ended.returncode == 0:
        yield "/dev/mem can be had"


@check(13, "a volume is private, and read-only all the way down", mutations=("volumes",))
def volumes(scene):
    source = scene.directory / "volume"
    (source / "sub").mkdir(parents=True)
    (source / "sub/file").write_text("kept")
    if scene.account:
        subprocess.run(["chown", "-R", f"{scene.account.uid}", source], check=True)
    script = "for p in /v/made /v/sub/made; do (: >$p) 2>/dev/null && echo wrote $p; done; /inside remount /v; (: >/v/made) 2>/dev/null && echo wrote later"

    def asked(option, *more):
        def change(config):
            capabilities(config, *more)
            config["mounts"].append({"destination": "/v", "type": "bind", "source": str(source), "options": ["rbind", option]})
        return change

    prelude = ("unshare", "--mount", "sh", "-c", f'mount -t tmpfs below {source}/sub; exec "$@"', "sh")
    place, name = scene.bundle(["/bin/sh", "-c", script], asked("rro"))
    started = scene.runtime.spawn(place, name, prelude=prelude)
    out, errors = started.communicate("", timeout=30)
    if started.returncode and "remount" not in out:
        yield f"`rro` does not start: {errors.strip()}"
    if "wrote" in out or "remount 0" in out:
        yield f"a read-only volume can be written: {out.split()}"
    scene.runtime.delete(name)
    started, name = scene.start(["/bin/sh", "-c", "mount -t tmpfs t /v/sub && echo ready; touch /v/sub/from-inside; exec sleep 99"],
                                asked("rw", "CAP_SYS_ADMIN"))
    if not started:
        yield name
        return
    if (source / "sub/from-inside").exists() or str(source) in Path("/proc/self/mountinfo").read_text():
        yield "a mount made below a volume is seen outside"
    scene.end(started, name)


@check(13, "a volume is opened once", mutations=("volumes",))
def volume_once(scene):
    """Its source is exchanged for a link to the host's files all the time; the container has one or the other, whole and read-only."""
    place, name = scene.bundle(["/bin/sh", "-c", "cat /v/which /v/secret 2>/dev/null; (: >/v/made) 2>/dev/null && echo wrote; true"])
    from bundle import write
    import json
    config = json.loads((place / "config.json").read_text())
    config["mounts"].append({"destination": "/v", "type": "bind", "source": str(place / "source"), "options": ["rbind", "ro"]})
    write(place, config)
    (place / "source").mkdir()
    (place / "source/which").write_text("volume\n")
    (place / "other").symlink_to(scene.sentinel)
    if scene.account:
        os.chown(place, *scene.owner)
    with scene.exchanged("a volume's source", place / "source", place / "other") as racer:
        for number in racer.starts():
            ended = scene.runtime.run(place, f"{name}-{number}")
            for problem in (*hung(ended), *scene.untouched()):
                yield f"start {number}: {problem}"
            if "wrote" in ended.stdout:
                yield f"start {number}: the volume could be written"
                return
            if ended.returncode:
                scene.runtime.delete(f"{name}-{number}")
    yield from racer.problems


HOOK = "#!/bin/sh\ntr '\\0' '\\n' </proc/self/environ >{out}\necho ran >>{out}\n"


@check(14, "a hook gets nothing of the runtime's environment", mutations=("hook-environment",), rootless=False)
def hook_environment(scene):
    out = scene.directory / "hook-out"
    hook = scene.directory / "hook"
    hook.write_text(HOOK.format(out=out))
    hook.chmod(0o755)
    os.environ["TEST_CANARY"] = SECRET
    try:
        ended = scene.run(["/bin/sh", "-c", "cat /proc/$$/environ"], lambda config: config.update(hooks={"createRuntime": [{"path": str(hook), "env": ["A=b"]}]}))
    finally:
        del os.environ["TEST_CANARY"]
    if not out.exists():
        yield f"the hook did not run: {ended.stderr.strip()}"
    elif SECRET in out.read_text() or "A=b" not in out.read_text():
        yield f"the hook's environment is {out.read_text()!r}"
    if SECRET in ended.stdout:
        yield "the program has the runtime's environment"


@check(14, "a hook is a file only root or the user could have written", mutations=("hook-owner",))
def hook_owner(scene):
    if scene.runtime.name in ("runc", "crun") and "TEST_NSENTER" not in os.environ:
        scene.harness.note(f"{scene.runtime.name} runs every hook, whoever wrote it")
        return
    for what, mode, owner, directory_mode in (("writable by everyone", 0o777, None, 0o755), ("writable by a group", 0o775, (0, 12), 0o755),
                                           ("another's", 0o755, (12345, 12345), 0o755), ("in a directory that is open", 0o755, None, 0o777)):
        directory = scene.directory / f"hooks-{mode:o}-{directory_mode:o}-{what.split()[0]}"
        directory.mkdir()
        out, hook = scene.directory / f"out-{directory.name}", directory / "hook"
        out.write_text("")
        out.chmod(0o666)
        hook.write_text(HOOK.format(out=out))
        hook.chmod(mode)
        if owner:
            os.chown(hook, *owner)
        directory.chmod(directory_mode)
        ended = scene.run(["hello"], lambda config, hook=hook: config.update(hooks={"createRuntime": [{"path": str(hook)}]}))
        if "ran" in out.read_text():
            yield f"a hook that is {what} runs"
        yield from refused(ended, f"a hook that is {what}")
