"""Fits a polynomial to points by gradient descent."""

import argparse
import json
import time

arguments = argparse.ArgumentParser()
arguments.add_argument("--degree", type=int, required=True)
arguments.add_argument("--steps", type=int, default=300)
arguments.add_argument("points")
arguments.add_argument("model")
arguments = arguments.parse_args()

with open(arguments.points) as file:
    points = [tuple(map(float, line.split(","))) for line in file]
weights = [0.0] * (arguments.degree + 1)
began = time.monotonic()
for step in range(1, arguments.steps + 1):
    gradient, loss = [0.0] * len(weights), 0.0
    for x, y in points:
        powers = [x**i for i in range(len(weights))]
        error = sum(w * p for w, p in zip(weights, powers)) - y
        loss += error * error / len(points)
        gradient = [g + 2 * error * p / len(points) for g, p in zip(gradient, powers)]
    weights = [w - 0.5 * g for w, g in zip(weights, gradient)]
    if step % 100 == 0:
        print(f"step {step}: loss {loss:.4f}", flush=True)
with open(arguments.model, "w") as file:
    json.dump({"degree": arguments.degree, "weights": weights, "loss": loss}, file)
print(f"degree {arguments.degree} fitted in {time.monotonic() - began:.1f} s")
