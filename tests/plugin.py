"""What every suite has beside pytest: tiers, users, namespaces, timeouts, and the counts at the end.

* A test marked `slow` runs without `--quick` only, one marked `alone` runs while no other test does.
* A test with the fixture `account` runs once for each user that its marker `accounts` names; with `vm-` before it, in a virtual machine.
* A test is skipped without the programs that its markers `needs` name, or for other users than `root` if they name that.
* The tests of a module and user run one after the other, in one process; those marked `together` at the same time (`together.py`).
  Those marked `isolated` run in a process of their own, in new namespaces, those marked `vm` in a virtual machine (`isolated.py`).
* A test that takes five times its `duration` fails. It prints the processes of its session, and is interrupted, so that it cleans up.
* With JOBC_TRIES=2, which `.ci/run` sets, a failed test runs once more at the end, alone, and is named as flaky if it passes then.
* At the end there is a line for each test that was skipped, and one with the counts, as JSON also in the file that JOBC_RESULTS names.
  The exit code is 77 if nothing could run.
"""

import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter

import pytest

import isolated
import needs

ACCOUNTS = ("root", "range", "single", "vm-root", "vm-range", "vm-single")
# Until five times its duration, and not before a minute, a test on a busy host is not stopped.
TIMEOUT_FACTOR, MIN_SECONDS = 5, 60


def pytest_addoption(parser):
    group = parser.getgroup("jobc")
    group.addoption("--suite", default="tests", help="name of the suite in the last line")
    group.addoption("--quick", action="store_true", help="without the tests marked `slow`")
    group.addoption("--account", choices=ACCOUNTS, help="only as this user")
    group.addoption("--runtime", default=os.environ.get("RUNTIME"), help="runtime to test: a path, `runc` or `crun`")


def pytest_configure(config):
    if "PYTEST_XDIST_WORKER" not in os.environ and not isolated.inside():
        config.stash[LOCK] = tempfile.TemporaryDirectory(prefix="jobc-tests-")
        os.environ["JOBC_TEST_LOCK"] = config.stash[LOCK].name
    # A background process may have inherited these as ignored; so would everything it starts.
    for number, handler in ((signal.SIGHUP, signal.SIG_DFL), (signal.SIGQUIT, signal.SIG_DFL), (signal.SIGINT, signal.default_int_handler)):
        signal.signal(number, handler)


LOCK = pytest.StashKey()


def pytest_generate_tests(metafunc):
    if "account" not in metafunc.fixturenames:
        return
    marker = next(metafunc.definition.iter_markers("accounts"), pytest.mark.accounts("root").mark)
    slow = marker.kwargs.get("slow", ())
    names = [*marker.args, *([slow] if isinstance(slow, str) else slow)]
    marks = {name: [pytest.mark.slow] * (name not in marker.args) + [pytest.mark.vm] * name.startswith("vm-") for name in names}
    metafunc.parametrize("account", [pytest.param(name, marks=marks[name]) for name in names], indirect=True, scope="module")


