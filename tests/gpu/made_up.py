"""The program that makes up machines with GPUs, for the judges of this directory."""

from judge import REPOSITORY


def fake_gpus(judge):
    """The one that cargo built last."""
    built = [REPOSITORY / "target" / directory / "fake-gpus" for directory in ("release", "debug")]
    built = [program for program in built if program.exists()]
    if not built:
        return judge.skip("`fake-gpus` is not built: cargo build -p jobc-fake-gpus")
    return str(max(built, key=lambda program: program.stat().st_mtime))
