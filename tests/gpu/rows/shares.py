"""Rows about cards that several tasks share."""

import json
import shlex
import sys
import time

from rows.host import Failed, NotAvailable, last_lines, numbers, python
from rows.programs import CUDA, CUDA_LOOP, TORCHRUN, matrix


def memory_of_slices(host):
    """an MPS slice of 4 GiB is refused 8 GiB, and another slice continues"""
    host.needs_mps()
    # A context uses some hundreds of MB of its slice.
    gpu = {"share": {"memory": "4GiB", "isolation": "soft"}, "count": 1}
    large = python(CUDA + "allocate(1)\nallocate(8)")
    small = python(CUDA + "memory = allocate(1)\nfor _ in range(50):\n    work(memory, 1)\n    time.sleep(0.1)\nprint('worked on')")
    path = host.job({"greedy": {"run": large, "resources": {"gpu": gpu}}, "modest": {"run": small, "resources": {"gpu": gpu}}})
    answer = host.call("run", "--gpu-share", "mps", "--devices", f"{host.card()['index']}", path, seconds=180)
    output = answer.stdout
    if answer.returncode or "8 GiB: error 2" not in output or "worked on" not in output or output.count("1 GiB: fits") != 2:
        raise Failed(f"exit {answer.returncode}: {last_lines(answer)}")
    return "error 2; the other slice continued"


def cores_of_slices(host):
    """MPS slices with `cores: 25` and `cores: 50`, side by side"""
    host.needs_mps()
    show = "print(multiprocessors(), 'multiprocessors', flush=True)\n"
    whole = numbers(r"(\d+) multiprocessors", host.run(python(CUDA + show), 1))[0]
    try:
        host.needs_torch()
        work = matrix(0.5 if host.fake else 8)
    except NotAvailable:
        work = ""
    roles = {}
    for cores in (25, 50):
        gpu = {"count": 1, "share": {"memory": "16GiB", "cores": cores, "isolation": "soft"}}
        roles[f"percent{cores}"] = {"run": python(CUDA + show + work), "resources": {"gpu": gpu}}
    output = host.run_file(host.job(roles), "--gpu-share", "mps", "--devices", f"{host.card()['index']}", seconds=300)
    lines = {cores: "\n".join(line for line in output.splitlines() if f"percent{cores}" in line) for cores in (25, 50)}
    found = {cores: numbers(r"(\d+) multiprocessors", text)[0] for cores, text in lines.items()}
    # The driver hands out multiprocessors in pairs.
    if any(abs(found[cores] - whole * cores / 100) > 2 for cores in found):
        raise Failed(f"{found} of {whole:.0f} multiprocessors")
    text = f"{found[25]:.0f} and {found[50]:.0f} of {whole:.0f} multiprocessors"
    if not work:
        return f"{text}; no PyTorch to measure more"
    rates = [numbers(r"([\d.]+) TFLOP/s", lines[cores])[0] for cores in (25, 50)]
    return f"{text}; {rates[0]:.0f} and {rates[1]:.0f} TFLOP/s"


def use_of_slices(host):
    """what `jobc stats` shows of a task on an MPS slice"""
    host.needs_mps()
    gpu = {"count": 1, "share": {"memory": "16GiB", "isolation": "soft"}}
    loop = CUDA + "memory = allocate(2)\nwhile True:\n    work(memory, 2)\n"
    path = host.job({"main": {"run": python(loop), "instances": 2, "resources": {"gpu": gpu}}})
    with host.detached(path, "--gpu-share", "mps", "--devices", f"{host.card()['index']}") as job:
        def use():
            return [use for use in host.json("stats", "--no-stream", job).get("gpu", []) if use.get("utilization")]
        use = host.until(use, "no utilization")[0]
        pids = {task["process"]["pid"] for task in host.json("inspect", job)["tasks"]}
        by_driver = len(pids & host.processes())
        row = host.call("stats", "--no-stream", job).stdout.splitlines()[1]
    if use.get("mps") != {"memory_limit": 16 << 30, "slices": 2}:
        raise Failed(f"{use}")
    return f"`{row[row.index('card'):].strip()}`; NVML reports {by_driver} of 2 tasks"


