#!/usr/bin/env python3
"""Checks every task's unit properties, in a service, with systemd-analyze, which must report nothing.

A file is either one property, its name the property's and each line a value, or a drop-in ending in `.conf`.
"""

import subprocess
import tempfile
from pathlib import Path

from common import Check


def service(directory):
    """The lines of a unit with the directory's properties."""
    lines = ["[Service]", "ExecStart=/bin/true"]
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        for line in path.read_text().splitlines():
            if path.suffix == ".conf" and (line.startswith("[") or not line.strip()):
                continue
            lines.append(line if path.suffix == ".conf" else f"{path.name}={line}")
    return lines


def main():
    check = Check("systemd_unit", "tasks")
    program = check.tool("systemd-analyze")
    for directory in sorted({path for root in check.roots for path in root.rglob("cgroup/*/systemd")}):
        lines = service(directory)
        with tempfile.TemporaryDirectory(prefix="jobc-oracle-") as scratch:
            unit = Path(scratch, "task.service")
            unit.write_text("\n".join(lines) + "\n")
            done = subprocess.run([program, "verify", "--man=no", str(unit)], capture_output=True, text=True, timeout=60)
        problems = ["no properties"] if len(lines) == 2 else []
        for remark in (done.stdout + done.stderr).splitlines():
            if f"{unit}:" in remark or unit.name in remark:
                number = remark.removeprefix(f"{unit}:").partition(":")[0]
                about = f"`{lines[int(number) - 1]}`: " if number.isdigit() else ""
                problems.append(about + remark.removeprefix(f"{unit}:{number}:").strip())
        if done.returncode and not problems:
            problems.append(f"exit code {done.returncode}: {done.stderr.strip()}")
        check.record(directory, problems)
    check.end()


main()
