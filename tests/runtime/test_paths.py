"""Checks 1, 2, 3 and 7: the root file system, paths below it, /dev and /proc."""

import os
import subprocess
from pathlib import Path

from bundle import capabilities
from fixture import SECRET, assert_ended
from security import promise


@promise(1, mutations=("chroot",))
def test_the_hosts_root_is_not_reachable(fixture):
    result = fixture.run(["leave-root", str(fixture.sentinel / "secret")], lambda config: capabilities(config, "CAP_SYS_CHROOT"))
    assert_ended(result)
    assert result.returncode == 0, f"exit code {result.returncode}: {result.stderr.strip()}"
    assert SECRET not in result.stdout, "a second chroot reaches the host's files"
    result = fixture.run(["/bin/cat", "/proc/self/mountinfo"])
    for line in result.stdout.splitlines():
        place, root = line.split()[4], line.split()[3]
        kind = line.partition(" - ")[2].split()[0]
        assert "sentinel" not in line and place not in ("/.pivot_root", "/oldroot", "/put_old") and (kind != "ext4" or root != "/"), f"a mount of the host is visible: {line}"
    assert_no_mount_propagates(fixture)
    fixture.assert_unchanged()


def assert_no_mount_propagates(fixture):
    """A mount in the container does not propagate to the host, even where the host's mounts are shared."""
    place, name = fixture.bundle(["mount", "/mnt"], lambda config: capabilities(config, "CAP_SYS_ADMIN"))
    before = ("unshare", "--mount", "--propagation", "shared", "sh", "-c",
              'first=$(wc -l </proc/self/mountinfo); "$@" >&3 3>&3 & sleep 0.6; cat /proc/self/mountinfo; wait', "sh")
    started = subprocess.run([*before, *fixture.runtime.argv("run", "--bundle", str(place), name)], stdin=subprocess.PIPE,
                             capture_output=True, text=True, timeout=30, check=False, env=fixture.runtime.environment(),
                             pass_fds=(), preexec_fn=lambda: os.dup2(2, 3))
    fixture.runtime.delete(name)
    assert str(place) not in started.stdout, f"a mount of the container is visible on the host: {[line for line in started.stdout.splitlines() if str(place) in line]}"


# Paths in a root file system where the runtime mounts, masks or creates something.
TARGETS = ["/dev", "/dev/pts", "/dev/shm", "/dev/mqueue", "/proc", "/sys", "/sys/fs", "/mnt", "/volume", "/etc/file", "/nested/place",
           "/job", "/node", "/hidden"]


def with_targets(config):
    """A configuration that uses each of the targets."""
    config["mounts"] += [
        {"destination": "/mnt", "type": "tmpfs", "source": "t"},
        {"destination": "/volume/below", "type": "bind", "source": "/usr/share", "options": ["rbind", "ro"]},
        {"destination": "/etc/file", "type": "bind", "source": "/etc/hostname", "options": ["bind", "ro"]},
        {"destination": "/nested/place/deep", "type": "tmpfs", "source": "t", "options": ["mode=700"]}]
    config["linux"]["maskedPaths"] += ["/hidden", "/hidden/file"]
    config["linux"]["readonlyPaths"] += ["/volume", "/hidden"]
    config["process"]["cwd"] = "/job/place"


def replace_with_link(root, target, to):
    """Replaces a path of the root file system with a symlink, and creates the directories above it."""
    path = Path(str(root) + target)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() and not path.is_symlink():
        subprocess.run(["rm", "-r", path], check=True)
    elif path.exists():
        path.unlink()
    path.symlink_to(to)


@promise(2, mutations=("follow",))
def test_no_symlink_in_the_image_leads_to_the_host(fixture):
    up = "../" * 20
    for target in TARGETS:
        for to in (fixture.sentinel, fixture.sentinel / "directory", fixture.sentinel / "new", f"{up}{str(fixture.sentinel).lstrip('/')}",
                   "/proc/self/cwd", "/proc/1/root"):
            result = fixture.run(["hello"], with_targets, lambda root, target=target, to=to: replace_with_link(root, target, to))
            assert_ended(result, f"`{target}` -> `{to}`")
            fixture.assert_unchanged(f"`{target}` -> `{to}`")
            assert result.returncode == 0 or result.stderr.strip(), f"`{target}` -> `{to}`: fails without a message"


@promise(2, mutations=("follow",))
def test_no_symlink_that_appears_during_a_start_leads_to_the_host(fixture):
    """A second process keeps exchanging a directory of the image and a symlink to the host."""
    for target in ("/race", "/race/in", "/proc", "/dev"):
        place, name = fixture.bundle(["hello"], lambda config: config["mounts"].extend([
            {"destination": "/race/in/tmpfs", "type": "tmpfs", "source": "t"},
            {"destination": "/race/in/bind", "type": "bind", "source": "/usr/share", "options": ["rbind", "ro"]},
            {"destination": "/race/in/file", "type": "bind", "source": "/etc/hostname", "options": ["bind", "ro"]},
            {"destination": "/race/in/made/for/it", "type": "tmpfs", "source": "t"}]))
        one = Path(f"{place}/rootfs{target}")
        one.mkdir(parents=True, exist_ok=True)
        two = place / "rootfs/other"
        two.symlink_to(fixture.sentinel)
        if fixture.account:
            subprocess.run(["chown", "-R", f"{fixture.account.uid}:{fixture.account.gid}", place / "rootfs"], check=True)
        with fixture.racing(f"`{target}`", one, two) as racer:
            for number in racer.starts():
                result = fixture.runtime.run(place, f"{name}-{number}")
                if result.returncode:
                    fixture.runtime.delete(f"{name}-{number}")
                assert_ended(result, f"`{target}`, start {number}")
                fixture.assert_unchanged(f"`{target}`, start {number}")


