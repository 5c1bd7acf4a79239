#!/usr/bin/env python3
"""Validates every bundle's config.json against the runtime-spec's JSON Schema, with unknown keys forbidden.

The specification lets a configuration carry keys it does not know; jobc has no reason to write one, so a key the
schema does not list is taken for a spelling mistake.
"""

import json
from pathlib import Path

from common import Check, explained, published, read, strict

DEBIAN = Path("/usr/share/gocode/src/github.com/opencontainers/runtime-spec/schema")


def validator(directory):
    """A draft 4 validator whose references are the files of the directory."""
    from jsonschema import Draft4Validator
    from referencing import Registry, Resource
    from referencing.jsonschema import DRAFT4

    files = {path.name: strict(json.loads(path.read_text())) for path in directory.glob("*.json")}
    registry = Registry().with_resources(
        (name, Resource.from_contents(content, default_specification=DRAFT4)) for name, content in files.items())
    return Draft4Validator(files["config-schema.json"], registry=registry)


def main():
    check = Check("oci_schema", "bundles")
    directory = published("oci-runtime")
    if directory is None:
        check.note("the published schemas are absent; those of Debian's package are used instead")
        directory = DEBIAN if DEBIAN.exists() else check.missing("golang-github-opencontainers-specs-dev")
    oci = validator(directory)
    for path in check.find("oci/*/config.json"):
        check.record(path, explained(oci.iter_errors(read(path))))
    check.end()


main()
