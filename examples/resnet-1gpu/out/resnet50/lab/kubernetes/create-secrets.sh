#!/bin/sh
# Makes the Secrets that job resnet50 reads; run it once before `kubectl apply -f .`.
# Values come from the environment and the files of whoever runs it, and never stand on a command line.
# Arguments are passed on to kubectl, such as --context NAME.
set -eu
cd "$(dirname "$0")"
job_dir=../../../..
umask 077
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM

# kubectl reads each file of a directory as one key.
secret() {
  name=$1 files=$2 type=$3
  shift 3
  kubectl "$@" -n ml create secret generic "$name" --type="$type" --from-file="$files" --dry-run=client -o yaml >"$dir/$name.yaml"
  kubectl "$@" -n ml apply -f "$dir/$name.yaml"
}

mkdir "$dir/secrets"
printf '%s' "${WANDB_API_KEY:?is not set; it holds a secret of the job}" >"$dir/secrets/wandb"
secret resnet50-secrets "$dir/secrets" Opaque "$@"
