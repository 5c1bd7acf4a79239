"""Tests jobs that name images: on a host without a container engine `jobc run` builds, pulls or imports what they name,
keeps images in use, and resumes after a kill.
"""

import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time
import zipfile
from pathlib import Path

import pytest

import needs
from harness import REPOSITORY
from registry import registry

pytestmark = [pytest.mark.isolated, pytest.mark.duration(10), pytest.mark.accounts("root", "single", slow="range")]

EXAMPLE = REPOSITORY / "examples/local-image"
JOB = """version: 1
name: {name}
image: {image}
roles:
  show:
    run: {run}
"""


@pytest.fixture(scope="module")
def base(all_jobs):
    """An archive with the base image of the example."""
    base = all_jobs.directory / "base.tar"
    with base.open("wb") as archive:
        subprocess.run(["sh", EXAMPLE / "base.sh"], stdout=archive, check=True)
    return base


@pytest.fixture
def example(jobs, request):
    """A copy of the example that the user may write to."""
    copy = jobs.directory / request.node.originalname
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns("out"))
    give(jobs, copy)
    return copy / "job.yaml"


def give(jobs, directory):
    """Gives a directory and all in it to the user."""
    for path in [directory, *directory.rglob("*")] if jobs.account else []:
        os.chown(path, jobs.account.uid, jobs.account.gid, follow_symlinks=False)


def run_words(jobs, *words):
    """`jobc run`, also where limits cannot be enforced."""
    return ["run", *([] if jobs.account is None else ["--allow-unenforced"]), *words]


def run(jobs, *words, **more):
    return jobs.call(*run_words(jobs, *words), **more)


def job(jobs, name, image, run="[bash, -c, 'ls /; cat /etc/passwd']"):
    """A job file that its user may read."""
    path = jobs.directory / f"{name}.yaml"
    path.write_text(JOB.format(name=name, image=image, run=run))
    return path


def assert_result(result, code=0, *words):
    """A command has ended with this exit code and output."""
    text = result.stdout + result.stderr
    assert result.returncode == code, text
    assert not [word for word in words if word not in text], text


def test_an_image_is_built_once_and_again_when_a_file_has_changed(jobs, base, example):
    """The example: an image block on an imported base; the second run has every step cached."""
    assert_result(jobs.call("image", "import", base, "--tag", "base:1"), 0, "base:1")
    assert_result(run(jobs, example, seconds=120), 0, "RUN bash --version")
    outputs = {path.name: path.read_text() for path in (example.parent / "work").iterdir()}
    assert sorted(outputs) == ["words-0.txt", "words-1.txt"] and all("GNU bash" in text for text in outputs.values()), f"the tasks wrote {outputs}"
    second = run(jobs, example, seconds=120)
    assert_result(second, 0, "(cached)")
    assert sum("(cached)" in line for line in second.stderr.splitlines()) == 2, f"not every step was cached: {second.stderr}"
    (example.parent / "words.sh").write_text("echo changed\n")
    assert_result(run(jobs, example, seconds=120), 0)
    assert (example.parent / "work/words-0.txt").read_text() == "changed\n", "the second script was not copied into the image"
    assert_result(jobs.call("image", "verify"), 0)

def debian_python():
    """The library of Debian's Python, which pip of a user must not change (PEP 668); None without its pip."""
    found = [path.parent for path in Path("/usr/lib").glob("python3.*/EXTERNALLY-MANAGED")]
    return found[0] if found and Path("/usr/lib/python3/dist-packages/pip").is_dir() else None


