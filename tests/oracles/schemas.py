#!/usr/bin/env python3
"""Validates our schemas against the metaschema, then jobs, targets files and plans against ours, with check-jsonschema.

A root that holds a `schemas` directory is checked against that one, any other against the repository's.
"""

import subprocess

from common import REPOSITORY, Check, read

IMPORTED = ("protocolVersion", "jobName")


def main():
    check = Check("schemas", "files")
    program = check.tool("check-jsonschema")
    for root in check.roots:
        schemas = root / "schemas" if (root / "schemas").is_dir() else REPOSITORY / "schemas"
        ours = sorted(schemas.glob("*.schema.json"))
        validate(check, [program, "--check-metaschema"], ours)
        files = {"job": [path for path in sorted(root.rglob("job.yaml")) if own(path)],
                 "targets": sorted(root.rglob("targets.yaml")), "plan": sorted(root.rglob("plan.json"))}
        for kind, listed in files.items():
            schema = schemas / f"{kind}.v1.schema.json"
            if listed and schema.exists():
                validate(check, [program, "--schemafile", str(schema)], listed)
            elif listed:
                check.fail(schema, f"is absent, so {len(listed)} files were not checked")
    check.end()


def own(path):
    """Whether a job.yaml is in our language, not an OpenPAI file."""
    content = read(path)
    if path.parent.name == "openpai" or isinstance(content, dict) and set(IMPORTED) & set(content):
        return False
    return True


def validate(check, command, files):
    """Runs the program once for all files; if it fails, once for each, to count and name them."""
    if not files:
        return
    if subprocess.run([*command, *map(str, files)], capture_output=True, timeout=300).returncode == 0:
        check.checked += len(files)
        return
    for path in files:
        done = subprocess.run([*command, str(path)], capture_output=True, text=True, timeout=300)
        check.record(path, (done.stdout + done.stderr).strip().splitlines() if done.returncode else [])


main()
