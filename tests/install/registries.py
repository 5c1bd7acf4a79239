#!/usr/bin/env python3
"""What other registries take: crates that can be published, with the addresses of `cargo binstall`; the SBOM; the formula of Homebrew.

`--only publish` compiles every crate as cargo has packaged it, which takes many minutes and downloads their dependencies.
"""

import hashlib
import json
import os
import re
import shutil
from pathlib import Path

from releases import PACKAGING, REPOSITORY, Harness, archive, expect, files_below, ran, scratch

ADDRESS = "https://git.example.com/jobc"
ENVIRONMENT = {**os.environ, "JOBC_REPOSITORY": ADDRESS}
HOMEBREW = Path(__file__).resolve().with_name("homebrew.rb")
# The registry's own limit of a crate is 10 MB.
MAX_CRATE = 10_000_000
VALIDATE = """import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
for path in sys.argv[1:]:
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(path).read())
    if error:
        sys.exit(f"{path}: {error}")
"""


def jobc_version():
    return ran([PACKAGING / "version"]).stdout.strip()


def outside(tree):
    """Paths in sources that lead out of their crate: the registry's copy would not compile."""
    for manifest in tree.rglob("*/Cargo.toml"):
        nested = [each.parent for each in manifest.parent.rglob("*/Cargo.toml")]
        for source in manifest.parent.rglob("src/**/*.rs"):
            depth = len(source.relative_to(manifest.parent).parts) - 1
            for steps in re.findall(r'include_\w+!\((?:concat!\()?"((?:\.\./)+)', source.read_text()):
                if steps.count("../") > depth and not any(source.is_relative_to(each) for each in nested):
                    yield f"{source.relative_to(tree)} includes a file of another directory"


def crates(tree, version):
    """Each crate has what the registry asks for, and depends on this version of crates that are published before it."""
    yield from expect(ran([PACKAGING / "crates", tree], env=ENVIRONMENT))
    yield from outside(tree)
    read = ran(["cargo", "metadata", "--no-deps", "--offline", "--format-version", "1"], cwd=tree)
    yield from expect(read)
    packages = {each["name"]: each for each in json.loads(read.stdout or '{"packages": []}')["packages"]}
    if len(packages) < 10 or "jobc" not in packages or "jobc-tests" in packages:
        yield f"published: {sorted(packages)}"
    for name, package in packages.items():
        directory = Path(package["manifest_path"]).parent
        for key in ("description", "license", "readme", "repository", "keywords"):
            if not package[key]:
                yield f"{name}: no {key}"
        if package["version"] != version or package["publish"] is not None:
            yield f"{name}: version {package['version']}, publish {package['publish']}"
        for file in ("LICENSE-MIT", "LICENSE-APACHE", "README.md"):
            if not (directory / file).exists():
                yield f"{name}: no {file}"
        size = sum((directory / each).stat().st_size for each in files_below(directory))
        if size > MAX_CRATE:
            yield f"{name}: {size} bytes"
        for needed in package["dependencies"]:
            if needed.get("path") and (needed["req"] != f"={version}" or needed["kind"] == "dev" or needed["name"] not in packages):
                yield f"{name} depends on {needed['name']} {needed['req']}"


def binstall(tree, version):
    """`cargo binstall` finds each program in an archive of a release, at the place where it is published."""
    expected = {"cli": ["jobc"], "runtime/oci": ["jobc-oci"], "runtime/gpu/nvml": ["jobc-nvml"]}
    for crate, programs in expected.items():
        text = (tree / crate / "Cargo.toml").read_text()
        sections = re.findall(r'\[package\.metadata\.binstall\.overrides\.([\w-]+)\]\npkg-url = "(.*)"\nbin-dir = "(.*)"\npkg-fmt = "tgz"', text)
        if len(sections) != (7 if crate == "cli" else 4):
            yield f"{crate}: {len(sections)} platforms"
        for target, url, directory in sections:
            arch, system = target.split("-")[0], {"linux": "linux", "darwin": "macos", "windows": "windows"}[target.split("-")[2]]
            values = {"repo": ADDRESS, "version": version, "bin": programs[0], "binary-ext": ".exe" if system == "windows" else ""}

            def rendered(template, values=values):
                return re.sub(r"\{ ([\w-]+) \}", lambda found: values[found[1]], template)
            name = f"jobc-{version}-{arch}-{system}"
            if rendered(url) != f"{ADDRESS}/releases/download/v{version}/{name}.tar.gz":
                yield f"{crate}, {target}: {rendered(url)}"
            if rendered(directory) != f"{name}/bin/{programs[0]}{values['binary-ext']}":
                yield f"{crate}, {target}: {rendered(directory)}"


def publishes(tree, target):
    """cargo packages each crate, compiles the packages one after the other as the registry has them, and stops before the upload."""
    yield from expect(ran([PACKAGING / "crates", tree], env=ENVIRONMENT))
    published = ran(["cargo", "publish", "--workspace", "--dry-run", "--target-dir", target], cwd=tree, timeout=3600)
    yield from expect(published)
    uploads = re.findall(r"(?m)^ +Uploading (\S+) ", published.stderr)
    members = re.search(r"members = \[(.*)\]", (tree / "Cargo.toml").read_text())[1].count('"') // 2
    if len(uploads) != members or uploads[-1:] != ["jobc"]:
        yield f"{len(uploads)} crates of {members}, the last is {uploads[-1:]}"
    if re.search(r"(?m)^warning: (?!aborting upload)", published.stderr):
        yield published.stderr


