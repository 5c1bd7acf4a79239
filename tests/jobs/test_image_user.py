"""Tests of images with a user, as unprivileged users run them: whose the files are that tasks write, and their groups."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import needs
import pytest

from command_line import expect

pytestmark = [pytest.mark.isolated, pytest.mark.duration(20), pytest.mark.accounts("range", "single")]

# A group that no user of the host is in.
GROUP = 54321

DOCKERFILE = """\
FROM scratch
COPY busybox /bin/busybox
COPY busybox /bin/sh
COPY --chown=0:0 busybox /owned-by-root
COPY --chown=1000:1000 busybox /home/nb/busybox
USER 1000:1000
"""


@pytest.fixture
def project(jobs):
    """A directory with a Dockerfile of an image whose user is 1000."""
    needs.tool("busybox")
    directory = Path(tempfile.mkdtemp(prefix="project-", dir=jobs.directory))
    (directory / "Dockerfile").write_text(DOCKERFILE)
    shutil.copy(shutil.which("busybox"), directory / "busybox")
    for path in (directory, *directory.iterdir()):
        os.chown(path, jobs.account.uid, jobs.account.gid)
    return directory


def job(directory, script, **role):
    lines = [f"    {key}: {value}" for key, value in role.items()]
    path = directory / "job.yaml"
    path.write_text("\n".join([
        "version: 1", "name: tested-user", "image: {dockerfile: Dockerfile}",
        "outputs: {o: {source: ./out, mount: /out}}", "roles:", "  nb:", "    shell: sh", *lines,
        "    run: |", *("      " + line for line in script.splitlines()), ""]))
    os.chown(path, jobs_uid(directory), -1)
    return str(path)


def jobs_uid(directory):
    return directory.stat().st_uid


def test_results_belong_to_the_caller(jobs, project):
    """Although they are written by user 1000 of the image, who finds its own files and those of root as in the image."""
    script = """
set -e
busybox=/bin/busybox
$busybox id -u
$busybox stat -c '%u:%g %a' /out
echo result >/out/result
$busybox mkdir -p /out/directory
echo more >/out/directory/more
$busybox stat -c %u /out/result /home/nb/busybox
""" + ("$busybox stat -c %u /owned-by-root; ! $busybox touch /owned-by-root 2>/dev/null" if jobs.account.subuids else "")
    for _ in range(2):
        # A second run can overwrite what the first wrote.
        answer = expect(jobs.call("run", *jobs.unenforced, job(project, script), cwd=project))
        assert "world-writable" not in answer.stdout + answer.stderr
    expected = ["1000", "1000:1000 755", "1000", "1000"] + (["0"] if jobs.account.subuids else [])
    assert answer.stdout.split("\n")[:-1][-len(expected):] == expected, answer.stdout
    for path in (project / "out", project / "out/result", project / "out/directory/more"):
        status = path.stat()
        assert (status.st_uid, status.st_gid) == (jobs.account.uid, jobs.account.gid), path
    assert (project / "out").stat().st_mode & 0o7777 == 0o755


def test_root_of_the_image_is_the_caller_too(jobs, project):
    expect(jobs.call("run", *jobs.unenforced, job(project, "/bin/busybox id -u; echo x >/out/root", user="'0'"), cwd=project), out="(?m)^0$")
    assert (project / "out/root").stat().st_uid == jobs.account.uid


def test_a_task_keeps_the_groups_of_the_caller(jobs, project):
    """What only a group of the caller may read, a task of an image reads, as root and as its user."""
    secret = project / "of-the-group"
    secret.mkdir()
    (secret / "file").write_text("shared\n")
    for path in (secret, secret / "file"):
        os.chown(path, 0, GROUP)
        path.chmod(0o750)
    path = Path(job(project, "/bin/busybox cat /group/file"))
    text = path.read_text().replace("outputs:", "data: {group: {source: ./of-the-group, mount: /group}}\noutputs:")
    for user in ("", "    user: '0'\n"):
        path.write_text(text.replace("    shell: sh\n", "    shell: sh\n" + user))
        words = [word for word in jobs.words("run", *jobs.unenforced, str(path)) if word != "--clear-groups"]
        words.insert(words.index(str(jobs.program)), f"--groups={GROUP}")
        answer = subprocess.run(words, cwd=project, env=jobs.environment(), capture_output=True, text=True, check=False, timeout=60)
        expect(answer, out="(?m)^shared$")
        refused = jobs.call("run", *jobs.unenforced, str(path), cwd=project)
        assert refused.returncode != 0, "without the group it is read"
