"""Sums a number over all processes, one a GPU."""

import os

import torch
import torch.distributed as dist

dist.init_process_group("nccl")
local = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
total = torch.ones(1, device="cuda")
dist.all_reduce(total)
print(f"rank {dist.get_rank()}: {int(total)} GPUs work together", flush=True)
dist.destroy_process_group()
