"""The kinds of things that courses and notes about deep-learning jobs, containers and GPUs show, one case for each: a line, the files
that it needs, and what its output has.

`ELSEWHERE` names the kinds whose case is in another module of this directory. The lines with containers run on a root of busybox.
"""

import subprocess
from pathlib import Path

import pytest

import needs
from harness import REPOSITORY
from runtime import binary

import test_from_scratch
import test_images
import test_pasted
from test_images import Place

GPU_IMAGE = "pytorch/pytorch:2.4.0-cuda12.4-cudnn9-runtime"
# A job of the form that OpenPAI's page for submitting shows.
SUBMITTED = """{
  // a comment
  "jobName": "first",
  "image": "IMAGE",
  "dataDir": "/tmp/data",
  "outputDir": "/tmp/output",
  "taskRoles": [{"taskNumber": 2, "cpuNumber": 8, "memoryMB": 32768, "shmMB": 8192, "gpuNumber": 1, "command": "python train.py --epochs 3"}]
}
""".replace("IMAGE", GPU_IMAGE)
PROTOCOL_2 = """protocolVersion: 2
name: second
type: job
jobRetryCount: 2
prerequisites: [{type: dockerimage, name: torch, uri: "IMAGE"}]
taskRoles:
  worker:
    instances: 2
    dockerImage: torch
    resourcePerInstance: {cpu: 4, memoryMB: 8192, gpu: 1, ports: {http: 1}}
    commands: [python train.py]
""".replace("IMAGE", GPU_IMAGE)


def job(role="run: python train.py", image=GPU_IMAGE, rest=""):
    return f"version: 1\nname: x\nimage: {image}\nroles: {{main: {{{role}}}}}\n{rest}"


def target(text):
    return {"targets.yaml": f"version: 1\ntargets: {{lab: {{{text}}}}}\n"}


def gpus(request, kubernetes="", **more):
    """A job with GPUs, and a target on Kubernetes."""
    role = f"run: python train.py, resources: {{cpu: 8, memory: 32GiB, shm: 8GiB, gpu: {request}}}"
    return {"job.yaml": job(role), **target(f"backends: [kubernetes], kubernetes: {{{kubernetes}}}"), **more}


def provider(name, more=""):
    return gpus("{count: 1, share: {memory: 8GiB, cores: 30}}", f"gpu: {{provider: {name}{more}}}")


LAB = "jobc build --stdout --target lab"
KUBE = f"{LAB} -b kubernetes"
RUN = "jobc run --allow-unenforced --image ../rootfs.tar.gz"
STARTED = RUN + " -d --name {0} -- sleep 60 && while ! jobc ps {0} | grep -q running; do sleep 0.1; done"
# A simulated host with four A100, two of them cut by MIG.
FAKE = "fake-gpus a100 tree && export JOBC_DRIVER_ROOT=$PWD/tree"
CGROUPS = "jobc build -b cgroup --output out >/dev/null && cd out/*/cgroup/main-0 && grep -r . v1 v2 | sort"
LIMITED = {"job.yaml": job("run: a, resources: {cpu: 0.5, memory: 64MiB, pids: 50}", image="a:1"),
           **target('backends: [cgroup], cgroup: {cpuset: "0-1", io_weight: 200}')}
TEMPLATE = """version: 1
name: x
secrets: {{key: {{env: KEY}}}}
roles: {{main: {{uses: std/{0}, with: {{{1}: "${{{{ secrets.key }}}}"}}}}}}
"""
EXAMPLES = REPOSITORY / "examples"

