"""Tests reports of jobs in Chromium (`report.mjs`): layout at three widths, light, dark and printed; accessibility by axe-core."""

import subprocess
from pathlib import Path

import needs
import pytest


@pytest.mark.slow
@pytest.mark.duration(90)
@pytest.mark.needs("node")
def test_reports_look_right_in_a_browser():
    done = subprocess.run(["node", Path(__file__).with_name("report.mjs")], capture_output=True, text=True, check=False)
    if lacking := needs.found(done.stdout):
        needs.missing(next(iter(lacking)))
    assert done.returncode == 0, done.stdout + done.stderr
