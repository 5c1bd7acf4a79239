"""Measures the memory of waiting runtimes, and starts from a running process: one container, a gang of 100, a large heap."""

import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

import floor
from bundle import configuration

GANG = 100


def measure(directory, options, oci, yardstick, rounds, results):
    """Adds rows to `results`, and returns the numbers. `yardstick` is the floor."""
    report = {}
    command = [str(oci)] if oci else [str(options.binary.resolve()), "oci"]
    bundle_of_waiting(directory)
    count = 5 if options.short else 50
    pss = waiting(lambda n: [*command, "--root", str(directory / "states/jobc"), "run", "--bundle", str(directory / "waiting"), f"w{n}"], count)
    report["pss_kib_of_a_waiting_command"] = pss
    results.add(f"memory of a `{Path(command[0]).name}` that waits, of {count} (PSS)", f"{pss:.0f} KiB")
    if options.in_process and options.in_process.exists():
        bundles_of_a_supervisor(directory)
        inside = Inside(directory, options.in_process.resolve(), yardstick, results)
        inside.one(rounds, 5 if options.short else 40)
        if not options.short:
            inside.gangs(max(3, rounds // 5))
        report["in_process_ms"] = inside.measured
    return report


class Inside:
    """Measures `runtime/container/examples/in_process.rs`, each time next to the floor."""

    def __init__(self, directory, program, yardstick, results):
        self.directory, self.program, self.yardstick, self.results = directory, program, yardstick, results
        self.measured = {}

    def run(self, bundle, times, *more):
        """The milliseconds of each run."""
        ended = subprocess.run([self.program, self.directory / bundle, self.directory / "states/own", str(times), *more],
                               capture_output=True, text=True, check=False)
        if ended.returncode:
            sys.exit(f"start: in a running process: {ended.stderr.strip()}")
        return json.loads(ended.stdout)["ended_ms"]

    def one(self, rounds, floors):
        """One container at a time."""
        for what, bundle, goal in (("network of its own", "own", 2.5), ("the host's network", "shared", 1.8)):
            ended = self.measured[what] = statistics.median(self.run(bundle, rounds))
            self.results.add(f"in a running process, {what}", *floor.beside(ended, goal, floor.now(self.yardstick, floors)))
        ended = self.measured["with 2 GiB"] = statistics.median(self.run("own", rounds, "--heap", "2048"))
        ratio = ended / self.measured["network of its own"]
        self.results.add("in a running process that holds 2 GiB", f"{ended:.2f} ms, {ratio:.2f} times", "at most 1.3", ratio <= 1.3)

    def gangs(self, rounds):
        """A hundred containers from as many threads as a supervisor has, alternating with a hundred floors."""
        threads = min(4, len(os.sched_getaffinity(0)))  # as runtime/job/src/supervisor/spawner.rs has them
        walls = {"floors": [], "own": [], "shared": []}
        for turn in range(rounds):
            walls["floors"].append(floor.gang([self.yardstick.command(f"gang-{turn}-{number}") for number in range(GANG)], threads))
            for bundle in ("own", "shared"):
                walls[bundle] += self.run(bundle, 1, "--gang", str(GANG), "--threads", str(threads))
        usual = floor.now(self.yardstick, 40)
        medians = {who: statistics.median(values) for who, values in walls.items()}
        floors = medians["floors"]
        self.results.add(f"{GANG} floors, {threads} at a time", f"{floors:.2f} ms, {floors / usual:.2f} x floor")
        for what, bundle, goal in (("networks of their own", "own", 200), ("the host's network", "shared", 130)):
            words, most, met = floor.beside(medians[bundle], goal, usual)
            self.results.add(f"a gang of {GANG}, {what}", f"{words}, {medians[bundle] / floors:.2f} x {GANG} floors", most, met)
            alone = statistics.median(self.run(bundle, max(3, rounds // 2), "--gang", str(GANG)))
            self.results.add(f"a gang of {GANG} from one thread, {what}", f"{alone:.2f} ms")
            medians[f"{bundle}, one thread"] = alone
        self.measured["gangs"] = medians


def bundle_of_waiting(directory):
    config = json.loads((directory / "plain/config.json").read_text())
    config["process"]["args"] = ["/bin/sh", "-c", "echo ready; read line"]
    write(directory, "waiting", config)


def bundles_of_a_supervisor(directory):
    """Without a `cgroupsPath`, so that each container has its own cgroup."""
    config = configuration()
    config["process"]["args"] = ["/bin/true"]
    config["linux"]["resources"] |= {"memory": {"limit": 256 << 20}, "pids": {"limit": 128}}
    write(directory, "own", config)
    config["linux"]["namespaces"] = [n for n in config["linux"]["namespaces"] if n["type"] != "network"]
    write(directory, "shared", config)


def write(directory, name, config):
    (directory / name).mkdir()
    (directory / name / "config.json").write_text(json.dumps(config))
    (directory / name / "rootfs").symlink_to(directory / "plain/rootfs")


def waiting(command, count):
    """KiB (PSS) of the runtime's processes per container, with `count` concurrent containers."""
    started = [subprocess.Popen(command(number), stdin=subprocess.PIPE, stdout=subprocess.PIPE) for number in range(count)]
    try:
        for each in started:
            each.stdout.readline()
        total = sum(int(re.search(r"^Pss:\s+(\d+)", Path(f"/proc/{each.pid}/smaps_rollup").read_text(), re.M)[1]) for each in started)
        return total / count
    finally:
        for each in started:
            each.stdin.close()
            each.wait(timeout=30)
