"""Runs tests in a process with new namespaces, so that other jobs on the host and their claims, names and ports do not matter.

The process is a pytest of its own, the first process of its namespace. It runs the tests of one module and user, and passes their
reports on through a pipe.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time

import pytest

import needs

# File descriptors: of the tests to run, and for their reports.
SELECTION, REPORTS = "JOBC_TEST_SELECTION", "JOBC_TEST_REPORTS"
NAMESPACES = ["--pid", "--mount", "--net", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"]
PROGRAMS = ("unshare", "setpriv", "mount", "ip")
# The parameter of the fixture `account` in the id of a test.
USER = re.compile(r"[\[-](root|range|single)(?=[\]-])")
# How long after its timeout a test may clean up.
GRACE = 20


def inside():
    """Whether this is the isolated process."""
    return REPORTS in os.environ


def is_for(item):
    """Whether the test runs in another process than this one."""
    return not inside() and item.get_closest_marker("isolated") is not None


def write_selection(file, nodeids):
    file.write(json.dumps(nodeids).encode())
    file.flush()
    file.seek(0)


def chosen():
    """The tests that this process is to run; None for all."""
    descriptor = os.environ.get(SELECTION)
    return None if descriptor is None else set(json.loads(os.pread(int(descriptor), 1 << 24, 0)))


class Process:
    """The process of the tests of a group."""

    def __init__(self, config, items):
        nodeids = [item.nodeid for item in items]
        self.output, (read, write) = tempfile.TemporaryFile(), os.pipe()
        self.reports, self.pending, self.received = os.fdopen(read, "rb"), b"", []
        os.set_blocking(read, False)
        options = config.option
        words = [sys.executable, "-m", "pytest", "-n", "0", *(["--runtime", options.runtime] if options.runtime else []), str(items[0].path)]
        with tempfile.TemporaryFile() as selection:
            write_selection(selection, nodeids)
            environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
            environment |= {SELECTION: str(selection.fileno()), REPORTS: str(write)}
            self.process = subprocess.Popen(["unshare", *NAMESPACES, *words], env=environment, pass_fds=[selection.fileno(), write], stdin=subprocess.DEVNULL,
                                            stdout=self.output, stderr=subprocess.STDOUT, start_new_session=True, cwd=config.rootpath)
        os.close(write)

    def next_report(self, nodeid, deadline):
        """The next report of a test, or None if the process has ended or takes too long."""
        while True:
            for report in self.received:
                if report["nodeid"] == nodeid:
                    self.received.remove(report)
                    return report
            ended = self.process.poll() is not None
            piece = self.reports.read() or b""
            *lines, self.pending = (self.pending + piece).split(b"\n")
            self.received += map(json.loads, lines)
            if piece:
                continue
            if ended or time.monotonic() > deadline:
                return None
            time.sleep(0.02)

    def end(self):
        """Kills the process and what it left, and returns its output."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.output.seek(0)
        return self.output.read().decode(errors="replace")


def group_of(nodeid):
    """The group of a test: its module, and its user if it has one."""
    user = USER.search(nodeid.partition("::")[2])
    return f"{nodeid.partition('::')[0]} {user[1] if user else ''}"


def lacking():
    """What the namespaces need and this host lacks."""
    import shutil

    if os.geteuid() != 0:
        return "root"
    return next((name for name in PROGRAMS if not shutil.which(name)), None)


RUNNING = {}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    if not is_for(item):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    if what := lacking():
        skip(item, what)
    else:
        forward(item)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def forward(item):
    """Passes the reports of the isolated process on as those of the test."""
    group = group_of(item.nodeid)
    if group not in RUNNING:
        items = [each for each in item.session.items if group_of(each.nodeid) == group]
        RUNNING[group] = Process(item.config, items), items[-1].nodeid
    process, last = RUNNING[group]
    marker = item.get_closest_marker("timeout")
    seconds = (marker.args[0] if marker else float(item.config.getini("timeout"))) + GRACE
    while True:
        data = process.next_report(item.nodeid, time.monotonic() + seconds)
        if data is None:
            lines = process.end()[-4000:]
            report(item, "call", "failed", f"its process ended, or did not end in time:\n{lines}")
            report(item, "teardown", "passed", None)
            break
        item.ihook.pytest_runtest_logreport(report=item.config.hook.pytest_report_from_serializable(config=item.config, data=data))
        if data["when"] == "teardown":
            break
    if item.nodeid == last:
        try:
            process.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            pass
        process.end()


def report(item, when, outcome, longrepr):
    made = pytest.TestReport(item.nodeid, item.location, {}, outcome, longrepr, when)
    item.ihook.pytest_runtest_logreport(report=made)


def skip(item, what):
    text = needs.line(item.name, what).partition(": ")[2]
    if needs.required():
        report(item, "setup", "failed", f"{item.name}: {text}")
    else:
        report(item, "setup", "skipped", (str(item.path), item.location[1], f"Skipped: {text.removeprefix('skipped: ')}"))
    report(item, "teardown", "passed", None)


def pytest_sessionstart(session):
    if inside():
        for place, mode in (("/tmp", "1777"), ("/run", "755"), ("/dev/shm", "1777")):
            subprocess.run([session.config.rootpath / "tests/fresh", place, mode], check=True)
        os.mkdir("/run/lock")
        os.chmod("/run/lock", 0o1777)
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def pytest_runtest_logreport(report):
    if inside():
        from _pytest.reports import pytest_report_to_serializable

        with os.fdopen(int(os.environ[REPORTS]), "wb", closefd=False) as file:
            file.write(json.dumps(pytest_report_to_serializable(report), default=str).encode() + b"\n")
