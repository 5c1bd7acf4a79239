"""The output of a benchmark: rows with goals, and the host of the measurement."""

import os
import pathlib
import platform

MIB = 1024 * 1024


class Table:
    """A table of measurements, with goals."""

    def __init__(self):
        self.rows = []
        self.missed = 0

    def add(self, what, result, goal=None, met=None):
        word = "" if met is None else ("met" if met else "MISSED")
        self.missed += word == "MISSED"
        self.rows.append((what, result, goal or "", word))

    def print(self):
        rows = [("what", "measured", "goal", ""), *self.rows]
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        for row in rows:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def machine():
    """The host of the measurement."""
    cpu = next((line.split(":", 1)[1].strip() for line in lines("/proc/cpuinfo") if line.startswith("model name")), "?")
    total = next((int(line.split()[1]) for line in lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    return {
        "processor": cpu,
        "cores": os.cpu_count(),
        "memory_gib": round(total / MIB, 1),
        "kernel": platform.release(),
        "load_before": os.getloadavg()[0],
    }


def lines(path):
    try:
        return pathlib.Path(path).read_text().splitlines()
    except OSError:
        return []
