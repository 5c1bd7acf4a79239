"""Checks every task's unit properties, in a service, with systemd-analyze, which must report nothing.

A file is either one property, its name the property's and each line a value, or a drop-in ending in `.conf`.
"""

import subprocess

import pytest

pytestmark = pytest.mark.needs("systemd-analyze")
ARTIFACTS = "cgroup/*/systemd"


def service(directory):
    """The lines of a unit with the directory's properties."""
    lines = ["[Service]", "ExecStart=/bin/true"]
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        for line in path.read_text().splitlines():
            if path.suffix == ".conf" and (line.startswith("[") or not line.strip()):
                continue
            lines.append(line if path.suffix == ".conf" else f"{path.name}={line}")
    return lines


def test_systemd_accepts_the_properties_of_a_task(artifact, tmp_path):
    lines, unit = service(artifact), tmp_path / "task.service"
    unit.write_text("\n".join(lines) + "\n")
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, timeout=60)
    problems = ["no properties"] if len(lines) == 2 else []
    for remark in (done.stdout + done.stderr).splitlines():
        if unit.name in remark:
            number = remark.removeprefix(f"{unit}:").partition(":")[0]
            about = f"`{lines[int(number) - 1]}`: " if number.isdigit() else ""
            problems.append(about + remark.removeprefix(f"{unit}:{number}:").strip())
    assert not problems, "\n".join(problems)
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr.strip()}"
