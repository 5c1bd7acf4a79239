"""The OpenAPI document, by programs of others."""

import json
import os
import subprocess
import sys

import needs
import pytest

from service import job

pytestmark = [pytest.mark.isolated, pytest.mark.duration(20)]


@pytest.fixture(scope="module")
def document(service):
    answer = service.raw("GET", "/api/v1/openapi.json")
    assert answer.status == 200, "it needs no token"
    file = service.directory / "openapi.json"
    file.write_bytes(answer.bytes)
    return file


def test_document_is_valid(document):
    validator = needs.package("openapi_spec_validator", "openapi-spec-validator")
    validator.validate(json.loads(document.read_text()), cls=validator.OpenAPIV31SpecValidator)


@pytest.mark.needs("openapi-python-client")
def test_generated_client(service, document):
    words = [needs.tool("openapi-python-client"), "generate", "--path", str(document), "--output-path", str(service.directory / "client"), "--meta", "none", "--overwrite"]
    environment = os.environ | {"PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"}
    made = subprocess.run(words, capture_output=True, text=True, check=False, env=environment, cwd=service.directory)
    assert made.returncode == 0, made.stdout + made.stderr
    # It reads neither archives nor YAML.
    left_out = [line for line in (made.stdout + made.stderr).splitlines() if "WARNING" in line]
    assert left_out == ["WARNING parsing GET /api/v1/jobs/{ref}/artifacts within jobs.", "WARNING parsing POST /api/v2/jobs within jobs. Endpoint will not be generated."], made.stdout + made.stderr
    program = f"""
import sys; sys.path.insert(0, {str(service.directory)!r})
from client import AuthenticatedClient
from client.api.jobs import submit, list_jobs, show_job
from client.api.check import check
from client.models import Submit, JobText
client = AuthenticatedClient(base_url="http://127.0.0.1:{service.port}", token={service.token!r})
started = submit.sync(client=client, body=Submit(text={job("generated")!r}))
found = check.sync(client=client, body=JobText(text="version: 1"))
print(started.ref, found.errors > 0, [row["id"] for row in list_jobs.sync(client=client).jobs], show_job.sync(started.ref, client=client)["job"])
"""
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert answer.stdout.strip() == "generated.1 True ['generated.1'] generated", answer.stdout + answer.stderr


@pytest.mark.slow
@pytest.mark.duration(180)
@pytest.mark.needs("schemathesis")
@pytest.mark.parametrize("of_job", [False, True], ids=["any", "of-a-job"])
def test_no_request_breaks_it(make, of_job):
    """Requests made of the document, valid and not: no answer is a 500, has another form than it says, or takes long. Then those of a job that
    is there; what would remove it is left out."""
    service = make()
    more = []
    if of_job:
        service.ok("POST", "/jobs", {"text": job("fuzzed", "echo one; echo result=2")})
        service.until("fuzzed.1", "succeeded")
        user = service.ok("GET", "/session")["user"]
        settings = service.directory / "schemathesis.toml"
        settings.write_text(f'[parameters]\n"path.ref" = "fuzzed.1"\n"path.name" = "{user}~fuzzed"\n')
        more = ["--include-path-regex", r"\{(ref|name)\}", "--exclude-method", "DELETE"]
    words = [needs.tool("schemathesis"), *(["--config-file", str(settings)] if of_job else []), "run", f"http://127.0.0.1:{service.port}/api/v1/openapi.json",
             "--header", f"Authorization: Bearer {service.token}", "--checks", "not_a_server_error,content_type_conformance,response_schema_conformance",
             "--max-examples", "20", "--seed", "1", "--rate-limit", "40/s", "--request-timeout", "30", "--phases", "examples,coverage,fuzzing",
             "--exclude-path-regex", "/(exec|language|doctor)$", "--continue-on-failure", "--no-color", *more]
    answer = subprocess.run(words, capture_output=True, text=True, check=False, timeout=900, cwd=service.directory)
    assert answer.returncode == 0, answer.stdout[-6000:] + answer.stderr
    assert service.call("GET", "/session").status == 200
    assert "internal error" not in service.log.read_text()
