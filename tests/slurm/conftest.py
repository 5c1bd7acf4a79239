"""The cluster of a module. Its tests that are marked `together` run at the same time, in threads: most of them wait for Slurm."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), *(str(HERE.parent / name) for name in ("gpu", "images", "remote"))]

from cluster import cluster

STARTED = {}


def pytest_configure(config):
    config.addinivalue_line("markers", "together(number): so many of these tests of the module run at a time")


def pytest_collection_modifyitems(items):
    """Tests that use the whole cluster come after those that run together."""
    items.sort(key=lambda item: (str(item.path), item.get_closest_marker("together") is None))


@pytest.fixture(scope="module")
def slurm():
    with cluster() as slurm:
        yield slurm


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """The first of these tests starts all of them, with the fixtures of the module; each waits for its own end."""
    if not (marker := pyfuncitem.get_closest_marker("together")):
        return None
    if pyfuncitem.module not in STARTED:
        pool = ThreadPoolExecutor(*marker.args)
        items = [item for item in pyfuncitem.session.items if item.module is pyfuncitem.module and item.get_closest_marker("together")]
        STARTED[pyfuncitem.module] = {item.nodeid: pool.submit(item.obj, **arguments(item, pyfuncitem.funcargs)) for item in items}
    STARTED[pyfuncitem.module][pyfuncitem.nodeid].result()
    return True


def arguments(item, fixtures):
    own = item.callspec.params if hasattr(item, "callspec") else {}
    return {name: own[name] if name in own else fixtures[name] for name in item._fixtureinfo.argnames}
