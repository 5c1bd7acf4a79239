"""Validates every OpenPAI job against the published protocol schema and the rules of the rest-server (`openpai_rules`)."""

import functools

from documents import draft4, explained, published, read
from openpai_rules import broken_rules

ARTIFACTS = "openpai/job.yaml"


@functools.cache
def protocol():
    """A validator for one component of an OpenAPI document, whose schema objects are close enough to draft 4; None without the document."""
    path = published("openpai", "v2", "schema.yaml")
    return path and draft4({"$ref": "protocol#/components/schemas/JobProtocol"}, {"protocol": read(path)})


def test_a_job_follows_the_protocol(artifact, note):
    job = read(artifact)
    if protocol():
        problems = explained(protocol().iter_errors(job))
    else:
        problems = []
        note("the published schema is absent; only the rest-server's rules are checked")
    problems += broken_rules(job)
    assert not problems, "\n".join(problems)