@promise(3, mutations=("image-dev",))
def test_dev_is_new_without_the_images_files(fixture):
    def planted(root):
        (root / "dev/planted").write_text("from the image")
        (root / "dev/null").symlink_to(fixture.sentinel / "secret")
        (root / "dev/console").symlink_to(fixture.sentinel / "secret")
        (root / "dev/ptmx").symlink_to(fixture.sentinel / "secret")

    result = fixture.run(["/bin/sh", "-c", "ls /dev; stat -c '%F %t:%T' /dev/null; grep ' /dev ' /proc/self/mountinfo; echo x >/dev/null"], prepare=planted)
    assert_ended(result)
    assert "planted" not in result.stdout, "the image's own /dev is used"
    assert "character special file 1:3" in result.stdout, f"/dev/null is not the null device: {result.stdout!r} {result.stderr.strip()}"
    assert " - tmpfs " in result.stdout and "mode=755" in result.stdout, f"/dev is not a tmpfs of mode 755: {result.stdout!r}"
    fixture.assert_unchanged()


@promise(3, mutations=("image-mask",))
def test_no_file_of_the_image_masks_a_path(fixture):
    """Without a mount on /dev, the image's own /dev/null must not be used to mask a file."""
    def without_dev(config):
        config["mounts"] = [mount for mount in config["mounts"] if not mount["destination"].startswith("/dev")]
        config["linux"]["maskedPaths"] += ["/covered"]

    def planted(root):
        (root / "covered").write_text("a hidden secret")
        (root / "leak").write_text("content of the image's null")
        (root / "dev/null").symlink_to("/leak")

    result = fixture.run(["/bin/sh", "-c", "cat /covered; echo end"], without_dev, planted)
    assert_ended(result)
    for words in ("a hidden secret", "content of the image's null"):
        assert words not in result.stdout, f"/covered can be read: {result.stdout!r}"
    fixture.assert_unchanged()


@promise(7, mutations=("masks", "pid-shared"))
def test_proc_is_the_containers_own_masked_and_read_only(fixture):
    def configure(config):
        config["linux"]["maskedPaths"] += ["/covered", "/not/there", "/tmp/not/there"]
        config["linux"]["readonlyPaths"] += ["/also/not/there"]

    script = ("cat /covered; for p in /proc/[0-9]*; do echo ${p#/proc/}; done; "
              "for p in /proc/sys/kernel/hostname /proc/sysrq-trigger; do (: >>$p) 2>/dev/null && echo writable $p; done; "
              "head -c1 /proc/keys /proc/timer_list 2>/dev/null; umount /proc/sys && echo unmasked; echo end")
    result = fixture.run(["/bin/sh", "-c", script], configure, lambda root: (root / "covered").write_text("a hidden secret"))
    assert_ended(result)
    assert "end" in result.stdout, f"a masked path that does not exist is an error: {result.stderr.strip()}"
    assert "hidden" not in result.stdout and "writable" not in result.stdout and "unmasked" not in result.stdout, f"a masked path is accessible: {result.stdout!r}"
    pids = [int(line) for line in result.stdout.splitlines() if line.isdigit()]
    assert len(pids) <= 3 and 1 in pids, f"processes of the host are visible: {pids[:20]}"


@promise(7, mutations=("follow-sysctl",))
def test_no_sysctl_is_written_to_a_proc_that_is_not_procfs(fixture):
    """A sysctl is written only to a real procfs, whatever the image or a volume has at /proc/sys."""
    for name, mounts in (("image", lambda mounts: [m for m in mounts if m["destination"] != "/proc"]),
                         ("volume", lambda mounts: [m for m in mounts if m["destination"] != "/proc"] +
                          [{"destination": "/proc", "type": "tmpfs", "source": "t"}])):
        def configure(config, mounts=mounts):
            config["mounts"] = mounts(config["mounts"])
            config["linux"]["sysctl"] = {"kernel.msgmax": "1234"}
            config["linux"]["maskedPaths"], config["linux"]["readonlyPaths"] = [], []

        def planted(root):
            (root / "proc/sys/kernel").mkdir(parents=True)
            (root / "proc/sys/kernel/msgmax").symlink_to(fixture.sentinel / "secret")
            (root / "real").write_text("")

        result = fixture.run(["hello"], configure, planted)
        assert_ended(result, f"/proc of the {name}")
        fixture.assert_unchanged(f"/proc of the {name}")