@pytest.fixture(scope="module")
def managed(all_jobs, base):
    """An archive with the base image, Python and pip of this Debian, and a wheel in `/wheels`."""
    library = debian_python() or needs.missing("python3-pip", "Debian 12 or later with `python3-pip`")
    root = all_jobs.directory / "managed"
    (root / "usr/bin").mkdir(parents=True)
    subprocess.run(["tar", "-C", root, "-xf", base], check=True)
    program = Path("/usr/bin") / library.name
    shutil.copy(program, root / "usr/bin/python3")
    shutil.copytree(library, root / library.relative_to("/"), symlinks=True, ignore=shutil.ignore_patterns("test", "__pycache__", "config-*"))
    shutil.copytree("/usr/lib/python3/dist-packages/pip", root / "usr/lib/python3/dist-packages/pip")
    linked = subprocess.run(["ldd", program, *library.glob("lib-dynload/*.so")], capture_output=True, text=True, check=False).stdout
    for path in {word for word in linked.split() if word.startswith("/") and not word.endswith(":")}:
        (root / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, root / path[1:])
    (root / "wheels").mkdir()
    with zipfile.ZipFile(root / "wheels/tiny-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.py", "print('imported tiny')\n")
        wheel.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        wheel.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("tiny-1.0.dist-info/RECORD", "tiny.py,,\ntiny-1.0.dist-info/METADATA,,\ntiny-1.0.dist-info/WHEEL,,\ntiny-1.0.dist-info/RECORD,,\n")
    archive = all_jobs.directory / "managed.tar"
    subprocess.run(["tar", "-C", root, "-cf", archive, "."], check=True)
    shutil.rmtree(root)
    return archive


BLOCK = """version: 1
name: {name}
image:
  from: managed:1
{steps}
roles:
  show: {{run: [python3, -c, import tiny]}}
"""


@pytest.mark.accounts("root")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name, steps, place, advice, instead", ids=["fields", "steps"], argvalues=[
    ("fields", "  python: {packages: [/wheels/tiny-1.0-py3-none-any.whl]}", "5:11", "in the image block",
     '  env: {PIP_BREAK_SYSTEM_PACKAGES: "1"}\n  python: {packages: [/wheels/tiny-1.0-py3-none-any.whl]}'),
    ("steps", "  steps:\n    - run: python3 -m pip install /wheels/*.whl", "6:7", "before this one",
     '  steps:\n    - env: {PIP_BREAK_SYSTEM_PACKAGES: "1"}\n    - run: python3 -m pip install /wheels/*.whl'),
])
def test_pip_of_a_distribution_fails_with_advice_that_works(jobs, managed, name, steps, place, advice, instead):
    assert_result(jobs.call("image", "import", managed, "--tag", "managed:1"))
    path = jobs.directory / f"{name}.yaml"
    path.write_text(BLOCK.format(name=name, steps=steps))
    done = run(jobs, path, seconds=120)
    assert_result(done, 125, "error[J0458]: `image.", f"{path.name}:{place}\n", "dockerfile/main/Dockerfile:", "PEP 668", "cannot be built")
    variable, = set(re.findall(r"`(env: {PIP_BREAK_SYSTEM_PACKAGES: \"1\"})` [^,]*", done.stderr))
    assert f"{advice} to install next to its packages" in done.stderr and variable in instead, done.stderr
    path.write_text(BLOCK.format(name=name, steps=instead))
    assert_result(run(jobs, path, seconds=120), 0, "imported tiny")


def test_a_failed_step_is_at_its_line_of_the_job_file(jobs, base):
    assert_result(jobs.call("image", "import", base, "--tag", "base:1"))
    directory = jobs.directory / "failed"
    directory.mkdir()
    path = directory / "failed.yaml"
    path.write_text(BLOCK.format(name="failed", steps="  run:\n    - echo fine\n    - echo broken; exit 3").replace("managed:1", "base:1"))
    give(jobs, directory)
    words = ("error[J0458]: `image.run.1`: the command failed with exit code 3", "failed.yaml:7:7\n", "broken", "dockerfile/main/Dockerfile:12")
    assert_result(run(jobs, path, seconds=120), 125, *words)
    # The same of the written Dockerfile, as long as its job file has not changed since.
    assert_result(jobs.call("build", path, "--target", "local"))
    words = ("image", "build", "-f", directory / "out/failed/local/dockerfile/main/Dockerfile", directory)
    assert_result(jobs.call(*words), 1, "error[J0458]: `image.run.1`", "failed.yaml:7:7\n", "7 |     - echo broken; exit 3")
    os.utime(path)
    done = jobs.call(*words)
    assert_result(done, 1, "caused by failed.yaml:7:7")
    assert "7 |" not in done.stderr, done.stderr


