"""Fits a line by stochastic gradient descent, and says how well it fits points that it has not seen."""

import argparse
import json

arguments = argparse.ArgumentParser()
arguments.add_argument("--rate", type=float, required=True)
arguments.add_argument("--batch", type=int, required=True)
arguments.add_argument("--epochs", type=int, required=True)
arguments.add_argument("points")
arguments.add_argument("model")
arguments = arguments.parse_args()

with open(arguments.points) as file:
    points = json.load(file)
slope, offset = 0.0, 0.0
for epoch in range(1, arguments.epochs + 1):
    for first in range(0, len(points["train"]), arguments.batch):
        batch = points["train"][first:first + arguments.batch]
        errors = [(slope * x + offset - y, x) for x, y in batch]
        slope -= arguments.rate * 2 * sum(error * x for error, x in errors) / len(batch)
        offset -= arguments.rate * 2 * sum(error for error, _ in errors) / len(batch)
    if epoch % 10 == 0 or epoch == arguments.epochs:
        loss = sum((slope * x + offset - y) ** 2 for x, y in points["test"]) / len(points["test"])
        print(f"epoch {epoch}: loss {loss:.5f}")
with open(arguments.model, "w") as file:
    json.dump({"slope": slope, "offset": offset, "loss": loss}, file)
