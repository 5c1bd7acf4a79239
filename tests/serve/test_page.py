"""The page of `jobc serve` in Chromium: with the real server, real jobs and real clicks (`page.mjs`)."""

import subprocess

import pytest

import needs
from harness import REPOSITORY

@pytest.mark.duration(60)
def test_jobs_are_watched_and_stopped(steps):
    steps("empty", "watch", "tabs")


@pytest.mark.duration(60)
def test_a_killed_server_comes_back_and_sessions_end(steps):
    steps("killed", "signIn", "readOnly")


@pytest.mark.duration(60)
def test_a_job_is_written_fixed_and_submitted(steps):
    steps("write")


@pytest.mark.slow
@pytest.mark.duration(60)
def test_jobs_run_again_with_changes_and_with_files(steps):
    steps("empty", "again", "upload", "keys")


@pytest.mark.slow
@pytest.mark.duration(60)
def test_jobs_begin_from_examples_templates_and_other_tools(steps):
    steps("sweep", "imported", "template")


@pytest.mark.slow
@pytest.mark.duration(90)
def test_many_jobs_and_long_lines_do_not_freeze_the_page(steps):
    steps("empty", "many", "longLine", "paint", "gpus")


@pytest.mark.slow
@pytest.mark.duration(180)
def test_the_page_is_accessible_in_both_themes_and_at_380_px(steps):
    steps("empty", "sweep", "access")


def test_parts_of_the_page_without_a_browser(steps):
    steps(program="units.mjs")


@pytest.mark.slow
def test_types_of_the_page():
    if not (REPOSITORY / "serve/page/node_modules").exists():
        needs.missing("the page of jobc serve", "`serve/page/build`")
    ran = subprocess.run(["npm", "run", "--silent", "check"], cwd=REPOSITORY / "serve/page", capture_output=True, text=True, errors="replace", check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
