"""The schema and the language server, in scripted editors and in real ones."""

import pytest


@pytest.mark.slow
@pytest.mark.duration(60)
def test_the_schema_reports_what_jobc_reports(check):
    check("schema")


@pytest.mark.slow
@pytest.mark.duration(60)
def test_the_language_server_answers_as_the_command_line_does(check):
    check("server")


def test_neovim_shows_and_fixes_findings(check):
    check("neovim")


@pytest.mark.slow
def test_emacs_shows_and_fixes_findings(check):
    check("emacs")
