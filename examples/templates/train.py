"""Prints which process of the job it is, so that the job can run before your training is here: replace it."""

import os
import sys

NAMES = ("RANK", "WORLD_SIZE", "JOBC_RANK", "JOBC_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "TF_CONFIG")
known = [f"{name}={os.environ[name]}" for name in NAMES if name in os.environ]
print(*sys.argv, *known, flush=True)
