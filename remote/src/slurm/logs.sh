# Prints what a run says about itself, then new output of its tasks. Arguments: RUN MAX TAIL SINCE, then FILE OFFSET for
# what was shown before. Each piece of output is a line `FILE OFFSET LENGTH` and so many bytes. Of files that were not shown
# before, only the last TAIL lines are printed if that is not empty, and none that was written before SINCE, in seconds: the
# batch scripts have noted how long the files were when.
run=$1 max=$2 tail=$3 since=$4
shift 4
declare -A shown
while [ $# -ge 2 ]; do
  shown[$1]=$2
  shift 2
done
cd "$runs" || exit 45
shopt -s nullglob
# How the run is comes first: what a task wrote before its end is there then.
print_files "$run/job.json" "$run/submitted" "$run/stopped" "$run"/jobs/* "$run"/events/* "$run"/tasks/*
print_errors "$run"/out/*.log
printf '\036\n'
cd "$run" || exit 45
logs=(logs/*.log out/*.log records/*/logs/*/*.log)
[ ${#logs[@]} -gt 0 ] || exit 0
# Where the line begins that a position is in.
line_at() { # FILE POSITION
  local before=65536 rest
  [ "$2" -gt "$before" ] || before=$2
  # A character after it, so that a line that has an end there has none.
  rest=$({ tail -c "+$(($2 - before + 1))" -- "$1" | head -c "$before"; echo x; } | tail -n 1 | wc -c)
  echo $(($2 - rest + 2))
}
# The end of a file with so many lines; of records a line may be in parts, of which the last has an `F`.
last_lines() { # FILE SIZE
  case $1 in
    records/*)
      head -c "$2" -- "$1" | tac | LC_ALL=C awk -v tail="$tail" \
        '$3 == "F" || NR == 1 { lines++ } lines > tail { exit } { bytes += length($0) + 1 } END { print bytes + 0 }'
      ;;
    *) head -c "$2" -- "$1" | tail -n "$tail" | wc -c ;;
  esac
}
stat --format='%s %n' -- "${logs[@]}" | while read -r size file; do
  if [ -z "${shown[$file]-}" ] && [ -n "$tail" ]; then
    offset=$((size - $(last_lines "$file" "$size")))
  else
    offset=${shown[$file]-0}
  fi
  if [ -z "${shown[$file]-}" ] && [ -n "$since" ]; then
    marked=$(cat /dev/null marks/* | awk -v since="$since" -v file="$file" \
      '$1 <= since && $3 == file && $2 > size { size = $2 } END { print size + 0 }')
    [ "$marked" -le "$size" ] || marked=$size
    marked=$(line_at "$file" "$marked")
    [ "$marked" -le "$offset" ] || offset=$marked
  fi
  length=$((size - offset))
  [ "$length" -le "$max" ] || length=$max
  [ "$length" -gt 0 ] || continue
  printf '%s %s %s\n' "$file" "$offset" "$length"
  tail -c "+$((offset + 1))" -- "$file" | head -c "$length"
done
exit 0