def torchrun_on_slices(host):
    """torchrun with two instances on MPS slices"""
    host.needs_mps()
    return torchrun(host, {"share": {"memory": "16GiB", "isolation": "soft"}, "count": 1}, "mps")


def torchrun_time_sliced(host):
    """torchrun with two instances on one card, time-sliced"""
    return torchrun(host, {"share": {"memory": "16GiB", "isolation": "none"}, "count": 1}, "none")


def torchrun(host, gpu, share):
    host.needs_torch()
    # Where /tmp is a file system of its own, the root of a container lacks its files.
    directory, mount = host.output(f"ranks-{share}")
    (directory / "ranks.py").write_text(TORCHRUN)
    run = f"exec {shlex.quote(sys.executable)} -m torch.distributed.run --redirects 1 --tee 1 /out/ranks.py"
    train = {"run": run, "instances": 2, "resources": {"gpu": gpu}}
    path = host.job({"train": train}, distributed={"framework": "torchrun", "roles": ["train"], "processes_per_instance": 1}, **mount)
    output = host.run_file(path, "--gpu-share", share, "--devices", f"{host.card()['index']}", seconds=300)
    lines = [f"rank {rank} of 2: 128" for rank in (0, 1)]
    if any(line not in output for line in lines):
        raise Failed(output[-600:])
    return "ended normally; both ranks have the sum"


def in_turns(host):
    """the work of two jobs in turns of 10 s on one card, and of both at once, beside that of one alone"""
    lock = host.directory / "turns"
    lock.mkdir(exist_ok=True)
    (lock / "queue.yaml").write_text(f"turn: {1 if host.fake else 10}s\n")
    seconds = 4 if host.fake else 60
    alone = steps(host, {"count": 1}, 1, seconds, lock)
    turns = steps(host, {"count": 1, "share": {"time": True, "memory": "16GiB"}}, 2, seconds, lock)
    together = steps(host, {"count": 1, "share": {"memory": "16GiB", "isolation": "none"}}, 2, seconds, lock)
    if min(turns) == 0:
        raise Failed(f"{turns} steps in turns: one had none")
    parts = [f"{sum(found) / sum(alone):.3f} of it {how}" for how, found in (("in turns", turns), ("at once", together))]
    return f"{sum(alone) / seconds:.1f} steps/s alone; {parts[0]} ({turns[0]} and {turns[1]} steps), {parts[1]}"


def steps(host, gpu, count, seconds, lock):
    """How many steps each of some jobs makes in that time on the first card, once all have made one."""
    directory, mount = host.output(f"turns-{count}-{len(json.dumps(gpu))}")
    counted = [directory / f"steps-{number}" for number in range(count)]
    host.environment["JOBC_LOCK_DIR"] = str(lock)
    jobs = []
    try:
        for file in counted:
            path = host.job({"main": {"run": python(CUDA_LOOP.replace("/out/steps", f"/out/{file.name}")), "resources": {"gpu": gpu}}}, **mount)
            answer = host.call("run", "--detach", "--devices", f"{host.card()['index']}", path)
            if answer.returncode:
                raise Failed(last_lines(answer))
            jobs.append(answer.stdout.strip())
        host.until(lambda: all(file.exists() and file.read_text() for file in counted), "not every job made a step")
        before = [int(file.read_text() or 0) for file in counted]
        time.sleep(seconds)
        return [int(file.read_text() or 0) - number for file, number in zip(counted, before, strict=True)]
    finally:
        for job in jobs:
            host.call("kill", job)
            host.call("wait", job)
        del host.environment["JOBC_LOCK_DIR"]


def instance(host):
    """a MIG instance, where there is one"""
    instances = [(gpu, device) for gpu in host.listed()["gpus"] for device in (gpu["mig"] or {}).get("devices", [])]
    if not instances:
        raise NotAvailable("no card is partitioned, and this script changes no mode")
    gpu, device = instances[0]
    output = host.run(python(CUDA), {"count": 1, "share": {"profile": device["profile"]}}, "--devices", device["uuid"])
    return f"{device['profile']} of GPU {gpu['index']}: {output.splitlines()[0]}"


ROWS = [memory_of_slices, cores_of_slices, use_of_slices, torchrun_on_slices, torchrun_time_sliced, in_turns, instance]
