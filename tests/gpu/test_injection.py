"""Tests GPU injection into containers on simulated hosts: the device nodes and driver files of a container,
CDI files, their hooks, and NVIDIA's hook. No GPU is needed; other devices of the host stand for GPUs.

"""

import json
import os
import re
import shutil
import stat
import subprocess
import time
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
from fake_gpus import fake_gpus
import needs
import pytest

pytestmark = [pytest.mark.isolated, pytest.mark.duration(13), pytest.mark.accounts("single", slow=("range", "root"))]


@pytest.fixture(scope="module")
def simulated(all_jobs):
    if not all(os.path.exists(path) for path in STAND_INS):
        needs.missing("the device nodes that stand for GPUs")
    return Host(all_jobs)


@pytest.fixture
def host(simulated, jobs):
    return simulated

# Devices that stand for the first cards: none is allowed in every container, so only an exact rule opens it.
STAND_INS = ("/dev/fuse", "/dev/net/tun", "/dev/loop-control", "/dev/kmsg")
# As in `tests/runtime/podman.py`.
CONFIGURATION = '[containers]\ndefault_ulimits = ["nofile=20000:20000", "nproc=4096:4096"]\n[engine]\nevents_logger = "file"\n'
RELEASE = "535.104.05"
LIBRARIES = "usr/lib64/nvidia"

PROGRAM = r"""
#include <dlfcn.h>
#include <stdio.h>
int main(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    int (*init)(unsigned) = library ? (int (*)(unsigned))dlsym(library, "cuInit") : 0;
    if (!init) { puts("no libcuda.so.1"); return 1; }
    printf("cuInit says %d\n", init(0));
    return 0;
}
"""


class Host:
    """A simulated host with four A100, two of them partitioned, and a root file system for containers on it."""

    def __init__(self, jobs):
        self.jobs, self.root = jobs, jobs.directory / "host"
        subprocess.run([fake_gpus(needs), "a100", str(self.root), "--no-nvml", "--nodes", "null"], check=True)
        self.numbers = {}
        for number, path in enumerate(STAND_INS):
            device = os.stat(path).st_rdev
            self.numbers[number] = (os.major(device), os.minor(device))
            node = self.root / f"dev/nvidia{number}"
            node.unlink()
            os.mknod(node, stat.S_IFCHR | 0o666, device)
            node.chmod(0o666)
        self.add_library()
        self.files = jobs.directory / "rootfs"
        for name in ("bin", "proc", "sys", "dev", "tmp", "etc", "lib64", "usr/lib64"):
            (self.files / name).mkdir(parents=True, exist_ok=True)
        shutil.copy2(needs.tool("busybox"), self.files / "bin/busybox")
        for applet in ("sh", "ls", "cat", "echo", "readlink", "dd", "mknod", "find", "id", "env", "true", "head"):
            os.symlink("busybox", self.files / "bin" / applet)
        self.add_program()

    def add_library(self):
        """Adds a libcuda that a program can load, in a directory that the loader does not search by default."""
        for path in (self.root / "usr/lib/x86_64-linux-gnu").glob("libcuda.so*"):
            path.unlink()
        directory = self.root / LIBRARIES
        directory.mkdir(parents=True)
        source = "int cuInit(unsigned flags) { return 42 + (int)flags; }"
        library = directory / f"libcuda.so.{RELEASE}"
        subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-xc", "-", "-o", str(library)],
                       input=source, text=True, check=True)
        os.symlink(library.name, directory / "libcuda.so.1")

    def add_program(self):
        """Adds a program with its libraries and their loader to the root file system."""
        program = self.files / "bin/loads"
        subprocess.run(["cc", "-xc", "-", "-o", str(program)], input=PROGRAM, text=True, check=True)
        listed = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True).stdout
        for path in re.findall(r"(/\S+)", listed):
            place = self.files / path.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, place)

    def bundle(self, name, gpu, script, **role):
        """The directory of a bundle built by `jobc build`."""
        path = self.jobs.directory / f"{name}.json"
        resources = {} if gpu is None else {"resources": {"gpu": gpu}}
        job = {"version": 1, "name": name, "image": "busybox:1.36",
               "roles": {"main": {"run": script, "shell": "sh", **resources, **role}}}
        path.write_text(json.dumps(job))
        out = self.jobs.directory / f"out-{name}"
        subprocess.run([str(self.jobs.program), "build", str(path), "--backend", "oci", "--output", str(out)],
                       check=True, capture_output=True)
        return next(out.glob("*/oci/main-0"))

    def run(self, bundle, *words, root=None, **environment):
        """Runs a bundle on a copy of the root file system."""
        if root is None:
            root = self.jobs.directory / f"root-{time.monotonic_ns()}"
            shutil.copytree(self.files, root, symlinks=True)
            if self.jobs.account:
                for path in [root, *root.rglob("*")]:
                    os.chown(path, self.jobs.account.uid, self.jobs.account.gid, follow_symlinks=False)
        if self.jobs.account:
            words = (*words, "--allow-unenforced")
        return self.jobs.call("run", str(bundle), "--root", str(root), *words,
                              JOBC_DRIVER_ROOT=str(self.root), JOBC_NVML="", **environment)


