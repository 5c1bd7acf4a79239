"""What the conformance tests share: the repository, and scratch directories."""

import os
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.append(str(REPOSITORY / "tests"))  # for programs that pytest does not start


@contextmanager
def scratch(prefix="jobc-check-"):
    """A directory that every user may enter, removed afterwards."""
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as directory:
        os.chmod(directory, 0o755)
        yield Path(directory)
