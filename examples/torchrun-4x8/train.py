"""Trains a small language model on every GPU that torchrun started a process for."""

import argparse
import os
import pathlib

import numpy
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

CONTEXT, VOCABULARY, WIDTH = 512, 50304, 768


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.places = torch.nn.Embedding(CONTEXT, WIDTH)
        layer = torch.nn.TransformerEncoderLayer(WIDTH, 12, 4 * WIDTH, batch_first=True, norm_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, 12)
        self.head = torch.nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        mask = torch.nn.Transformer.generate_square_subsequent_mask(tokens.shape[1], device=tokens.device)
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return self.head(self.layers(self.tokens(tokens) + self.places(places), mask=mask, is_causal=True))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=3e-4)
    parser.add_argument("--steps", type=int, default=100_000)
    args = parser.parse_args()

    dist.init_process_group("nccl")
    rank, local = dist.get_rank(), int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    model = DistributedDataParallel(Model().cuda(), device_ids=[local])
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    tokens = numpy.memmap(args.data / "tokens.bin", dtype=numpy.uint16, mode="r")
    random = numpy.random.default_rng(rank)

    for step in range(args.steps):
        starts = random.integers(0, len(tokens) - CONTEXT - 1, args.batch_size)
        batch = numpy.stack([tokens[s : s + CONTEXT + 1] for s in starts]).astype(numpy.int64)
        batch = torch.from_numpy(batch).cuda(non_blocking=True)
        loss = torch.nn.functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 1000 == 0:
            torch.save(model.module.state_dict(), args.output / f"step-{step:06}.pt")
            print(f"step {step}: loss {loss.item():.4f}", flush=True)

    dist.destroy_process_group()


if __name__ == "__main__":
    main()
