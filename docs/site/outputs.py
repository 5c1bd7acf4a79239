#!/usr/bin/env python3
"""Compares the output that README.md and the guides show with what the program prints: `outputs.py PROGRAM [--write] [PAGE]...`.

A comment above a block of a page, which readers do not see, says where the block comes from:

    <!-- output -->            the commands of the block itself, in lines that begin with `$ `, or those of the last `sh` block
    <!-- output: COMMANDS -->  these commands
    <!-- seen: WHERE -->       a run that cannot be repeated here; the check lists it
    <!-- tried: TEST -->       another test runs it; at the top of a page for the whole page
    <!-- file: NAME -->        nowhere: it is the file NAME, for the commands below it
    <!-- run -->               nowhere: the commands of the block run, as a step to the next output
    <!-- run: COMMANDS -->     above no block: a step that the page does not show
    <!-- varies: REGEX -->     above no block: what matches is different in each run, on this page

Each block without a language, and each `text` or `console` block, must have one of the first four. A page runs in an empty directory
with a copy of examples/; the page calls it /tmp/demo. `…` stands for any text in a line, and a line `…` for any lines. Durations and
dates, and how wide a column is, do not matter. `output shortened` lets lines be left out, `output in any order` compares the lines as a
set, with those of tasks that started or ended together taken apart. `output needs NAME` is skipped without the program NAME, or where this user cannot run `containers`; what follows on the page
then must not depend on it.

`--write` puts what the program prints into the blocks that differ.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tests"))
import needs

PAGES = ("README.md", "docs/start/*.md", "docs/guides/*.md")
# A comment, a block, or a block below its comment.
KINDS = "run|output|seen|tried|file|varies"
COMMENT = rf"<!-- (?P<kind>{KINDS})(?P<words>[^:>]*?)(?::\s(?P<value>(?:(?!-->).)*))?\s-->\n"
PART = re.compile(rf"^(?:{COMMENT})?(?P<block>```(?P<language>\w*)\n(?P<text>.*?)^```$)|^{COMMENT.replace('?P<', '?P<alone_')}", re.M | re.S)
SHOWN = ("", "text", "console")
VARIES = [r"(?:(?<=[a-z])|(?<=-\d))\.\d+\b", r"\d+(\.\d+)? (ms|s|min)\b( ago)?", r"\d{4}-\d\d-\d\dT[\d:.]+Z"]
# How long the commands of a block may take, in seconds.
LIMIT = "120"
# What blocks need besides programs, as a command that needs it; and whether this host has it.
JOBS = {"containers": "jobc run -- true", "limits": "JOBC_ALLOW_UNENFORCED=false jobc run --cpus 0.1 --memory 64MiB -- true"}
FOUND = {}
# As root, whether a page can have a /run of its own, where root's jobs are.
ISOLATED = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode == 0 if shutil.which("unshare") else False


class Page:
    def __init__(self, path, program, scratch):
        self.path, self.name, self.text = path, str(path.relative_to(REPOSITORY)), path.read_text()
        self.home = scratch
        self.place = self.directory = scratch / "demo"
        self.shell = ["bash"]
        if os.geteuid() == 0 and ISOLATED:
            self.shell = ["unshare", "--mount", "--propagation", "private", "sh", "-c", 'mount --bind "$XDG_RUNTIME_DIR" /run && exec bash "$@"', "sh"]
        self.varies, self.commands, self.counts = list(VARIES), "", {"passed": 0, "seen": 0, "elsewhere": 0}
        self.wrong, self.skipped, self.seen = [], [], []
        (scratch / "bin").mkdir(parents=True)
        for each in ("jobc", "fake-gpus"):
            if (found := program.parent / (program.name if each == "jobc" else each)).exists():
                (scratch / "bin" / each).symlink_to(found)
        (scratch / "run").mkdir(mode=0o700)
        shutil.copytree(REPOSITORY / "examples", self.place / "examples", ignore=shutil.ignore_patterns("out"))
        self.environment = {
            "PATH": f"{scratch}/bin:{os.environ['PATH']}", "HOME": str(scratch), "XDG_RUNTIME_DIR": f"{scratch}/run", "LC_ALL": "C.UTF-8",
            "JOBC_COLOR": "never", "COLUMNS": "100", "JOBC_LOCK_DIR": f"{scratch}/lock", "JOBC_ALLOW_UNENFORCED": "true",
            "GIT_AUTHOR_NAME": "me", "GIT_AUTHOR_EMAIL": "me@example.com", "GIT_COMMITTER_NAME": "me", "GIT_COMMITTER_EMAIL": "me@example.com",
        }

    def run(self, commands, options="-c"):
        """What commands print, and their exit code; the next ones run in the directory that they end in."""
        script = f"trap 'pwd >{self.home}/directory' EXIT\n{commands}\n"
        ran = subprocess.run(["timeout", LIMIT, *self.shell, options, script], cwd=self.directory, env=self.environment, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if (self.home / "directory").exists():
            self.directory = Path((self.home / "directory").read_text().strip())
        return ran.stdout.decode(errors="replace").replace(str(self.place), "/tmp/demo"), ran.returncode

    def check(self):
        """Goes through the page; the result is its text with the output of the program in it."""
        if re.match(r"# [^\n]*\n+<!-- tried: ", self.text):
            self.counts["elsewhere"] += sum(found["language"] in SHOWN for found in PART.finditer(self.text) if found["block"])
            return self.text
        comments = re.findall(rf"<!-- (?:{KINDS})\b", self.text)
        if len(comments) != sum(bool(found["kind"] or found["alone_kind"]) for found in PART.finditer(self.text)):
            self.wrong.append(f"{self.name}: a comment is not of the form that docs/site/outputs.py describes")
        try:
            return PART.sub(self.part, self.text)
        finally:
            if FOUND.get("containers"):
                self.run("jobc ps --quiet | xargs --no-run-if-empty jobc rm --force")

    def part(self, found):
        line = self.text.count("\n", 0, found.start()) + 1
        place = f"{self.name}:{line}"
        prefix = "" if found["block"] else "alone_"
        kind, words, value, text = found[prefix + "kind"], found[prefix + "words"] or "", found[prefix + "value"], found["text"]
        for want in re.split(r", *", words.partition("needs ")[2]):
            if want and not self.has(want):
                self.skipped.append((place, want))
                return found[0]
        if kind == "varies":
            self.varies.append(value)
        elif kind == "file" and text is not None:
            (self.directory / value).parent.mkdir(parents=True, exist_ok=True)
            (self.directory / value).write_text(text)
        elif kind == "run" and (value is None) == bool(text):
            output, code = self.run(value or text, "-ec")
            if code:
                self.wrong.append(f"{place}: exit code {code} of `{(value or text).strip()}`\n{output}")
        elif kind == "seen" and text:
            self.counts["seen"] += 1
            self.seen.append(f"{place}: {value}")
        elif kind == "tried" and text:
            self.counts["elsewhere"] += 1
        elif kind == "output" and text:
            return found[0].replace(text, self.output(place, words, value, text))
        elif kind or found["language"] in SHOWN:
            self.wrong.append(f"{place}: the comment has no block" if kind else f"{place}: no comment says where this output comes from")
        if found["language"] == "sh":
            self.commands = text
        return found[0]

    def output(self, place, words, value, text):
        """What a block is to show."""
        result = []
        # A block with its commands is several: each command and its output.
        pieces = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.M) if value is None and text.startswith("$ ") else [(None, text)]
        for command, shown in pieces:
            printed, _ = self.run(command or value or self.commands)
            result += [f"$ {command}\n"] if command else []
            if self.same(shown, printed, words):
                self.counts["passed"] += 1
                result.append(shown)
            else:
                self.wrong.append(f"{place}: the page shows\n{indented(shown)}  and `{(command or value or self.commands).strip()}` prints\n{indented(printed)}")
                result.append(printed)
        return "".join(result)

    def same(self, shown, printed, words):
        shown, printed = self.lines(shown), self.lines(printed)
        if "in any order" in words:
            shown, printed = (sorted({each for line in lines for each in apart(line)}) for lines in (shown, printed))
        if "shortened" in words:
            shown, printed = ([line.strip().rstrip(",") for line in lines if line] for lines in (shown, printed))
            shown = ["…", *(each for line in shown for each in ("…" if line == "# ..." else line, "…"))]
        pattern = "".join("(?:.*\n)*?" if line.strip() == "…" else ".*".join(map(re.escape, line.split("…"))) + "\n" for line in shown)
        return re.fullmatch(pattern, "".join(line + "\n" for line in printed)) is not None

    def lines(self, text):
        """Its lines without what is different in each run."""
        for pattern in self.varies:
            text = re.sub(pattern, "…", text)
        # Notes depend on the host and the user.
        return [re.sub(r"(?<=\S) {2,}", "  ", line).rstrip() for line in text.splitlines() if not line.startswith("jobc: note: ")]

    def has(self, what):
        """Whether this host has what a block needs."""
        if what not in JOBS:
            return shutil.which(what, path=self.environment["PATH"]) is not None
        if os.geteuid() == 0 and not ISOLATED:
            return False  # the jobs of this host would be in the tables
        if what not in FOUND:
            FOUND[what] = self.run(f"export HOME=$HOME/first; {JOBS[what]}")[1] == 0
        return FOUND[what]


def apart(line):
    """A line for each task: those that start or end at the same moment share one."""
    if found := re.fullmatch(r"jobc: (\S+(?:, \S+)+) (started|ended)", line):
        return [f"jobc: {task} {found[2]}" for task in found[1].split(", ")]
    return [line]


def indented(text):
    return "".join(f"    {line}\n" for line in text.splitlines()[:60])


def main():
    options = argparse.ArgumentParser()
    options.add_argument("program", type=Path)
    options.add_argument("--write", action="store_true")
    options.add_argument("pages", nargs="*", type=Path)
    options = options.parse_args()
    pages = [page.resolve() for page in options.pages] or [page for pattern in PAGES for page in sorted(REPOSITORY.glob(pattern))]

    program, tries = options.program.resolve(), int(os.environ.get("JOBC_TRIES") or 1)

    def tried(page):
        """The page as it was checked, once more if it failed and `.ci/run` allows that."""
        text = page.check()
        if not page.wrong or tries < 2:
            return page, text
        again = Page(page.path, program, page.home.with_suffix(".again"))
        text = again.check()
        print(f"{page.name}: {'fails again' if again.wrong else 'flaky'}:", *page.wrong, sep="\n")
        return again, text

    with tempfile.TemporaryDirectory(prefix="jobc-docs-", ignore_cleanup_errors=True) as scratch, ThreadPoolExecutor() as pool:
        done = [Page(page, program, Path(scratch) / str(number)) for number, page in enumerate(pages)]
        # Jobs of the same name on two pages would have the same cgroup.
        apart = [[page for page in done if bool(re.search("<!-- .* needs (containers|limits)", page.text)) == jobs] for jobs in (True, False)]
        texts = dict(each for chain in pool.map(lambda chain: [tried(page) for page in chain], apart) for each in chain)
        done = sorted(texts, key=lambda page: page.name)
    for page, text in texts.items():
        if options.write and text != page.text:
            page.path.write_text(text)

    wrong, skipped = ([each for page in done for each in getattr(page, name)] for name in ("wrong", "skipped"))
    total = {name: sum(page.counts[name] for page in done) for name in done[0].counts}
    for page in done:
        for each in page.seen:
            print(f"{each} (not repeated here)")
    for place, what in skipped:
        print(needs.line(place, what))
    print("\n".join(wrong))
    failed, left = (len(wrong) + len(skipped), 0) if needs.required() else (len(wrong), len(skipped))
    print(f"outputs: {total['passed']} passed, {failed} failed, {left} skipped; {total['seen']} seen elsewhere, {total['elsewhere']} in other tests")
    if results := os.environ.get("JOBC_RESULTS"):
        wants = {what: sum(what == each for _, each in skipped) for _, what in skipped}
        with open(results, "a") as file:
            file.write(json.dumps({"suite": "documentation", "passed": total["passed"], "failed": failed, "skipped": left, "wants": wants}) + "\n")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
