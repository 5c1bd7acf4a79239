"""The files of editors/ci and .github: published schemas (check-jsonschema), shellcheck of their scripts, pre-commit's own parser.

With built programs, pre-commit also installs the hook from this repository and runs it.
"""

import os
import re
import sys

import needs
import pytest
from releases import REPOSITORY, expect, ran, release, server, succeeds

pytestmark = [pytest.mark.needs("git"), pytest.mark.duration(20)]
ACTION, GITLAB = REPOSITORY / "editors/ci/setup-jobc/action.yml", REPOSITORY / "editors/ci/gitlab.yml"
SCHEMAS = [("vendor.github-actions", ACTION, "using: composite", "using: composed"),
           ("vendor.gitlab-ci", GITLAB, "  script:", "  scripts:"),
           *(("vendor.github-workflows", path, "    runs-on:", "    run-on:") for path in sorted((REPOSITORY / ".github/workflows").glob("*.yml")))]


def document(path):
    return needs.package("yaml", "PyYAML").safe_load(path.read_text())


@pytest.mark.parametrize("name, path, text, mutation", [
    pytest.param(*each, id=each[1].name, marks=[pytest.mark.slow] * (each[1].name in ("advisories.yml", "clean.yml", "release.yml", "scorecard.yml"))) for each in SCHEMAS
])
def test_a_file_is_valid_and_with_a_mutation_it_is_not(name, path, text, mutation, directory):
    needs.package("check_jsonschema", "check-jsonschema")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", name]
    if name == "vendor.gitlab-ci":
        command += ["--data-transform", "gitlab-ci"]
    succeeds(*command, path)
    mutant = directory / path.name
    mutant.write_text(path.read_text().replace(text, mutation))
    expect(ran([*command, mutant]), 1, "validation errors")


def test_the_workflow_of_the_guide_is_valid(directory):
    """Also with the steps that the guide adds for pull requests."""
    needs.package("check_jsonschema", "check-jsonschema")
    workflow, _, steps = re.findall(r"^```yaml\n(.*?)^```$", (REPOSITORY / "docs/guides/ci.md").read_text(), re.M | re.S)
    assert workflow.startswith("name: ") and steps.startswith("- run: jobc diff")
    (directory / "jobs.yml").write_text(workflow + "".join(f"      {line}\n" for line in steps.splitlines()))
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", directory / "jobs.yml"]
    succeeds(*command)
    (directory / "jobs.yml").write_text(workflow.replace("runs-on", "run-on"))
    expect(ran(command), 1, "validation errors")


@pytest.mark.parametrize("path", [ACTION, REPOSITORY / ".github/workflows/release.yml"], ids=lambda path: path.name)
def test_shellcheck_has_no_findings_in_the_scripts(path, directory):
    """Expressions are replaced by a word."""
    steps = [step for job in document(path).get("jobs", {"action": document(path).get("runs")}).values() for step in job["steps"]]
    scripts = [re.sub(r"\$\{\{.*?\}\}", "expression", step["run"]) for step in steps if "run" in step]
    assert scripts
    for script in scripts:
        (directory / "script.sh").write_text(script)
        succeeds(needs.tool("shellcheck"), "--shell", "bash", directory / "script.sh")
    # An expression in a script is text that the shell parses: a name with a quote would end up as a command.
    assert not re.findall(r"(?m)^\s+(?:- )?run: .*\$\{\{.*$", path.read_text())


@pytest.mark.needs("curl")
def test_the_installing_step_of_the_action_installs_and_writes_the_outputs(directory):
    """It runs as GitHub runs it, with a server on loopback."""
    step = next(each for each in document(ACTION)["runs"]["steps"] if each.get("id") == "install")
    root = directory / "releases"
    release(root, "0.3.0", {"bin/jobc": b"#!/bin/sh\necho jobc 0.3.0\n"})
    for name in ("path", "output"):
        (directory / name).touch()
    with server(root) as address:
        environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "VERSION": "", "JOBC_DOWNLOAD": address, "PREFIX": f"{directory}/jobc",
                       "ACTION": str(ACTION.parent), "GITHUB_PATH": f"{directory}/path", "GITHUB_OUTPUT": f"{directory}/output"}
        expect(ran(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]], env=environment), 0, "installed jobc 0.3.0")
    assert (directory / "output").read_text() == "version=0.3.0\n"
    assert (directory / "path").read_text() == f"{directory}/jobc/bin\n"


