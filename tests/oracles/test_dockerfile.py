"""Checks every Dockerfile with hadolint, with style rules and without a configuration file.

A rule may be ignored only by an inline `# hadolint ignore=` line, and only a rule of the list below.
"""

import re
import subprocess

import needs

ARTIFACTS = "dockerfile/*/Dockerfile"

# Rules that jobc may ignore, and why the rule is wrong for a Dockerfile generated from a job.
MAY_BE_IGNORED = {
    "DL3006": "the job's author chose the reference; the compiler itself warns about a missing tag",
    "DL3007": "the same for `latest`",
    "DL3008": "a distribution's mirror drops old versions, so a pinned one stops building; a job may pin, but need not",
    "DL3013": "packages from a requirements file are pinned there; a job may leave others to pip",
    "DL3002": "a job that requests root gets root",
    "DL3059": "one layer per step, so that a changed step does not repeat the steps before it",
    "DL3066": "the job's author chose a user by name",
}
PRAGMA = re.compile(r"^\s*#\s*hadolint\s+(?:global\s+)?ignore\s*=\s*(.+)$", re.MULTILINE)


def findings(path):
    """The findings of hadolint for one file, without a configuration of a user or a project."""
    nowhere = {"HOME": "/nonexistent", "XDG_CONFIG_HOME": "/nonexistent", "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    done = subprocess.run([needs.tool("hadolint"), "--no-color", "--failure-threshold", "style", str(path)],
                          capture_output=True, text=True, timeout=60, cwd="/", env=nowhere)
    output = (done.stdout + done.stderr).replace(f"{path}:", "line ").splitlines()
    return output or [f"exit code {done.returncode}"] if done.returncode else []


def test_a_dockerfile_follows_the_rules_of_hadolint(artifact, note):
    ignored = {rule.strip() for line in PRAGMA.findall(artifact.read_text()) for rule in line.split(",")}
    forbidden = [f"ignores {rule}, which is not in the list of allowed rules" for rule in sorted(ignored - set(MAY_BE_IGNORED))]
    for rule in sorted(ignored & set(MAY_BE_IGNORED)):
        note(f"{rule} is ignored inline: {MAY_BE_IGNORED[rule]}")
    problems = forbidden + findings(artifact)
    assert not problems, "\n".join(problems)
