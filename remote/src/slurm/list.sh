# Prints what the directories of runs say, then the queue. Arguments: FORMAT or nothing, `tasks` or nothing, RUN...; all
# runs if none is named.
format=$1 tasks=$2
shift 2
shopt -s nullglob
if cd "$runs" 2>/dev/null; then
  [ $# -gt 0 ] || set -- *
  files=()
  for run; do
    files+=("$run/job.json" "$run/submitted" "$run/stopped" "$run"/jobs/* "$run"/events/*)
    [ -z "$tasks" ] || files+=("$run"/tasks/*)
  done
  print_files "${files[@]}"
fi
[ -z "$format" ] || print_queue "$format"
exit 0
