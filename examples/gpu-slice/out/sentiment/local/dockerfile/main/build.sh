#!/bin/sh
# Builds image `main` of job `sentiment`; arguments go to the builder.
set -eu
cd "$(dirname "$0")"
DOCKER_BUILDKIT=1 exec "${DOCKER:-docker}" build "$@" \
    --file Dockerfile \
    --tag sentiment-main:15cf6c62b068 \
    ../../../../..
