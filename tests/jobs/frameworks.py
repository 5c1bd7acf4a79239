"""Frameworks that `tests/jobs/install` installs, and programs that prove their rendezvous."""

import needs
from harness import REPOSITORY

ORACLES = REPOSITORY / ".oracles"
JAX, TENSORFLOW, DEBIAN, OPENMPI, HOROVOD = (ORACLES / name for name in ("jax", "tensorflow", "debian", "openmpi", "horovod"))
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

TORCH_PROGRAM = """\
import torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.tensor([float(dist.get_rank() + 1)])
dist.all_reduce(total)
print(f"rank {dist.get_rank()} of {dist.get_world_size()} has {total.item()}", flush=True)
"""

MPI_PROGRAM = """\
import os, socket
from mpi4py import MPI
world, version = MPI.COMM_WORLD, MPI.Get_library_version().split(",")[0].split(".")[0]
total = world.allreduce(world.Get_rank() + 1)
print(f"{version}: rank {world.Get_rank()} of {world.Get_size()} on {socket.gethostname()} has {total} and {os.environ['WORD']}", flush=True)
"""

TENSORFLOW_PROGRAM = """\
import json
import tensorflow as tf
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
print("cluster", json.dumps([resolver.task_type, resolver.task_id, resolver.cluster_spec().as_dict()]), flush=True)
if resolver.task_type in ("chief", "worker") and "ps" not in resolver.cluster_spec().jobs:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    @tf.function
    def total():
        def replica():
            context = tf.distribute.get_replica_context()
            return context.all_reduce(tf.distribute.ReduceOp.SUM, tf.cast(context.replica_id_in_sync_group, tf.float32) + 1.0)
        return strategy.run(replica)
    print("sum", float(total()), "of", strategy.num_replicas_in_sync, flush=True)
"""


def need(place):
    """Skips a test whose framework is not installed."""
    if not (place / "installed").exists() and not (place == HOROVOD and place.is_dir()):
        needs.missing(place.name, "`tests/jobs/install`")


def check_lines(answer, *lines):
    """Whether a job succeeded and printed these lines."""
    missing = [line for line in lines if line not in answer.stdout.splitlines()]
    assert answer.returncode == 0 and not missing, f"exit {answer.returncode}, {missing} are missing: {answer.stdout[-2400:]}{answer.stderr[-1600:]}"
