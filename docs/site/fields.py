"""The reference of a file format, field by field, from its JSON Schema."""

import json


def page(schema, title):
    """The page: the top level first, then each type in the order in which a field names it."""
    definitions = schema["$defs"]
    waiting, done = [("", schema)], []
    lines = [f"# {title}", "", schema["description"], "",
             "Every field, from the schema that `jobc schema` prints and `jobc check` uses. A value may be an expression,",
             "`${{ ... }}`, where its type says so.", ""]
    while waiting:
        name, kind = waiting.pop(0)
        found = []
        lines += section(name or title, kind, found)
        done.append(name)
        for other in found:
            if other not in done and other not in [each for each, _ in waiting]:
                waiting.append((other, definitions[other]))
    return "\n".join(lines)


def section(name, kind, found):
    """A type: what it is, its values, its fields. The types that it names are added to `found`."""
    lines = [f"## {name} {{#type-{name.lower()}}}", ""]
    if name in ("Job file", "Targets file"):
        lines = ["## Top level", ""]
    else:
        lines += [kind.get("description", ""), ""]
    lines += values(kind, found)
    required = kind.get("required", [])
    for field, rules in kind.get("properties", {}).items():
        lines += [f"### `{field}` {{#{anchor(name, field)}}}", "", description(rules, field in required, found), ""]
    for pattern, rules in kind.get("patternProperties", {}).items():
        meant = "Keys that begin with `x-` are the user's own." if pattern == "^x-" else f"Keys that match `{pattern}`."
        lines += [f"{meant}", ""]
    return lines


def values(kind, found):
    """What a type that is not an object may be."""
    lines = []
    for option in kind.get("anyOf", []) + kind.get("oneOf", []):
        description = option.get("description", "")
        what = f"`{json.dumps(option['const'])}`" if "const" in option else words(option, found)
        lines.append(f"* {what}: {description}" if description else f"* {what}")
    if not lines and "properties" not in kind:
        lines = [f"Type: {words(kind, found)}."]
    return [*lines, ""] if lines else []


def description(rules, required, found):
    """A field: what it means, its type and limits, whether it is required; its default and example stand in the text."""
    facts = [f"Type: {words(rules, found)}"]
    if required:
        facts.append("required")
    for key, label in (("minimum", "at least"), ("exclusiveMinimum", "more than"), ("maximum", "at most"),
                      ("minItems", "items: at least"), ("maxItems", "items: at most")):
        if key in rules:
            facts.append(f"{label} {rules[key]}")
    text = rules.get("markdownDescription") or rules.get("description", "")
    return "; ".join(facts) + f".\n\n{text}"


def words(rules, found):
    """A type in words, with links to those that have a section: `list of [Step](#step)`."""
    if "$ref" in rules:
        name = rules["$ref"].rpartition("/")[2]
        found.append(name)
        return f"[{name}](#type-{name.lower()})"
    options = rules.get("anyOf") or rules.get("oneOf")
    if options:
        return " or ".join(dict.fromkeys(f"`{json.dumps(each['const'])}`" if "const" in each else words(each, found) for each in options))
    if "const" in rules:
        return f"`{json.dumps(rules['const'])}`"
    if "enum" in rules:
        return " or ".join(f"`{json.dumps(each)}`" for each in rules["enum"])
    kinds = rules.get("type", [])
    kinds = kinds if isinstance(kinds, list) else [kinds]
    expression = r"\$\{\{" in rules.get("pattern", "")
    parts = []
    for kind in kinds:
        if kind == "array":
            parts.append(f"list of {words(rules['items'], found)}" if isinstance(rules.get("items"), dict) else "list")
        elif kind == "object":
            inner = rules.get("additionalProperties")
            parts.append(f"map of names to {words(inner, found)}" if isinstance(inner, dict) else "map")
        elif kind == "string" and expression and len(kinds) > 1 and rules["pattern"].startswith(r"^\$"):
            parts.append("expression")
        else:
            parts.append({"boolean": "true or false", "number": "number", "integer": "integer", "null": "null"}.get(kind, kind))
    return " or ".join(parts) or "any value"


def anchor(name, field):
    """The id of a field's heading: `role-instances`, `version`; those of types begin with `type-`."""
    own = "" if name in ("", "Job file", "Targets file") else f"{name.lower()}-"
    return f"{own}{field.lower()}"
