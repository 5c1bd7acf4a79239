"""What other registries take: crates that can be published, with the addresses of `cargo binstall`; the SBOM; the formula of Homebrew."""

import hashlib
import json
import os
import re
import shutil
from pathlib import Path

import needs
import pytest
from harness import scratch
from releases import PACKAGING, REPOSITORY, archive, expect, files_below, ran, succeeds

pytestmark = [pytest.mark.needs("cargo", "git"), pytest.mark.duration(20)]
ADDRESS = "https://git.example.com/jobc"
ENVIRONMENT = {**os.environ, "JOBC_REPOSITORY": ADDRESS}
HOMEBREW = Path(__file__).resolve().with_name("homebrew.rb")
# The registry's own limit of a crate is 10 MB.
MAX_CRATE = 10_000_000
# The crate of each program, and on how many platforms a release has it.
PROGRAMS = {"cli": ("jobc", 7), "runtime/oci": ("jobc-oci", 4), "runtime/gpu/nvml": ("jobc-nvml", 4)}
TARGETS = ["x86_64-unknown-linux-gnu", "aarch64-apple-darwin", "x86_64-pc-windows-msvc"]


@pytest.fixture(scope="module")
def version():
    return succeeds(PACKAGING / "version").stdout.strip()


@pytest.fixture(scope="module")
def tree():
    """The sources as they are published."""
    with scratch() as directory:
        succeeds(PACKAGING / "crates", directory / "crates", env=ENVIRONMENT)
        yield directory / "crates"


@pytest.fixture(scope="module")
def packages(tree):
    """The crates that cargo finds in the sources, by name."""
    read = succeeds("cargo", "metadata", "--no-deps", "--offline", "--format-version", "1", cwd=tree)
    return {each["name"]: each for each in json.loads(read.stdout)["packages"]}


def test_no_source_includes_a_file_of_another_crate(tree):
    """The registry's copy would not compile."""
    for manifest in tree.rglob("*/Cargo.toml"):
        nested = [each.parent for each in manifest.parent.rglob("*/Cargo.toml")]
        for source in manifest.parent.rglob("src/**/*.rs"):
            depth = len(source.relative_to(manifest.parent).parts) - 1
            for steps in re.findall(r'include_\w+!\((?:concat!\()?"((?:\.\./)+)', source.read_text()):
                assert steps.count("../") <= depth or any(source.is_relative_to(each) for each in nested), source


def test_crates_have_what_the_registry_asks_for(packages, version):
    assert len(packages) >= 10 and "jobc" in packages and "jobc-tests" not in packages
    for name, package in packages.items():
        directory = Path(package["manifest_path"]).parent
        assert all(package[key] for key in ("description", "license", "readme", "repository", "keywords")), package
        assert package["version"] == version and package["publish"] is None, package
        for file in ("LICENSE-MIT", "LICENSE-APACHE", "README.md"):
            assert (directory / file).exists(), name
        assert sum((directory / each).stat().st_size for each in files_below(directory)) <= MAX_CRATE, name


def test_crates_depend_on_this_version_of_crates_that_are_published(packages, version):
    for name, package in packages.items():
        for needed in package["dependencies"]:
            if needed.get("path"):
                assert (needed["req"], needed["kind"] != "dev", needed["name"] in packages) == (f"={version}", True, True), (name, needed)


@pytest.mark.parametrize("crate", PROGRAMS)
def test_cargo_binstall_finds_each_program_in_an_archive_of_a_release(crate, tree, version):
    program, platforms = PROGRAMS[crate]
    sections = re.findall(r'\[package\.metadata\.binstall\.overrides\.([\w-]+)\]\npkg-url = "(.*)"\nbin-dir = "(.*)"\npkg-fmt = "tgz"',
                          (tree / crate / "Cargo.toml").read_text())
    assert len(sections) == platforms
    for target, url, directory in sections:
        arch, system = target.split("-")[0], {"linux": "linux", "darwin": "macos", "windows": "windows"}[target.split("-")[2]]
        values = {"repo": ADDRESS, "version": version, "bin": program, "binary-ext": ".exe" if system == "windows" else ""}
        url, directory = (re.sub(r"\{ ([\w-]+) \}", lambda found: values[found[1]], template) for template in (url, directory))
        name = f"jobc-{version}-{arch}-{system}"
        assert url == f"{ADDRESS}/releases/download/v{version}/{name}.tar.gz"
        assert directory == f"{name}/bin/{program}{values['binary-ext']}"


