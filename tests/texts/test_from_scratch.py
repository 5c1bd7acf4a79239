"""The guide `Containers from scratch`: its blocks run as they stand, one after the other, and print what the page shows."""

import os
import re
import subprocess
import tempfile
from pathlib import Path

import pytest

import needs
from harness import REPOSITORY
from runtime import binary

GUIDES = REPOSITORY / "docs/guides"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = "\x1fend\x1f"


def blocks(name):
    return BLOCK.findall((GUIDES / name).read_text())


def pattern(text):
    """A text of the page as a pattern: `…` is anything within a line, a line `…` any lines."""
    lines = ["(?:.*\n)*?" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + "\n" for line in text.splitlines()]
    return re.compile("".join(lines))


class Shell:
    """A bash that runs one block after the other in an empty directory, with `jobc` in its PATH."""

    def __init__(self, directory):
        self.directory = directory
        (directory / "bin").mkdir()
        (directory / "bin/jobc").symlink_to(Path(binary()).resolve())
        (directory / "work").mkdir()
        environment = {"PATH": f"{directory}/bin:{os.environ['PATH']}", "HOME": str(directory), "JOBC_COLOR": "never", "LC_ALL": "C"}
        self.errors = directory / "errors"
        # In a session of its own, so that nothing of it outlives the test.
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(["bash", "-e"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                                            cwd=directory / "work", env=environment, text=True, start_new_session=True)
        self.write("trap 'rmdir \"$group\" 2>/dev/null; kill -KILL 0' EXIT\n")

    def write(self, text):
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def run(self, block):
        """The output of a block, and whether all of its commands succeeded."""
        (self.directory / "block").write_text(block)
        self.write(f". {self.directory}/block </dev/null; echo '{MARK}'\n")
        lines = []
        for line in self.process.stdout:
            if line.endswith(f"{MARK}\n"):
                return "".join(lines), True
            lines.append(line)
        return "".join(lines), False

    def end(self):
        self.process.stdin.close()
        self.process.wait(5)


@pytest.mark.isolated
@pytest.mark.duration(20)
@pytest.mark.needs("root", "bash", "busybox", "nsenter", "pgrep", "strace", "tar", "unshare")
def test_the_page():
    if not any(os.access(f"/sys/fs/cgroup/{name}", os.W_OK) for name in ("memory", "cgroup.subtree_control")):
        needs.missing("writable cgroups")
    with tempfile.TemporaryDirectory(prefix="jobc-scratch-") as directory:
        shell, shown, output = Shell(Path(directory)), 0, ""
        try:
            for kind, text in blocks("from-scratch.md"):
                if kind == "sh":
                    output, passed = shell.run(text)
                    assert passed, f"a block of the page fails:\n{text}--- output\n{output}--- errors\n{shell.errors.read_text()}"
                else:
                    assert pattern(text).fullmatch(output), f"the page shows\n{text}--- output\n{output}"
                    shown += 1
        finally:
            shell.end()
    assert shown > 10


def test_the_chinese_page_has_the_same_commands():
    assert blocks("from-scratch.zh.md") == blocks("from-scratch.md")


def test_the_chinese_page_has_the_same_parts():
    def parts(name):
        text = BLOCK.sub("", (GUIDES / name).read_text())
        return [line.partition(" ")[0] if line.startswith("#") else line.count("|") for line in text.splitlines() if line.startswith(("#", "|"))]

    assert parts("from-scratch.zh.md") == parts("from-scratch.md")
