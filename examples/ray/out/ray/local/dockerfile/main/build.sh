#!/bin/sh
# Builds image `main` of job `ray`; arguments go to the builder.
set -eu
cd "$(dirname "$0")"
DOCKER_BUILDKIT=1 exec "${DOCKER:-docker}" build "$@" \
    --file Dockerfile \
    --tag ray-main:063595db3a3f \
    ../../../../..