# Kind, line, parts of its output in their order, files; and the exit code if it is not 0.
LINES = [
    # Jobs of OpenPAI
    ("submit template", "jobc check job.json", [], {"job.json": SUBMITTED}),
    ("submit template imported", "jobc import job.json", ["# a comment", "name: first", f"image: {GPU_IMAGE}"], {"job.json": SUBMITTED}),
    ("taskNumber", "jobc plan --format yaml job.json", ["instances: 2"], {"job.json": SUBMITTED}),
    ("memoryMB", "jobc plan --format yaml job.json", ["memory_bytes: 34359738368"], {"job.json": SUBMITTED}),
    ("shmMB", "jobc plan --format yaml job.json", ["shm_bytes: 8589934592"], {"job.json": SUBMITTED}),
    ("gpuNumber", "jobc plan --docker job.json", ["--gpus device=0 ", "-e PAI_TASK_INDEX=0"], {"job.json": SUBMITTED}),
    ("dataDir and outputDir", "jobc plan --docker job.json", ["-v /tmp/data:/tmp/data:ro", "-v /tmp/output:/tmp/output"], {"job.json": SUBMITTED}),
    ("protocol v2", "jobc import job.yaml", ["instances: 2", "memory: 8192MiB", "run: python train.py"], {"job.yaml": PROTOCOL_2}),
    ("retries of a job", "jobc import job.yaml", ["retry:", "max: 2", "scope: job"], {"job.yaml": PROTOCOL_2}),
    ("job for OpenPAI", LAB, ["protocolVersion: 2", "taskRoles:", "memoryMB: 32768", "gpu: 1"],
     {"job.yaml": gpus("1")["job.yaml"], **target("backends: [openpai]")}),
    ("virtual cluster and SKU of HiveD", LAB, ["virtualCluster: vc1", "skuType: V100"],
     {"job.yaml": gpus("1")["job.yaml"], **target("backends: [openpai], openpai: {virtual_cluster: vc1, roles: {main: {sku_type: V100}}}")}),
    # What a job is made of
    ("parameters", "jobc plan --format yaml --set lr=0.5", ["python train.py --lr 0.5"],
     {"job.yaml": job("run: 'python train.py --lr ${{ params.lr }}'", rest="params: {lr: 0.1}\n")}),
    ("hyperparameter search", "jobc plan", ["x-0", "x-1", "x-2"],
     {"job.yaml": job("run: 'python train.py --lr ${{ matrix.lr }}'", rest="matrix: {lr: [0.1, 0.2, 0.3]}\n")}),
    ("torchrun on several nodes", f"jobc build --stdout -b oci {EXAMPLES}/torchrun-4x8/job.yaml", ["PET_NNODES=4", "PET_NPROC_PER_NODE=8"], {}),
    ("parameter servers", f"jobc build --stdout -b oci {EXAMPLES}/tensorflow-ps/job.yaml", ["TF_CONFIG="], {}),
    ("Horovod and MPI", f"jobc build --stdout -b oci {EXAMPLES}/horovod-mpi/job.yaml", ["OMPI_MCA_"], {}),
    ("Jupyter", "jobc plan --docker", ["-p 8888:8888", "jupyter lab --ip=0.0.0.0 --port=8888"], {"job.yaml": TEMPLATE.format("jupyter", "token")}),
    ("VS Code and Remote-SSH", "jobc plan --docker", ["-p 8080:8080", "-p 2222:2222"], {"job.yaml": TEMPLATE.format("code-server", "password")}),
    # Images
    ("apt and pip", "jobc build --stdout -b dockerfile", ["FROM python:3.12-slim", "apt-get install -y --no-install-recommends", "git", "numpy==2.1.0"],
     {"job.yaml": job(image='{from: "python:3.12-slim", apt: [git], python: {packages: ["numpy==2.1.0"]}}')}),
    ("conda", "jobc build --stdout -b dockerfile", ["conda", "scipy"],
     {"job.yaml": job(image='{from: "continuumio/miniconda3:24.7.1-0", conda: {packages: [scipy]}}')}),
    ("CUDA image and driver", LAB, ["warning[J0321]", "has driver 450.80.02, but CUDA 12.4 needs 525 or later"], gpus("1", "gpu: {driver: '450.80.02'}")),
    ("Dockerfile that is wrong", "jobc check", ["error[J06", "RUM"],
     {"job.yaml": job(image="{dockerfile: Dockerfile, context: .}"), "Dockerfile": "FROM debian:12\nRUM apt-get update\n"}, 1),
    ("docker build", "jobc image build -t app:1 . && jobc run --allow-unenforced --image app:1 -- cat /app/word", ["built in a container", "copied"],
     {"Dockerfile": "FROM base:1\nWORKDIR /app\nCOPY word .\nRUN echo built in a container\nENV A=b\nCMD [\"cat\", \"word\"]\n", "word": "copied\n"}),
    ("docker images and docker tag", "jobc image tag base:1 other:2 && jobc image ls", ["NAME", "base:1", "other:2"], {}),
    ("docker history", "jobc image history base:1", ["jobc image import rootfs.tar.gz"], {}),
    ("docker save and load", "jobc image save base:1 -o base.tar && jobc image rm base:1 && jobc image import base.tar && jobc image ls", ["base:1"], {}),
    # docker run
    ("docker run -e", f"{RUN} -e A=one -- sh -c 'echo $A'", ["one"], {}),
    ("docker run -v", f"{RUN} -v ./word:/word:ro -- cat /word", ["of the host"], {"word": "of the host\n"}),
    ("docker run -w", f"{RUN} -w /tmp -- pwd", ["/tmp"], {}),
    ("docker run -u", f"{RUN} -u 7:8 -- id", ["uid=7 gid=8"], {}),
    ("docker run --shm-size", f"{RUN} --shm-size 64m -- df -k /dev/shm", ["65536"], {}),
    ("docker run --name and --rm", f"{RUN} --rm --name named -- true && jobc ps named", ["main-0", "succeeded"], {}),
    ("docker run --entrypoint", f"{RUN} --entrypoint echo -- said", ["said"], {}),
    ("docker run --network none", f"{RUN} --network none -- ls /sys/class/net", ["lo"], {}),
    ("docker run --privileged and --cap-add", f"{RUN} --save job.yaml --privileged --cap-add SYS_PTRACE -- true; cat job.yaml", ["privileged: true", "SYS_PTRACE"], {}),
    ("docker run --cpus", f"{RUN} --save job.yaml --cpus 0.5 -- true; cat job.yaml", ["cpu: 500m"], {}),
    ("exit code of docker run", f"{RUN} -- sh -c 'exit 7'", ["exit 7"], {}, 7),
    ("docker run --gpus all", f"{FAKE}; {RUN} --dry-run --gpus all -- true", ["takes at most: 2 GPUs"], {}),
    ("docker run --gpus device", f"{FAKE}; {RUN} --dry-run --gpus '\"device=0,2:1\"' -- true", ["takes at most: 2 GPUs"], {}),
    ("docker run --runtime nvidia", f"{RUN} --runtime nvidia -- true", ["write `--gpus N`"], {}, 125),
    ("the same as a line of docker run", "jobc plan --docker", ["docker run --rm", "--gpus '\"device=0,1\"'", "--cpus 8", "--memory 34359738368", "--shm-size 8589934592"],
     {"job.yaml": gpus("2")["job.yaml"]}),
    # Jobs that run
    ("docker ps", f"id=$({RUN} -d --name up -- sleep 60) && jobc ps && jobc rm -f $id", ["up.1"], {}),
    ("docker logs", f"{RUN} --name spoke -- echo a word >/dev/null 2>&1; jobc logs spoke", ["a word"], {}),
    ("docker exec", f"{STARTED.format('entered')}; jobc exec entered -- echo inside; jobc rm -f entered", ["inside"], {}),
    ("docker stop", f"{STARTED.format('ended')}; jobc stop ended", ["stopped"], {}),
    ("docker stats", f"{STARTED.format('used')}; jobc stats --no-stream used; jobc rm -f used", ["MEMORY", "main-0"], {}),
    ("pause and freezer", f"{STARTED.format('frozen')}; jobc pause frozen; jobc ps; jobc resume frozen; jobc rm -f frozen", ["paused"], {}),
    ("life of a job", f"{RUN} --name lived -- true; jobc events lived",
     ["submitted", "scheduled", "image-ready", "network-ready", "created", "mounted", "started", "ended", "saved", "ended"], {}),
    ("order of stages", "jobc run --allow-unenforced --plain", ["first-0  | one", "second-0 | two"],
     {"job.yaml": "version: 1\nname: stages\nimage: ../rootfs.tar.gz\nroles:\n  first: {shell: sh, run: echo one}\n  second: {needs: [first], shell: sh, run: echo two}\n"}),
    ("retries of a task", "jobc run --allow-unenforced --plain", ["retried", "exit 3"],
     {"job.yaml": "version: 1\nname: again\nimage: ../rootfs.tar.gz\nroles:\n  main: {retry: {max: 1, backoff: 1s}, shell: sh, run: exit 3}\n"}, 1),
    ("time limit", f"{RUN} --timeout 1s -- sleep 60", ["timed out"], {}, 124),
    ("PAI_ variables", "jobc run --allow-unenforced --root ../rootfs.tar.gz", ["PAI_"],
     {"job.json": '{"jobName": "pai", "image": "a", "taskRoles": [{"name": "one", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 128, "gpuNumber": 0, "command": "env"}]}'}),
    # Limits
    ("cgroup: cpu", CGROUPS, ["v1/cpu/cpu.cfs_quota_us:50000", "v2/cpu.max:50000 100000"], LIMITED),
    ("cgroup: memory", CGROUPS, ["v1/memory/memory.limit_in_bytes:67108864", "v2/memory.max:67108864"], LIMITED),
    ("cgroup: pids", CGROUPS, ["v1/pids/pids.max:50", "v2/pids.max:50"], LIMITED),
    ("cgroup: cpuset", CGROUPS, ["v1/cpuset/cpuset.cpus:0-1", "v2/cpuset.cpus:0-1"], LIMITED),
    ("cgroup: blkio", CGROUPS, ["v1/blkio/blkio.weight:200", "v2/io.weight:"], LIMITED),
    ("cgroup: blkio, bytes and operations", CGROUPS, ["v1/blkio/blkio.throttle.write_bps_device:254:0 1048576", "v2/io.max:254:0 ", "wbps=1048576", "riops=50"],
     {"job.yaml": job('run: a, resources: {io: {"254:0": {write: 1MiB, read_ops: 50}}}', image="a:1"), **target("backends: [cgroup]")}),
    ("cgroup: devices", CGROUPS, ["v1/devices/devices.allow:c 1:3 rwm", "v1/devices/devices.deny:a"], LIMITED),
    # GPUs of a host
    ("NV_GPU", f"NV_GPU=1 {RUN} -- true", ["`NV_GPU` is not read; to choose GPUs, write `--gpus device=1`"], {}),
    ("NVIDIA_VISIBLE_DEVICES=all", "jobc check", ["error[J0215]", "`resources: {gpu: all}`"], {"job.yaml": job("run: a, env: {NVIDIA_VISIBLE_DEVICES: all}")}, 1),
    ("NVIDIA_VISIBLE_DEVICES=none", "jobc build --stdout -b oci", ["NVIDIA_VISIBLE_DEVICES=none"], {"job.yaml": job("run: a, env: {NVIDIA_VISIBLE_DEVICES: none}")}),
    ("NVIDIA_DRIVER_CAPABILITIES", "jobc build --stdout -b oci", ["NVIDIA_DRIVER_CAPABILITIES=compute,video"],
     {"job.yaml": gpus("{count: 1, capabilities: [compute, video]}")["job.yaml"]}),
    ("prestart hook", LAB, ['"prestart"', "nvidia-container-runtime-hook"], {"job.yaml": gpus("1")["job.yaml"], **target("backends: [oci], oci: {gpu_injection: hook}")}),
    ("CDI", LAB, ["nvidia.com/gpu=1"], {"job.yaml": gpus("1")["job.yaml"], **target("backends: [oci], oci: {gpu_injection: cdi, devices: [1]}")}),
    ("nvidia-smi", f"{FAKE}; jobc gpu ls --wide", ["TEMP", "POWER", "ECC", "NVIDIA A100-SXM4-80GB", "°C", "MIG-"], {}),
    ("description of GPUs by CDI", f"{FAKE}; jobc gpu cdi", ["kind: nvidia.com/gpu", "/dev/nvidia0"], {}),
    ("model of a GPU", KUBE, ["nvidia.com/gpu.product"], gpus("{count: 1, model: A100-80GB}")),
    ("compute capability", KUBE, ["nvidia.com/gpu.compute.major"], gpus('{count: 1, compute_capability: "8.0"}')),
    # Parts of GPUs
    ("MIG", KUBE, ["nvidia.com/mig-1g.10gb: \"1\""], gpus("{count: 1, share: {profile: 1g.10gb}}", "gpu: {provider: nvidia-mig-mixed}")),
    ("MPS", KUBE, ["nvidia.com/gpu.sharing-strategy: mps"], gpus("{count: 1, model: A100-80GB, share: {memory: 20GiB, cores: 25}}", "gpu: {provider: nvidia-mps, replicas: 4}")),
    ("time slicing", KUBE, ["nvidia.com/gpu.sharing-strategy: time-slicing"],
     gpus("{count: 1, share: {memory: 8GiB, isolation: none}}", "gpu: {provider: nvidia-time-slicing}")),
    ("HAMi", KUBE, ["nvidia.com/gpucores: \"30\"", "nvidia.com/gpumem: \"8192\""], provider("hami")),
    ("vCUDA of gpu-manager", KUBE, ["tencent.com/vcuda-core: \"30\"", "tencent.com/vcuda-memory: \"32\""], provider("gpu-manager")),
    ("gpushare of Aliyun", KUBE, ["aliyun.com/gpu-mem: \"8\""], gpus("{count: 1, share: {memory: 8GiB, isolation: none}}", "gpu: {provider: aliyun-gpushare}")),
    ("qGPU", KUBE, ["tke.cloud.tencent.com/qgpu-core: \"30\""], provider("qgpu")),
    ("KubeShare", KUBE, ["sharedgpu/gpu_request: \"0.3\""], provider("kubeshare-v2")),
    ("a whole card for a virtual machine", KUBE, ['nvidia.com/GA102GL_A10: "1"', "runtimeClassName: kata"],
     gpus("1", "runtime_class: kata, gpu: {provider: kubevirt-passthrough, resource: nvidia.com/GA102GL_A10}")),
    ("GPUs of another host", KUBE, ["RCUDA_"], gpus("1", "gpu: {provider: rcuda, servers: [gpu-host], library: /opt/rcuda}")),
    # Kubernetes
    ("nvidia.com/gpu", KUBE, ["nvidia.com/gpu: \"1\""], gpus("1")),
    ("claims (DRA)", KUBE, ["kind: ResourceClaim", "deviceClassName: gpu.nvidia.com"], gpus("1", "gpu: {provider: nvidia-dra}")),
    ("restartPolicy: OnFailure", KUBE, ["kind: Pod", "restartPolicy: OnFailure"],
     {"job.yaml": job("run: a, retry: {max: unlimited}", image="a:1"), **target("backends: [kubernetes], kubernetes: {kind: pod}")}),
    ("gang", KUBE, ["schedulerName: volcano", "minAvailable: 4"],
     {"job.yaml": job("run: a, instances: 4", image="a:1", rest="gang: required\n"), **target("backends: [kubernetes], kubernetes: {kind: volcano, queue: {volcano: q}}")}),
    ("queue of Kueue", KUBE, ["kueue.x-k8s.io/queue-name: team"],
     {"job.yaml": job("run: a", image="a:1"), **target("backends: [kubernetes], kubernetes: {queue: {kueue: team}}")}),
    ("quota", KUBE, ["warning[J0424]"], gpus("8", "quota: {gpu: 4}")),
    ("priority", KUBE, ["priorityClassName: high"], gpus("1", "priority_class: high")),
    ("volume of a claim", KUBE, ["claimName: imagenet"], {"job.yaml": job("run: a", rest="data: {d: {source: 'pvc:imagenet', mount: /data}}\n"), **target("backends: [kubernetes]")}),
    ("binpack", KUBE, ["schedulerName: packing"], gpus("1", "scheduler: packing")),
    ("names of systems", f"sed -n 's/^- name: //p' {REPOSITORY}/stdlib/systems.yaml | while read -r name; do jobc explain \"$name\" | grep -E '^(works|nearest|no): '; done | wc -l", ["28"], {}),
]

