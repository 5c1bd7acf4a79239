# Prints what a run says about itself, then new output of its tasks. Arguments: RUN MAX TAIL, then FILE OFFSET for what was
# shown before. Each piece of output is a line `FILE OFFSET LENGTH` and so many bytes. Of files that were not shown before,
# only the last TAIL lines are printed if that is not empty.
run=$1 max=$2 tail=$3
shift 3
declare -A shown
while [ $# -ge 2 ]; do
  shown[$1]=$2
  shift 2
done
cd "$runs" || exit 45
shopt -s nullglob
# How the run is comes first: what a task wrote before its end is there then.
print_files "$run/job.json" "$run/submitted" "$run/stopped" "$run"/jobs/* "$run"/events/* "$run"/tasks/*
printf '\036\n'
cd "$run" || exit 45
logs=(logs/*.log out/*.log)
[ ${#logs[@]} -gt 0 ] || exit 0
stat --format='%s %n' -- "${logs[@]}" | while read -r size file; do
  if [ -z "${shown[$file]-}" ] && [ -n "$tail" ]; then
    offset=$((size - $(head -c "$size" -- "$file" | tail -n "$tail" | wc -c)))
  else
    offset=${shown[$file]-0}
  fi
  length=$((size - offset))
  [ "$length" -le "$max" ] || length=$max
  [ "$length" -gt 0 ] || continue
  printf '%s %s %s\n' "$file" "$offset" "$length"
  tail -c "+$((offset + 1))" -- "$file" | head -c "$length"
done
exit 0
