# Prints what the directories of runs say, then the queue. Arguments: FORMAT or nothing, `tasks` or nothing, JOB or nothing,
# RUN...; if no run is named, all of them, or those of the job.
format=$1 tasks=$2 job=$3
shift 3
shopt -s nullglob
if cd "$runs" 2>/dev/null; then
  [ $# -gt 0 ] || set -- ${job:+"$job"-}*
  files=()
  for run; do
    files+=("$run/job.json" "$run/submitted" "$run/stopped" "$run"/jobs/* "$run"/events/*)
    [ -z "$tasks" ] || files+=("$run"/tasks/*)
    [ ! -d "$run/secrets" ] || echo "$run/secrets:"
  done
  print_files "${files[@]}"
  if [ -n "$tasks" ]; then
    files=()
    for run; do files+=("$run"/out/*.log); done
    print_errors "${files[@]}"
  fi
fi
[ -z "$format" ] || print_queue "$format"
exit 0
