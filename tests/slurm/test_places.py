"""Tests that the commands about jobs do and print the same on Slurm as at every other place."""

import pytest
from place import Place, one
from verbs import RUN, STUBBORN, check_all, check_kill

pytestmark = [pytest.mark.isolated, pytest.mark.needs("root"), pytest.mark.duration(60)]


def test_a_job_on_slurm(slurm):
    place = Place(slurm, "verbs", one("verbs", RUN, instances=2))

    def run(*words, code=0):
        done = place.jobc(*words, code=None)
        assert code is None or done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
        return done.stdout, done.stderr

    check_all(run, place.submit())
    place = Place(slurm, "stubborn", one("stubborn", STUBBORN, instances=2))
    check_kill(run, place.submit())
