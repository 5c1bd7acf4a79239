# Stops a run. Arguments: RUN GRACE. Where jobc runs the tasks, it tells them. Others get SIGTERM, and a process here ends what
# is left after the job's own time.
run=$runs/$1 grace=$2
[ -e "$run/job.json" ] || exit 45
[ -e "$run/stopped" ] || printf '%(%s)T\n' -1 >"$run/stopped"
pending=() running=() by_jobc=()
sort_by_state() { # ID STATE GROUP
  case $2 in
    RUNNING | SUSPENDED)
      if is_by_jobc "${run##*/}" "$3"; then
        by_jobc+=("$1")
      elif squeue --noheader --steps --jobs="$1" --format=%i 2>/dev/null | grep -q '\.0$'; then
        running+=("$1")
      else
        # No task is there yet.
        pending+=("$1")
      fi
      ;;
    *) pending+=("$1") ;;
  esac
}
each_job "$1" sort_by_state
# Those that wait for others first: they must not start.
[ ${#pending[@]} -eq 0 ] || scancel "${pending[@]}" 2>/dev/null
for id in "${running[@]}"; do
  # A script that has `retry` would start it again.
  scontrol update "jobid=$id" requeue=0 2>/dev/null
done
[ ${#by_jobc[@]} -eq 0 ] || scancel --batch --signal=TERM "${by_jobc[@]}"
[ ${#running[@]} -eq 0 ] || scancel --signal=TERM "${running[@]}"
[ ${#running[@]} -gt 0 ] || exit 0
# shellcheck disable=SC2016
setsid bash -c '
until=$((SECONDS + $1))
shift
while [ "$SECONDS" -lt "$until" ] && [ -n "$(squeue --noheader --states=RUNNING --jobs="$(IFS=,; echo "$*")" 2>/dev/null)" ]; do
  sleep 1
done
scancel --state=RUNNING "$@"
' stop "$grace" "${running[@]}" </dev/null >/dev/null 2>&1 &
exit 0
