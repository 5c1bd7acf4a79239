"""Writes every task's cgroup files to a cgroup of this kernel: `v2` on a unified tree, otherwise `v1`."""

import os

import needs
import pytest
from cgroup_files import TREE, UNIFIED, available_controllers, write_task

pytestmark = pytest.mark.needs("root")
ARTIFACTS = f"cgroup/*/{'v2' if UNIFIED else 'v1'}"


@pytest.fixture(scope="module")
def controllers():
    return available_controllers() if os.access(TREE, os.W_OK) else needs.missing("writable cgroups")


def test_the_kernel_accepts_the_cgroup_files_of_a_task(artifact, controllers, note):
    problems = write_task(artifact, controllers, note)
    assert not problems, "\n".join(problems)
