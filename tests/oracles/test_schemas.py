"""Validates our schemas against the metaschema, then jobs, targets files and plans against ours, with check-jsonschema.

A directory that holds a `schemas` directory is checked against that one, any other against the repository's.
"""

import subprocess

import needs
import pytest
from artifacts import REPOSITORY
from documents import read

pytestmark = pytest.mark.duration(60)
ARTIFACTS = None
IMPORTED = {"protocolVersion", "jobName"}


def own(path):
    """Whether a job.yaml is in our language, not an OpenPAI file."""
    content = read(path)
    return path.parent.name != "openpai" and not (isinstance(content, dict) and IMPORTED & set(content))


def assert_valid(files, *options):
    """check-jsonschema must accept the files; its output names each that is invalid."""
    if files:
        done = subprocess.run([needs.tool("check-jsonschema"), *options, *files], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr


def test_our_schemas_are_valid():
    assert_valid(sorted((REPOSITORY / "schemas").glob("*.schema.json")), "--check-metaschema")


def test_files_are_valid_by_their_schemas(artifact):
    schemas = REPOSITORY / "schemas"
    if (artifact / "schemas").is_dir():
        schemas = artifact / "schemas"
        assert_valid(sorted(schemas.glob("*.schema.json")), "--check-metaschema")
    for kind, files in (("job", [path for path in sorted(artifact.rglob("job.yaml")) if own(path)]),
                        ("targets", sorted(artifact.rglob("targets.yaml"))), ("plan", sorted(artifact.rglob("plan.json")))):
        schema = schemas / f"{kind}.v1.schema.json"
        if files:
            assert schema.exists(), f"{schema}: is absent, so {len(files)} files were not checked"
            assert_valid(files, "--schemafile", schema)
