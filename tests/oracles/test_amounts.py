"""Compares the amounts in every artifact with the plan next to it, to the byte; coarser units must be rounded up.

No third-party program knows what a job requested, so this one is ours: it reads the artifacts as their programs do and
shares no code with jobc.
"""

import math
import re

from documents import built_in, documents, read

ARTIFACTS = "plan.json"
# Some providers and kinds put amounts elsewhere; tests/tests/{providers,kinds}.rs read them.
ROOTS = ("examples",)

SUFFIX = {"": 1, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
          "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def quantity(text):
    """A Kubernetes quantity as a number."""
    number, suffix = re.fullmatch(r"([0-9.]+)([a-zA-Z]*)", str(text)).groups()
    return round(float(number) * SUFFIX[suffix], 6) if "." in number or suffix == "m" else int(number) * int(SUFFIX[suffix])


def assert_amount(what, wanted, seen):
    assert wanted is None or wanted == seen, f"{what} is {seen}, the plan has {wanted}"


def size_of(config, place):
    for mount in config["mounts"]:
        if mount["destination"] == place:
            sizes = [option[5:] for option in mount.get("options", []) if option.startswith("size=")]
            return int(sizes[0]) if sizes and sizes[0].isdigit() else (sizes or [None])[0]
    return None


def bundle(directory, plan):
    config = read(directory / "config.json")
    got, where = config["linux"].get("resources", {}), f"oci/{directory.name}"
    assert_amount(f"{where} memory", plan.get("memory_bytes"), got.get("memory", {}).get("limit"))
    assert_amount(f"{where} /dev/shm", plan.get("shm_bytes"), size_of(config, "/dev/shm"))
    assert_amount(f"{where} pids", plan.get("pids"), got.get("pids", {}).get("limit"))
    if plan.get("cpu_millis") is not None:
        cpu = got.get("cpu", {})
        assert_amount(f"{where} thousandths of a CPU", plan["cpu_millis"],
                      1000 * cpu.get("quota", 0) / cpu.get("period", 100000))


def group(directory, plan):
    def content(path):
        version, name = path.split("/")
        texts = [file.read_text().strip() for file in (directory / version).rglob(name)]
        for file in (directory / version).rglob("*.conf"):
            texts += [line.partition("=")[2] for line in file.read_text().splitlines() if line.startswith(f"{name}=")]
        text = texts[0] if len(texts) == 1 else None
        return int(text) if text and text.isdigit() else text

    for key, paths in (("memory_bytes", ("v2/memory.max", "v1/memory.limit_in_bytes", "systemd/MemoryMax")),
                       ("pids", ("v2/pids.max", "v1/pids.max", "systemd/TasksMax"))):
        for path in paths:
            assert_amount(f"cgroup/{directory.name}/{path}", plan.get(key), content(path))
    if plan.get("cpu_millis") is not None:
        quota, period = (str(content("v2/cpu.max") or "0 1").split() + ["1"])[:2]
        assert_amount(f"cgroup/{directory.name}/v2/cpu.max in thousandths of a CPU", plan["cpu_millis"],
                      1000 * int(quota) / int(period))


def pods(manifest):
    if manifest["kind"] == "JobSet":
        return [job["template"]["spec"]["template"]["spec"] for job in manifest["spec"]["replicatedJobs"]]
    if manifest["kind"] == "Job":
        return [manifest["spec"]["template"]["spec"]]
    return [manifest["spec"]] if manifest["kind"] == "Pod" and built_in(manifest) else []


def kubernetes(directory, roles):
    """Manifests may not name roles, so the amounts are compared as sets over the whole job."""
    specs = [spec for path in directory.glob("*.yaml") for manifest in documents(path) for spec in pods(manifest)]
    limits = [container.get("resources", {}).get("limits", {}) for spec in specs for container in spec["containers"]]
    shm = {quantity(volume["emptyDir"]["sizeLimit"]) for spec in specs for volume in spec.get("volumes", [])
           if volume.get("emptyDir", {}).get("medium") == "Memory" and "sizeLimit" in volume["emptyDir"]}
    for what, key, seen in (("memory", "memory_bytes", {quantity(one["memory"]) for one in limits if "memory" in one}),
                            ("/dev/shm", "shm_bytes", shm),
                            ("CPU", "cpu_millis", {round(1000 * quantity(one["cpu"])) for one in limits if "cpu" in one})):
        wanted = {role["resources"][key] for role in roles if role["resources"].get(key) is not None}
        assert_amount(f"kubernetes {what}", sorted(wanted), sorted(seen))


def openpai(path, roles):
    written = read(path)["taskRoles"]
    assert_amount("openpai/job.yaml number of roles", len(roles), len(written))
    for (name, task), role in zip(written.items(), roles):
        plan, got = role["resources"], task["resourcePerInstance"]
        where = f"openpai/job.yaml {name}"
        assert_amount(f"{where} instances", role["instances"], task.get("instances", 1))
        assert_amount(f"{where} memoryMB", up(plan.get("memory_bytes"), 2**20), got["memoryMB"])
        assert_amount(f"{where} cpu", up(plan.get("cpu_millis"), 1000), got["cpu"])
        assert_amount(f"{where} gpu", (plan.get("gpu") or {}).get("count", 0), got["gpu"])
        assert_amount(f"{where} shmMB", up(plan.get("shm_bytes"), 2**20), task.get("extraContainerOptions", {}).get("shmMB"))


def up(amount, unit):
    return None if amount is None else math.ceil(amount / unit)


def only_job(path):
    """The job of a plan; None for a plan of several jobs, which is not beside its artifacts."""
    jobs = read(path)["jobs"]
    return jobs[0] if len(jobs) == 1 else None


applies = only_job


def test_artifacts_have_the_amounts_of_the_plan(artifact):
    directory, roles = artifact.parent, only_job(artifact)["roles"]
    for role in roles:
        for index in range(role["instances"]):
            name = f"{role['name']}-{index}"
            for backend, compare in (("oci", bundle), ("cgroup", group)):
                if (directory / backend).is_dir():
                    assert (directory / backend / name).is_dir(), f"{backend}/{name} is absent"
                    compare(directory / backend / name, role["resources"])
    if (directory / "kubernetes").is_dir():
        kubernetes(directory / "kubernetes", roles)
    if (directory / "openpai" / "job.yaml").exists():
        openpai(directory / "openpai" / "job.yaml", roles)
