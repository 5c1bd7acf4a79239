"""docs/platforms.md, from platforms.txt: what jobc is tested on by what passed (seen.json, which `tests/seen` writes), what CI builds."""

import json
import re
from pathlib import Path

SITE = Path(__file__).resolve().parent
REPOSITORY = SITE.parents[1]
# The host of a run, before the programs that it ran.
HOST = ("Linux", "Debian", "Ubuntu", "Fedora Linux", "processor", "cgroups", "User-Mode Linux, cgroup v2", "Rust")
# What a target is for, beside the host's own.
BUILT = {
    "x86_64-unknown-linux-musl": "static binary", "aarch64-unknown-linux-gnu": "everything; the tests run there on GitHub, some below QEMU here",
    "aarch64-apple-darwin": "the compiler and editors; neither `jobc run` nor `jobc submit`", "x86_64-pc-windows-gnu": "the compiler and editors; neither `jobc run` nor `jobc submit`",
}


def page():
    rows = json.loads((SITE / "seen.json").read_text())
    rust = re.search(r'^rust-version = "(.*)"$', (REPOSITORY / "Cargo.toml").read_text(), re.M)[1]
    targets = re.search(r"^targets=\((.*)\)$", (REPOSITORY / "tests/platforms").read_text(), re.M)[1].split()
    workflow = (REPOSITORY / ".github/workflows/ci.yml").read_text()
    runners = sorted(set(re.findall(r"\bubuntu-[\w.-]+", workflow)))
    images = sorted(set(re.findall(r"image: (\S+)", workflow)) | set(re.findall(r'"([a-z]+:[\w-]+)"', (REPOSITORY / ".github/workflows/clean.yml").read_text())))
    text = (SITE / "platforms.txt").read_text()
    parts = {
        "passed": table(("What", "Release", "Steps of `./test`", "Last passed"), passed([row for row in rows if row["step"] != "platforms"])),
        "built": table(("Target", "What", "Last built"), [(f"`{target}`", BUILT[target], built(rows, target)) for target in targets]),
        "runners": ", ".join(f"`{each}`" for each in runners), "images": ", ".join(f"`{each}`" for each in images), "rust": rust,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], text)


def passed(rows):
    """A row for each release, with the steps that used it and the newest date: hosts first."""
    found = {}
    for row in rows:
        found.setdefault((row["what"], row["release"]), []).append(row)
    order = sorted(found, key=lambda key: (HOST.index(key[0]) if key[0] in HOST else len(HOST), key[0].lower(), key[1]))
    for what, release in order:
        steps = found[what, release]
        yield what, release, ", ".join(f"`{each['step']}`" for each in steps), max(each["date"] for each in steps)


def built(rows, target):
    return next((row["date"] for row in rows if row["step"] == "platforms" and row["what"] == target), "not recorded yet")


def table(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "|---" * len(head) + "|", *("| " + " | ".join(row) + " |" for row in rows)])
