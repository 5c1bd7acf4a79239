"""A worker: learns the weights that made its samples, together with the others, through the parameter servers."""

import argparse
import json
import os
import random
import socket
import sys

FEATURES = 8
TRUTH = [3, -1, 0.5, 2, -2, 1, 0, 4]

arguments = argparse.ArgumentParser()
arguments.add_argument("--steps", type=int, required=True)
arguments = arguments.parse_args()


class Part:
    """The connection to one parameter server."""

    def __init__(self, endpoint):
        host, port = endpoint.rsplit(":", 1)
        self.file = socket.create_connection((host, int(port))).makefile("rw")

    def ask(self, gradient):
        self.file.write(json.dumps(gradient) + "\n")
        self.file.flush()
        return json.loads(self.file.readline())


endpoints = os.environ["JOBC_ENDPOINTS_PS_WEIGHTS"].split(",")
parts = [Part(endpoint) for endpoint in endpoints]
print(f"{socket.gethostname()} ({socket.gethostbyname(socket.gethostname())}) talks to {', '.join(endpoints)}")


def exchange(gradient):
    """Sends each server its part of a gradient; returns all weights."""
    weights = [0.0] * FEATURES
    for i, part in enumerate(parts):
        own = gradient and gradient[i :: len(parts)]
        weights[i :: len(parts)] = part.ask(own)
    return weights


random.seed(int(os.environ["JOBC_INDEX"]))
weights = exchange(None)
for step in range(1, arguments.steps + 1):
    batch = [[random.gauss(0, 1) for _ in range(FEATURES)] for _ in range(16)]
    gradient, loss = [0.0] * FEATURES, 0.0
    for sample in batch:
        error = sum((w - t) * x for w, t, x in zip(weights, TRUTH, sample))
        loss += error * error / len(batch)
        gradient = [g + 2 * error * x / len(batch) for g, x in zip(gradient, sample)]
    weights = exchange(gradient)
    if step % 50 == 0 or step == arguments.steps:
        print(f"step {step}: loss {loss:.6f}")
sys.exit(loss > 0.1)
