"""What every check shares: where built files lie, how a check speaks, how a schema is made strict."""

import argparse
import json
import os
import shutil
import sys
from pathlib import Path

import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
PUBLISHED = REPOSITORY.parent / "shared" / "schemas"

SKIPPED = 77
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def required():
    """Whether a missing tool is an error (`.ci/run`) or only said aloud (a person's machine)."""
    return os.environ.get("JOBC_ORACLES") == "required"


class Check:
    """One check: counts what it judged and prints each refusal, then one line for the whole."""

    def __init__(self, name, unit):
        self.name, self.unit = name, unit
        self.judged, self.refused, self.notes = 0, 0, {}
        parser = argparse.ArgumentParser(prog=name)
        parser.add_argument("roots", nargs="*", type=Path,
                            help="directories that hold built output; the examples and the providers of GPUs when absent")
        given = parser.parse_args().roots
        self.roots, self.given = given or [REPOSITORY / "examples", REPOSITORY / "tests" / "providers"], bool(given)

    def find(self, *pattern):
        """Every file below the roots that matches one of the patterns, in a stable order."""
        return sorted({path for root in self.roots for one in pattern for path in root.rglob(one) if path.is_file()})

    def tool(self, name):
        """The path of a program, from the environment beside the interpreter or the system; skips without it."""
        beside = Path(sys.executable).parent / name
        path = str(beside) if beside.exists() else shutil.which(name)
        return path or self.skip(f"`{name}` is not installed; `tests/oracles/install` installs it")

    def accept(self):
        self.judged += 1

    def refuse(self, path, message):
        """Counts one judged file as refused, with the reason."""
        self.judged += 1
        self.refused += 1
        print(f"{self.name}: {shown(path)}: {message}")

    def judge(self, path, problems):
        """Counts one file: refused when there are problems, each printed, accepted otherwise."""
        if problems:
            self.refuse(path, "\n    ".join(problems))
        else:
            self.accept()

    def note(self, text, times=1):
        """Remembers something a reader of the result must know; equal notes are counted."""
        self.notes[text] = self.notes.get(text, 0) + times

    def skip(self, why):
        """Leaves without judging: aloud where tools are optional, as an error where they are not."""
        print(f"{self.name}: {'missing' if required() else 'skipped'}: {why}")
        sys.exit(1 if required() else SKIPPED)

    def end(self):
        """Prints the closing line and leaves with the result.

        The examples hold something for every check, so judging nothing there is a failure; a directory that somebody
        names need not, and the check is skipped aloud.
        """
        for text, times in sorted(self.notes.items()):
            print(f"{self.name}:   note: {text} ({times})")
        print(f"{self.name}: {self.judged} {self.unit} judged, {self.refused} refused")
        if self.judged == 0:
            print(f"{self.name}: nothing to judge below {', '.join(shown(root) for root in self.roots)}")
            sys.exit(SKIPPED if self.given else 1)
        sys.exit(1 if self.refused else 0)


def shown(path):
    """A path as a reader of this repository writes it."""
    path = Path(path).resolve()
    return str(path.relative_to(REPOSITORY)) if path.is_relative_to(REPOSITORY) else str(path)


def read(path):
    """A YAML or JSON file; JSON is read as JSON."""
    text = Path(path).read_text(encoding="utf-8")
    return json.loads(text) if str(path).endswith(".json") else yaml.load(text, LOADER)


def documents(path):
    """The documents of a YAML file that are not empty."""
    return [item for item in yaml.load_all(Path(path).read_text(encoding="utf-8"), LOADER) if item is not None]


def built_in(manifest):
    """Whether Kubernetes itself defines the object: its group is `apps` or `networking.k8s.io`, not `x.example.com`."""
    group = manifest["apiVersion"].rpartition("/")[0]
    return "." not in group or group.endswith(".k8s.io")


def published(*parts):
    """A published schema beside the checkout, or None when that directory is absent."""
    path = PUBLISHED.joinpath(*parts)
    return path if path.exists() else None


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
