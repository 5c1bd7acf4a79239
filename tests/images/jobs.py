#!/usr/bin/env python3
"""Tests jobs that name images: on a host without a container engine `jobc run` builds, pulls or imports what they name,
keeps images in use, and resumes after a kill.

`--user range` and `--user single` run as an unprivileged user.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

for directory in ("runtime", "jobs", "images"):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / directory))

from isolation import jobs_of, problems  # noqa: E402
from harness import REPOSITORY, Harness, needs  # noqa: E402
from registry import registry  # noqa: E402

EXAMPLE = REPOSITORY / "examples/local-image"
JOB = """version: 1
name: {name}
image: {image}
roles:
  show:
    run: {run}
"""


def main():
    harness = Harness("image jobs", __doc__)
    with jobs_of(harness) as jobs:
        base = jobs.directory / "base.tar"
        with base.open("wb") as archive:
            subprocess.run(["sh", EXAMPLE / "base.sh"], stdout=archive, check=True)
        for case in (built_image, archives, copied_layers, pulled_image, shared_store, images_in_use, killed_runs, rejected):
            if harness.wants(case.__name__):
                harness.check(case.__name__, problems(case, jobs, base))
    harness.end()


def unenforced_option(jobs):
    return [] if jobs.account is None else ["--allow-unenforced"]


def job(jobs, name, image, run="[bash, -c, 'ls /; cat /etc/passwd']"):
    """A job file that its user may read."""
    path = jobs.directory / f"{name}.yaml"
    path.write_text(JOB.format(name=name, image=image, run=run))
    return path


def unexpected_result(result, code, *words):
    text = result.stdout + result.stderr
    if result.returncode != code:
        yield f"exit code {result.returncode}, not {code}: {text}"
    yield from (f"`{word}` is not in the output: {text}" for word in words if word not in text)


def built_image(jobs, base):
    """The example: an image block on an imported base; the second run has every step cached."""
    copy = jobs.directory / "local-image"
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns("out"))
    if jobs.account:
        for path in [copy, *copy.rglob("*")]:
            os.chown(path, jobs.account.uid, jobs.account.gid)
    yield from unexpected_result(jobs.call("image", "import", base, "--tag", "base:1"), 0, "base:1")
    yield from unexpected_result(jobs.call("run", *unenforced_option(jobs), copy / "job.yaml", seconds=120), 0, "RUN bash --version")
    outputs = {path.name: path.read_text() for path in (copy / "work").iterdir()}
    if sorted(outputs) != ["words-0.txt", "words-1.txt"] or not all("GNU bash" in text for text in outputs.values()):
        yield f"the tasks wrote {outputs}"
    second = jobs.call("run", *unenforced_option(jobs), copy / "job.yaml", seconds=120)
    yield from unexpected_result(second, 0, "(cached)")
    if sum("(cached)" in line for line in second.stderr.splitlines()) != 2:
        yield f"not every step was cached: {second.stderr}"
    (copy / "words.sh").write_text("echo changed\n")
    yield from unexpected_result(jobs.call("run", *unenforced_option(jobs), copy / "job.yaml", seconds=120), 0)
    if (copy / "work/words-0.txt").read_text() != "changed\n":
        yield "the second script was not copied into the image"
    yield from unexpected_result(jobs.call("image", "verify"), 0)


def archives(jobs, base):
    """An archive and a directory by path, and the host's own files."""
    directory = jobs.directory / "directory"
    directory.mkdir()
    subprocess.run(["tar", "-C", directory, "-xf", base], check=True)
    if jobs.account:
        for path in [directory, *directory.rglob("*")]:
            os.chown(path, jobs.account.uid, jobs.account.gid, follow_symlinks=False)
    yield from unexpected_result(jobs.call("run", *unenforced_option(jobs), job(jobs, "archive", "./base.tar")), 0, "root:x:0:0:root:/:/bin/bash")
    yield from unexpected_result(jobs.call("run", *unenforced_option(jobs), job(jobs, "directory", "./directory")), 0, "root:x:0:0:root:/:/bin/bash")
    yield from unexpected_result(jobs.call("run", *unenforced_option(jobs), job(jobs, "host", "host")), 0, "usr")
    if shutil.which("skopeo"):
        jobs.call("image", "import", base, "--tag", "example.com/team/base:1")
        store = store_of(jobs)
        archive = jobs.directory / "saved.tar"
        subprocess.run(["skopeo", "copy", "--quiet", f"oci:{store}:example.com/team/base:1", f"docker-archive:{archive}:saved:1"], check=True)
        os.chmod(archive, 0o644)
        yield from unexpected_result(jobs.call("run", *unenforced_option(jobs), job(jobs, "saved", "./saved.tar")), 0, "root:x:0:0:root:/:/bin/bash")


