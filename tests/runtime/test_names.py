"""Checks 11 to 14: container ids and states, user namespaces, volumes, hooks."""

import os
import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bundle import capabilities
from fixture import SECRET, assert_ended, assert_rejected
from security import promise

NAMES = ["", ".", "..", "../out", "a/b", "/absolute", "a b", "a\nb", "é", "x" * 1025, "a;b", "*", "a%b", "a\\b"]


@promise(11, mutations=("names",))
def test_a_container_id_is_not_a_path(fixture):
    place, _ = fixture.bundle(["hello"])
    before = sorted(os.listdir(fixture.runtime.states)), sorted(os.listdir(fixture.runtime.states.parent))
    for name in NAMES:
        for words in (("run", "--bundle", str(place), name), ("create", "--bundle", str(place), name)):
            assert_rejected(fixture.runtime.call(*words), f"{words[0]} of {name[:20]!r}")
        for words in (("state", name), ("delete", "--force", name), ("kill", name, "KILL"), ("start", name), ("exec", name, "/bin/true")):
            result = fixture.runtime.call(*words)
            # `delete --force` of an unknown id may succeed, if it changes nothing.
            assert result.returncode != 0 or words[0] == "delete", f"{words[0]} of {name[:20]!r} succeeds"
    after = sorted(os.listdir(fixture.runtime.states)), sorted(os.listdir(fixture.runtime.states.parent))
    assert before == after, f"the state directory has {after[0]}, next to it are {after[1]}"
    fixture.assert_unchanged()


@promise(11, mutations=("state-open", "names"))
def test_a_state_belongs_to_one_container_and_to_its_owner(fixture):
    started, name = fixture.start(["/bin/sh", "-c", "echo ready; exec sleep 99"])
    assert started, name
    directory = fixture.runtime.states / name
    if not directory.is_dir():
        fixture.note("the state directory is not named after the container")
        directory = fixture.runtime.states
    mode = stat.S_IMODE(directory.stat().st_mode)
    assert not mode & 0o077, f"the state's directory has mode {mode:o}"
    fixture.end(started, name)
    # A symlink instead of the state must not be followed.
    (fixture.runtime.states / "planted").symlink_to(fixture.sentinel / "directory")
    place, _ = fixture.bundle(["hello"])
    assert_rejected(fixture.runtime.call("run", "--bundle", str(place), "planted"), "a symlink instead of a state")
    fixture.runtime.call("delete", "--force", "planted")
    fixture.assert_unchanged()
    # Of several concurrent starts with one id, one succeeds.
    place, _ = fixture.bundle(["/bin/sh", "-c", "sleep 1"])
    with ThreadPoolExecutor(8) as pool:
        result = list(pool.map(lambda _: fixture.runtime.call("run", "--bundle", str(place), "wanted"), range(8)))
    assert sum(one.returncode == 0 for one in result) == 1, f"of 8 starts with one id {sum(one.returncode == 0 for one in result)} succeeded: {result[0].stderr.strip()}"


@promise(12, mutations=("fewer",))
def test_only_the_users_own_ids_are_mapped(fixture):
    account = fixture.account
    if not account:
        def configure(config):
            config["linux"]["namespaces"].append({"type": "user"})
            for kind in ("uidMappings", "gidMappings"):
                config["linux"][kind] = [{"containerID": 0, "hostID": 300_000, "size": 10}]
        result = fixture.run(["/bin/cat", "/proc/self/uid_map", "/proc/self/gid_map"], configure,
                          lambda root: subprocess.run(["chown", "-R", "300000:300000", root], check=True))
        assert result.stdout.split() == ["0", "300000", "10"] * 2, f"the maps are {result.stdout.split()}: {result.stderr.strip()}"
        return
    result = fixture.run(["/bin/cat", "/proc/self/uid_map", "/proc/self/setgroups"])
    wanted = ["0", str(account.uid), "1"] + (["1", str(account.subuids[0]), str(account.subuids[1])] if account.subuids else [])
    assert result.stdout.split()[:-1] == wanted, f"the map is {result.stdout.split()}, requested was {wanted}: {result.stderr.strip()}"
    assert account.subgids or result.stdout.split()[-1:] == ["deny"], "setgroups is not denied"
    for what, first, size in (("the host's root", 0, 1), ("another user", 1, 1), ("another user's range", 65534, 3), ("all", 0, 65536),
                              ("its own and the next id", account.uid, 2)):
        def foreign_mapping(config, first=first, size=size):
            config["linux"]["uidMappings"] = [{"containerID": 0, "hostID": first, "size": size}]
        assert_rejected(fixture.run(["hello"], foreign_mapping), f"mapping {what}")


@promise(12, mutations=("fallback",), place="single")
def test_a_users_container_needs_its_namespaces(fixture):
    if not fixture.account:
        return
    def no_user(config):
        config["linux"]["namespaces"] = [n for n in config["linux"]["namespaces"] if n["type"] != "user"]
        config["linux"].pop("uidMappings")
        config["linux"].pop("gidMappings")
    assert_rejected(fixture.run(["hello"], no_user), "no user namespace")
    def limited(config):
        config["linux"]["resources"] = {"memory": {"limit": 32 << 20}}
    if fixture.runtime.name not in ("runc", "crun"):
        assert_rejected(fixture.run(["hello"], limited), "a memory limit without a delegated cgroup")
    def node(config):
        config["linux"]["devices"] = [{"path": "/dev/mem", "type": "c", "major": 1, "minor": 1}]
    result = fixture.run(["/bin/cat", "/dev/mem"], node)
    assert result.returncode != 0, "/dev/mem can be read"


