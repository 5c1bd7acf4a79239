"""Trains a torchvision model on a directory of images, on one GPU."""

import argparse
import pathlib

import torch
import torchvision
from torchvision import transforms


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--arch", default="resnet50")
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=90)
    args = parser.parse_args()

    transform = transforms.Compose(
        [transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
    )
    images = torchvision.datasets.ImageDirectory(args.data / "train", transform)
    loader = torch.utils.data.DataLoader(images, args.batch_size, shuffle=True, num_workers=8, pin_memory=True)
    model = torchvision.models.get_model(args.arch, num_classes=len(images.classes)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)

    for epoch in range(args.epochs):
        for batch, labels in loader:
            optimizer.zero_grad(set_to_none=True)
            loss = torch.nn.functional.cross_entropy(model(batch.cuda()), labels.cuda())
            loss.backward()
            optimizer.step()
        schedule.step()
        torch.save(model.state_dict(), args.output / f"epoch-{epoch:03}.pt")
        print(f"epoch {epoch}: loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
