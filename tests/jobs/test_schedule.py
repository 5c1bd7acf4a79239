"""Tests `schedule` of a job: the timer that `jobc build` writes, as systemd reads it."""

import datetime
import random
import re
import subprocess

import pytest

import needs
from command_line import expect

pytestmark = [pytest.mark.isolated, pytest.mark.duration(6), pytest.mark.accounts("root")]

JOB = """\
version: 1
name: {name}
image: host
schedule: {{cron: "{cron}", zone: {zone}}}
roles:
  main:
    shell: sh
    run: echo ran
"""

# The least and the greatest value of each field of crontab(5).
FIELDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))


def values(field, least, greatest):
    """The values of a field, in the simplest way."""
    found = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, last = (least, greatest) if span == "*" else (int(number) for number in (span.split("-") * 2)[:2])
        found |= set(range(first, last + 1, int(step or 1)))
    return found


def next_times(cron, after, count):
    """The next times of an expression, by looking at each minute: crontab(5) wants one of both days where both are written."""
    minutes, hours, days, months, weekdays = (values(field, *bounds) for field, bounds in zip(cron.split(), FIELDS))
    either = cron.split()[2] != "*" and cron.split()[4] != "*"
    found, time = [], after.replace(second=0, microsecond=0)
    while len(found) < count:
        time += datetime.timedelta(minutes=1)
        in_month, in_week = time.day in days, time.isoweekday() % 7 in weekdays
        is_day = (in_month or in_week) if either else (in_month and in_week)
        if not is_day or time.month not in months:
            time = time.replace(hour=23, minute=59)
        elif time.hour not in hours:
            time = time.replace(minute=59)
        elif time.minute in minutes:
            found.append(time)
    return found


def unit(jobs, name, cron, zone="UTC"):
    """Builds the job; returns the directory of its units."""
    path = jobs.directory / f"{name}.yaml"
    path.write_text(JOB.format(name=name, cron=cron, zone=zone))
    expect(jobs.call("build", "--target", "local", str(path), cwd=jobs.directory))
    return jobs.directory / "out" / name / "local" / "oci" / "systemd"


def by_systemd(times, after, count):
    """The next times of one or more values of `OnCalendar=`, as systemd-analyze(1) has them."""
    answer = subprocess.run(["systemd-analyze", "calendar", f"--iterations={count}", f"--base-time={after:%Y-%m-%d %H:%M:%S} UTC", *times],
                            capture_output=True, text=True, check=True, env={"TZ": "UTC", "LC_ALL": "C", "PATH": "/usr/bin:/bin"})
    found = re.findall(r"(?:Next elapse|Iteration #\d+|Iter\. #\d+): \w+ (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC", answer.stdout)
    return sorted({datetime.datetime.fromisoformat(time) for time in found})[:count]


def test_the_timer_has_the_times_of_the_expression(jobs):
    needs.tool("systemd-analyze")
    chance = random.Random(48)

    def number(least, greatest):
        return str(chance.randint(least, greatest))

    def span(least, greatest):
        return "-".join(sorted((number(least, greatest), number(least, greatest)), key=int))

    forms = (lambda *_: "*", number, span, lambda *bounds: f"{number(*bounds)},{span(*bounds)}", lambda *bounds: f"{span(*bounds)}/2")
    after = datetime.datetime(2026, 2, 26, 22, 30)
    crons = ["0 3 * * *", "*/15 9-17 * * 1-5", "30 4 1,15 * 5", "0 0 29 2 *", "59 23 31 12 *"]
    # Days that all months have: 30 February is refused.
    bounds = (*FIELDS[:2], (1, 28), *FIELDS[3:])
    crons += [" ".join(chance.choice(forms)(*bound) for bound in bounds) for _ in range(25)]
    wrong = []
    for place, cron in enumerate(crons):
        timer = (unit(jobs, f"timer-{place}", cron) / f"jobc-timer-{place}.timer").read_text()
        times = re.findall(r"(?m)^OnCalendar=(.*)$", timer)
        expected = next_times(cron, after, 4)
        if by_systemd(times, after, 4) != expected:
            wrong.append((cron, times, expected))
    assert not wrong, wrong


def test_systemd_accepts_the_units_and_they_run_the_job(jobs):
    needs.tool("systemd-analyze")
    directory = unit(jobs, "nightly", "0 3 * * *", "Europe/Berlin")
    service = (directory / "jobc-nightly.service").read_text()
    assert "OnCalendar=*-*-* 03:00:00 Europe/Berlin\n" in (directory / "jobc-nightly.timer").read_text()
    line = re.search(r"(?m)^ExecStart=jobc run (.*)$", service).group(1)
    assert line == "%Y/../.."
    # systemd finds programs in its own directories, and the specifier is newer than some systemds.
    program = jobs.words()[-1]
    (directory / "jobc-nightly.service").write_text(service.replace("jobc run %Y", f"{program} run {directory}"))
    answer = subprocess.run(["systemd-analyze", "verify", "--man=no", directory / "jobc-nightly.service", directory / "jobc-nightly.timer"],
                            capture_output=True, text=True, check=False)
    own = [line for line in answer.stderr.splitlines() if "jobc-nightly" in line]
    assert not own, answer.stderr
    expect(jobs.call("run", *jobs.unenforced, str(directory / "../.."), cwd="/"), out="ran")


def test_a_schedule_is_for_a_timer_and_refused_elsewhere(jobs):
    path = jobs.directory / "over.yaml"
    path.write_text(JOB.format(name="over", cron="0 3 * * *", zone="UTC, overlap: replace"))
    expect(jobs.call("check", "--target", "local", str(path)), code=1, error="a timer of systemd starts nothing that still runs")
    (jobs.directory / "targets.yaml").write_text("version: 1\ntargets: {lab: {backends: [slurm]}, cluster: {backends: [kubernetes]}}\n")
    expect(jobs.call("check", "--target", "lab", str(path), cwd=jobs.directory), code=1, error="scrontab -e")
    path.write_text(path.read_text().replace("main:\n", "main:\n    instances: 2\n"))
    expect(jobs.call("check", "--target", "cluster", str(path), cwd=jobs.directory), code=1, error="names of their own")
    (jobs.directory / "targets.yaml").unlink()
