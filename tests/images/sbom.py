#!/usr/bin/env python3
"""Tests bills of materials of images: cyclonedx-python-lib validates them against the published schema, packageurl-python reads their
package URLs, and dpkg-query and importlib.metadata list the same packages as the databases that the image has.
"""

import importlib.metadata
import json
import subprocess
from pathlib import Path

from home import Home
from harness import Harness, scratch
from registry import command, unexpected_result

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".oracles/venv/bin/python"
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
CONDA = {"name": "numpy", "version": "1.26.4", "build": "py312h_0", "channel": "https://me:secret@conda.example/t/abc/main", "subdir": "linux-64",
         "license": "BSD-3-Clause"}


def problems(text):
    """What the validators find."""
    ran = subprocess.run([PYTHON, "-c", VALIDATE], input=text, capture_output=True, text=True, check=False)
    return [*ran.stdout.splitlines(), *([ran.stderr] if ran.returncode else [])]


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


def same(found, expected):
    return [f"only in the document: {sorted(found - expected)[:5]}, only there: {sorted(expected - found)[:5]}"] if found != expected else []


def main():
    harness = Harness("sbom", __doc__)
    harness.parse()
    for tool in ("umoci", "skopeo", "dpkg-query"):
        harness.tool(tool)
    if not PYTHON.exists() or subprocess.run([PYTHON, "-c", "import cyclonedx.validation.json, jsonschema, packageurl"], capture_output=True, check=False).returncode:
        harness.missing("cyclonedx-python-lib")
    with scratch() as directory:
        directory = Path(directory)
        home = Home(directory)
        layout(directory)
        for name in ("base", "app"):
            harness.check(f"import {name}", unexpected_result(home.run("image", "import", f"{name}.tar")))
        made = home.run("image", "sbom", "app:1")
        harness.check("a document", unexpected_result(made))
        document = json.loads(made.stdout)
        harness.check("valid", problems(made.stdout))
        again = home.run("image", "sbom", "app:1", "-o", directory / "again.json")
        harness.check("the same bytes", [*unexpected_result(again), *([] if (directory / "again.json").read_text() == made.stdout else ["they differ"])])
        shown = command("dpkg-query", "--show", "--showformat", "${db:Status-Status} ${Package} ${Version}\n").stdout.splitlines()
        installed = {tuple(line.split()[1:]) for line in shown if line.startswith("installed ")}
        harness.check("the packages of dpkg-query", same(versions(document, "deb"), installed))
        python = {(each.metadata["Name"], each.version) for each in importlib.metadata.distributions() if each.read_text("METADATA")}
        harness.check("the packages of importlib.metadata", same(versions(document, "pypi"), python))
        harness.check("the packages of apk", same(versions(document, "apk"), {("musl", "1.2.5-r0"), ("busybox", "1.36.1-r29")}))
        harness.check("the packages of conda", same(versions(document, "conda"), {("numpy", "1.26.4")}))
        harness.check("no secrets", ["the channel has its password"] if "secret" in made.stdout or "/t/abc" in made.stdout else [])
        main_component = document["metadata"]["component"]
        base = json.loads(home.run("image", "inspect", "base:1").stdout)["digest"]
        ancestors = [each["version"] for each in main_component.get("pedigree", {}).get("ancestors", [])]
        harness.check("the base", [] if ancestors == [base] else [f"{ancestors}, not {base}"])
        manifest = json.loads(home.run("image", "inspect", "app:1").stdout)["manifest"]
        layers = [each["value"] for each in main_component["properties"] if each["name"] == "dev.jobc.layer"]
        harness.check("the layers", [] if layers == [each["digest"] for each in manifest["layers"]] else [str(layers)])
        notes = [each["value"] for each in document["metadata"]["properties"]]
        harness.check("what is not read", [] if any("rpmdb.sqlite" in note for note in notes) else [str(notes)])
        (directory / "job.yaml").write_text("version: 1\nname: app\nimage: base:1\nroles:\n  main:\n    resources: {gpu: 0}\n    run: 'true'\n")
        built = home.run("build", "--target", "local", "--sbom", "sboms")
        written = directory / "sboms/app/local/main.cdx.json"
        harness.check("build --sbom", [*unexpected_result(built), *(problems(written.read_text()) if written.exists() else ["it is not there"])])
        (directory / "Dockerfile").write_text("FROM base:1\nCOPY job.yaml /job.yaml\n")
        built = home.run("image", "build", "--tag", "made:1", "--sbom", "app.json", ".")
        text = (directory / "app.json").read_text() if (directory / "app.json").exists() else "{}"
        harness.check("image build --sbom", [*unexpected_result(built), *problems(text),
                                             *same(versions(json.loads(text), "deb") if len(text) > 2 else set(), installed)])
        missing = home.run("image", "sbom", "none:1")
        harness.check("an unknown image", [] if missing.returncode != 0 else [missing.stdout])
    harness.end()


if __name__ == "__main__":
    main()
