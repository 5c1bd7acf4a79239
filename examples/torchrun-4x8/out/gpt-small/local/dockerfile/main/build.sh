#!/bin/sh
# Builds image `main` of job `gpt-small`; arguments go to the builder.
set -eu
cd "$(dirname "$0")"
DOCKER_BUILDKIT=1 exec "${DOCKER:-docker}" build "$@" \
    --file Dockerfile \
    --tag gpt-small-main:d260c6c75fd9 \
    ../../../../..
