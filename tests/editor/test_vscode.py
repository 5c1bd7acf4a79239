"""The extension for VS Code, its packages, and the same for browsers: the web extension and the playground. Both have the compiler as WebAssembly.

It is one module, so that no two tests build in the same directories.
"""

import gzip
import re
import subprocess
import zipfile

import pytest

import needs
from harness import REPOSITORY

EXTENSION = REPOSITORY / "editors/vscode"
# A dependency or a build adds nothing to the package.
FILES = set("""
LICENSE.md changelog.md dist/LICENSE-APACHE dist/LICENSE-MIT dist/extension.js dist/schemas/plan.v1.schema.json dist/third-party-licences.txt
images/file.svg images/icon.png package.json readme.md syntaxes/jobc-json.tmLanguage.json syntaxes/jobc.tmLanguage.json syntaxes/json.json
syntaxes/yaml.json walkthrough/build.md walkthrough/complete.md walkthrough/fix.md walkthrough/new.md walkthrough/plan.md walkthrough/program.md
""".split())


def entries(archive):
    return {entry.filename.removeprefix("extension/"): entry for entry in archive.infolist() if entry.filename.startswith("extension/")}


@pytest.mark.parametrize("script", ["check", "test"])
def test_types_and_unit_tests_pass(npm, script):
    npm("vscode", script)


def test_a_package_of_a_platform_has_the_program(tmp_path, monkeypatch):
    if not (EXTENSION / "node_modules").exists():
        needs.missing("npm packages")
    needs.tool("node")

    monkeypatch.setenv("JOBC_REPOSITORY", "https://example.com/jobc")

    def package(platform):
        return subprocess.run(["node", "package.mjs", platform, tmp_path], cwd=EXTENSION, capture_output=True, text=True, check=False)

    assert package("linux-x64").returncode != 0, "a package without its program"
    (tmp_path / "jobc").write_text("#!/bin/sh\n")
    assert package("linux-x99").returncode != 0, "a package of an unknown platform"
    assert package("win32-x64").returncode != 0, "a package without its program"
    made = package("linux-x64")
    assert made.returncode == 0, made.stdout + made.stderr
    with zipfile.ZipFile(EXTENSION / "dist/jobc-linux-x64.vsix") as archive:
        files, manifest = entries(archive), archive.read("extension.vsixmanifest").decode()
    assert set(files) == FILES | {"bin/jobc"}
    assert files["bin/jobc"].external_attr >> 16 & 0o777 == 0o755
    assert re.search(r'<Identity [^>]*TargetPlatform="linux-x64"', manifest) and 'Links.Source" Value="https://example.com/jobc"' in manifest


def test_the_package_has_no_other_files(package):
    with zipfile.ZipFile(package) as archive:
        assert set(entries(archive)) == FILES
    assert package.stat().st_size <= 200_000


@pytest.mark.parametrize("directory", ["editors/vscode", "editors/web", "serve/page", "tests/editor"])
def test_a_lock_file_does_not_name_a_registry(directory):
    assert '"resolved"' not in (REPOSITORY / directory / "package-lock.json").read_text(), "strip the lines `resolved`"


@pytest.mark.slow
def test_scripts_are_highlighted_in_their_languages(check):
    check("grammar")


@pytest.mark.slow
@pytest.mark.duration(300)
def test_vscode_completes_and_checks_jobs(check, package):
    check("vscode")


@pytest.fixture(scope="module")
def site(npm):
    """The playground; the package of the web extension is built too."""
    npm("web", "check")
    built = subprocess.run([REPOSITORY / "editors/web/build"], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    npm("vscode", "package:web")
    return REPOSITORY / "target/web"


@pytest.mark.slow
@pytest.mark.duration(300)
def test_the_compiler_for_browsers_stays_small(site):
    # A larger one contains something that it does not need.
    assert len(gzip.compress((site / "jobc.wasm").read_bytes(), 6)) <= 3_100_000


@pytest.mark.slow
@pytest.mark.duration(300)
def test_the_playground_builds_what_the_command_line_builds(check, site):
    check("web")


@pytest.mark.slow
@pytest.mark.duration(300)
def test_the_web_extension_shows_what_the_command_line_prints(check, site):
    check("vscode_web")
