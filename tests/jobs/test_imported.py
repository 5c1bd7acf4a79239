"""Tests files of other tools that run here: a line of `docker run` with an image that is built here, and a Compose file of two services that
talk to each other, each as it is and as the job file that `jobc import` writes.
"""

import shutil
import tempfile
from pathlib import Path

import needs
import pytest

from command_line import expect

pytestmark = [pytest.mark.isolated, pytest.mark.duration(40), pytest.mark.accounts("root")]
DOCKERFILE = """\
FROM scratch
COPY busybox /bin/busybox
COPY busybox /bin/sh
"""
LINE = """\
# A greeting.
docker run --rm -e WORD=hello -v $PWD/in:/in:ro -w /in \\
  --entrypoint /bin/sh greeter:1 -c '/bin/busybox cat text; echo "$WORD from $(/bin/busybox pwd)"'
"""
COMPOSE = """\
name: talk
services:
  client:
    build: .
    command: [/bin/busybox, wget, -q, -O, "-", "http://server:8080/"]
    depends_on: {server: {condition: service_healthy}}
  server:
    build: .
    command:
      - /bin/sh
      - -c
      - /bin/busybox mkdir /www; echo "it is the server" >/www/index.html; /bin/busybox httpd -p 8080 -h /www; /bin/busybox sleep 8
    healthcheck:
      test: [CMD, /bin/busybox, wget, -q, -O, /dev/null, "http://127.0.0.1:8080/"]
      interval: 1s
"""


@pytest.fixture
def project(jobs):
    """A directory with a Dockerfile."""
    needs.tool("busybox")
    directory = Path(tempfile.mkdtemp(prefix="project-", dir=jobs.directory))
    (directory / "Dockerfile").write_text(DOCKERFILE)
    shutil.copy(shutil.which("busybox"), directory / "busybox")
    (directory / "in").mkdir()
    (directory / "in/text").write_text("text\n")
    return directory


def both(jobs, project, source):
    """Runs a file as it is, and then the job file that is written from it."""
    expect(jobs.call("import", source, "-o", "job.yaml", cwd=project))
    expect(jobs.call("diff", source, "job.yaml", cwd=project), out="no difference")
    return [expect(jobs.call("run", *jobs.unenforced, path, cwd=project)) for path in (source, "job.yaml")]


def test_a_line_of_docker_run(jobs, project):
    (project / "run.sh").write_text(LINE)
    expect(jobs.call("image", "build", "-t", "greeter:1", ".", cwd=project))
    for answer in both(jobs, project, "run.sh"):
        assert answer.stdout.splitlines()[-2:] == ["text", "hello from /in"], answer.stdout + answer.stderr


def test_two_services_of_compose_talk(jobs, project):
    (project / "compose.yaml").write_text(COMPOSE)
    for answer in both(jobs, project, "compose.yaml"):
        assert "it is the server" in answer.stdout, answer.stdout + answer.stderr
