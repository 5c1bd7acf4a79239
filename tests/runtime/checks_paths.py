"""Checks 1, 2, 3 and 7: the root, paths below it, /dev and /proc."""

import os
import subprocess
from pathlib import Path

from scene import SECRET, hung
from security import check


def capabilities(config, *names):
    for kind in ("bounding", "effective", "permitted"):
        config["process"]["capabilities"][kind] = [*config["process"]["capabilities"][kind], *names]


@check(1, "the old root is gone", mutations=("chroot",))
def old_root(scene):
    ended = scene.run(["leave-root", str(scene.sentinel / "secret")], lambda config: capabilities(config, "CAP_SYS_CHROOT"))
    yield from hung(ended)
    if ended.returncode:
        yield f"exit code {ended.returncode}: {ended.stderr.strip()}"
    if SECRET in ended.stdout:
        yield "a second chroot leads to the host's files"
    ended = scene.run(["/bin/cat", "/proc/self/mountinfo"])
    for line in ended.stdout.splitlines():
        place, root = line.split()[4], line.split()[3]
        kind = line.partition(" - ")[2].split()[0]
        if "sentinel" in line or place in ("/.pivot_root", "/oldroot", "/put_old") or kind == "ext4" and root == "/":
            yield f"a host's mount is there: {line}"
    yield from propagated(scene)
    yield from scene.untouched()


def propagated(scene):
    """A mount made in the container does not come out, even where the host's mounts are shared."""
    place, name = scene.bundle(["mount", "/mnt"], lambda config: capabilities(config, "CAP_SYS_ADMIN"))
    before = ("unshare", "--mount", "--propagation", "shared", "sh", "-c",
              'first=$(wc -l </proc/self/mountinfo); "$@" >&3 3>&3 & sleep 0.6; cat /proc/self/mountinfo; wait', "sh")
    started = subprocess.run([*before, *scene.runtime.argv("run", "--bundle", str(place), name)], stdin=subprocess.PIPE,
                             capture_output=True, text=True, timeout=30, check=False, env=scene.runtime.environment(),
                             pass_fds=(), preexec_fn=lambda: os.dup2(2, 3))
    scene.runtime.delete(name)
    if str(place) in started.stdout:
        yield f"a mount of the container is seen on the host: {[l for l in started.stdout.splitlines() if str(place) in l]}"


# Places under a root file system where the runtime mounts, masks or makes something.
TARGETS = ["/dev", "/dev/pts", "/dev/shm", "/dev/mqueue", "/proc", "/sys", "/sys/fs", "/mnt", "/volume", "/etc/file", "/nested/place",
           "/job", "/node", "/hidden"]


def asking(config):
    """A configuration that has something to do at each of the targets."""
    config["mounts"] += [
        {"destination": "/mnt", "type": "tmpfs", "source": "t"},
        {"destination": "/volume/below", "type": "bind", "source": "/usr/share", "options": ["rbind", "ro"]},
        {"destination": "/etc/file", "type": "bind", "source": "/etc/hostname", "options": ["bind", "ro"]},
        {"destination": "/nested/place/deep", "type": "tmpfs", "source": "t", "options": ["mode=700"]}]
    config["linux"]["maskedPaths"] += ["/hidden", "/hidden/file"]
    config["linux"]["readonlyPaths"] += ["/volume", "/hidden"]
    config["process"]["cwd"] = "/job/place"


def linked(root, target, to):
    """Makes one place of the root file system a link, with the directories above it."""
    path = Path(str(root) + target)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() and not path.is_symlink():
        subprocess.run(["rm", "-r", path], check=True)
    elif path.exists():
        path.unlink()
    path.symlink_to(to)


@check(2, "no link in the image leads out", mutations=("follow",))
def links(scene):
    up = "../" * 20
    for target in TARGETS:
        for to in (scene.sentinel, scene.sentinel / "directory", scene.sentinel / "new", f"{up}{str(scene.sentinel).lstrip('/')}",
                   "/proc/self/cwd", "/proc/1/root"):
            ended = scene.run(["hello"], asking, lambda root, target=target, to=to: linked(root, target, to))
            for problem in (*hung(ended), *scene.untouched()):
                yield f"`{target}` -> `{to}`: {problem}"
            if ended.returncode and not ended.stderr.strip():
                yield f"`{target}` -> `{to}`: fails without a word"


@check(2, "no link that comes and goes leads out", mutations=("follow",))
def races(scene):
    """A second process exchanges a directory of the image and a link to the host all the time."""
    for target in ("/race", "/race/in", "/proc", "/dev"):
        place, name = scene.bundle(["hello"], lambda config: config["mounts"].extend([
            {"destination": "/race/in/tmpfs", "type": "tmpfs", "source": "t"},
            {"destination": "/race/in/bind", "type": "bind", "source": "/usr/share", "options": ["rbind", "ro"]},
            {"destination": "/race/in/file", "type": "bind", "source": "/etc/hostname", "options": ["bind", "ro"]},
            {"destination": "/race/in/made/for/it", "type": "tmpfs", "source": "t"}]))
        one = Path(f"{place}/rootfs{target}")
        one.mkdir(parents=True, exist_ok=True)
        two = place / "rootfs/other"
        two.symlink_to(scene.sentinel)
        if scene.account:
            subprocess.run(["chown", "-R", f"{scene.account.uid}:{scene.account.gid}", place / "rootfs"], check=True)
        with scene.exchanged(f"`{target}`", one, two) as racer:
            for number in racer.starts():
                ended = scene.runtime.run(place, f"{name}-{number}")
                if ended.returncode:
                    scene.runtime.delete(f"{name}-{number}")
                for problem in (*hung(ended), *scene.untouched()):
                    yield f"`{target}`, start {number}: {problem}"
                    return
        yield from racer.problems


