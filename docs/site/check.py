#!/usr/bin/env python3
"""Checks the source of the documentation site: `check.py DIRECTORY`, the directory that generate.py wrote.

Every page stands in SUMMARY.md, every link leads to a page and to a heading of it, every field of the published schemas has a
heading, and no line of a Markdown file is longer than 120 columns, apart from code, tables and generated pages. Exits with 1 if something is
wrong. `links.py` checks the links of the same pages in the repository.
"""

import json
import re
import sys
from pathlib import Path

import fields
from links import REPOSITORY, broken_links, prose, targets, tracked
from pages import NOTE

WIDTH = 120


def without_heading(schema, text):
    """The fields of a schema that have no heading on its page."""
    ids = set(re.findall(r"\{#([\w-]+)\}", text))
    for name, kind in [("", schema), *schema["$defs"].items()]:
        for field in kind.get("properties", {}):
            if fields.anchor(name, field) not in ids:
                yield f"{name}.{field}"


def without_example(text):
    """The fields on a page of fields that have no example."""
    for part in re.split(r"^#{2,3} ", text, flags=re.M):
        name, _, rest = part.partition("\n")
        if name.startswith("`") and "```yaml\n" not in rest:
            yield name


def main():
    source, wrong, known = Path(sys.argv[1]).resolve() / "src", [], {}

    def texts(page):
        if page not in known:
            known[page] = page.read_text()
        return known[page]

    pages = sorted(source.rglob("*.md"))
    summary = source / "SUMMARY.md"
    listed = {(source / target).resolve() for target in targets(texts(summary))}
    wrong += [f"docs/SUMMARY.md does not list {page.relative_to(source)}" for page in pages if page != summary and page not in listed]
    for page in pages:
        wrong += [f"{page.relative_to(source)}: {why}" for why in broken_links(page, texts)]
    for file, name in (("job", "job"), ("targets", "targets-file")):
        schema = json.loads((REPOSITORY / f"schemas/{file}.v1.schema.json").read_text())
        wrong += [f"reference/{name}.md: no example of {field}" for field in without_example(texts(source / f"reference/{name}.md"))]
        wrong += [f"reference/{name}.md has no {field}" for field in without_heading(schema, texts(source / f"reference/{name}.md"))]
    files = tracked("*.md")
    for page in files:
        name = str(page.relative_to(REPOSITORY))
        if name.startswith("examples/") or texts(page).startswith(NOTE):
            continue
        wrong += [f"{name}:{number}: longer than {WIDTH} columns" for number, line in enumerate(prose(texts(page)).splitlines(), 1)
                  if len(line) > WIDTH and not line.startswith("|")]
    index = (source.parent / "llms.txt").read_text()
    for target in targets(index):
        if not (source / target.replace(".html", ".md")).exists():
            wrong.append(f"llms.txt: no such page: {target}")
    for line in wrong:
        print(line)
    print(f"documentation: {len(pages)} pages, {len(files)} Markdown files checked, {len(wrong)} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
