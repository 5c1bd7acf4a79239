#!/usr/bin/env python3
"""Writes the pages of docs/ that come from jobc itself: `pages.py PROGRAM`, which is `just docs`. With `--check` it only compares.

    reference/job.md, reference/targets-file.md  every field, from `jobc explain --format json`
    reference/cli.md                         every command, from its `--help`
    reference/errors.md                      every diagnostic code, from `jobc explain`; their pages are compiler/src/diagnostic/codes/*.md
    reference/backends.md                    what each backend can express, from `jobc backends`
    reference/frameworks.md                  the variables of each framework, from `jobc plan`
    reference/rest-api.md                    the REST API, from `jobc schema openapi`
    reference/systems.md, systems.zh.md      systems by name, from `jobc explain`, in English and in Chinese
    templates/README.md, templates/*         the built-in templates, from `jobc std`
    platforms.md                             what was tested with which release, from seen.json

The pages are in the repository, so that they can be read there; `./test` compares them with the program.
"""

import difflib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import fields
import platforms

DOCS = Path(__file__).resolve().parents[1]
REPOSITORY = DOCS.parent
NOTE = "<!-- Written by `just docs` from the program. -->"
# The groups of diagnostic codes: the name of their page on the site, and their title.
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


def codes(program):
    """Every diagnostic code and its title, in groups."""
    groups = {}
    for code, title in re.findall(r"^(J\d{4})  (.*)$", output(program, "explain"), re.M):
        if code[:3] not in GROUPS:
            sys.exit(f"docs/site/pages.py: {code} is in no group of GROUPS")
        groups.setdefault(GROUPS[code[:3]], {})[code] = title
    return groups


def errors(program):
    """The index of diagnostic codes, with links to the pages that the program has."""
    groups = codes(program)
    lines = ["# Diagnostic codes", "", f"jobc has {sum(map(len, groups.values()))} codes. `jobc explain CODE` prints the page of one.", ""]
    for (_, heading), titles in groups.items():
        lines += [f"## {heading}", ""]
        lines += [fields.item(f"[`{code}`](../../compiler/src/diagnostic/codes/{code}.md) {title}") for code, title in titles.items()]
        lines.append("")
    return "\n".join(lines)


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
        reasons += [fields.item(f"{row['feature']}, `{name}`: {cell['why']}") for name, cell in zip(names, cells) if cell["why"]]
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
               "* no: not possible, with the reason.", "", "## Names", ""]
    chinese = ["# 按名称查系统", "", "其他系统和术语在 jobc 中的对应。`jobc explain NAME` 输出其中一行（英文）。", "",
               "* 支持：jobc 生成该系统所需的内容，或完成同样的工作。", "* 相近：jobc 有另一种做法。", "* 不支持：做不到，并说明原因。", "",
               "| 名称 | 结论 | jobc 中的对应 |", "|---|---|---|"]
    verdicts = {"works": "支持", "nearest": "相近", "no": "不支持"}
    for row in rows:
        name = ", ".join([f"**{row['name']}**", *row.get("aliases", [])])
        english.append(fields.item(f"{name}: {row['about']}. {row['verdict'].capitalize()}: {row['answer']}"))
        chinese.append(f"| {name} | {verdicts[row['verdict']]} | {cell(row['zh'])} |")
    return "\n".join([*english, ""]), "\n".join([*chinese, ""])