def test_an_image_is_an_archive_a_directory_or_the_hosts_files(jobs, base):
    directory = jobs.directory / "directory"
    directory.mkdir()
    subprocess.run(["tar", "-C", directory, "-xf", base], check=True)
    give(jobs, directory)
    assert_result(run(jobs, job(jobs, "archive", "./base.tar")), 0, "root:x:0:0:root:/:/bin/bash")
    assert_result(run(jobs, job(jobs, "directory", "./directory")), 0, "root:x:0:0:root:/:/bin/bash")
    assert_result(run(jobs, job(jobs, "host", "host")), 0, "usr")
    if shutil.which("skopeo"):
        jobs.call("image", "import", base, "--tag", "example.com/team/base:1")
        store = store_of(jobs)
        archive = jobs.directory / "saved.tar"
        subprocess.run(["skopeo", "copy", "--quiet", f"oci:{store}:example.com/team/base:1", f"docker-archive:{archive}:saved:1"], check=True)
        os.chmod(archive, 0o644)
        assert_result(run(jobs, job(jobs, "saved", "./saved.tar")), 0, "root:x:0:0:root:/:/bin/bash")


def test_without_overlayfs_each_task_gets_a_copy_that_is_removed(jobs, base):
    file = job(jobs, "copied", "./base.tar", "[bash, -c, 'echo mine > /etc/passwd; cat /etc/passwd']")
    for _ in range(2):
        assert_result(run(jobs, file, JOBC_COPY_LAYERS="1"), 0, "mine", "a copy of its image", "JOBC_COPY_LAYERS is set")
    leftovers = [path for path in jobs.home.rglob("roots") if path.is_dir() and any(path.iterdir())]
    assert not leftovers, f"copies are left: {leftovers}"


def store_of(jobs):
    """The image store of the jobs' user."""
    return jobs.home / ".local/share/jobc/images"


@pytest.mark.needs("docker-registry", "skopeo")
def test_an_image_is_pulled_once_and_runs_without_the_registry(jobs, base):
    jobs.call("image", "import", base, "--tag", "base:1")
    with registry(jobs.directory / "registry") as host:
        name = f"{host}/team/base:1"
        store = store_of(jobs)
        subprocess.run(["skopeo", "copy", "--quiet", "--dest-tls-verify=false", f"oci:{store}:docker.io/library/base:1", f"docker://{name}"], check=True)
        jobs.call("image", "rm", "base:1")
        settings = jobs.home / ".config/jobc/registries.yaml"
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text(json.dumps({"registries": {host: {"plain_http": True}}}))
        give(jobs, settings.parent.parent)
        assert_result(run(jobs, "--pull", "never", job(jobs, "pulled", name)), 125, "is not in the image store", "`image`")
        assert_result(run(jobs, job(jobs, "pulled", name)), 0, "root:x:0:0:root:/:/bin/bash")
    assert_result(run(jobs, job(jobs, "pulled", name)), 0)
    assert_result(run(jobs, "--pull", "always", job(jobs, "pulled", name)), 125, "`image`")


def test_a_store_that_root_shares_is_only_read(jobs, base):
    """A store that root shares is only read: nothing is fetched or copied, and nothing of it is removed while a job runs."""
    shared = jobs.directory / "shared-images"
    shared.mkdir(mode=0o755)
    administrator = {"PATH": os.environ["PATH"], "HOME": str(jobs.directory / "administrator"), "JOBC_COLOR": "never"}

    def as_administrator(*words):
        return subprocess.run([jobs.program, "image", "--image-root", shared, *words], env=administrator, capture_output=True, text=True, check=False)

    assert_result(as_administrator("import", base, "--tag", "lab/base:1"), 0)
    blobs = sorted(path.name for path in shared.glob("blobs/sha256/*"))
    jobs.call("image", "gc", "--cache")
    own = set(store_of(jobs).glob("blobs/sha256/*"))
    file = job(jobs, "shares", "lab/base:1", "[bash, -c, 'while [ ! -e /tmp/end ]; do read -t 0.2 <> <(:) || true; done']")
    assert_result(run(jobs, "--pull", "never", file), 125, "is not in the image store")
    stores = {"JOBC_IMAGE_STORES": f"{shared}:{jobs.directory}/absent"}
    assert_result(jobs.call("image", "ls", **stores), 0, "lab/base:1", str(shared), "absent`: no such image store")
    assert_result(run(jobs, "--pull", "never", "--detach", file, **stores), 0)
    jobs.running("shares")
    assert_result(jobs.call("exec", "shares", "--", "cat", "/etc/passwd"), 0, "root:x:0:0:root:/:/bin/bash")
    # The supervisor holds the store, not this command's environment.
    assert_result(as_administrator("rm", "lab/base:1"), 0, "in use")
    assert sorted(path.name for path in shared.glob("blobs/sha256/*")) == blobs, "blobs of the shared store were removed while a job used them"
    copied = {path.name for path in set(store_of(jobs).glob("blobs/sha256/*")) - own} & set(blobs)
    assert not copied, f"the own store has copies of {copied}"
    assert_result(as_administrator("import", base, "--tag", "lab/base:1"), 0)
    assert_result(jobs.call("image", "rm", "lab/base:1", **stores), 2, "is in the shared store", "only read")
    assert_result(jobs.call("image", "verify", **stores), 0)
    jobs.call("stop", "shares")
    jobs.call("wait", "shares")
    assert_result(jobs.call("image", "ls", JOBC_IMAGE_STORES="images"), 2, "`images` in `JOBC_IMAGE_STORES` is not an absolute path")
    as_administrator("rm", "lab/base:1")
    assert_result(as_administrator("gc"), 0)
    assert not list(shared.glob("blobs/sha256/*"))