LIST = "find /dev -name 'nvidia*' ! -type d"
SHARED = {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"}


def assert_output(answer, expected, what):
    assert answer.returncode == 0, f"{what}: exit {answer.returncode}: {answer.stderr}"
    assert set(answer.stdout.split()) == expected, what


def test_a_container_has_the_device_nodes_of_the_named_cards_and_no_others(host):
    """The container has the device nodes of the named cards, and no others."""
    two = host.bundle("two", 2, LIST)
    assert_output(host.run(two, "--devices", "1,0"), SHARED | {"/dev/nvidia0", "/dev/nvidia1"}, "two cards")
    one = host.bundle("one", 1, LIST)
    assert_output(host.run(one, "--devices", "1"), SHARED | {"/dev/nvidia1"}, "one card")
    assert_output(host.run(one, "--devices", "GPU-00000001"), SHARED | {"/dev/nvidia1"}, "one card by UUID")


def test_a_container_has_the_nodes_of_its_mig_instance(host):
    """A MIG instance: its card's node and its two capability nodes."""
    bundle = host.bundle("instance", 1, LIST)
    answer = host.run(bundle, "--devices", "2:1")
    expected = SHARED | {"/dev/nvidia2", "/dev/nvidia-caps/nvidia-cap300", "/dev/nvidia-caps/nvidia-cap301"}
    assert_output(answer, expected, "an instance")


def test_a_task_without_gpus_sees_none(host):
    """A task without GPUs sees none, also on the host's own root."""
    for name, gpu in (("zero", 0), ("nothing", None)):
        bundle = host.bundle(name, gpu, f"{LIST}; ls /usr/lib64 /etc")
        answer = host.run(bundle)
        assert answer.returncode == 0 and "nvidia" not in answer.stdout and "ld.so" not in answer.stdout, f"{name}: exit {answer.returncode}: {answer.stdout}{answer.stderr}"
        answer = host.run(bundle, root="host")
        assert "/dev/nvidia" not in answer.stdout, f"{name} on the host's root: {answer.stdout}"


def test_a_container_can_open_no_other_card_even_if_it_creates_the_node(host):
    """The container can open its own card's node, and no other's, even if it creates the node."""
    other_major, other_minor = host.numbers[1]
    script = f"""
        (exec 3<>/dev/nvidia0) && echo own
        (exec 3<>/dev/nvidiactl) && echo control
        mknod /tmp/other c {other_major} {other_minor} 2>/dev/null || true
        [ -c /tmp/other ] && (exec 3<>/tmp/other) 2>/dev/null && echo other
        true"""
    answer = host.run(host.bundle("access", 1, script), "--devices", "0")
    assert_output(answer, {"own", "control"}, "access")
    if not host.jobs.account:
        # A container that also has that card can open it.
        answer = host.run(host.bundle("access-both", 2, script), "--devices", "0,1")
        assert_output(answer, {"own", "control", "other"}, "access to both")


def test_the_requested_driver_files_are_there_read_only_and_no_others(host):
    """The requested driver files are there, read-only, and no others."""
    script = f"""
        nvidia-smi
        readlink /{LIBRARIES}/libcuda.so.1
        readlink /{LIBRARIES}/libcuda.so
        readlink /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1
        ls /usr/lib/x86_64-linux-gnu
        (echo x > /usr/bin/nvidia-smi) 2>/dev/null && echo written
        (echo x > /{LIBRARIES}/libcuda.so.{RELEASE}) 2>/dev/null && echo written
        env"""
    answer = host.run(host.bundle("files", {"count": 1, "capabilities": ["utility", "compute"]}, script), "--devices", "0")
    assert answer.returncode == 0, f"exit {answer.returncode}: {answer.stderr}"
    expected = ["the simulated /usr/bin/nvidia-smi", f"libcuda.so.{RELEASE}\n", "libcuda.so.1\n", f"libnvidia-ml.so.{RELEASE}\n",
                "NVIDIA_VISIBLE_DEVICES=void", "libnvidia-ptxjitcompiler.so.1"]
    for line in expected:
        assert line in answer.stdout
    unwanted = ["libnvcuvid", "libGLX_nvidia", "libnvidia-encode", "written"]
    for line in unwanted:
        assert line not in answer.stdout


def test_none_as_visible_devices_gives_the_driver_without_devices(host):
    """As with NVIDIA's runtime: the driver's files, and no device node."""
    host.bundle("driver", None, f"nvidia-smi; loads; {LIST}; env", env={"NVIDIA_VISIBLE_DEVICES": "none"})
    answer = host.run(host.jobs.directory / "driver.json")
    expected = ["the simulated /usr/bin/nvidia-smi", "cuInit says 42", "NVIDIA_VISIBLE_DEVICES=none"]
    for line in expected:
        assert line in answer.stdout, answer.stderr
    assert "/dev/nvidia" not in answer.stdout, f"there are device nodes: {answer.stdout}"


def test_a_program_finds_libcuda_by_name(host):
    """A program finds libcuda by name, in a directory that is only in the loader's cache; also on a read-only root."""
    bundle = host.bundle("loader", 1, "loads && cat /etc/ld.so.conf.d/00-jobc-gpu.conf")
    answer = host.run(bundle, "--devices", "0")
    assert "cuInit says 42" in answer.stdout and f"/{LIBRARIES}\n" in answer.stdout, f"exit {answer.returncode}: {answer.stdout}{answer.stderr}"
    config = json.loads((bundle / "config.json").read_text())
    config["root"]["readonly"] = True
    (bundle / "config.json").write_text(json.dumps(config))
    answer = host.run(bundle, "--devices", "0")
    assert "cuInit says 42" in answer.stdout, f"read-only: exit {answer.returncode}: {answer.stdout}{answer.stderr}"
    answer = host.run(bundle, "--devices", "0", "--gpu-injection", "none")
    assert "no libcuda.so.1" in answer.stdout, f"it is found without injection: {answer.stdout}{answer.stderr}"


def test_the_hosts_own_root_can_have_its_driver_in_another_directory(host):
    """On the host's own root, with a driver in another directory: a user cannot add its files, which is reported."""
    bundle = host.bundle("onhost", 1, f"{LIST}; nvidia-smi || true")
    answer = host.run(bundle, "--devices", "0", "--verbose", root="host")
    lines = set(answer.stdout.splitlines())
    user = host.jobs.account
    assert not user or "cannot be added to the host's own" in answer.stderr, f"it is not reported: {answer.stderr}"
    assert lines == SHARED | {"/dev/nvidia0"} | (set() if user else {"the simulated /usr/bin/nvidia-smi"}), f"exit {answer.returncode}: {sorted(lines)} {answer.stderr}"


def cdi_spec(host, nodes, **common):
    directory = host.root / "etc/cdi"
    directory.mkdir(parents=True, exist_ok=True)
    nodes = [{"path": f"/dev/{name}", "hostPath": str(host.root / "dev" / name)} for name in nodes]
    spec = {"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu",
            "devices": [{"name": "1", "containerEdits": {"deviceNodes": nodes}}], "containerEdits": common}
    path = directory / "nvidia.json"
    path.write_text(json.dumps(spec))
    return path


def test_a_cdi_file_of_the_host_is_used_first(host):
    """A CDI file of the host is used first, with its mounts, variables and nodes."""
    hello = host.jobs.directory / "hello"
    hello.write_text("from a file\n")
    mount = {"hostPath": str(hello), "containerPath": "/opt/hello", "options": ["ro", "bind"]}
    path = cdi_spec(host, ["nvidia1", "nvidiactl"], mounts=[mount], env=["FROM=file"])
    try:
        bundle = host.bundle("cdi", 1, f"{LIST}; cat /opt/hello; echo $FROM")
        for words in ((), ("--gpu-injection", "cdi")):
            answer = host.run(bundle, "--devices", "1", *words)
            assert set(answer.stdout.splitlines()) == {"/dev/nvidia1", "/dev/nvidiactl", "from a file", "file"}, f"{words}: exit {answer.returncode}: {answer.stdout}{answer.stderr}"
        answer = host.run(host.bundle("generated", 1, LIST), "--devices", "1", "--gpu-injection", "generated")
        assert_output(answer, SHARED | {"/dev/nvidia1"}, "generated")
    finally:
        path.unlink()


def test_a_cdi_file_of_an_earlier_boot_is_not_used(host):
    """A CDI file of an earlier boot is not used: it would give another card."""
    path = cdi_spec(host, ["nvidia3"])
    try:
        bundle = host.bundle("stale", 1, LIST)
        answer = host.run(bundle, "--devices", "1", "--verbose")
        assert_output(answer, SHARED | {"/dev/nvidia1"}, "stale")
        assert "without its node `/dev/nvidia1`" in answer.stderr, f"it is not reported: {answer.stderr}"
        answer = host.run(bundle, "--devices", "1", "--gpu-injection", "cdi")
        assert answer.returncode == 125 and "without its node" in answer.stderr, f"exit {answer.returncode}: {answer.stderr}"
    finally:
        path.unlink()


def test_a_hook_of_a_cdi_file_runs_in_the_containers_namespaces(host):
    """A createContainer hook of a CDI file runs in the container's namespaces, and finds the root through the bundle's config.json."""
    program = host.jobs.directory / "hook.py"
    program.write_text("""#!/usr/bin/env -S python3 -I
import json, os, sys
state = json.load(sys.stdin)
config = json.load(open(os.path.join(state["bundle"], "config.json")))
root = os.path.join(state["bundle"], config["root"]["path"])
open(os.path.join(root, "tmp/seen"), "w").write(" ".join([sys.argv[1], state["status"], *sorted(os.listdir(os.path.join(root, "dev")))]))
""")
    program.chmod(0o755)
    if host.jobs.account:
        os.chown(program, host.jobs.account.uid, host.jobs.account.gid)
    hook = {"hookName": "createContainer", "path": str(program), "args": ["hook", "called"]}
    path = cdi_spec(host, ["nvidia1"], hooks=[hook])
    try:
        # On the host's root, the container's root is an overlay, whose path is not known before.
        bundle = host.bundle("hooks", 1, "cat /tmp/seen")
        for root in (None, "host"):
            answer = host.run(bundle, "--devices", "1", "--gpu-injection", "cdi", root=root)
            assert answer.stdout.startswith("called creating") and "nvidia1" in answer.stdout, f"{root}: exit {answer.returncode}: {answer.stdout}{answer.stderr}"
    finally:
        path.unlink()


def test_nvidias_hook_gets_exactly_the_named_cards(host):
    """NVIDIA's hook gets exactly the named cards, and is not run if the job names others."""
    seen = host.jobs.directory / "seen"
    seen.touch()
    seen.chmod(0o666)
    program = host.root / "usr/bin/nvidia-container-runtime-hook"
    program.write_text(f"""#!/usr/bin/env -S python3 -I
import json, os, sys
state = json.load(sys.stdin)
config = json.load(open(os.path.join(state["bundle"], "config.json")))
asked = [item for item in config["process"]["env"] if item.startswith("NVIDIA_")]
open("{seen}", "w").write(" ".join([sys.argv[1], str(state["pid"] > 1), *sorted(asked)]))
""")
    program.chmod(0o755)
    try:
        gpu = {"count": 1, "capabilities": ["compute"]}
        answer = host.run(host.bundle("nvhook", gpu, "true"), "--devices", "1", "--gpu-injection", "hook")
        expected = "prestart True NVIDIA_DRIVER_CAPABILITIES=compute NVIDIA_VISIBLE_DEVICES=GPU-00000001-aaaa-4bbb-8ccc-000000fa0001"
        assert answer.returncode == 0 and seen.read_text() == expected, f"exit {answer.returncode}: {seen.read_text()} {answer.stderr}"
        bundle = host.bundle("nvhookall", gpu, "true")
        config = json.loads((bundle / "config.json").read_text())
        config["process"]["env"].append("NVIDIA_VISIBLE_DEVICES=all")
        (bundle / "config.json").write_text(json.dumps(config))
        answer = host.run(bundle, "--devices", "1", "--gpu-injection", "hook")
        assert answer.returncode == 125 and "would make NVIDIA's hook inject other GPUs" in answer.stderr, f"exit {answer.returncode}: {answer.stderr}"
    finally:
        program.unlink()


def test_a_jobc_that_another_user_owns_can_be_its_own_hook(host):
    """A `jobc` that another user owns, as with `sudo ./jobc`, can be its own hook."""
    jobs = host.jobs
    own, program = jobs.program, jobs.directory / "own-build"
    shutil.copy(own, program)
    os.chown(program, 12345, 12345)
    program.chmod(0o775)
    bundle = host.bundle("own-build", 1, LIST)
    try:
        jobs.program = program
        assert_output(host.run(bundle, "--devices", "0"), SHARED | {"/dev/nvidia0"}, "of another user's build")
    finally:
        jobs.program = own


def test_a_request_that_cannot_be_served_is_rejected_with_what_to_do(host):
    """A request that cannot be served is rejected, with what to do."""
    bundle = host.bundle("refused", 1, "true")
    for words, text in (((), "name them, as in `--devices 0,1`"),
                        (("--devices", "9"), "this host has no GPU `9`"),
                        (("--devices", "0,1"), "the bundle asks for 1 GPUs, and `--devices` names 2"),
                        (("--devices", "0", "--gpu-injection", "cdi"), "no CDI file of the host describes the GPU"),
                        (("--devices", "0", "--gpu-injection", "hook"), "NVIDIA's hook is not installed")):
        answer = host.run(bundle, *words)
        assert answer.returncode == 125 and text in answer.stderr, f"{words}: exit {answer.returncode}: {answer.stderr}"


def test_the_output_of_gpu_cdi_is_valid_and_gives_the_same_devices(host):
    """The output of `jobc gpu cdi` is valid against the CDI schema, and gives the same devices."""
    try:
        import jsonschema  # noqa: PLC0415
    except ImportError:
        needs.missing("jsonschema")
    warnings.simplefilter("ignore", DeprecationWarning)
    place = HERE / "cdi-schema"
    schema, defs = (json.loads((place / f"{name}.json").read_text()) for name in ("schema", "defs"))
    resolver = jsonschema.RefResolver(base_uri=f"{place.as_uri()}/schema.json", referrer=schema,
                                      store={f"{place.as_uri()}/defs.json": defs})
    validator = jsonschema.Draft7Validator(schema, resolver=resolver)
    for name in ("v100", "a100", "h100", "h200", "amd", "intel"):
        root = host.jobs.directory / f"described-{name}"
        subprocess.run([fake_gpus(needs), name, str(root), "--no-nvml", "--nodes", "null"], check=True)
        answer = host.jobs.call("gpu", "cdi", "--format", "json", JOBC_DRIVER_ROOT=str(root), JOBC_NVML="")
        assert answer.returncode == 0, f"{name}: exit {answer.returncode}: {answer.stderr}"
        spec = json.loads(answer.stdout)
        errors = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(spec)]
        assert not errors, f"{name}: {errors}"
        spec["containerEdits"] = {"deviceNodes": [{"hostPath": 1}]}
        assert list(validator.iter_errors(spec)), "the schema accepts an invalid file"
    path = host.root / "etc/cdi/jobc.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = host.jobs.call("gpu", "cdi", JOBC_DRIVER_ROOT=str(host.root), JOBC_NVML="").stdout
    path.write_text(text)
    try:
        bundle = host.bundle("described", 1, f"{LIST}; loads")
        for way in ("cdi", "generated"):
            answer = host.run(bundle, "--devices", "2:1", "--gpu-injection", way)
            expected = SHARED | {"/dev/nvidia2", "/dev/nvidia-caps/nvidia-cap300", "/dev/nvidia-caps/nvidia-cap301",
                                 "cuInit says 42"}
            assert set(answer.stdout.splitlines()) == expected, f"{way}: exit {answer.returncode}: {answer.stdout}{answer.stderr}"
    finally:
        path.unlink()


