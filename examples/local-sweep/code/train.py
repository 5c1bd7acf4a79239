"""Looks for the lowest point of a narrow valley by gradient descent with momentum."""

import argparse
import json

arguments = argparse.ArgumentParser()
arguments.add_argument("--rate", type=float, required=True)
arguments.add_argument("--momentum", type=float, required=True)
arguments.add_argument("result")
arguments = arguments.parse_args()

x, y, vx, vy = 4.0, 4.0, 0.0, 0.0
for step in range(1, 201):
    vx = arguments.momentum * vx - arguments.rate * 2 * x
    vy = arguments.momentum * vy - arguments.rate * 12 * y
    x, y = x + vx, y + vy
    if step % 50 == 0:
        print(f"step {step}: {x * x + 6 * y * y:.3e}")
result = {"rate": arguments.rate, "momentum": arguments.momentum, "value": x * x + 6 * y * y}
with open(arguments.result, "w") as file:
    json.dump(result, file)
