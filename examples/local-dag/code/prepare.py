"""Writes points of a parabola with some noise."""

import argparse
import random

arguments = argparse.ArgumentParser()
arguments.add_argument("--samples", type=int, required=True)
arguments.add_argument("file")
arguments = arguments.parse_args()

random.seed(1)
with open(arguments.file, "w") as file:
    for _ in range(arguments.samples):
        x = random.uniform(-1, 1)
        y = 0.5 + 2 * x - 3 * x * x + random.gauss(0, 0.1)
        file.write(f"{x},{y}\n")
print(f"{arguments.samples} points in {arguments.file}")