@check(3, "/dev is fresh and nothing of the image's", mutations=("image-dev",))
def fresh_dev(scene):
    def planted(root):
        (root / "dev/planted").write_text("from the image")
        (root / "dev/null").symlink_to(scene.sentinel / "secret")
        (root / "dev/console").symlink_to(scene.sentinel / "secret")
        (root / "dev/ptmx").symlink_to(scene.sentinel / "secret")

    ended = scene.run(["/bin/sh", "-c", "ls /dev; stat -c '%F %t:%T' /dev/null; grep ' /dev ' /proc/self/mountinfo; echo x >/dev/null"], prepare=planted)
    yield from hung(ended)
    if "planted" in ended.stdout:
        yield "the image's own /dev is used"
    if "character special file 1:3" not in ended.stdout:
        yield f"/dev/null is none: {ended.stdout!r} {ended.stderr.strip()}"
    if " - tmpfs " not in ended.stdout or "mode=755" not in ended.stdout:
        yield f"/dev is no tmpfs of mode 755: {ended.stdout!r}"
    yield from scene.untouched()


@check(3, "a mask is no file of the image's", mutations=("image-mask",))
def honest_null(scene):
    """Without a mount on /dev the image's own /dev/null must not serve as what masks a file."""
    def without_dev(config):
        config["mounts"] = [mount for mount in config["mounts"] if not mount["destination"].startswith("/dev")]
        config["linux"]["maskedPaths"] += ["/covered"]

    def planted(root):
        (root / "covered").write_text("what is to be hidden")
        (root / "leak").write_text("what the image's null gives")
        (root / "dev/null").symlink_to("/leak")

    ended = scene.run(["/bin/sh", "-c", "cat /covered; echo end"], without_dev, planted)
    yield from hung(ended)
    for words in ("what is to be hidden", "what the image's null gives"):
        if words in ended.stdout:
            yield f"/covered can be read: {ended.stdout!r}"
    yield from scene.untouched()


@check(7, "/proc is the container's own, masked and read-only", mutations=("masks", "pid-shared"))
def own_proc(scene):
    def asked(config):
        config["linux"]["maskedPaths"] += ["/covered", "/not/there", "/tmp/not/there"]
        config["linux"]["readonlyPaths"] += ["/also/not/there"]

    script = ("cat /covered; for p in /proc/[0-9]*; do echo ${p#/proc/}; done; "
              "for p in /proc/sys/kernel/hostname /proc/sysrq-trigger; do (: >>$p) 2>/dev/null && echo writable $p; done; "
              "head -c1 /proc/keys /proc/timer_list 2>/dev/null; umount /proc/sys && echo unmasked; echo end")
    ended = scene.run(["/bin/sh", "-c", script], asked, lambda root: (root / "covered").write_text("what is to be hidden"))
    yield from hung(ended)
    if "end" not in ended.stdout:
        yield f"a mask of what is not there is no reason to fail: {ended.stderr.strip()}"
    if "hidden" in ended.stdout or "writable" in ended.stdout or "unmasked" in ended.stdout:
        yield f"what is masked is open: {ended.stdout!r}"
    pids = [int(line) for line in ended.stdout.splitlines() if line.isdigit()]
    if len(pids) > 3 or 1 not in pids:
        yield f"processes of the host are seen: {pids[:20]}"


@check(7, "nothing is written to a /proc that is none", mutations=("follow-sysctl",))
def sysctl_elsewhere(scene):
    """A value for the kernel goes to a real procfs or nowhere, whatever the image or a volume has at /proc/sys."""
    for name, mounts in (("image", lambda mounts: [m for m in mounts if m["destination"] != "/proc"]),
                         ("volume", lambda mounts: [m for m in mounts if m["destination"] != "/proc"] +
                          [{"destination": "/proc", "type": "tmpfs", "source": "t"}])):
        def asked(config, mounts=mounts):
            config["mounts"] = mounts(config["mounts"])
            config["linux"]["sysctl"] = {"kernel.msgmax": "1234"}
            config["linux"]["maskedPaths"], config["linux"]["readonlyPaths"] = [], []

        def planted(root):
            (root / "proc/sys/kernel").mkdir(parents=True)
            (root / "proc/sys/kernel/msgmax").symlink_to(scene.sentinel / "secret")
            (root / "real").write_text("")

        ended = scene.run(["hello"], asked, planted)
        for problem in (*hung(ended), *scene.untouched()):
            yield f"/proc of the {name}: {problem}"
