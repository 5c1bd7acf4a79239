#!/usr/bin/env python3
"""Every Dockerfile through hadolint, style rules included, with no configuration file.

A rule may be switched off only by an inline `# hadolint ignore=` line, and only one that stands below.
"""

import re
import subprocess

from common import Check

# What jobc may switch off, and why following the rule would be wrong for a file made from a job.
MAY_BE_IGNORED = {
    "DL3006": "the job's author chose the reference; a missing tag is a warning of the compiler's own",
    "DL3007": "the same for `latest`",
    "DL3008": "a distribution's mirror drops old versions, so a pinned one stops building; a job may pin, need not",
    "DL3013": "packages from a requirements file are pinned there; a job may leave others to pip",
    "DL3002": "a job that asks for root gets root",
    "DL3059": "one layer a step, so that a changed step does not repeat the ones before it",
    "DL3066": "the job's author chose a user by name",
}
PRAGMA = re.compile(r"^\s*#\s*hadolint\s+(?:global\s+)?ignore\s*=\s*(.+)$", re.MULTILINE)


def findings(hadolint, path):
    """What hadolint says of one file, run where it finds no configuration of a person's or a project's."""
    nowhere = {"HOME": "/nonexistent", "XDG_CONFIG_HOME": "/nonexistent", "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    done = subprocess.run([hadolint, "--no-color", "--failure-threshold", "style", str(path)],
                          capture_output=True, text=True, timeout=60, cwd="/", env=nowhere)
    said = (done.stdout + done.stderr).replace(f"{path}:", "line ").splitlines()
    return said or [f"exit code {done.returncode}"] if done.returncode else []


def main():
    check = Check("dockerfile", "files")
    hadolint = check.tool("hadolint")
    for path in check.find("dockerfile/*/Dockerfile"):
        ignored = {rule.strip() for line in PRAGMA.findall(path.read_text()) for rule in line.split(",")}
        problems = [f"ignores {rule}, which is not in the list of rules that may be" for rule in
                    sorted(ignored - set(MAY_BE_IGNORED))]
        for rule in sorted(ignored & set(MAY_BE_IGNORED)):
            check.note(f"{rule} is ignored inline: {MAY_BE_IGNORED[rule]}")
        problems += findings(hadolint, path.resolve())
        check.record(path, problems)
    check.end()


main()
