#!/bin/sh
# Builds image `main` of job `notebook`; arguments go to the builder.
set -eu
cd "$(dirname "$0")"
DOCKER_BUILDKIT=1 exec "${DOCKER:-docker}" build "$@" \
    --file Dockerfile \
    --tag notebook-main:c43b772941af \
    ../../../../..
