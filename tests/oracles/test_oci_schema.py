"""Validates every bundle's config.json against the runtime-spec's JSON Schema, with unknown keys forbidden.

The specification lets a configuration carry keys it does not know; jobc has no reason to write one, so a key the
schema does not list is taken for a spelling mistake.
"""

import json
from pathlib import Path

import needs
import pytest
from documents import draft4, explained, published, read, strict

ARTIFACTS = "oci/*/config.json"
DEBIAN = Path("/usr/share/gocode/src/github.com/opencontainers/runtime-spec/schema")


@pytest.fixture(scope="module")
def schema():
    """The published schemas, or those of Debian's package."""
    directory = published("oci-runtime") or DEBIAN
    if not directory.exists():
        needs.missing("golang-github-opencontainers-specs-dev")
    files = {path.name: strict(json.loads(path.read_text())) for path in directory.glob("*.json")}
    return draft4(files["config-schema.json"], files)


def test_a_configuration_follows_the_runtime_spec(artifact, schema):
    assert not explained(schema.iter_errors(read(artifact)))
