"""The cluster of a module."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), *(str(HERE.parent / name) for name in ("gpu", "images", "remote"))]

from cluster import cluster

@pytest.fixture(scope="module")
def slurm():
    with cluster() as slurm:
        yield slurm