def copied_layers(jobs, base):
    """Without overlayfs each task gets a copy, which is reported, and removed with the job."""
    file = job(jobs, "copied", "./base.tar", "[bash, -c, 'echo mine > /etc/passwd; cat /etc/passwd']")
    for _ in range(2):
        yield from unexpected_result(jobs.call("run", *unenforced_option(jobs), file, JOBC_COPY_LAYERS="1"), 0, "mine", "a copy of its image", "JOBC_COPY_LAYERS is set")
    leftovers = [path for path in jobs.home.rglob("roots") if path.is_dir() and any(path.iterdir())]
    if leftovers:
        yield f"copies are left: {leftovers}"


def store_of(jobs):
    """The image store of the jobs' user."""
    return jobs.home / ".local/share/jobc/images"


def pulled_image(jobs, base):
    """An image of a registry is pulled once, and then runs without the registry."""
    for tool in ("docker-registry", "skopeo"):
        if not shutil.which(tool):
            if needs.required():
                yield f"needs {tool}"
            print(needs.line("image jobs: pulled_image", tool))
            return
    jobs.call("image", "import", base, "--tag", "base:1")
    with registry(jobs.directory / "registry") as host:
        name = f"{host}/team/base:1"
        store = store_of(jobs)
        subprocess.run(["skopeo", "copy", "--quiet", "--dest-tls-verify=false", f"oci:{store}:docker.io/library/base:1", f"docker://{name}"], check=True)
        jobs.call("image", "rm", "base:1")
        settings = jobs.home / ".config/jobc/registries.yaml"
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text(json.dumps({"registries": {host: {"plain_http": True}}}))
        if jobs.account:
            for path in (settings.parent.parent, settings.parent, settings):
                os.chown(path, jobs.account.uid, jobs.account.gid)
        yield from unexpected_result(jobs.call("run", "--pull", "never", *unenforced_option(jobs), job(jobs, "pulled", name)), 125, "is not in the image store", "`image`")
        yield from unexpected_result(jobs.call("run", *unenforced_option(jobs), job(jobs, "pulled", name)), 0, "root:x:0:0:root:/:/bin/bash")
    yield from unexpected_result(jobs.call("run", *unenforced_option(jobs), job(jobs, "pulled", name)), 0)
    yield from unexpected_result(jobs.call("run", "--pull", "always", *unenforced_option(jobs), job(jobs, "pulled", name)), 125, "`image`")


def shared_store(jobs, base):
    """A store that root shares is only read: nothing is fetched or copied, and nothing of it is removed while a job runs."""
    shared = jobs.directory / "shared-images"
    shared.mkdir(mode=0o755)
    administrator = {"PATH": os.environ["PATH"], "HOME": str(jobs.directory / "administrator"), "JOBC_COLOR": "never"}

    def as_administrator(*words):
        return subprocess.run([jobs.program, "image", "--image-root", shared, *words], env=administrator, capture_output=True, text=True, check=False)

    yield from unexpected_result(as_administrator("import", base, "--tag", "lab/base:1"), 0)
    blobs = sorted(path.name for path in shared.glob("blobs/sha256/*"))
    jobs.call("image", "gc", "--cache")
    own = set(store_of(jobs).glob("blobs/sha256/*"))
    file = job(jobs, "shares", "lab/base:1", "[bash, -c, 'while [ ! -e /tmp/end ]; do read -t 0.2 <> <(:) || true; done']")
    yield from unexpected_result(jobs.call("run", "--pull", "never", *unenforced_option(jobs), file), 125, "is not in the image store")
    stores = {"JOBC_IMAGE_STORES": f"{shared}:{jobs.directory}/absent"}
    yield from unexpected_result(jobs.call("image", "ls", **stores), 0, "lab/base:1", str(shared), "absent`: no such image store")
    yield from unexpected_result(jobs.call("run", "--pull", "never", "--detach", *unenforced_option(jobs), file, **stores), 0)
    jobs.running("shares")
    yield from unexpected_result(jobs.call("exec", "shares", "--", "cat", "/etc/passwd"), 0, "root:x:0:0:root:/:/bin/bash")
    # The supervisor holds the store, not this command's environment.
    yield from unexpected_result(as_administrator("rm", "lab/base:1"), 0, "in use")
    if sorted(path.name for path in shared.glob("blobs/sha256/*")) != blobs:
        yield "blobs of the shared store were removed while a job used them"
    copied = {path.name for path in set(store_of(jobs).glob("blobs/sha256/*")) - own} & set(blobs)
    if copied:
        yield f"the own store has copies of {copied}"
    yield from unexpected_result(as_administrator("import", base, "--tag", "lab/base:1"), 0)
    yield from unexpected_result(jobs.call("image", "rm", "lab/base:1", **stores), 2, "is in the shared store", "only read")
    yield from unexpected_result(jobs.call("image", "verify", **stores), 0)
    jobs.call("stop", "shares")
    jobs.call("wait", "shares")
    yield from unexpected_result(jobs.call("image", "ls", JOBC_IMAGE_STORES="images"), 3, "`images` in `JOBC_IMAGE_STORES` is not an absolute path")
    as_administrator("rm", "lab/base:1")
    yield from unexpected_result(as_administrator("gc"), 0)
    if left := list(shared.glob("blobs/sha256/*")):
        yield f"the shared store has {left} after its collection"


