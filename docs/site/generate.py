#!/usr/bin/env python3
"""Puts the source of the documentation site together: `generate.py PROGRAM DIRECTORY`.

Copies the pages of docs/, and adds what only the site has:

    reference/errors/*          the page of every diagnostic code, a file for each group
    schemas/*.v1.schema.json    the schemas
    llms.txt, SKILL.md          for programs that write job files, beside the pages

DIRECTORY is what `mdbook build` takes. A link to a file outside docs/ becomes a link to the repository at JOBC_REPOSITORY, or its
text without that variable.

The programs of a build with JOBC_SITE link to schemas/NAME.v1.schema.json and codes/CODE.html, which the site has too.
"""

import os
import re
import shutil
import sys
from pathlib import Path

import agents
from pages import DOCS, GROUPS, REPOSITORY, codes, output

# Such as `https://example.com/jobc`; a release sets it.
ADDRESS = os.environ.get("JOBC_REPOSITORY")
# A text, which can have brackets of its own, a target and a heading.
LINK = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
# A heading with an id of its own, as forges read it.
HEADING = re.compile(r'^<a id="([\w-]+)"></a>\n\n(#+ .*)$', re.M)
CODES = REPOSITORY / "compiler/src/diagnostic/codes"
SCHEMAS = ("job", "targets", "plan", "plugin")


def groups(program):
    """The pages of the groups of diagnostic codes."""
    for (name, heading), titles in codes(program).items():
        page = [f"# {heading}", ""]
        for code, title in titles.items():
            text = re.sub(r"^(#+) ", r"#\1 ", re.sub(r"^# J\d{4}: .*\n", "", (CODES / f"{code}.md").read_text()), flags=re.M)
            page += [f"## {code}", "", f"**{title}**", "", text.strip(), ""]
        yield name, "\n".join(page)


def place(code):
    """Where the site has a diagnostic code, below docs/."""
    return f"reference/errors/{GROUPS[code[:3]][0]}.md", f"#{code.lower()}"


def with_links(text, page):
    """A page whose links out of docs/ lead to the repository, if it has an address."""
    def link(found):
        target = found[2]
        if re.match(r"[a-z]+:", target):
            return found[0]
        path = (page.parent / target).resolve()
        if path.is_relative_to(DOCS):
            return found[0]
        if path.parent == CODES and path.exists():
            group, heading = place(path.stem)
            return f"[{found[1]}]({os.path.relpath(DOCS / group, page.parent)}{heading})"
        if not path.exists() or not path.is_relative_to(REPOSITORY):
            sys.exit(f"{page.relative_to(REPOSITORY)}: no such file: {target}")
        if not ADDRESS:
            return found[1]
        return f"[{found[1]}]({ADDRESS.rstrip('/')}/blob/main/{path.relative_to(REPOSITORY)}{found[3] or ''})"
    return LINK.sub(link, text)


def main():
    program, directory = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    source = directory / "src"
    shutil.rmtree(source, ignore_errors=True)
    for page in sorted(DOCS.rglob("*")):
        copy = source / page.relative_to(DOCS)
        if page.is_dir() or page.is_relative_to(DOCS / "site"):
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        if page.suffix == ".md":
            copy.write_text(HEADING.sub(r"\2 {#\1}", with_links(page.read_text(), page)))
        elif page.name != "book.toml":
            shutil.copy(page, copy)
    (source / "reference/errors").mkdir()
    for name, text in groups(program):
        (source / f"reference/errors/{name}.md").write_text(text)
    summary, index = source / "SUMMARY.md", "- [Diagnostic codes](reference/errors.md)\n"
    listed = "".join(f"  - [{heading}](reference/errors/{name}.md)\n" for name, heading in GROUPS.values())
    summary.write_text(summary.read_text().replace(index, index + listed))
    places = {page.stem: "".join(place(page.stem)).replace(".md", ".html") for page in sorted(CODES.glob("*.md"))}
    redirects = "".join(f'"/codes/{code}.html" = "../{page}"\n' for code, page in places.items())
    (directory / "book.toml").write_text(f"{(DOCS / 'book.toml').read_text()}\n[output.html.redirect]\n{redirects}")
    (source / "schemas").mkdir()
    for name in SCHEMAS:
        (source / f"schemas/{name}.v1.schema.json").write_text(output(program, "schema", name))
    # Not below src/: mdBook takes each `.md` there for a page.
    (directory / "llms.txt").write_text(agents.llms(source))
    (directory / "SKILL.md").write_text(output(program, "skill"))


if __name__ == "__main__":
    main()
