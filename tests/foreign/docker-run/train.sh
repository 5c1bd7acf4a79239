#!/bin/bash
# Trains on two cards.
docker run --rm -it --gpus 2 --shm-size=8g -m 32g --cpus 8 \
  --ulimit memlock=-1 --ulimit stack=67108864 \
  -v "$PWD":/workspace -v /datasets:/data:ro -v cache:/root/.cache \
  -e WANDB_API_KEY -e NCCL_DEBUG=INFO -e "NAME=a b" \
  -w /workspace --name train-1 -p 6006:6006 \
  nvcr.io/nvidia/pytorch:24.07-py3 \
  python train.py --epochs 10