@promise(13, mutations=("volumes",))
def test_a_volume_is_private_and_recursively_read_only(fixture):
    source = fixture.directory / "volume"
    (source / "sub").mkdir(parents=True)
    (source / "sub/file").write_text("kept")
    if fixture.account:
        subprocess.run(["chown", "-R", f"{fixture.account.uid}", source], check=True)
    script = "for p in /v/made /v/sub/made; do (: >$p) 2>/dev/null && echo wrote $p; done; /inside remount /v; (: >/v/made) 2>/dev/null && echo wrote later"

    def configure(option, *more):
        def change(config):
            capabilities(config, *more)
            config["mounts"].append({"destination": "/v", "type": "bind", "source": str(source), "options": ["rbind", option]})
        return change

    prelude = ("unshare", "--mount", "sh", "-c", f'mount -t tmpfs below {source}/sub; exec "$@"', "sh")
    place, name = fixture.bundle(["/bin/sh", "-c", script], configure("rro"))
    started = fixture.runtime.spawn(place, name, prelude=prelude)
    out, errors = started.communicate("", timeout=30)
    assert started.returncode == 0 or "remount" in out, f"`rro` does not start: {errors.strip()}"
    assert "wrote" not in out and "remount 0" not in out, f"a read-only volume can be written: {out.split()}"
    fixture.runtime.delete(name)
    started, name = fixture.start(["/bin/sh", "-c", "mount -t tmpfs t /v/sub && echo ready; touch /v/sub/from-inside; exec sleep 99"],
                                configure("rw", "CAP_SYS_ADMIN"))
    assert started, name
    assert not (source / "sub/from-inside").exists() and str(source) not in Path("/proc/self/mountinfo").read_text(), "a mount below a volume is visible outside"
    fixture.end(started, name)


@promise(13, mutations=("volumes",))
def test_a_volumes_source_is_opened_once(fixture):
    """Its source is exchanged with a symlink to the host's files; the container gets one or the other, complete and read-only."""
    place, name = fixture.bundle(["/bin/sh", "-c", "cat /v/which /v/secret 2>/dev/null; (: >/v/made) 2>/dev/null && echo wrote; true"])
    from bundle import write
    import json
    config = json.loads((place / "config.json").read_text())
    config["mounts"].append({"destination": "/v", "type": "bind", "source": str(place / "source"), "options": ["rbind", "ro"]})
    write(place, config)
    (place / "source").mkdir()
    (place / "source/which").write_text("volume\n")
    (place / "other").symlink_to(fixture.sentinel)
    if fixture.account:
        os.chown(place, *fixture.owner)
    with fixture.racing("a volume's source", place / "source", place / "other") as racer:
        for number in racer.starts():
            result = fixture.runtime.run(place, f"{name}-{number}")
            assert_ended(result, f"start {number}")
            fixture.assert_unchanged(f"start {number}")
            assert "wrote" not in result.stdout, f"start {number}: the volume could be written"
            if result.returncode:
                fixture.runtime.delete(f"{name}-{number}")


HOOK = "#!/bin/sh\ntr '\\0' '\\n' </proc/self/environ >{out}\necho ran >>{out}\n"


@promise(14, mutations=("hook-environment",), rootless=False)
def test_a_hook_does_not_inherit_the_runtimes_environment(fixture):
    out = fixture.directory / "hook-out"
    hook = fixture.directory / "hook"
    hook.write_text(HOOK.format(out=out))
    hook.chmod(0o755)
    os.environ["TEST_CANARY"] = SECRET
    try:
        result = fixture.run(["/bin/sh", "-c", "cat /proc/$$/environ"], lambda config: config.update(hooks={"createRuntime": [{"path": str(hook), "env": ["A=b"]}]}))
    finally:
        del os.environ["TEST_CANARY"]
    assert out.exists(), f"the hook did not run: {result.stderr.strip()}"
    assert SECRET not in out.read_text() and "A=b" in out.read_text(), f"the hook's environment is {out.read_text()!r}"
    assert SECRET not in result.stdout, "the program has the runtime's environment"


@promise(14, mutations=("hook-owner",))
def test_a_hook_is_a_file_that_only_root_or_the_user_can_write(fixture):
    if fixture.runtime.name in ("runc", "crun") and "JOBC_NSENTER" not in os.environ:
        fixture.note(f"{fixture.runtime.name} runs every hook, whoever can write it")
        return
    for what, mode, owner, directory_mode in (("writable by everyone", 0o777, None, 0o755), ("writable by a group", 0o775, (0, 12), 0o755),
                                           ("another user's", 0o755, (12345, 12345), 0o755), ("in a directory writable by everyone", 0o755, None, 0o777)):
        directory = fixture.directory / f"hooks-{mode:o}-{directory_mode:o}-{what.split()[0]}"
        directory.mkdir()
        out, hook = fixture.directory / f"out-{directory.name}", directory / "hook"
        out.write_text("")
        out.chmod(0o666)
        hook.write_text(HOOK.format(out=out))
        hook.chmod(mode)
        if owner:
            os.chown(hook, *owner)
        directory.chmod(directory_mode)
        result = fixture.run(["hello"], lambda config, hook=hook: config.update(hooks={"createRuntime": [{"path": str(hook)}]}))
        assert "ran" not in out.read_text(), f"a hook that is {what} runs"
        assert_rejected(result, f"a hook that is {what}")
