#!/bin/sh
# Builds image `main` of job `local-image`; arguments go to the builder.
set -eu
cd "$(dirname "$0")"
DOCKER_BUILDKIT=1 exec "${DOCKER:-docker}" build "$@" \
    --file Dockerfile \
    --tag local-image-main:093f1974ad9d \
    ../../../../..
