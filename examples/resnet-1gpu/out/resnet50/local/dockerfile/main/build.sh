#!/bin/sh
# Builds image `main` of job `resnet50`; arguments go to the builder.
set -eu
cd "$(dirname "$0")"
DOCKER_BUILDKIT=1 exec "${DOCKER:-docker}" build "$@" \
    --file Dockerfile \
    --tag resnet50-main:b9763128b4e4 \
    ../../../../..
