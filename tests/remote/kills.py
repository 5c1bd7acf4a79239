#!/usr/bin/env python3
"""Kills `jobc submit` before and after each request that it sends, and submits again: the job is never lost and never doubled."""

import os
import signal

from fixture import expect, run_cases
from harness import Harness


def a_killed_submission_is_completed(place):
    """A kill before and after each request of a submission, then the same command again."""
    place.submit()
    total = len(place.cluster.requests)
    for kind in ("before", "after"):
        for number in range(1, total + 1):
            for job in place.cluster.all("jobs"):
                place.cluster.drop(("batch/v1", "jobs", "ml", job["metadata"]["name"]))
            place.cluster.requests.clear()
            process = place.start("submit", "one.yaml")

            def kill(count, when):
                if count == number and when == kind and process.poll() is None:
                    os.kill(process.pid, signal.SIGKILL)
                    process.wait()

            place.cluster.on_request = kill
            process.communicate()
            place.cluster.on_request = None
            handle = place.submit()
            jobs = place.cluster.all("jobs")
            expect(len(jobs) == 1, f"{kind} request {number}: {len(jobs)} jobs")
            expect(jobs[0]["metadata"]["annotations"].get("jobc.dev/submitted") and jobs[0]["spec"]["suspend"] is False,
                   f"{kind} request {number}: not started")
            expect(f"lab/{jobs[0]['metadata']['name']}" == handle, handle)
            expect(len(place.cluster.all("configmaps")) <= 1 and len(place.cluster.all("services")) <= 1, "doubled")


if __name__ == "__main__":
    run_cases(Harness("kills", __doc__), [a_killed_submission_is_completed])
