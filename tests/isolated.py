"""Runs tests in a process with new namespaces, so that other jobs on the host and their claims, names and ports do not matter, or in a
virtual machine (`tests/vm/uml`).

The process is a pytest of its own, the first process of its namespace. It runs the tests of one module and user, and passes their
reports on through a pipe, or from a virtual machine through a file.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

import needs

TESTS = Path(__file__).resolve().parent
# The tests to run, and where their reports go: file descriptors, in a virtual machine paths.
SELECTION, REPORTS = "JOBC_TEST_SELECTION", "JOBC_TEST_REPORTS"
NAMESPACES = ["--pid", "--mount", "--net", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"]
PROGRAMS = ("unshare", "setpriv", "mount", "ip")
# What tests in a virtual machine need beside root; with systemd as its first process, more.
VM_PROGRAMS, SYSTEMD_PROGRAMS = ("linux.uml", "setpriv"), ("dbus-daemon", "systemctl", "/lib/systemd/systemd")
# The parameters of a test that decide in which process it runs: the user of the fixture `account`, and a virtual machine.
PARAMETERS = re.compile(r"[\[-](root|range|single|vm)(?=[\]-])")
# How long after its timeout a test may clean up, and how long a virtual machine may take to start.
GRACE, BOOT = 20, 120


def inside():
    """Whether this is the isolated process."""
    return REPORTS in os.environ


def is_for(item):
    """Whether the test runs in another process than this one."""
    return not inside() and any(item.get_closest_marker(name) for name in ("isolated", "vm"))


def open_in_environment(name, mode):
    """The file whose descriptor or path a variable has."""
    place = os.environ[name]
    return os.fdopen(int(place), mode, closefd=False) if place.isdigit() else open(place, mode)


def write_selection(file, nodeids):
    file.write(json.dumps(nodeids).encode())
    file.flush()
    file.seek(0)


def chosen():
    """The tests that this process is to run; None for all."""
    if SELECTION not in os.environ:
        return None
    with open_in_environment(SELECTION, "rb") as file:
        file.seek(0)
        return set(json.load(file))


class Process:
    """The process of the tests of a group."""

    def __init__(self, config, items):
        self.output, self.pending, self.received = tempfile.TemporaryFile(), b"", []
        self.vm = items[0].get_closest_marker("vm")
        nodeids, options = [item.nodeid for item in items], config.option
        words = [sys.executable, "-m", "pytest", "-n", "0", *(["--runtime", options.runtime] if options.runtime else []), str(items[0].path)]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        streams = {"stdin": subprocess.DEVNULL, "stdout": self.output, "stderr": subprocess.STDOUT, "start_new_session": True, "cwd": config.rootpath}
        if self.vm:
            self.place = tempfile.TemporaryDirectory(prefix="jobc-vm-")
            selection, reports = (Path(self.place.name, name) for name in ("selection", "reports"))
            selection.write_text(json.dumps(nodeids))
            self.reports = reports.open("w+b")
            make_users()
            limit = BOOT + sum(seconds_of(item) + GRACE for item in items)
            machine = ["-c", self.vm.kwargs.get("cgroups", "v2"), "-m", self.vm.kwargs.get("memory", "1G"), "-t", str(int(limit)), "-w", self.place.name]
            self.process = subprocess.Popen([TESTS / "vm/uml", *machine, *words], env=environment | {SELECTION: str(selection), REPORTS: str(reports)}, **streams)
            return
        read, write = os.pipe()
        self.reports = os.fdopen(read, "rb")
        os.set_blocking(read, False)
        with tempfile.TemporaryFile() as selection:
            write_selection(selection, nodeids)
            environment |= {SELECTION: str(selection.fileno()), REPORTS: str(write)}
            self.process = subprocess.Popen(["unshare", *NAMESPACES, *words], env=environment, pass_fds=[selection.fileno(), write], **streams)
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
            # The kernel of a virtual machine and its processes are in the session too.
            if self.vm:
                subprocess.run(["pkill", "-KILL", "--session", str(self.process.pid)], check=False)
            self.process.kill()
            self.process.wait()
        self.output.seek(0)
        return self.output.read().decode(errors="replace")


def group_of(nodeid):
    """The group of a test: its module, and its user and virtual machine if it has one."""
    module, _, name = nodeid.partition("::")
    return " ".join([module, *PARAMETERS.findall(name)])


def seconds_of(item):
    """The timeout of a test."""
    marker = item.get_closest_marker("timeout")
    return marker.args[0] if marker else float(item.config.getini("timeout"))


def make_users():
    """Creates the users of tests, which cannot be done in a virtual machine."""
    import user

    user.with_range()
    user.without_range()


def lacking(item):
    """What the namespaces or the virtual machine need and this host lacks."""
    if os.geteuid() != 0:
        return "root"
    vm = item.get_closest_marker("vm")
    systemd = SYSTEMD_PROGRAMS if vm and vm.kwargs.get("cgroups", "").startswith("systemd") else ()
    name = next((name for name in ((*VM_PROGRAMS, *systemd) if vm else PROGRAMS) if not shutil.which(name)), None)
    return name and name.rpartition("/")[2]


RUNNING = {}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    if not is_for(item):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    if what := lacking(item):
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
    seconds = seconds_of(item) + GRACE + (BOOT if process.vm else 0)
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
    # A virtual machine has all of this.
    if inside() and os.environ[REPORTS].isdigit():
        for place, mode in (("/tmp", "1777"), ("/run", "755"), ("/dev/shm", "1777")):
            subprocess.run([session.config.rootpath / "tests/fresh", place, mode], check=True)
        os.mkdir("/run/lock")
        os.chmod("/run/lock", 0o1777)
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def pytest_runtest_logreport(report):
    if inside():
        from _pytest.reports import pytest_report_to_serializable

        with open_in_environment(REPORTS, "ab") as file:
            file.write(json.dumps(pytest_report_to_serializable(report), default=str).encode() + b"\n")