@pytest.mark.accounts(slow="root")
def test_podman_uses_the_output_of_gpu_cdi(host):
    """podman uses the output of `jobc gpu cdi`, and the hook completes its containers too."""
    needs.tool("podman")
    directory = host.jobs.directory / "podman"
    directory.mkdir()
    # In this test's own mount namespace.
    created = not os.path.isdir("/etc/cdi")
    os.makedirs("/etc/cdi", exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "cdi", "/etc/cdi"], check=True)
    try:
        answer = host.jobs.call("gpu", "cdi", "--output", "/etc/cdi/jobc.yaml", JOBC_DRIVER_ROOT=str(host.root), JOBC_NVML="")
        assert answer.returncode == 0, answer.stderr
        ours = directory / "jobc-oci"
        ours.symlink_to(host.jobs.program)
        (directory / "containers.conf").write_text(CONFIGURATION)
        expected = SHARED | {"/dev/nvidia2", "/dev/nvidia-caps/nvidia-cap300", "/dev/nvidia-caps/nvidia-cap301", "cuInit says 42"}
        for runtime in filter(None, (str(ours), shutil.which("runc"))):
            root = host.jobs.directory / f"podman-root-{Path(runtime).name}"
            shutil.copytree(host.files, root, symlinks=True)
            words = ["podman", "--root", f"{directory}/graph", "--runroot", f"{directory}/run", "--tmpdir", f"{directory}/tmp",
                     "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs", "--runtime", runtime, "run", "--rm", "--network", "none",
                     "--device", "nvidia.com/gpu=2:1", "--rootfs", str(root), "sh", "-c", f"{LIST}; loads"]
            answer = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60,
                                    env=os.environ | {"CONTAINERS_CONF": str(directory / "containers.conf")})
            assert set(answer.stdout.splitlines()) == expected, f"{Path(runtime).name}: exit {answer.returncode}: {answer.stdout}{answer.stderr}"
    finally:
        subprocess.run(["umount", "/etc/cdi"], check=True)
        if created:
            os.rmdir("/etc/cdi")


