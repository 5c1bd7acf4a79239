#!/bin/bash
# Serves a model.
set -euo pipefail
IMAGE=vllm/vllm-openai:v0.6.0
MODEL="mistralai/Mistral-7B-v0.1"
OPTIONS="--rm --shm-size 8g"
docker pull $IMAGE
docker rm -f vllm
docker run $OPTIONS --name vllm --gpus 1 -p 8000:8000 -e HF_HOME=/models \
  -v "$PWD/models:/models" $IMAGE --model $MODEL
