"""What every check shares: where built files are, how results are printed, how a schema is made strict."""

import argparse
import json
import os
import shutil
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PUBLISHED = REPOSITORY.parent / "shared" / "schemas"
sys.path.append(str(REPOSITORY / "tests"))

import build  # noqa: E402
import needs  # noqa: E402

try:
    import yaml
except ImportError:
    print(needs.line(Path(sys.argv[0]).stem, "PyYAML"))
    sys.exit(needs.exit_code())

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def built():
    """The output of the examples and cases: what `run` has built, or is built now."""
    directory = Path(os.environ.get("JOBC_BUILT") or build.build_all())
    return [directory / root for root in build.ROOTS]


class Check:
    """One check: counts what it checked and prints each failure, then one line with the counts."""

    def __init__(self, name, unit):
        self.name, self.unit = name, unit
        self.checked, self.failed, self.notes = 0, 0, {}
        needs.watch(name)
        parser = argparse.ArgumentParser(prog=name)
        parser.add_argument("roots", nargs="*", type=Path,
                            help="directories with built output [default: the examples and the cases of tests/providers and tests/kinds]")
        given = parser.parse_args().roots
        self.roots, self.given = given or built(), bool(given)

    def find(self, *pattern):
        """Every file below the roots that matches one of the patterns, in a stable order."""
        return sorted({path for root in self.roots for one in pattern for path in root.rglob(one) if path.is_file()})

    def tool(self, name):
        """The path of a program, from the virtual environment or the system; skips without it."""
        beside = Path(sys.executable).parent / name
        path = str(beside) if beside.exists() else shutil.which(name)
        return path or self.missing(name)

    def succeed(self):
        self.checked += 1

    def fail(self, path, message):
        """Counts one file as failed, and prints the reason."""
        self.checked += 1
        self.failed += 1
        print(f"{self.name}: {shown(path)}: {message}")

    def record(self, path, problems):
        """Counts one file: failed if there are problems, which are printed."""
        if problems:
            self.fail(path, "\n    ".join(problems))
        else:
            self.succeed()

    def note(self, text, times=1):
        """Adds a note to the result; equal notes are counted."""
        self.notes[text] = self.notes.get(text, 0) + times

    def missing(self, what, installer=None):
        """Ends a check that cannot run: skipped, or failed if tools are required."""
        print(needs.line(self.name, what, installer))
        sys.exit(needs.exit_code())

    def skip(self, why):
        """Ends a check that does not apply to the directories that are named."""
        print(f"{self.name}: skipped: {why}")
        sys.exit(needs.SKIPPED)

    def end(self):
        """Prints notes and counts, and exits with the result.

        The examples have something for every check, so checking nothing there is a failure. A directory that is named
        need not, and the check is skipped with a message.
        """
        for text, times in sorted(self.notes.items()):
            print(f"{self.name}:   note: {text} ({times})")
        print(f"{self.name}: {self.checked} {self.unit} checked, {self.failed} failed")
        if self.checked == 0:
            print(f"{self.name}: nothing to check below {', '.join(shown(root) for root in self.roots)}")
            sys.exit(needs.SKIPPED if self.given else 1)
        sys.exit(1 if self.failed else 0)


def shown(path):
    """A path relative to the repository's root, if it is below it."""
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
    """A published schema next to the checkout, or None without that directory."""
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