def test_the_layers_of_a_running_job_are_kept(jobs, base):
    """The layers of a running job are kept, whatever is removed; after its end they are removed."""
    for image in json.loads(jobs.call("image", "ls", "--format", "json").stdout):
        jobs.call("image", "rm", image["name"])
    jobs.call("image", "gc", "--cache")
    jobs.call("image", "import", base, "--tag", "used:1")
    file = job(jobs, "used", "used:1", "[bash, -c, 'while [ ! -e /tmp/end ]; do read -t 0.2 <> <(:) || true; done']")
    assert_result(run(jobs, "--detach", file), 0)
    jobs.running("used")
    unpacked = store_of(jobs) / "unpacked"
    jobs.call("image", "rm", "used:1")
    assert_result(jobs.call("image", "gc"), 0)
    layers = [path for kind in unpacked.iterdir() for path in kind.iterdir()]
    assert layers, "the layers of a running job were removed"
    assert_result(jobs.call("exec", "used", "--", "cat", "/etc/passwd"), 0, "root:x:0:0:root:/:/bin/bash")
    jobs.call("stop", "used")
    jobs.call("wait", "used")
    assert_result(jobs.call("image", "gc"), 0)
    leftovers = [path for kind in unpacked.iterdir() for path in kind.iterdir()]
    assert not leftovers, f"the layers {leftovers} of an ended job are left"


def test_a_run_that_was_killed_resumes(jobs, base, example):
    """`jobc run` is killed at any moment of importing, building and unpacking; the next run resumes and succeeds."""
    rng = random.Random(7)
    for _ in range(8):
        jobs.call("image", "gc", "--cache")
        jobs.call("image", "import", base, "--tag", "base:1")
        process = subprocess.Popen(jobs.words(*run_words(jobs, example)), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=jobs.environment())
        time.sleep(rng.uniform(0, 0.4))
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        process.wait()
    for name in jobs.call("ps", "--quiet").stdout.split():
        jobs.call("kill", name)
        jobs.call("wait", name)
    assert_result(jobs.call("image", "verify"), 0)
    assert_result(run(jobs, example, seconds=120), 0)
    assert "GNU bash" in (example.parent / "work/words-0.txt").read_text(), "the image is incomplete"


def test_errors_are_reported_at_their_lines(jobs, base):
    assert_result(jobs.call("run", job(jobs, "absent", "./none.tar")), 125, "`image`", "no such file")
    (jobs.directory / "text").write_text("no archive\n" * 100)
    assert_result(jobs.call("run", job(jobs, "text", "./text")), 125, "is not a readable archive")
    job_file = jobs.directory / "own.yaml"
    job_file.write_text("version: 1\nname: own\nimage: {dockerfile: Own}\nroles: {a: {run: x}}\n")
    (jobs.directory / "Own").write_text("FROM base:1\nRUN --security=insecure ls\n")
    assert_result(jobs.call("run", job_file), 125, "Own:2:", "cannot be built")
    (jobs.directory / "Own").write_text("FROM base:1\nRUN false\n")
    jobs.call("image", "import", base, "--tag", "base:1")
    assert_result(jobs.call("run", job_file), 125, "Own:2", "exit code 1")
