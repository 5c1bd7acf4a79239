"""Tries learning rates in parallel, a GPU each."""

import argparse
import random

import ray

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--trials", type=int, default=16)
options = parser.parse_args()

ray.init()  # finds the cluster by RAY_ADDRESS
print(f"the cluster has {ray.cluster_resources()}")


@ray.remote(num_gpus=1)
def trial(rate):
    x = 10.0
    for _ in range(1000):
        x -= rate * 2 * x
    return rate, x * x


rates = [10 ** random.uniform(-4, -1) for _ in range(options.trials)]
best = min(ray.get([trial.remote(rate) for rate in rates]), key=lambda result: result[1])
print(f"the best learning rate is {best[0]:.4g}")
