"""Kills `jobc submit` and submits again: the job is never lost and never doubled.

A kill before and after each request of a submission, then kills at random requests and moments of submissions that build and push an
image. `JOBC_SEED` repeats a sequence.
"""

import os
import random
import signal
import threading
import time

import pytest
from cluster import Script

pytestmark = pytest.mark.duration(600)


@pytest.mark.slow
def test_a_killed_submission_is_completed(place):
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
            assert len(jobs) == 1, f"{kind} request {number}: {len(jobs)} jobs"
            assert jobs[0]["metadata"]["annotations"].get("jobc.dev/submitted") and jobs[0]["spec"]["suspend"] is False, f"{kind} request {number}: not started"
            assert f"lab/{jobs[0]['metadata']['name']}" == handle, handle
            assert len(place.cluster.all("configmaps")) <= 1 and len(place.cluster.all("services")) <= 1, "doubled"


class Killer:
    """Kills a process at a request to the cluster or the registry, or after a time."""

    def __init__(self, place, registry, random_):
        self.lock, self.count, self.process = threading.Lock(), 0, None
        self.when = random_.choice(("before", "after"))
        way = random_.choice(("any request", "a push", "a moment"))
        self.at = random_.randint(1, 8 if way == "a push" else 60)
        self.after = random_.uniform(0, 0.5) if way == "a moment" else None
        registry.on_request = self.request
        if way != "a push":
            place.cluster.on_request = lambda _, when: self.request(when)

    def request(self, when):
        with self.lock:
            if when == "before":
                self.count += 1
            if self.after is None and self.count == self.at and when == self.when:
                self.kill()

    def kill(self):
        if self.process is not None and self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGKILL)

    def run(self, place):
        """Submits, and kills the submission; returns whether it was in time."""
        self.process = place.start("submit", "built.yaml")
        if self.after is not None:
            time.sleep(self.after)
            self.kill()
        self.process.communicate(timeout=60)
        return self.process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("kills", [15, pytest.param(1000, marks=pytest.mark.slow)])
def test_random_kills_lose_and_double_nothing(place, registry, kills, note):
    """Each job is submitted until a submission is not killed; its code is new, so that a layer is built and pushed."""
    seed = int(os.environ.get("JOBC_SEED") or random.randrange(1 << 32))
    random_, killed, jobs, pushes = random.Random(seed), 0, 0, 0
    place.cluster.default = Script(late=3600)
    place.build_on(registry)
    while killed < kills:
        place.edit()
        jobs += 1
        while True:
            uploads = registry.count("PUT", "/blobs/uploads/")
            killer = Killer(place, registry, random_)
            was_killed = killer.run(place)
            place.cluster.on_request = registry.on_request = None
            if not was_killed:
                break
            killed += 1
            pushes += registry.count("PUT", "/blobs/uploads/") > uploads
            doubled = len(place.cluster.all("jobs"))
            assert doubled <= jobs, f"seed {seed}: {doubled} jobs instead of {jobs} after kill {killed}"
        handle = place.submit("built.yaml")
        there = place.cluster.all("jobs")
        assert len(there) == jobs, f"seed {seed}: {len(there)} jobs instead of {jobs} after kill {killed}"
        job, = [job for job in there if f"lab/{job['metadata']['name']}" == handle]
        assert job["metadata"]["annotations"].get("jobc.dev/submitted") and job["spec"]["suspend"] is False, f"seed {seed}: not started"
        registry.image(place.image_of(handle))
        owned = [value for plural in ("configmaps", "services") for value in place.cluster.all(plural)]
        uids = {job["metadata"]["uid"] for job in there}
        orphans = [value for value in owned if value["metadata"]["ownerReferences"][0]["uid"] not in uids]
        assert not orphans, f"seed {seed}: {orphans}"
    place.run("image", "verify")
    note(f"{killed} kills of submissions of {jobs} jobs, {pushes} while images were pushed, seed {seed}")