def images_in_use(jobs, base):
    """The layers of a running job are kept, whatever is removed; after its end they are removed."""
    for image in json.loads(jobs.call("image", "ls", "--format", "json").stdout):
        jobs.call("image", "rm", image["name"])
    jobs.call("image", "gc", "--cache")
    jobs.call("image", "import", base, "--tag", "used:1")
    file = job(jobs, "used", "used:1", "[bash, -c, 'while [ ! -e /tmp/end ]; do read -t 0.2 <> <(:) || true; done']")
    yield from unexpected_result(jobs.call("run", "--detach", *unenforced_option(jobs), file), 0)
    jobs.running("used")
    unpacked = store_of(jobs) / "unpacked"
    jobs.call("image", "rm", "used:1")
    yield from unexpected_result(jobs.call("image", "gc"), 0)
    layers = [path for kind in unpacked.iterdir() for path in kind.iterdir()]
    if not layers:
        yield "the layers of a running job were removed"
    yield from unexpected_result(jobs.call("exec", "used", "--", "cat", "/etc/passwd"), 0, "root:x:0:0:root:/:/bin/bash")
    jobs.call("stop", "used")
    jobs.call("wait", "used")
    yield from unexpected_result(jobs.call("image", "gc"), 0)
    leftovers = [path for kind in unpacked.iterdir() for path in kind.iterdir()]
    if leftovers:
        yield f"the layers {leftovers} of an ended job are left"


def killed_runs(jobs, base):
    """`jobc run` is killed at any moment of importing, building and unpacking; the next run resumes and succeeds."""
    copy = jobs.directory / "killed"
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns("out"))
    if jobs.account:
        for path in [copy, *copy.rglob("*")]:
            os.chown(path, jobs.account.uid, jobs.account.gid)
    rng = random.Random(7)
    for _ in range(8):
        jobs.call("image", "gc", "--cache")
        jobs.call("image", "import", base, "--tag", "base:1")
        process = subprocess.Popen(jobs.words("run", *unenforced_option(jobs), copy / "job.yaml"), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=jobs.environment())
        time.sleep(rng.uniform(0, 0.4))
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        process.wait()
    for name in jobs.call("ps", "--quiet").stdout.split():
        jobs.call("kill", name)
        jobs.call("wait", name)
    yield from unexpected_result(jobs.call("image", "verify"), 0)
    yield from unexpected_result(jobs.call("run", *unenforced_option(jobs), copy / "job.yaml", seconds=120), 0)
    if "GNU bash" not in (copy / "work/words-0.txt").read_text():
        yield "the image is incomplete"


def rejected(jobs, base):
    """Errors are reported at their lines, and nothing is started."""
    yield from unexpected_result(jobs.call("run", job(jobs, "absent", "./none.tar")), 125, "`image`", "no such file")
    (jobs.directory / "text").write_text("no archive\n" * 100)
    yield from unexpected_result(jobs.call("run", job(jobs, "text", "./text")), 125, "is not a readable archive")
    job_file = jobs.directory / "own.yaml"
    job_file.write_text("version: 1\nname: own\nimage: {dockerfile: Own}\nroles: {a: {run: x}}\n")
    (jobs.directory / "Own").write_text("FROM base:1\nRUN --security=insecure ls\n")
    yield from unexpected_result(jobs.call("run", job_file), 125, "Own:2:", "cannot be built")
    (jobs.directory / "Own").write_text("FROM base:1\nRUN false\n")
    jobs.call("image", "import", base, "--tag", "base:1")
    yield from unexpected_result(jobs.call("run", job_file), 125, "Own:2", "exit code 1")


main()
