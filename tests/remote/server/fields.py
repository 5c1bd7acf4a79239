#!/usr/bin/env python3
"""Adds fields of newer releases to the type Job of Kubernetes 1.20's source, so that its API server stores them: `fields.py SOURCE`.

The server of 1.20 drops fields that it does not know. These came with 1.21 to 1.31, and jobc writes them. They are stored, compared and
applied like all others; nothing checks their values, and no controller of 1.20 reads them.
"""

import re
import sys
from pathlib import Path

SPEC = [("CompletionMode", "*string"), ("Suspend", "*bool"), ("BackoffLimitPerIndex", "*int32"), ("MaxFailedIndexes", "*int32"),
        ("PodReplacementPolicy", "*string"), ("PodFailurePolicy", "*runtime.RawExtension"), ("SuccessPolicy", "*runtime.RawExtension")]
STATUS = [("Ready", "*int32"), ("Terminating", "*int32"), ("CompletedIndexes", "*string"), ("FailedIndexes", "*string")]
RUNTIME = '"k8s.io/apimachinery/pkg/runtime"'


def replace_once(text, old, new):
    if text.count(old) != 1:
        sys.exit(f"the source has {text.count(old)} places with {old!r}, not one")
    return text.replace(old, new)


def fields(names, tagged):
    def tag(name):
        return f' `json:"{name[0].lower()}{name[1:]},omitempty"`' if tagged else ""
    return "".join(f"\n\t// +optional\n\t{name} {kind}{tag(name)}" for name, kind in names)


def add_to(path, tagged):
    text = path.read_text()
    for struct, names in (("JobSpec", SPEC), ("JobStatus", STATUS)):
        start = f"type {struct} struct {{"
        text = replace_once(text, start, start + fields(names, tagged))
    if RUNTIME not in text:
        text = re.sub(r"import \(\n", f"import (\n\t{RUNTIME}\n", text, count=1)
    path.write_text(text)


def main():
    source = Path(sys.argv[1])
    add_to(source / "staging/src/k8s.io/api/batch/v1/types.go", True)
    add_to(source / "pkg/apis/batch/types.go", False)
    conversion = source / "pkg/apis/batch/v1/conversion.go"
    text, line = conversion.read_text(), "\tout.Parallelism = in.Parallelism\n"
    if text.count(line) != 2:
        sys.exit("the source does not convert JobSpec as expected")
    conversion.write_text(text.replace(line, line + "".join(f"\tout.{name} = in.{name}\n" for name, _ in SPEC)))


if __name__ == "__main__":
    main()
