#!/usr/bin/env python3
"""Checks the source of the documentation site: `check.py DIRECTORY`, the directory that generate.py wrote.

Every page stands in SUMMARY.md, every link leads to a page and to a heading of it, every field of the published schemas has a
heading, and no line of a page in docs/ is longer than 120 columns, apart from code. It also checks the links of the Markdown files
outside docs/. Exits with 1 if something is wrong.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import fields

REPOSITORY = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} (.*?)(?: *\{#([\w-]+)\})?$", re.M)
WIDTH = 120


def prose(text):
    """A page with its code removed: blocks, and spans within lines."""
    text = re.sub(r"^( *)(```|~~~).*?^\1\2", lambda found: "\n" * found[0].count("\n"), text, flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", lambda found: "`" + "x" * (len(found[0]) - 2) + "`", text)


def anchors(text):
    """The ids of a page's headings, as mdBook and the forges make them."""
    found, seen = set(), {}
    text = re.sub(r"^( *)(```|~~~).*?^\1\2", "", text, flags=re.M | re.S)
    for title, own in HEADING.findall(text):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title)
        made = own or re.sub(r"[^\w -]", "", plain.strip().lower()).replace(" ", "-")
        count = seen[made] = seen.get(made, -1) + 1
        found.add(f"{made}-{count}" if count else made)
    return found | set(re.findall(r'<a (?:id|name)="([^"]+)"', text))


def broken_links(page, texts):
    """The links of a page that lead nowhere."""
    for target in LINK.findall(prose(texts(page))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, heading = target.partition("#")
        place = (page.parent / path).resolve() if path else page
        if not place.exists():
            yield f"no such file: {target}"
        elif heading and place.suffix == ".md" and heading not in anchors(texts(place)):
            yield f"no such heading: {target}"


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
    listed = {(source / target).resolve() for target in LINK.findall(re.sub(r"<!--.*?-->", "", texts(summary), flags=re.S))}
    wrong += [f"docs/SUMMARY.md does not list {page.relative_to(source)}" for page in pages if page != summary and page not in listed]
    for page in pages:
        wrong += [f"{page.relative_to(source)}: {why}" for why in broken_links(page, texts)]
    for file, name in (("job", "job"), ("targets", "targets-file")):
        schema = json.loads((REPOSITORY / f"schemas/{file}.v1.schema.json").read_text())
        wrong += [f"reference/{name}.md: no example of {field}" for field in without_example(texts(source / f"reference/{name}.md"))]
        wrong += [f"reference/{name}.md has no {field}" for field in without_heading(schema, texts(source / f"reference/{name}.md"))]
    tracked = subprocess.run(["git", "ls-files", "*.md"], cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.split()
    for name in tracked:
        page = REPOSITORY / name
        if not page.exists() or name.startswith(("examples/", "tests/corpus/")):
            continue
        wrong += [f"{name}:{number}: longer than {WIDTH} columns" for number, line in enumerate(prose(texts(page)).splitlines(), 1) if len(line) > WIDTH]
        if not name.startswith("docs/"):
            wrong += [f"{name}: {why}" for why in broken_links(page, texts)]
    index = (source.parent / "llms.txt").read_text()
    for target in LINK.findall(index):
        if not (source / target.replace(".html", ".md")).exists():
            wrong.append(f"llms.txt: no such page: {target}")
    for line in wrong:
        print(line)
    print(f"documentation: {len(pages)} pages, {len(tracked)} Markdown files checked, {len(wrong)} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
