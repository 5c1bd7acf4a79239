"""Tests bills of materials of images: cyclonedx-python-lib validates them against the published schema, packageurl-python reads their
package URLs, and dpkg-query and importlib.metadata list the same packages as the databases that the image has.
"""

import importlib.metadata
import json
import subprocess
from pathlib import Path

import pytest

import needs
from harness import REPOSITORY
from home import Home, assert_result
from registry import command

pytestmark = [pytest.mark.duration(8), pytest.mark.needs("umoci", "skopeo", "dpkg-query")]

PYTHON = REPOSITORY / ".oracles/venv/bin/python"
# Prints what is wrong with a document on standard input, one problem a line.
VALIDATE = """
import json, sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL
text = sys.stdin.read()
wrong = JsonStrictValidator(SchemaVersion.V1_5).validate_str(text)
if wrong is not None:
    print(wrong)
for component in json.loads(text)["components"]:
    purl = component.get("purl")
    if purl and PackageURL.from_string(purl).to_string() != purl:
        print(f"{purl} is not {PackageURL.from_string(purl).to_string()}")
"""
APK = "C:Q1x\nP:musl\nV:1.2.5-r0\nA:x86_64\nL:MIT\n\nC:Q1y\nP:busybox\nV:1.36.1-r29\nA:x86_64\nL:GPL-2.0-only\n\n"
CONDA = {"name": "numpy", "version": "1.26.4", "build": "py312h_0", "channel": "https://me:hunter2@conda.example/t/abc/main", "subdir": "linux-64",
         "license": "BSD-3-Clause"}


def assert_valid(text):
    """The validators find nothing."""
    ran = subprocess.run([PYTHON, "-c", VALIDATE], input=text, capture_output=True, text=True, check=False)
    assert ran.returncode == 0 and not ran.stdout, ran.stdout + ran.stderr


def layout(directory):
    """An image with Debian's database of this host, Python's metadata of this interpreter, and small ones of apk and conda; a layer above
    removes a package."""
    place, files = directory / "layout", directory / "files"
    for path, text in (("lib/apk/db/installed", APK), ("opt/conda/conda-meta/numpy-1.26.4-py312h_0.json", json.dumps(CONDA)),
                       ("etc/os-release", 'ID=debian\nVERSION_ID="12"\nPRETTY_NAME="Debian"\n'), ("var/lib/rpm/rpmdb.sqlite", "x"),
                       ("opt/gone/site-packages/gone-1.dist-info/METADATA", "Name: gone\nVersion: 1\n"),
                       ("var/lib/dpkg/status", Path("/var/lib/dpkg/status").read_text())):
        (files / path).parent.mkdir(parents=True, exist_ok=True)
        (files / path).write_text(text)
    for found in importlib.metadata.distributions():
        if text := found.read_text("METADATA"):
            path = files / f"usr/lib/python3/site-packages/{found.name}-{found.version}.dist-info/METADATA"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    command("umoci", "init", "--layout", place)
    command("umoci", "new", "--image", f"{place}:1")
    command("umoci", "insert", "--image", f"{place}:1", files, "/")
    archive(directory, place, "base:1")
    command("umoci", "insert", "--image", f"{place}:1", "--whiteout", "/opt/gone")
    archive(directory, place, "app:1")


def archive(directory, place, name):
    command("skopeo", "copy", f"oci:{place}:1", f"oci-archive:{directory / name.split(':')[0]}.tar:{name}")


def versions(document, kind):
    """The packages of a kind, as names and versions."""
    return {(each["name"], each["version"]) for each in document["components"] if each.get("purl", "").startswith(f"pkg:{kind}/")}


@pytest.fixture(scope="module")
def home(shared):
    """A home with the images `base:1` and `app:1`."""
    if not PYTHON.exists() or subprocess.run([PYTHON, "-c", "import cyclonedx.validation.json, jsonschema, packageurl"], capture_output=True, check=False).returncode:
        needs.missing("cyclonedx-python-lib")
    layout(shared)
    home = Home(shared)
    for name in ("base", "app"):
        assert_result(home.run("image", "import", f"{name}.tar"))
    return home


@pytest.fixture(scope="module")
def text(home):
    """The bill of materials of `app:1`."""
    made = home.run("image", "sbom", "app:1")
    assert_result(made)
    return made.stdout


@pytest.fixture(scope="module")
def document(text):
    return json.loads(text)


@pytest.fixture(scope="module")
def installed():
    """The packages of this host."""
    shown = command("dpkg-query", "--show", "--showformat", "${db:Status-Status} ${Package} ${Version}\n").stdout.splitlines()
    return {tuple(line.split()[1:]) for line in shown if line.startswith("installed ")}


def test_a_bill_of_materials_is_valid_and_always_has_the_same_bytes(home, text):
    assert_valid(text)
    assert_result(home.run("image", "sbom", "app:1", "-o", home.directory / "again.json"))
    assert (home.directory / "again.json").read_text() == text


def test_it_has_the_packages_that_package_managers_list(document, installed):
    assert versions(document, "deb") == installed
    assert versions(document, "pypi") == {(each.metadata["Name"], each.version) for each in importlib.metadata.distributions() if each.read_text("METADATA")}
    assert versions(document, "apk") == {("musl", "1.2.5-r0"), ("busybox", "1.36.1-r29")}
    assert versions(document, "conda") == {("numpy", "1.26.4")}


def test_it_has_no_secrets(text):
    assert "hunter2" not in text and "/t/abc" not in text


def test_it_has_the_base_and_the_layers(home, document):
    component = document["metadata"]["component"]
    base, app = (json.loads(home.run("image", "inspect", name).stdout) for name in ("base:1", "app:1"))
    assert [each["version"] for each in component.get("pedigree", {}).get("ancestors", [])] == [base["digest"]]
    layers = [each["value"] for each in component["properties"] if each["name"] == "dev.jobc.layer"]
    assert layers == [each["digest"] for each in app["manifest"]["layers"]]


def test_it_says_what_is_not_read(document):
    assert any("rpmdb.sqlite" in each["value"] for each in document["metadata"]["properties"])


def test_builds_write_bills_of_materials(home, installed):
    directory = home.directory
    (directory / "job.yaml").write_text("version: 1\nname: app\nimage: base:1\nroles:\n  main:\n    resources: {gpu: 0}\n    run: 'true'\n")
    assert_result(home.run("build", "--target", "local", "--sbom", "sboms"))
    assert_valid((directory / "sboms/app/local/main.cdx.json").read_text())
    (directory / "Dockerfile").write_text("FROM base:1\nCOPY job.yaml /job.yaml\n")
    assert_result(home.run("image", "build", "--tag", "made:1", "--sbom", "app.json", "."))
    text = (directory / "app.json").read_text()
    assert_valid(text)
    assert versions(json.loads(text), "deb") == installed


def test_an_unknown_image_has_none(home):
    assert home.run("image", "sbom", "none:1").returncode
