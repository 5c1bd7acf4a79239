#!/usr/bin/env python3
"""Checks the relative links of every Markdown file of the repository, where it lies: `links.py`.

Each must lead to a file or directory of the repository, and to a heading or an id of it. Exits with 1 if one does not.
"""

import re
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
# A link or picture, one in HTML, or the definition of a link that pages use by name.
LINK = re.compile(r"""\]\(<?([^)\s>]+)>?(?: "[^"]*")?\)|(?:href|src)="([^"]+)"|^\[[^\]^]+\]: +(\S+)""", re.M)
HEADING = re.compile(r"^#{1,6} (.*?)(?: *\{#([\w-]+)\})?$", re.M)


def targets(text):
    """What a page links to."""
    return [next(filter(None, found.groups())) for found in LINK.finditer(re.sub(r"<!--.*?-->", "", prose(text), flags=re.S))]


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


def broken_links(page, texts, files=()):
    """The links of a page that lead nowhere, or to none of the files."""
    for target in targets(texts(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, heading = target.partition("#")
        place = (page.parent / path).resolve() if path else page
        if not (place in files if files else place.exists()):
            yield f"no such file: {target}"
        elif heading and place.suffix == ".md" and heading not in anchors(texts(place)):
            yield f"no such heading: {target}"


def tracked(*patterns):
    """The files of the repository, also those that Git does not know yet."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", *patterns], cwd=REPOSITORY, capture_output=True,
                            text=True, check=True).stdout
    return [REPOSITORY / name for name in listed.split("\0") if name and (REPOSITORY / name).exists()]


def main():
    files = set(tracked())
    files |= {parent for file in files for parent in file.parents if parent.is_relative_to(REPOSITORY)}
    pages, known, wrong, count = tracked("*.md"), {}, [], 0

    def texts(page):
        if page not in known:
            known[page] = page.read_text()
        return known[page]

    for page in pages:
        count += len(targets(texts(page)))
        wrong += [f"{page.relative_to(REPOSITORY)}: {why}" for why in broken_links(page, texts, files)]
    print("\n".join([*wrong, f"links: {count} in {len(pages)} Markdown files, {len(wrong)} broken"]))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
