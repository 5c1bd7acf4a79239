"""Writes every task's files of cgroup v2 to a cgroup of a user-mode kernel, on any host.

The virtual machine has the controllers cpu, io, memory and pids.
"""

import pytest
from cgroup_files import available_controllers, write_task

pytestmark = pytest.mark.vm(memory="512M")
ARTIFACTS = "cgroup/*/v2"


def test_a_kernel_with_cgroup_v2_accepts_the_files_of_a_task(artifact, note):
    problems = write_task(artifact, available_controllers(), note)
    assert not problems, "\n".join(problems)
