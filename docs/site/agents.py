"""llms.txt: an index of the documentation for programs that write job files for people, from the pages."""

import re

SUMMARY_LINK = re.compile(r"^ *- \[([^\]]+)\]\(([^)]+)\)$")
DESCRIPTION = "Write, check and run job files of jobc, which compiles one file into OCI bundles, Kubernetes manifests, Slurm scripts and OpenPAI jobs"


def llms(docs):
    """The index of the pages in the order of SUMMARY.md, each with its first sentence."""
    lines = ["# jobc", "", f"> {DESCRIPTION}.", ""]
    for line in (docs / "SUMMARY.md").read_text().splitlines():
        heading = re.match(r"# (.+)$", line)
        if heading and heading[1] != "Summary":
            lines += ["", f"## {heading[1]}", ""]
        found = SUMMARY_LINK.match(line)
        if found:
            title, target = found.groups()
            page = docs / target
            about = first_sentence(page.read_text()) if page.exists() else ""
            lines.append(f"- [{title}]({target.removesuffix('.md')}.html)" + (f": {about}" if about else ""))
    return re.sub(r"\n{3,}", "\n\n", "\n".join([*lines, ""]))


def first_sentence(text):
    """The first sentence of the prose above the first section of a page, without its links."""
    text = re.split(r"^## ", text, flags=re.M)[0]
    for block in re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S).split("\n\n"):
        block = block.strip()
        if block and not re.match(r"[#|>\-*<!\[`0-9]", block):
            plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(block.split()))
            return re.split(r"(?<=[.:]) ", plain)[0].rstrip(":")
    return ""
