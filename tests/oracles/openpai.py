#!/usr/bin/env python3
"""Validates every OpenPAI job against the published protocol schema and the rules of the rest-server (`openpai_rules`)."""

from common import Check, explained, published, read
from openpai_rules import broken_rules


def protocol(path):
    """A validator for one component of an OpenAPI document; 3.0's schema objects are close enough to draft 4."""
    from jsonschema import Draft4Validator
    from referencing import Registry, Resource
    from referencing.jsonschema import DRAFT4

    document = Resource.from_contents(read(path), default_specification=DRAFT4)
    registry = Registry().with_resource("protocol", document)
    return Draft4Validator({"$ref": "protocol#/components/schemas/JobProtocol"}, registry=registry)


def main():
    check = Check("openpai", "jobs")
    path = published("openpai", "v2", "schema.yaml")
    schema = None
    if path is None:
        check.note("the published schema is absent; only the rest-server's rules are checked")
    else:
        try:
            schema = protocol(path)
        except ImportError as error:
            check.missing(error.name)
    for path in check.find("openpai/job.yaml"):
        job = read(path)
        problems = explained(schema.iter_errors(job)) if schema else []
        check.record(path, problems + list(broken_rules(job)))
    check.end()


main()
