"""Rows about what a start finds, refuses and costs."""

import json
import re
import subprocess
import time
from pathlib import Path

from rows.host import Failed, NotAvailable, last_lines, python
from rows.programs import CUDA


def discovery(host):
    """cards found, with NVML"""
    inventory = host.listed()
    # In a container, a note about the host's other cards is expected.
    notes = [note for note in inventory["notes"] if "has no node" not in note]
    if inventory["source"] != "nvml" or notes:
        raise Failed(f"source {inventory['source']}: {notes}")
    ours = [gpu["uuid"] for gpu in inventory["gpus"] if gpu["vendor"] == "nvidia"]
    smi = host.program("nvidia-smi")
    if not host.fake and smi:
        output = subprocess.run([smi, "--query-gpu=uuid", "--format=csv,noheader"], capture_output=True, text=True, check=False)
        if output.returncode == 0 and output.stdout.split() != ours:
            raise Failed(f"nvidia-smi says {output.stdout.split()}, jobc {ours}")
    helper = f", through {Path(inventory['asked_by']).name}" if inventory.get("asked_by") else ""
    return f"{len(ours)}{helper}"


def found_by_files(host):
    """the same cards without NVML"""
    uuids = [gpu["uuid"] for gpu in host.listed()["gpus"] if gpu["vendor"] == "nvidia"]
    before, host.environment = host.environment, host.environment | {"JOBC_NVML": ""}
    try:
        inventory = host.listed()
    finally:
        host.environment = before
    ours = [gpu["uuid"] for gpu in inventory["gpus"] if gpu["vendor"] == "nvidia"]
    if not ours:
        raise NotAvailable(f"/proc/driver/nvidia shows no card: {inventory['notes']}")
    if ours != uuids:
        raise Failed(f"from files {ours}, from NVML {uuids}")
    return f"{len(ours)}"


def cdi(host):
    """`jobc gpu cdi` describes the cards"""
    spec = host.json("gpu", "cdi")
    nodes = {node["path"] for device in spec["devices"] for node in device["containerEdits"].get("deviceNodes", [])}
    return f"CDI {spec['cdiVersion']}, {len(spec['devices'])} devices, {len(nodes)} nodes of single devices"


def leased_device(host):
    """nvidia-smi in a container (`image: host`) lists exactly the leased GPU"""
    card = host.whole_cards()[-1]
    if not host.fake and not host.program("nvidia-smi"):
        raise NotAvailable("nvidia-smi is not installed")
    # The simulated driver has no nvidia-smi that works.
    listed = host.run(f"{'true' if host.fake else 'nvidia-smi -L'}; ls /dev/nvidia[0-9]*", 1, "--devices", str(card["index"]))
    uuids = [card["uuid"]] if host.fake else re.findall(r"GPU-[0-9a-f-]{36}", listed)
    nodes = re.findall(r"/dev/nvidia\d+", listed)
    if uuids != [card["uuid"]] or nodes != [f"/dev/nvidia{card['minor']}"]:
        raise Failed(f"{uuids}, {nodes} instead of {card['uuid']}")
    return f"{card['name']}, {nodes[0]}"


def no_device(host):
    """with `gpu: 0` there is no device, and cuInit fails"""
    nodes = host.run("ls /dev | grep -c nvidia || true; echo $NVIDIA_VISIBLE_DEVICES", 0).split()
    if nodes != ["0", "void"]:
        raise Failed(f"{nodes}")
    answer = host.call("run", host.task(python(CUDA), 0))
    output = last_lines(answer)
    found = re.search("cuInit failed: [0-9]+|no driver library", output)
    if answer.returncode == 0 or not found:
        raise Failed(output)
    return found[0]


def refused(host):
    """a model that the host does not have, and one GPU more than it has, are refused at their lines"""
    cards = host.whole_cards()
    model = next(model for model in ("V100", "A100", "H100") if not any(model in card["name"] for card in cards))
    for gpu in ({"count": 1, "model": model}, {"count": len(cards) + 1}):
        path = host.task("true", gpu)
        answer = host.call("run", path)
        if answer.returncode != 125 or "error[J0327]" not in answer.stderr or f"{Path(path).name}:1:" not in answer.stderr:
            raise Failed(f"{gpu}: exit {answer.returncode}: {last_lines(answer)}")
    return f"J0327 for {model}, and for {len(cards) + 1} GPUs"


def first_sample(host):
    """from a task's start to the first sample of its GPU use"""
    output, mount = host.output("sampled")
    path = host.job({"main": {"run": python(CUDA + "memory = allocate(2)\nopen('/out/allocated', 'w')\ntime.sleep(300)\n"), "resources": {"gpu": 1}}}, **mount)
    with host.detached(path) as job:
        host.until((output / "allocated").exists, "the program has no memory")
        allocated, began = time.time(), host.json("inspect", job)["tasks"][0]["started"]

        def sampled():
            samples = host.record(job) / "samples.jsonl"
            lines = samples.read_text().splitlines() if samples.exists() else []
            return next((sample for sample in map(json.loads, lines) if sample.get("gpu")), None)
        # A supervisor that would use more than a thousandth of the CPU samples every 30 seconds only.
        sample = host.until(sampled, "no sample has the GPU", 90)
        after = time.time() - allocated
    if not sample["gpu"][0].get("memory"):
        raise Failed(f"{sample['gpu']}")
    return f"{seconds_of(sample['time']) - seconds_of(began):.1f} s; at most {after:.1f} s after the program had its memory"


def seconds_of(text):
    """The seconds of the day of a time in a record."""
    hours, minutes, seconds = re.search(r"T(\d+):(\d+):([\d.]+)Z", text).groups()
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def overhead(host):
    """from start to end of a job that runs `true`, without and with a GPU"""
    host.whole_cards()

    def shortest(command):
        times = []
        for _ in range(7):
            start = time.monotonic()
            answer = host.call(*command)
            times.append(time.monotonic() - start)
            if answer.returncode:
                raise Failed(last_lines(answer))
        return min(times) * 1000
    without, with_gpu = (shortest(["run", "--quiet", host.task("true", gpu)]) for gpu in (0, 1))
    return f"{without:.0f} ms, {with_gpu:.0f} ms; `gpu ls` {shortest(['gpu', 'ls']):.0f} ms"


ROWS = [discovery, found_by_files, cdi, leased_device, no_device, refused, first_sample, overhead]
