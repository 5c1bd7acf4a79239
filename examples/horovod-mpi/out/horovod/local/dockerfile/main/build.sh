#!/bin/sh
# Builds image `main` of job `horovod`; arguments go to the builder.
set -eu
cd "$(dirname "$0")"
DOCKER_BUILDKIT=1 exec "${DOCKER:-docker}" build "$@" \
    --file Dockerfile \
    --tag horovod-main:72b011b7c0cb \
    ../../../../..
