"""Stands for torchrun with one process: its rank and the address of the first rank come from the variables that torchrun reads."""

import os
import runpy
import sys

os.environ |= {"RANK": os.environ["PET_NODE_RANK"], "WORLD_SIZE": os.environ["PET_NNODES"], "MASTER_ADDR": os.environ["PET_MASTER_ADDR"],
               "MASTER_PORT": os.environ["PET_MASTER_PORT"]}
# The package was imported before the variables were set.
sys.modules["torch.distributed"].RANK, sys.modules["torch.distributed"].SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
runpy.run_path(sys.argv[-1], run_name="__main__")
