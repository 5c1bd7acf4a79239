#!/bin/sh
# Makes the Secrets that job finetune reads; run it once before `kubectl apply -f .`.
# Values come from the environment and the files of whoever runs it, and never stand on a command line.
# Arguments are passed on to kubectl, such as --context NAME.
set -eu
cd "$(dirname "$0")"
job_dir=../../../..
umask 077
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM

# kubectl reads each file of a folder as one key.
secret() {
  name=$1 folder=$2 type=$3
  shift 3
  kubectl "$@" -n ml create secret generic "$name" --type="$type" --from-file="$folder" --dry-run=client -o yaml >"$dir/$name.yaml"
  kubectl "$@" -n ml apply -f "$dir/$name.yaml"
}

mkdir "$dir/ssh"
ssh-keygen -q -t ed25519 -N '' -C jobc -f "$dir/ssh/id_ed25519"
mv "$dir/ssh/id_ed25519.pub" "$dir/ssh/authorized_keys"
secret finetune-ssh "$dir/ssh" Opaque "$@"