def test_the_tasks_of_a_job_have_the_leased_devices(host):
    """The tasks of a job have the leased devices, and tasks without GPUs have none."""
    path = host.jobs.directory / "whole.json"
    script = f"{{ {LIST}; }} > $OUT/$JOBC_ROLE-$JOBC_INDEX"
    out = host.jobs.directory / "whole-job"
    out.mkdir(mode=0o777)
    out.chmod(0o777)
    role = {"run": script.replace("$OUT", "/out"), "shell": "sh"}
    job = {"version": 1, "name": "whole", "image": "host", "outputs": {"out": {"source": str(out), "mount": "/out"}},
           "roles": {"two": {**role, "instances": 2, "resources": {"gpu": 1}}, "cpu": role}}
    path.write_text(json.dumps(job))
    words = ["--allow-unenforced"] if host.jobs.account else []
    answer = host.jobs.call("run", *words, str(path), JOBC_DRIVER_ROOT=str(host.root), JOBC_NVML="")
    assert answer.returncode == 0, f"exit {answer.returncode}: {answer.stderr}"
    seen = {name: set((out / name).read_text().split()) for name in ("two-0", "two-1", "cpu-0")}
    own = [seen[name] - SHARED for name in ("two-0", "two-1")]
    assert not seen["cpu-0"] and all(len(nodes) == 1 for nodes in own) and own[0] != own[1], f"{seen}"


def test_injection_adds_little_time_to_a_start(host, note):
    """The time that injection adds to a start."""
    plain, with_gpu = host.bundle("plain", None, "true"), host.bundle("timed", 2, "true")
    root = host.jobs.directory / "timed-root"
    shutil.copytree(host.files, root, symlinks=True)
    if host.jobs.account:
        for path in [root, *root.rglob("*")]:
            os.chown(path, host.jobs.account.uid, host.jobs.account.gid, follow_symlinks=False)

    def min_duration(bundle, *words):
        times = []
        for _ in range(15):
            start = time.monotonic()
            answer = host.run(bundle, *words, root=str(root))
            times.append(time.monotonic() - start)
            assert answer.returncode == 0, answer.stderr
        return min(times) * 1000
    without, with_gpus = min_duration(plain), min_duration(with_gpu, "--devices", "0,1")
    note(f"a start takes {without:.0f} ms, with two GPUs {with_gpus:.0f} ms")
    assert with_gpus - without <= 250, f"injection takes {with_gpus - without:.0f} ms"