def kind(schema):
    """The type of a value in the API, with a link where the page has it."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return " or ".join(dict.fromkeys(kind(each) for each in schema[choice]))
    kinds = schema.get("type", "any value")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if "enum" in schema or "const" in schema:
        return " or ".join(f"`{json.dumps(value)}`" for value in schema.get("enum", [schema.get("const")]))
    return " or ".join(f"list of {kind(schema['items'])}" if each == "array" and "items" in schema else each for each in kinds)


def content_of(part):
    """What a body or an answer is: the type of its JSON, and other media types."""
    kinds = [kind(content["schema"]) if media == "application/json" else f"`{media}`" for media, content in part.get("content", {}).items()]
    return " or ".join(kinds)


def rest_api(program):
    """The REST API: every request by its resource, then every type."""
    document = json.loads(output(program, "schema", "openapi"))
    lines = ["# REST API", "", "What `jobc serve` answers, from its OpenAPI 3.1 document: `jobc schema openapi` prints it, and a server has it at",
             "`/api/v1/openapi.json`. [The guide](../guides/serve.md#the-api) has examples. Errors are a [Document](#document) as",
             "`application/problem+json`.", "", "## Requests", ""]
    lines += ["| Request | | Body | Answer |", "|---|---|---|---|"]
    parameters = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            answers = {status: answer for status, answer in operation["responses"].items() if status != "default"}
            body, made = (content_of(part) for part in (operation.get("requestBody", {}), min(answers.items())[1]))
            lines.append(f"| `{method.upper()} {path}` | {operation['summary']} | {body} | {made or min(answers)} |")
            for parameter in operation.get("parameters", []):
                if parameter["in"] != "path":
                    text = f"`{parameter['name']}` ({parameter['in']}, {kind(parameter['schema'])}): {parameter.get('description', '')}"
                    parameters.setdefault(text, []).append(f"`{operation['operationId']}`")
    lines += ["", "## Parameters", "", "With the operations of the document that have them.", ""]
    lines += [fields.item(f"{text} {', '.join(names)}") for text, names in parameters.items()] + [""]
    lines += ["## Types", ""]
    for name, schema in sorted(document["components"]["schemas"].items()):
        lines += [f"### {name}", "", schema.get("description", "").replace("\n", " "), ""]
        required = schema.get("required", [])
        for field, value in schema.get("properties", {}).items():
            text = f"`{field}` ({kind(value)}{', required' if field in required else ''})"
            about = value.get("description", "").replace("\n", " ")
            lines.append(fields.item(f"{text}: {about}" if about else text))
        if "properties" not in schema:
            lines.append(fields.item(kind(schema)))
        lines.append("")
    return "\n".join(lines)


def cell(text):
    """A text in a table."""
    return text.replace("|", "\\|")


def made(program):
    """The pages by their path in docs/."""
    formats = {each["name"]: each for each in json.loads(output(program, "explain", "--format", "json"))["formats"]}
    reference = {
        "job": fields.page(formats["job"]), "targets-file": fields.page(formats["targets"]), "cli": command_line(program),
        "errors": errors(program), "backends": backends(program), "frameworks": frameworks(program),
        "rest-api": rest_api(program),
    }
    reference["systems"], reference["systems.zh"] = systems(program)
    catalog, pages = templates(program)
    texts = {f"reference/{name}.md": text for name, text in reference.items()}
    texts["platforms.md"] = platforms.page()
    texts |= {f"templates/{name}.md": text for name, text in {"README": catalog, **pages}.items()}
    return {name: f"{NOTE}\n\n{text.rstrip()}\n" for name, text in texts.items()}


def main():
    program, check, wrong = Path(sys.argv[1]).resolve(), sys.argv[2:] == ["--check"], 0
    texts = made(program)
    old = {str(page.relative_to(DOCS)): page.read_text() for page in sorted(DOCS.rglob("*.md")) if page.read_text().startswith(NOTE)}
    for name in sorted(texts.keys() | old.keys()):
        before, after = old.get(name, ""), texts.get(name, "")
        if before == after:
            continue
        wrong += 1
        place = DOCS / name
        if check:
            print(f"docs/{name}: not what jobc writes; run `just docs`")
            changes = [line for line in difflib.unified_diff(before.splitlines(), after.splitlines(), "page", "jobc", n=0, lineterm="")][2:]
            print("\n".join(f"    {line}" for line in changes[:8]))
        elif after:
            place.parent.mkdir(exist_ok=True)
            place.write_text(after)
        else:
            place.unlink()
    print(f"generated pages: {len(texts)}, {wrong} {'wrong' if check else 'changed'}")
    sys.exit(1 if check and wrong else 0)


if __name__ == "__main__":
    main()
