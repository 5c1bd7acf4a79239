#!/usr/bin/env python3
"""The files of editors/ci and .github: published schemas (check-jsonschema), shellcheck of their scripts, pre-commit's own parser.

With programs in JOBC_BINARIES, pre-commit also installs the hook from this repository and runs it.
"""

import os
import re
from pathlib import Path

from releases import REPOSITORY, Harness, expect, ran, release, scratch, server

VENV = REPOSITORY / ".oracles/venv/bin"
ACTION, GITLAB = REPOSITORY / "editors/ci/setup-jobc/action.yml", REPOSITORY / "editors/ci/gitlab.yml"
SCHEMAS = [("vendor.github-actions", ACTION, "using: composite", "using: composed"),
           ("vendor.gitlab-ci", GITLAB, "  script:", "  scripts:"),
           *(("vendor.github-workflows", path, "    runs-on:", "    run-on:") for path in sorted((REPOSITORY / ".github/workflows").glob("*.yml")))]


def schema(name, path, text, mutation, directory):
    """A file is valid, and with a mutation it is not."""
    command = [VENV / "python", "-m", "check_jsonschema", "--builtin-schema", name]
    if name == "vendor.gitlab-ci":
        command += ["--data-transform", "gitlab-ci"]
    yield from expect(ran([*command, path]))
    mutant = directory / path.name
    mutant.write_text(path.read_text().replace(text, mutation))
    yield from expect(ran([*command, mutant]), 1, "validation errors")


def scripts_of(path):
    """The texts of `run`, with expressions replaced by a word."""
    import yaml
    steps = []
    document = yaml.safe_load(path.read_text())
    for job in document.get("jobs", {"action": document.get("runs")}).values():
        steps += job["steps"]
    return [re.sub(r"\$\{\{.*?\}\}", "expression", step["run"]) for step in steps if "run" in step]


def shellcheck(path, directory):
    scripts = scripts_of(path)
    for script in scripts:
        (directory / "script.sh").write_text(script)
        yield from expect(ran([VENV / "shellcheck", "--shell", "bash", directory / "script.sh"]))
    if not scripts:
        yield "no scripts"
    # An expression in a script is text that the shell parses: a name with a quote would end up as a command.
    for line in re.findall(r"(?m)^\s+(?:- )?run: .*\$\{\{.*$", path.read_text()):
        yield f"an expression in a script: {line.strip()}"


def step_of_action(directory):
    """The installing step of the action, run as GitHub does, installs from a server on loopback and writes the outputs."""
    import yaml

    root = directory / "releases"
    root.mkdir()
    release(root, "0.3.0", {"bin/jobc": b"#!/bin/sh\necho jobc 0.3.0\n"})
    step = next(each for each in yaml.safe_load(ACTION.read_text())["runs"]["steps"] if each.get("id") == "install")
    for name in ("path", "output"):
        (directory / name).touch()
    with server(root) as address:
        environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "VERSION": "", "JOBC_DOWNLOAD": address, "PREFIX": f"{directory}/jobc",
                       "ACTION": str(ACTION.parent), "GITHUB_PATH": f"{directory}/path", "GITHUB_OUTPUT": f"{directory}/output"}
        yield from expect(ran(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]], env=environment), 0, "installed jobc 0.3.0")
    if (directory / "output").read_text() != "version=0.3.0\n" or (directory / "path").read_text() != f"{directory}/jobc/bin\n":
        yield f"outputs {(directory / 'output').read_text()!r}, {(directory / 'path').read_text()!r}"


def precommit(directory, binaries):
    """pre-commit installs the hook from the last commit of this repository, passes a good job and fails a bad one."""
    repository = directory / "repository"
    repository.mkdir()
    good = (REPOSITORY / "examples/hello-cpu/job.yaml").read_text()
    environment = {"PATH": f"{VENV}:{os.environ['PATH']}", "HOME": str(directory), "PRE_COMMIT_HOME": str(directory / "cache"),
                   "JOBC_BINARIES": str(binaries), "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    ran(["git", "init", "--quiet"], cwd=repository, env=environment)
    for text, code, output in ((good, 0, "Passed"), (good.replace("instances:", "intances:"), 1, "intances")):
        (repository / "job.yaml").write_text(text)
        ran(["git", "add", "job.yaml"], cwd=repository, env=environment)
        yield from expect(ran([VENV / "python", "-m", "pre_commit", "try-repo", REPOSITORY, "jobc-check", "--ref", "HEAD", "--files", "job.yaml"],
                              cwd=repository, env=environment), code, output)


def main():
    harness = Harness("workflows", __doc__)
    harness.parse()
    if not (VENV / "check-jsonschema").exists():
        harness.missing("check-jsonschema")
    harness.tool("git")
    for name, path, text, mutation in SCHEMAS:
        with scratch() as directory:
            harness.check(f"schema of {path.name}", schema(name, path, text, mutation, directory))
    try:
        import yaml  # noqa: F401
    except ImportError:
        harness.lacks("steps and scripts", "PyYAML")
    else:
        with scratch() as directory:
            harness.check("a step of the action", step_of_action(directory))
        for path in [ACTION, REPOSITORY / ".github/workflows/release.yml"]:
            if (VENV / "shellcheck").exists():
                with scratch() as directory:
                    harness.check(f"scripts of {path.name}", shellcheck(path, directory))
            else:
                harness.lacks(f"scripts of {path.name}", "shellcheck")
    if (VENV / "pre-commit").exists():
        harness.check("pre-commit's manifest", expect(ran([VENV / "python", "-m", "pre_commit", "validate-manifest", REPOSITORY / ".pre-commit-hooks.yaml"])))
        if binaries := os.environ.get("JOBC_BINARIES"):
            with scratch() as directory:
                harness.check("pre-commit's hook", precommit(directory, Path(binaries)))
    else:
        harness.lacks("pre-commit", "pre-commit")
    harness.end()


main()
