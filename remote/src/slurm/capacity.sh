# Prints each node of each partition with its state, processors and GPUs, then the partitions of the jobs that wait.
shown=$(sinfo --Node --noheader --Format=PartitionName:64,NodeHost:64,StateCompact:24,CPUsState:40,Gres:250,GresUsed:250 2>&1) || {
  echo "${shown##*$'\n'}" >&2
  exit 42
}
printf '%s\n\x1e\n' "$shown"
squeue --noheader --states=PENDING --format=%P