@pytest.fixture(scope="module")
def account(request):
    """The unprivileged user that the test is for, or None for root."""
    import user

    return user.named(request.param.removeprefix("vm-"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    for name in dict.fromkeys(name for marker in item.iter_markers("needs") for name in marker.args):
        needs.root() if name == "root" else needs.tool(name)


def pytest_xdist_make_scheduler(config, log):
    """Tests of one group run one after the other: those of a module and user. With `--dist worksteal` each is on its own."""
    if config.option.dist == "worksteal":
        return None
    from xdist.scheduler import LoadScopeScheduling

    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = isolated.group_of
    return scheduler


def pytest_itemcollected(item):
    if marker := item.get_closest_marker("duration"):
        item.add_marker(pytest.mark.timeout(max(MIN_SECONDS, TIMEOUT_FACTOR * marker.args[0])))


def account_of(item):
    """The parameter of the fixture `account`, if the test has it."""
    return item.callspec.params.get("account") if hasattr(item, "callspec") else None


def pytest_collection_modifyitems(config, items):
    chosen = isolated.chosen()
    removed = [item for item in items if (config.option.quick and item.get_closest_marker("slow")) or (chosen is not None and item.nodeid not in chosen)
               or (config.option.account and account_of(item) not in (None, config.option.account))]
    if removed:
        config.hook.pytest_deselected(items=removed)
        items[:] = [item for item in items if item not in removed]
    # A user's tests one after the other, the groups in the order of the files, in each of them those that run together first.
    order = {}
    items.sort(key=lambda item: (order.setdefault(isolated.group_of(item.nodeid), len(order)), item.get_closest_marker("together") is None))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    """A test marked `alone` waits until no other test runs, and others wait for it. `turn` keeps new tests from overtaking it."""
    place = os.environ.get("JOBC_TEST_LOCK")
    if not place or isolated.inside():
        return (yield)
    with open(f"{place}/turn", "w") as turn, open(f"{place}/running", "w") as running:
        fcntl.flock(turn, fcntl.LOCK_EX)
        fcntl.flock(running, fcntl.LOCK_EX if item.get_closest_marker("alone") else fcntl.LOCK_SH)
        fcntl.flock(turn, fcntl.LOCK_UN)
        return (yield)


def pytest_timeout_set_timer(item, settings):
    if isolated.is_for(item):
        return True  # it is the isolated process that has the timer

    def timed_out(*_):
        # In its own namespace it is the first process of a session that the namespace does not have.
        chosen = ["-e"] if isolated.inside() else ["--sid", str(os.getsid(0))]
        columns = ["ps", "-ww", *chosen, "--forest", "--format", "pid,stat,wchan:20,etime,args"]
        processes = subprocess.run(columns, capture_output=True, text=True, errors="replace", check=False).stdout
        pytest.fail(f"timed out after {settings.timeout:.0f} s; its processes were\n{processes}", pytrace=True)

    signal.signal(signal.SIGALRM, timed_out)
    signal.setitimer(signal.ITIMER_REAL, settings.timeout)
    return True


def pytest_timeout_cancel_timer(item):
    signal.setitimer(signal.ITIMER_REAL, 0)
    return True


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    config, reporter = session.config, session.config.pluginmanager.get_plugin("terminalreporter")
    if hasattr(config, "workerinput") or isolated.inside() or exitstatus not in (0, 1) or config.option.collectonly:
        return
    stats = reporter.stats
    failed = {report.nodeid for kind in ("failed", "error") for report in stats.get(kind, [])}
    passed = {report.nodeid for report in stats.get("passed", [])} - failed
    flaky = {nodeid for nodeid in failed if int(os.environ.get("JOBC_TRIES") or 1) > 1 and passes_alone(config, nodeid)}
    skipped, wants, lines = set(), {}, []
    for kind in ("skipped", "failed", "error"):
        for report in stats.get(kind, []):
            text = report.longrepr[2].removeprefix("Skipped: ") if kind == "skipped" else str(report.longrepr)
            if kind == "skipped":
                skipped.add(report.nodeid)
                lines.append(f"{report.nodeid}: skipped: {text}")
            for what, times in needs.found(f"{kind}: skipped: {text}" if kind == "skipped" else text).items():
                wants[what] = wants.get(what, 0) + times
    # Only the last report of a test has all its notes. The same note of several parameters is one line.
    counted = Counter(f"{report.nodeid.partition('[')[0]}: note: {text}" for each in stats.values() for report in each
                      if getattr(report, "when", None) == "teardown" for name, text in report.user_properties if name == "note")
    notes = [f"{text} ({times})" if times > 1 else text for text, times in sorted(counted.items())]
    counts = {"passed": len(passed | flaky), "failed": len(failed - flaky), "skipped": len(skipped)}
    text = [*notes, *sorted(lines), *(f"{nodeid}: FLAKY: failed, then passed alone" for nodeid in sorted(flaky)),
            f"{config.option.suite}: {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped"]
    config.stash[LINES] = text
    if path := os.environ.get("JOBC_RESULTS"):
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"suite": config.option.suite, **counts, "wants": wants}) + "\n")
    session.exitstatus = 1 if counts["failed"] else 0 if counts["passed"] else needs.SKIPPED


LINES = pytest.StashKey()


def pytest_unconfigure(config):
    for line in config.stash.get(LINES, ()):
        print(line, flush=True)
    if directory := config.stash.get(LOCK, None):
        directory.cleanup()


def passes_alone(config, nodeid):
    """Whether a test that failed passes on its second try."""
    words = [sys.executable, "-m", "pytest", "-n", "0", *(["--runtime", config.option.runtime] if config.option.runtime else []), nodeid.partition("::")[0]]
    environment = {name: value for name, value in os.environ.items() if name not in ("JOBC_RESULTS", "JOBC_TRIES")}
    with tempfile.TemporaryFile() as selection:
        isolated.write_selection(selection, [nodeid])
        environment[isolated.SELECTION] = str(selection.fileno())
        return subprocess.run(words, env=environment, check=False, pass_fds=[selection.fileno()], cwd=config.rootpath).returncode == 0


@pytest.fixture
def note(record_property):
    """Adds a note to the result."""
    return lambda text: record_property("note", text)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """A program that is not in PATH is a need of the test, if its absence ended the test."""
    report = yield
    error = call.excinfo.value if call.excinfo else None
    if type(error) is FileNotFoundError and isinstance(error.filename, str) and "/" not in error.filename:
        text = needs.line("", error.filename).removeprefix(": ")
        if needs.required():
            report.longrepr = text
        else:
            report.outcome, report.longrepr = "skipped", (str(item.path), item.location[1], text.replace("skipped", "Skipped"))
    return report


@pytest.fixture(scope="module")
def all_jobs(account):
    """This tree's command line as the user of the test, for the tests of a module."""
    from command_line import Jobs, copy_program
    from harness import scratch

    with scratch() as directory:
        yield Jobs(copy_program(directory), directory, account)


@pytest.fixture
def jobs(all_jobs):
    """This tree's command line as the user of the test; the jobs that a test left are killed."""
    yield all_jobs
    for name in all_jobs.call("ps", "--quiet").stdout.split():
        all_jobs.call("kill", name)