def test_actions_are_pinned_to_commits():
    """With the version behind each, which Dependabot keeps up to date; one action has one commit."""
    used = {}
    for path in [ACTION, *sorted((REPOSITORY / ".github/workflows").glob("*.yml"))]:
        for action in re.findall(r"^\s+(?:- )?uses: (.*)$", path.read_text(), re.M):
            found = re.fullmatch(r"([\w./-]+)@([0-9a-f]{40}) # (v\d+\.\d+\.\d+)", action)
            assert found, f"{path.name}: {action}: not pinned to a commit, with its version behind it"
            assert used.setdefault(found[1], found.groups()) == found.groups(), f"{path.name}: {action}: another file has {used[found[1]]}"
    assert len(used) >= 10


def test_dependabot_looks_where_there_is_something(directory):
    """Its file is valid, and each directory has what its ecosystem reads."""
    needs.package("check_jsonschema", "check-jsonschema")
    path = REPOSITORY / ".github/dependabot.yml"
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.dependabot"]
    succeeds(*command, path)
    (directory / "dependabot.yml").write_text(path.read_text().replace("interval: monthly", "interval: fortnightly"))
    expect(ran([*command, directory / "dependabot.yml"]), 1, "validation errors")
    reads = {"cargo": "Cargo.toml", "npm": "package.json", "pip": "requirements.txt"}
    for update in document(path)["updates"]:
        for place in update.get("directories", [update.get("directory")]) if update["package-ecosystem"] in reads else []:
            assert (REPOSITORY / place.strip("/") / reads[update["package-ecosystem"]]).exists(), f"{place}: nothing for {update['package-ecosystem']}"


@pytest.mark.parametrize("path", sorted((REPOSITORY / ".github/ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.name)
def test_a_form_for_issues_is_valid(path):
    """Reports of bugs and platforms ask for what somebody needs to repeat them."""
    needs.package("check_jsonschema", "check-jsonschema")
    kind = "issue-config" if path.name == "config.yml" else "issue-forms"
    succeeds(sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.github-{kind}", path)
    if path.name in ("bug.yml", "platform.yml"):
        asked = {field["id"]: field["attributes"]["label"] for field in document(path)["body"] if "id" in field}
        assert asked["doctor"] == "`jobc doctor --format json`" and asked["job"] == "Job file"


def test_pre_commit_accepts_the_manifest_of_the_hook():
    needs.package("pre_commit", "pre-commit")
    succeeds(sys.executable, "-m", "pre_commit", "validate-manifest", REPOSITORY / ".pre-commit-hooks.yaml")


@pytest.mark.slow
def test_pre_commit_installs_the_hook_passes_a_good_job_and_fails_a_bad_one(directory, binaries):
    """From the last commit of this repository."""
    needs.package("pre_commit", "pre-commit")
    repository = directory / "repository"
    repository.mkdir()
    good = (REPOSITORY / "examples/hello-cpu/job.yaml").read_text()
    environment = {"PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}", "HOME": str(directory), "PRE_COMMIT_HOME": str(directory / "cache"),
                   "JOBC_BINARIES": str(binaries), "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    settings = {"cwd": repository, "env": environment}
    succeeds("git", "init", "--quiet", **settings)
    for text, code, output in ((good, 0, "Passed"), (good.replace("instances:", "intances:"), 1, "intances")):
        (repository / "job.yaml").write_text(text)
        succeeds("git", "add", "job.yaml", **settings)
        expect(ran([sys.executable, "-m", "pre_commit", "try-repo", REPOSITORY, "jobc-check", "--ref", "HEAD", "--files", "job.yaml"], **settings), code, output)
