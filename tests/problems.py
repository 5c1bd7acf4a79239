"""Tests that find several problems in one run."""

import functools

import pytest


def reports_problems(case):
    """Makes a generator of problems a test: it runs to its end, and fails with all problems, one a line."""
    @functools.wraps(case)
    def test(*arguments, **fixtures):
        problems = []
        try:
            for problem in case(*arguments, **fixtures) or ():
                problems.append(problem)
        except Exception as error:
            if not problems:
                raise
            problems.append(f"{type(error).__name__}: {error}")
        if problems:
            pytest.fail("\n    ".join(problems), pytrace=False)

    return test
