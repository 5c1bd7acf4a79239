"""Tests `run`, the script for hosts with GPUs, on a simulated host: each row that needs no image passes."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
from fake_gpus import fake_gpus
import needs
import pytest

pytestmark = [pytest.mark.isolated, pytest.mark.slow, pytest.mark.duration(150), pytest.mark.accounts("root")]

# The host has no MIG instance, and no root file system of another distribution.
NOT_AVAILABLE = {"a MIG instance", "an image with its own glibc", "the same with a CDI file"}


def test_every_row_passes_on_a_simulated_host(jobs):
    """The table has the hardware, marked as simulated, and no row fails."""
    fake_gpus(needs)
    needs.tool("strace")
    table = jobs.directory / "table.md"
    words = [sys.executable, HERE / "run", "--fake", "--jobc", str(jobs.program), "--output", str(table)]
    answer = subprocess.run(words, capture_output=True, text=True, env=os.environ, check=False)
    lines = table.read_text().splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("|")]
    bad = [row for row in rows if row[1:2] == ["**failed**"]]
    lacking = [row[0] for row in rows if row[1:2] == ["not available"] and not any(row[0].startswith(name) for name in NOT_AVAILABLE)]
    assert answer.returncode == 0 and not bad and not lacking, json.dumps([bad, lacking, answer.stderr[-2000:]], indent=1)
    assert any("1 × NVIDIA H200, 143,771 MiB" in line for line in lines) and any("simulated: no hardware was used" in line for line in lines)
    assert re.fullmatch(r"\d+ passed, 0 failed, 3 not available\.", lines[-1]), lines[-1]