@pytest.mark.slow
@pytest.mark.duration(1200)
def test_cargo_packages_and_compiles_each_crate_and_stops_before_the_upload(tree):
    """One after the other, as the registry has them: many minutes, and downloads of their dependencies."""
    target = REPOSITORY / "target/publish"
    try:
        published = succeeds("cargo", "publish", "--workspace", "--dry-run", "--target-dir", target, cwd=tree, timeout=3600)
    finally:
        shutil.rmtree(target, ignore_errors=True)
    uploads = re.findall(r"(?m)^ +Uploading (\S+) ", published.stderr)
    members = re.search(r"members = \[(.*)\]", (tree / "Cargo.toml").read_text())[1].count('"') // 2
    assert len(uploads) == members and uploads[-1:] == ["jobc"]
    assert not re.search(r"(?m)^warning: (?!aborting upload)", published.stderr), published.stderr


@pytest.fixture(scope="module", params=[TARGETS[0], *(pytest.param(name, marks=pytest.mark.slow) for name in TARGETS[1:])])
def sbom(request, shared):
    """The SBOM of a target, which a second run writes again."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    path, again = (Path(succeeds(PACKAGING / "sbom", request.param, shared / name, env=environment).stdout.strip()) for name in ("first", "again"))
    assert path.read_bytes() == again.read_bytes()
    return request.param, path


def test_the_sbom_has_each_crate_with_its_sum_and_license(sbom):
    """And no crate for tests or of another platform."""
    target, path = sbom
    bom = json.loads(path.read_text())
    components = {each["name"]: each for each in bom["components"]}
    assert ("windows-sys" in components, "jobc-container" in components, "insta" in components) == ("windows" in target, "linux" in target, False)
    assert not [name for name, each in components.items() if "hashes" not in each and not name.startswith("jobc")]
    assert all("licenses" in each for each in bom["components"])
    known = {each["bom-ref"] for each in bom["components"]} | {bom["metadata"]["component"]["bom-ref"]}
    assert {each for relation in bom["dependencies"] for each in relation["dependsOn"]} <= known


def test_the_sbom_is_valid_by_the_schema_of_cyclonedx(sbom):
    json_validation, schema = (needs.package(f"cyclonedx.{name}", "cyclonedx-python-lib") for name in ("validation.json", "schema"))
    needs.package("jsonschema")
    validator, text = json_validation.JsonStrictValidator(schema.SchemaVersion.V1_6), sbom[1].read_text()
    assert validator.validate_str(text) is None
    assert validator.validate_str(text.replace('"type": "library"', '"type": "book"', 1))


@pytest.mark.needs("ruby")
def test_the_formula_has_each_archive_and_installs_all_of_it(directory, version):
    """The address and the sum of each platform's archive; its test runs."""
    names = [f"jobc-{version}-{platform}" for platform in ("aarch64-macos", "x86_64-macos", "aarch64-linux", "x86_64-linux")]
    program = b'#!/bin/sh\n[ "$1" = check ] && grep -q "^name: hello$" "$2"\n'
    contents = {"bin/jobc": program, "share/man/man1/jobc.1": b".TH\n", "share/bash-completion/completions/jobc": b"#\n",
                "share/zsh/site-functions/_jobc": b"#\n", "share/fish/vendor_completions.d/jobc.fish": b"#\n",
                "share/doc/jobc/README.md": b"#\n", "share/jobc/schemas/job.v1.schema.json": b"{}\n"}
    for name in names:
        (directory / f"{name}.tar.gz").write_bytes(archive(name, contents))
    succeeds(PACKAGING / "archive", "--sums", directory)
    succeeds(PACKAGING / "formula", directory, env=ENVIRONMENT)
    expect(ran(["ruby", "-wc", directory / "jobc.rb"]), 0, "Syntax OK")
    for system, processor, name in (("macos", "arm", names[0]), ("macos", "intel", names[1]), ("linux", "arm", names[2]), ("linux", "intel", names[3])):
        packed = directory / f"{name}.tar.gz"
        lines = [version, ADDRESS, f"{ADDRESS}/releases/download/v{version}/{packed.name}", hashlib.sha256(packed.read_bytes()).hexdigest()]
        expect(ran(["ruby", HOMEBREW, directory / "jobc.rb", system, processor]), 0, "\n".join(lines))
    shutil.unpack_archive(directory / f"{names[3]}.tar.gz", directory / "unpacked")
    expect(ran(["ruby", HOMEBREW, directory / "jobc.rb", "linux", "intel", directory / "unpacked" / names[3], directory / "prefix"]))
    installed = [each for each in files_below(directory / "prefix") if (directory / "prefix" / each).is_file()]
    assert len(installed) == len(contents) and "share/jobc/schemas/job.v1.schema.json" in installed
