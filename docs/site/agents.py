"""What programs that write job files for people read: llms.txt, an index of the documentation, and SKILL.md, a page that stands alone.

Both come from the pages and from the program, as the rest of the site does.
"""

import re

SUMMARY_LINK = re.compile(r"^ *- \[([^\]]+)\]\(([^)]+)\)$")
DESCRIPTION = "Write, check and run job files of jobc, which compiles one file into OCI bundles, Kubernetes manifests, Slurm scripts and OpenPAI jobs"

SKILL = """---
name: jobc
description: {description}. Use it for AI and GPU jobs described in `job.yaml` and `targets.yaml`.
---

# Work with jobc

A job file says what to run: image, data, roles, CPUs, memory, GPUs, commands. A targets file next to it says where.

## The loop

1. Write `job.yaml`. Begin with `jobc init`, or `jobc import FILE` for a file of another format. `jobc std ls` lists templates for frameworks
   and servers; `jobc std show NAME` prints the parameters and an example of one.
2. `jobc check --format json` prints all findings: code, place, message, and `fixes` with their edits.
3. `jobc check --fix` applies the safe fixes. Read what is left; `jobc explain CODE` prints the page of a code, with a wrong and a right example.
4. `jobc plan --format yaml` shows every value after defaults and expressions.
5. `jobc diff` shows what a change of the file changes in each output, and the line that causes it. `jobc why FILE:LINE` explains one line.
6. `jobc build` writes the files; `jobc run` runs the job on this host; `jobc submit --target NAME` sends it to a cluster.

Steps 1 to 5 change nothing but the job file. Ask the user before step 6: it uses CPUs, GPUs and money.

The same is there as tools: `jobc mcp` is a server of the Model Context Protocol. `check` and `plan` take the text of a job too.

## Rules

- Amounts have units: `memory: 32GiB`, `timeout: 12h`. GPUs are counted: `gpu: 1`.
- A value of a secret is never in a job file: declare it below `secrets` and refer to `${{{{ secrets.NAME }}}}`.
- Do not guess fields. `jobc explain FIELD`, such as `jobc explain roles.resources.gpu`, prints the type, the default and an example.
- Images: `jobc lock` writes their digests to `jobc.lock`, `jobc image verify --key FILE IMAGE` verifies a signature, `jobc image sbom IMAGE`
  lists the packages in one.
- Exit codes: 0 success, 1 findings or a failed job, 2 wrong arguments, 3 an error of the system.

## An example

```yaml
{example}```

## Fields of a job file

{fields}

## Commands

```text
{commands}
```
"""


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


def skill(formats, commands, example):
    """The page for programs; `formats` is what `jobc explain --format json` says of the job file."""
    job = next(each for each in formats if each["name"] == "job")
    lines = []
    for kind in job["types"]:
        # The job itself, and what it mostly consists of.
        if kind["name"] in (None, "Role", "Resources"):
            lines += ["", f"### {kind['name'] or 'Job'}", ""]
            lines += [f"- `{field['name']}`: {first_line(field['text'])}" for field in kind["fields"]]
    return SKILL.format(description=DESCRIPTION, example=example, fields="\n".join(lines).strip(), commands=commands.strip())


def first_line(text):
    return " ".join(text.split("\n\n")[0].split())