# An unprivileged user may have only one number.
AS_ROOT = {"docker run -u"}

# Kinds whose case is in another module.
ELSEWHERE = {
    "tar of a root file system": test_images.test_an_archive_with_one_top_directory,
    "docker run -it": test_images.test_a_terminal,
    "docker run -p": test_images.test_a_published_port,
    "JSON with a backslash at the end of a line": test_pasted.test_a_backslash_and_blanks_in_json,
    "omitted text in a Dockerfile": test_pasted.test_a_no_break_space_in_a_dockerfile,
    "chroot, unshare, nsenter, bind mounts, strace": test_from_scratch.test_the_page,
}


@pytest.fixture(scope="module")
def place():
    place = Place()
    (place.directory / "bin").mkdir()
    (place.directory / "bin/jobc").symlink_to(Path(binary()).resolve())
    if (fake := REPOSITORY / "target/debug/fake-gpus").exists():
        (place.directory / "bin/fake-gpus").symlink_to(fake)
    place.environment["PATH"] = f"{place.directory}/bin:{place.environment['PATH']}"
    place.ran("image", "import", "rootfs.tar.gz", "--tag", "base:1")
    return place


@pytest.mark.parametrize(("line", "parts", "files", "code"), [
    pytest.param(*row[1:4], (*row, 0)[4], id=row[0], marks=pytest.mark.needs("root") if row[0] in AS_ROOT else ()) for row in LINES
])
def test_line(place, line, parts, files, code):
    if line.startswith(FAKE):
        needs.tool("cc")
        if not (place.directory / "bin/fake-gpus").exists():
            needs.missing("fake-gpus", "`cargo build -p jobc-fake-gpus`")
    directory = place.directory / f"case-{len(list(place.directory.iterdir()))}"
    directory.mkdir()
    for name, text in files.items():
        (directory / name).write_text(text)
    ran = subprocess.run(["sh", "-c", line], cwd=directory, env=place.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
    at = 0
    for part in parts:
        assert part in ran.stdout[at:], f"`{line}` has no `{part}`:\n{ran.stdout}"
        at = ran.stdout.index(part, at) + len(part)
    assert ran.returncode == code, f"`{line}` exits with {ran.returncode}:\n{ran.stdout}"
