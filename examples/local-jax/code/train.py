"""Fits a line to points of which each process holds a part: the gradients are summed over all of them."""

import argparse
import os

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

POINTS = 256  # of each process
SLOPE, INTERCEPT = 2.0, -1.0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    steps = parser.parse_args().steps

    # JAX reads JAX_COORDINATOR_ADDRESS itself, and the other two only from its arguments.
    jax.distributed.initialize(
        num_processes=int(os.environ["JAX_NUM_PROCESSES"]),
        process_id=int(os.environ["JAX_PROCESS_ID"]),
    )
    rank = jax.process_index()
    print(f"process {rank} of {jax.process_count()}, {jax.device_count()} devices in all", flush=True)

    split = NamedSharding(Mesh(np.array(jax.devices()), ("hosts",)), PartitionSpec("hosts"))
    x = np.random.default_rng(rank).uniform(-1, 1, POINTS).astype(np.float32)
    points = [jax.make_array_from_process_local_data(split, part) for part in (x, SLOPE * x + INTERCEPT)]

    def loss(line, x, y):
        return jnp.mean((line[0] * x + line[1] - y) ** 2)

    @jax.jit
    def step(line, x, y):
        return line - 0.5 * jax.grad(loss)(line, x, y)

    line = jnp.zeros(2)
    for _ in range(steps):
        line = step(line, *points)
    slope, intercept = (float(value) for value in line)
    print(f"process {rank}: slope {slope:.3f}, intercept {intercept:.3f}")
    jax.distributed.shutdown()


if __name__ == "__main__":
    main()