def sbom(python, directory):
    """The SBOM follows CycloneDX's schema, has the sum of each crate of the registry, and no crate for tests or of another platform."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    for target in ("x86_64-unknown-linux-gnu", "aarch64-apple-darwin", "x86_64-pc-windows-msvc"):
        written = ran([PACKAGING / "sbom", target, directory], env=environment)
        yield from expect(written)
        if written.returncode:
            return
        path = Path(written.stdout.strip())
        again = ran([PACKAGING / "sbom", target, directory / "again"], env=environment)
        yield from expect(again)
        if path.read_bytes() != (directory / "again" / path.name).read_bytes():
            yield f"{path.name} differs between two runs"
        bom = json.loads(path.read_text())
        names = {each["name"] for each in bom["components"]}
        if ("windows-sys" in names) != ("windows" in target) or ("jobc-container" in names) != ("linux" in target) or "insta" in names:
            yield f"{path.name}: {sorted(names)}"
        yield from (f"{path.name}: no sum of {each['name']}" for each in bom["components"] if "hashes" not in each and not each["name"].startswith("jobc"))
        yield from (f"{path.name}: no license of {each['name']}" for each in bom["components"] if "licenses" not in each)
        known = {each["bom-ref"] for each in bom["components"]} | {bom["metadata"]["component"]["bom-ref"]}
        yield from (f"{path.name}: unknown {each}" for relation in bom["dependencies"] for each in relation["dependsOn"] if each not in known)
        if python:
            yield from expect(ran([python, "-c", VALIDATE, path]))
            (directory / "broken.json").write_text(path.read_text().replace('"type": "library"', '"type": "book"', 1))
            yield from expect(ran([python, "-c", VALIDATE, directory / "broken.json"]), 1, "broken.json")


def formula(ruby, directory, version):
    """The formula has the address and the sum of each platform's archive; what it installs is complete, and its test runs."""
    names = [f"jobc-{version}-{platform}" for platform in ("aarch64-macos", "x86_64-macos", "aarch64-linux", "x86_64-linux")]
    program = b'#!/bin/sh\n[ "$1" = check ] && grep -q "^name: hello$" "$2"\n'
    contents = {"bin/jobc": program, "share/man/man1/jobc.1": b".TH\n", "share/bash-completion/completions/jobc": b"#\n",
                "share/zsh/site-functions/_jobc": b"#\n", "share/fish/vendor_completions.d/jobc.fish": b"#\n",
                "share/doc/jobc/README.md": b"#\n", "share/jobc/schemas/job.v1.schema.json": b"{}\n"}
    for name in names:
        (directory / f"{name}.tar.gz").write_bytes(archive(name, contents))
    yield from expect(ran([PACKAGING / "archive", "--sums", directory]))
    yield from expect(ran([PACKAGING / "formula", directory], env=ENVIRONMENT))
    yield from expect(ran([ruby, "-wc", directory / "jobc.rb"]), 0, "Syntax OK")
    for system, processor, name in (("macos", "arm", names[0]), ("macos", "intel", names[1]), ("linux", "arm", names[2]), ("linux", "intel", names[3])):
        packed = directory / f"{name}.tar.gz"
        lines = [version, ADDRESS, f"{ADDRESS}/releases/download/v{version}/{packed.name}", hashlib.sha256(packed.read_bytes()).hexdigest()]
        yield from expect(ran([ruby, HOMEBREW, directory / "jobc.rb", system, processor]), 0, "\n".join(lines))
    shutil.unpack_archive(directory / f"{names[3]}.tar.gz", directory / "unpacked")
    yield from expect(ran([ruby, HOMEBREW, directory / "jobc.rb", "linux", "intel", directory / "unpacked" / names[3], directory / "prefix"]))
    installed = [each for each in files_below(directory / "prefix") if (directory / "prefix" / each).is_file()]
    if len(installed) != len(contents) or "share/jobc/schemas/job.v1.schema.json" not in installed:
        yield f"installed: {installed}"


def main():
    harness = Harness("registries", __doc__)
    harness.parse()
    if harness.options.only == "publish":
        with scratch() as directory:
            harness.check("publish", publishes(directory / "crates", REPOSITORY / "target/publish"))
        shutil.rmtree(REPOSITORY / "target/publish", ignore_errors=True)
        harness.end()
    for tool in ("cargo", "git"):
        harness.tool(tool)
    version = jobc_version()
    with scratch() as directory:
        tree = directory / "crates"
        harness.check("crates", crates(tree, version))
        harness.check("binstall", binstall(tree, version))
    python = REPOSITORY / ".oracles/venv/bin/python"
    if ran([python, "-c", "import cyclonedx.validation.json, jsonschema"]).returncode if python.exists() else True:
        python = None
        harness.lacks("the document is valid", "cyclonedx-python-lib")
    with scratch() as directory:
        harness.check("sbom", sbom(python, directory))
    with scratch() as directory:
        if harness.wants("formula"):
            if ruby := shutil.which("ruby"):
                harness.check("formula", formula(ruby, directory, version))
            else:
                harness.lacks("formula", "ruby")
    harness.end()


main()
