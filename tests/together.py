"""Tests of a module that are marked `together` run at the same time, in threads: those that wait most of their time."""

from concurrent.futures import ThreadPoolExecutor

import pytest

STARTED = {}


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
