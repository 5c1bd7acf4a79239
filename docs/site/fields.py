"""Lays out the reference of a file format, field by field. Its text is that of `jobc explain`, which is that of the JSON Schema."""

import textwrap

PLACES = 4


def item(text):
    """An item of a list within 120 columns."""
    return wrapped(f"* {text}", "  ")


def wrapped(text, indent=""):
    """A paragraph within 120 columns."""
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def page(reference):
    """The page: the top level first, then each type in the order in which a field names it."""
    title = reference["title"].capitalize()
    lines = [f"# {title}", "", reference["description"], "",
             "Every field. `jobc explain FIELD`, such as `jobc explain resources.memory`, prints the same text, and editors show it. A",
             "value may be an expression, `${{ ... }}`, where its type says so.", ""]
    for kind in reference["types"]:
        lines += section(kind)
    return "\n".join(lines)


def section(kind):
    """A type: what it is, where it is written, its values, its fields."""
    name = kind["name"]
    lines = ["## Top level", ""] if name is None else [*heading(f"## {name}", f"type-{name.lower()}"), kind["description"], "", *places(kind["places"])]
    values = kind["values"] or {}
    for option in values.get("options", []):
        lines.append(item(f"{option['type']}: {option['description']}" if option["description"] else option["type"]))
    if "type" in values:
        lines.append(f"Type: {values['type']}.")
    lines += [""] if values else []
    for field in kind["fields"]:
        lines += [*heading(f"### `{field['name']}`", anchor(name, field["name"])), field["facts"], "", "\n".join(map(wrapped, field["text"].splitlines())), ""]
    for pattern in kind["patterns"]:
        lines += ["Keys that begin with `x-` are the user's own." if pattern == "^x-" else f"Keys that match `{pattern}`.", ""]
    return lines


def heading(text, anchor):
    """A heading with an id of its own, as forges read it."""
    return [f'<a id="{anchor}"></a>', "", text, ""]


def anchor(name, field):
    """The id of a field's heading: `role-instances`, `version`; those of types begin with `type-`."""
    return f"{name.lower()}-{field.lower()}" if name else field.lower()


def places(paths):
    """Where the fields of a type are written."""
    if not paths:
        return []
    more = f" and {len(paths) - PLACES} more places" if len(paths) > PLACES else ""
    return [f"In {', '.join(f'`{path}`' for path in paths[:PLACES])}{more}.", ""]
