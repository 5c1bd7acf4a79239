"""Finds the program `fake-gpus`, which simulates hosts with GPUs, for the tests of this directory."""

from harness import REPOSITORY


def fake_gpus(harness):
    """The `fake-gpus` that cargo built last."""
    built = [REPOSITORY / "target" / directory / "fake-gpus" for directory in ("release", "debug")]
    built = [program for program in built if program.exists()]
    if not built:
        return harness.missing("fake-gpus", "`cargo build -p jobc-fake-gpus`")
    harness.tool("cc")  # which compiles the library of the simulated driver
    return str(max(built, key=lambda program: program.stat().st_mtime))
