"""Reads documents, and makes validators of published schemas."""

import functools
import json
from pathlib import Path

import needs
from artifacts import REPOSITORY

yaml = needs.package("yaml", "PyYAML")
PUBLISHED = REPOSITORY.parent / "shared" / "schemas"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read(path):
    """A YAML or JSON file; JSON is read as JSON."""
    text = Path(path).read_text(encoding="utf-8")
    return json.loads(text) if str(path).endswith(".json") else yaml.load(text, LOADER)


@functools.cache
def documents(path):
    """The documents of a YAML file that are not empty."""
    return [item for item in yaml.load_all(Path(path).read_text(encoding="utf-8"), LOADER) if item is not None]


def built_in(manifest):
    """Whether Kubernetes itself defines the object: its group is `apps` or `networking.k8s.io`, not `x.example.com`."""
    group = manifest["apiVersion"].rpartition("/")[0]
    return "." not in group or group.endswith(".k8s.io")


def published(*parts):
    """A published schema next to the checkout, or None without that directory."""
    path = PUBLISHED.joinpath(*parts)
    return path if path.exists() else None


def draft4(schema, referenced):
    """A draft 4 validator whose references are these schemas, by name."""
    jsonschema, referencing = needs.package("jsonschema"), needs.package("referencing.jsonschema", "referencing")
    resources = ((name, referencing.DRAFT4.create_resource(content)) for name, content in referenced.items())
    return jsonschema.Draft4Validator(schema, registry=referencing.EMPTY_REGISTRY.with_resources(resources))


def strict(schema):
    """The same JSON Schema with unknown keys forbidden in every object whose keys are listed."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    out = {key: strict(value) for key, value in schema.items()}
    listed = isinstance(out.get("properties"), dict) and out.get("type", "object") == "object"
    if listed and "additionalProperties" not in out and not out.get("x-kubernetes-preserve-unknown-fields"):
        out["additionalProperties"] = False
    return out


def explained(errors):
    """The errors of a JSON Schema validator as lines that begin with the place, the deepest cause last."""
    lines = []
    for error in sorted(errors, key=lambda e: [str(part) for part in e.absolute_path]):
        place = "/" + "/".join(str(part) for part in error.absolute_path)
        lines.append(f"{place}: {error.message[:300]}")
        for cause in error.context or []:
            lines.append(f"  {'/'.join(str(part) for part in cause.absolute_path)}: {cause.message[:200]}")
    return lines
