"""Fits a layer to random data on the GPU, and prints the loss from time to time."""

import argparse

import torch

options = argparse.ArgumentParser()
options.add_argument("--rate", type=float, required=True)
options.add_argument("--steps", type=int, default=20_000)
options = options.parse_args()
torch.manual_seed(1)
layer = torch.nn.Linear(4096, 4096, device="cuda")
data, wanted = torch.randn(2, 256, 4096, device="cuda")
optimizer = torch.optim.SGD(layer.parameters(), lr=options.rate)
for step in range(options.steps):
    loss = torch.nn.functional.mse_loss(layer(data), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 1000 == 0:
        print(f"step {step} loss {loss.item():.4f}")
