#!/usr/bin/env python3
"""Puts the source of the documentation site together: `generate.py PROGRAM DIRECTORY`.

Copies the pages of docs/ and writes the reference pages that come from jobc itself, so that none of them is kept by hand:

    reference/job.md, reference/targets-file.md  every field, from `jobc explain --format json`
    reference/cli.md                         every command, from its `--help`
    reference/errors.md, reference/errors/*  every diagnostic code, from `jobc explain`
    reference/backends.md                    what each backend can express, from `jobc backends`
    reference/frameworks.md                  the variables of each framework, from `jobc plan`
    reference/systems.md, systems.zh.md      systems by name, from `jobc explain`, in English and in Chinese
    templates/README.md, templates/*         the built-in templates, from `jobc std`
    llms.txt, SKILL.md                       for programs that write job files, beside the pages

DIRECTORY is what `mdbook build` takes. A link to a file outside docs/ becomes a link to the repository at JOBC_REPOSITORY, or its
text without that variable.

The programs of a build with JOBC_SITE link to schemas/NAME.v1.schema.json and codes/CODE.html, which the site has too.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import agents
import fields

DOCS = Path(__file__).resolve().parents[1]
REPOSITORY = DOCS.parent
# Such as `https://example.com/jobc`; a release sets it.
ADDRESS = os.environ.get("JOBC_REPOSITORY")
# A text, which can have brackets of its own, a target and a heading.
LINK = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
SCHEMAS = ("job", "targets", "plan", "plugin")
GROUPS = {
    "J00": ("parse", "Reading the file"),
    "J01": ("validate", "Fields and values"),
    "J02": ("resolve", "Templates, parameters, names and images"),
    "J03": ("lints", "Lints"),
    "J04": ("backends", "What a backend cannot express"),
    "J05": ("targets", "Targets and other input formats"),
    "J06": ("dockerfile", "Dockerfiles, and files of other tools"),
}


def output(program, *arguments):
    environment = {**os.environ, "JOBC_COLOR": "never", "COLUMNS": "100"}
    answer = subprocess.run([program, *arguments], capture_output=True, text=True, env=environment, check=False)
    if answer.returncode != 0:
        sys.exit(f"`jobc {' '.join(arguments)}` exits with {answer.returncode}: {answer.stderr}")
    return answer.stdout


def commands(program, path=()):
    """Every command with its help text: the program itself, then each command and its subcommands in their order."""
    text = output(program, *path, "--help")
    yield path, text
    if path == ("oci",):
        return
    listed = re.search(r"^Commands:\n((?:[ \n].*\n?)*)", text, re.M)
    seen = re.findall(r"^  ([a-z][a-z-]*)\b", listed[1] if listed else "", re.M)
    if not path:
        # The program's own help groups its commands.
        seen = [name for name in re.findall(r"^  +([a-z][a-z-]+)  ", text, re.M)]
    for name in dict.fromkeys(seen):
        if name != "help":
            yield from commands(program, (*path, name))


def command_line(program):
    lines = ["# Commands", "", "What `jobc COMMAND --help` prints. `-h` prints a shorter form.", ""]
    for path, text in commands(program):
        lines += [f"{'#' * min(2 + max(len(path) - 1, 0), 4)} `{' '.join(('jobc', *path))}`", "", "```text", text.rstrip(), "```", ""]
    return "\n".join(lines)


def errors(program):
    """The pages of diagnostic codes: an index, a page for each group, and where in them each code is."""
    codes = dict(re.findall(r"^(J\d{4})  (.*)$", output(program, "explain"), re.M))
    index = ["# Diagnostic codes", "", f"jobc has {len(codes)} codes. `jobc explain CODE` prints the page of one.", ""]
    pages = {}
    for code, title in codes.items():
        if code[:3] not in GROUPS:
            sys.exit(f"docs/site/generate.py: {code} is in no group of GROUPS")
        name, heading = GROUPS[code[:3]]
        page = pages.setdefault(name, [f"# {heading}", ""])
        if len(page) == 2:
            index += [f"## {heading}", ""]
        index.append(f"* [`{code}`](errors/{name}.md#{code.lower()}) {title}")
        text = re.sub(r"^(#+) ", r"#\1 ", re.sub(r"^# J\d{4}: .*\n", "", output(program, "explain", code)), flags=re.M)
        page += [f"## {code}", "", f"**{title}**", text.strip(), ""]
    places = {code: f"../reference/errors/{GROUPS[code[:3]][0]}.html#{code.lower()}" for code in codes}
    return "\n".join([*index, ""]), {name: "\n".join(page) for name, page in pages.items()}, places


def backends(program):
    """The capability table, and below it the reason for each `no` and `lossy`."""
    table = json.loads(output(program, "backends", "--format", "json"))
    names = [backend["name"] for backend in table["backends"]]
    lines = ["# Backends", ""]
    lines += [f"* `{backend['name']}` (target `{backend['target']}`): {backend['about']}" for backend in table["backends"]]
    lines += ["", "`yes`: expressed exactly. `plan`: not part of this format; `jobc run` reads it from `plan.json`. `lossy`: only",
              "with `--allow-lossy`. `no`: an error at the line that asks for it. The reasons are below the table.", "",
              "| a job's field | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    reasons = []
    for row in table["features"]:
        cells = [row["backends"][name] for name in names]
        lines.append(f"| {row['feature']} | " + " | ".join(cell["support"] for cell in cells) + " |")
        reasons += [f"* {row['feature']}, `{name}`: {cell['why']}" for name, cell in zip(names, cells) if cell["why"]]
    return "\n".join([*lines, "", "## Reasons", "", *reasons, ""])


# A job of each framework: its roles, and the command of the first.
FRAMEWORKS = {
    "torchrun": ("[a]", "torchrun a.py"), "accelerate": ("[a]", "accelerate launch a.py"), "ddp": ("[a]", "python a.py"),
    "lightning": ("[a]", "python a.py"), "composer": ("[a]", "composer a.py"), "deepspeed": ("[a]", "deepspeed a.py"),
    "tensorflow": ("[a]", "python a.py"), "horovod": ("[a]", "horovodrun python a.py"), "mpi": ("[a]", "mpirun python a.py"),
    "jax": ("[a]", "python a.py"), "ray": ("{a: head}", "python a.py"),
}


def frameworks(program):
    """Which variables each framework sets, as a plan of it has them."""
    known = json.loads((REPOSITORY / "schemas/job.v1.schema.json").read_text())["$defs"]["Framework"]
    names = {choice["const"] for choice in known["oneOf"]}
    if names != set(FRAMEWORKS):
        sys.exit(f"docs/site/generate.py: FRAMEWORKS differs from the schema by {names ^ set(FRAMEWORKS)}")
    variables = {}
    for name, (roles, run) in FRAMEWORKS.items():
        instances = 1 if name == "ray" else 2
        job = f"version: 1\nname: x\nimage: busybox:1.36\nroles: {{a: {{instances: {instances}, resources: {{cpu: 1, memory: 1GiB, gpu: 4}}, run: {run}}}}}\n" \
              f"distributed: {{framework: {name}, roles: {roles}}}\n"
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "job.yaml"
            file.write_text(job)
            plan = json.loads(output(program, "plan", str(file), "--target", "kubernetes", "--format", "json"))
        for variable in plan["jobs"][0]["roles"][0]["provided_env"]:
            if not variable.startswith("JOBC_"):
                variables.setdefault(variable, set()).add(name)
    lines = ["# Variables of frameworks", "", "What `distributed` sets in every instance, besides `JOBC_*`, by `framework`. What a launcher",
             "sets in the processes that it starts, such as `RANK` and `LOCAL_RANK` of torchrun, is not among them.", "",
             "| variable | " + " | ".join(FRAMEWORKS) + " |", "|---" * (len(FRAMEWORKS) + 1) + "|"]
    for variable, having in sorted(variables.items()):
        lines.append(f"| `{variable}` | " + " | ".join("yes" if name in having else "" for name in FRAMEWORKS) + " |")
    return "\n".join([*lines, ""])


def templates(program):
    """The pages of the built-in templates: an index, and a page for each."""
    found = json.loads(output(program, "std", "ls", "--format", "json"))
    index = ["# Built-in templates", "", "`uses` names a template, `with` sets its parameters. Keys of the job override those of the template; see",
             "[Sweeps and templates](../guides/sweeps-and-templates.md#templates). `jobc std ls` lists the templates,",
             "`jobc std show NAME` prints a page, and `jobc init -e std/NAME DIR` writes the example.", "",
             "| Template | For a | |", "|---|---|---|"]
    pages = {}
    for template in found:
        name = template["name"].removeprefix("std/")
        index.append(f"| [`{template['name']}`]({name}.md) | {template['kind']} | {cell(template['description'])} |")
        page = [f"# {template['name']}", "", f"{template['description'][0].upper()}{template['description'][1:]}. A template for a {template['kind']}.", "",
                "## Example", "", "```yaml", template["example"].rstrip(), "```", "", "## Parameters", "",
                "| Name | Value | Default | Meaning |", "|---|---|---|---|"]
        for param in template["params"]:
            default = "required" if param["required"] else f"`{json.dumps(param['default'])}`"
            page.append(f"| `{param['name']}` | {cell(param['rule'])} | {default} | {cell(param['description'])} |")
        body = template["source"][template["source"].index("template: 1"):]
        pages[name] = "\n".join([*page, "", "## Notes", "", template["notes"], "", "## The template", "", "```yaml", body.rstrip(), "```", ""])
    return "\n".join([*index, ""]), pages


def systems(program):
    """The table of systems that people look for, in English and in Chinese."""
    names = re.findall(r"^- name: (.+)$", (REPOSITORY / "stdlib/systems.yaml").read_text(), re.M)
    rows = [json.loads(output(program, "explain", name, "--format", "json"))[-1]["answer"] for name in names]
    english = ["# Systems by name", "", "What jobc has for systems and terms of other tools. `jobc explain NAME` prints a row.", "",
               "* works: jobc writes what the system reads, or does the same.", "* nearest: something else of jobc serves the purpose.",
               "* no: not possible, with the reason.", "", "| Name | What it is | | jobc |", "|---|---|---|---|"]
    chinese = ["# 按名称查系统", "", "其他系统和术语在 jobc 中的对应。`jobc explain NAME` 输出其中一行（英文）。", "",
               "* 支持：jobc 生成该系统所需的内容，或完成同样的工作。", "* 相近：jobc 有另一种做法。", "* 不支持：做不到，并说明原因。", "",
               "| 名称 | 结论 | jobc 中的对应 |", "|---|---|---|"]
    verdicts = {"works": "支持", "nearest": "相近", "no": "不支持"}
    for row in rows:
        name = ", ".join([f"**{row['name']}**", *row.get("aliases", [])])
        english.append(f"| {name} | {cell(row['about'])} | {row['verdict']} | {cell(row['answer'])} |")
        chinese.append(f"| {name} | {verdicts[row['verdict']]} | {cell(row['zh'])} |")
    return "\n".join([*english, ""]), "\n".join([*chinese, ""])


def cell(text):
    """A text in a table."""
    return text.replace("|", "\\|")


def with_links(text, page):
    """A page whose links out of docs/ lead to the repository, if it has an address."""
    def link(found):
        target = found[2]
        if re.match(r"[a-z]+:", target):
            return found[0]
        path = (page.parent / target).resolve()
        if path.is_relative_to(DOCS):
            return found[0]
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
        place = source / page.relative_to(DOCS)
        if page.is_dir() or page.is_relative_to(DOCS / "site"):
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        if page.suffix == ".md":
            place.write_text(with_links(page.read_text(), page))
        elif page.name != "book.toml":
            shutil.copy(page, place)
    index, groups, places = errors(program)
    redirects = "".join(f'"/codes/{code}.html" = "{place}"\n' for code, place in places.items())
    (directory / "book.toml").write_text(f"{(DOCS / 'book.toml').read_text()}\n[output.html.redirect]\n{redirects}")
    (source / "schemas").mkdir()
    for name in SCHEMAS:
        (source / f"schemas/{name}.v1.schema.json").write_text(output(program, "schema", name))
    made = {"cli": command_line(program), "errors": index, "backends": backends(program)}
    made |= {f"errors/{name}": page for name, page in groups.items()}
    references = {each["name"]: each for each in json.loads(output(program, "explain", "--format", "json"))["formats"]}
    made |= {"job": fields.page(references["job"]), "targets-file": fields.page(references["targets"])}
    made["systems"], made["systems.zh"] = systems(program)
    made["frameworks"] = frameworks(program)
    catalog, pages = templates(program)
    (source / "templates").mkdir()
    for name, text in {"README": catalog, **pages}.items():
        (source / "templates" / f"{name}.md").write_text(text)
    for name, text in made.items():
        place = source / "reference" / f"{name}.md"
        if (DOCS / "reference" / f"{name}.md").exists():
            sys.exit(f"docs/reference/{name}.md is generated: remove it")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    # Not below src/: mdBook takes each `.md` there for a page.
    (directory / "llms.txt").write_text(agents.llms(source))
    (directory / "SKILL.md").write_text(output(program, "skill"))


if __name__ == "__main__":
    main()
