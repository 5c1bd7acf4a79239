# Stops a run. Arguments: RUN. A job that runs gets SIGTERM in its steps; its script, which finds the file, ends what is left
# after the job's own time.
run=$runs/$1
[ -e "$run/job.json" ] || exit 45
[ -e "$run/stopped" ] || printf '%(%s)T\n' -1 >"$run/stopped"
pending=() running=()
sort_by_state() { # ID STATE
  case $2 in
    RUNNING | SUSPENDED) running+=("$1") ;;
    *) pending+=("$1") ;;
  esac
}
each_job "$1" sort_by_state
# Those that wait for others first: they must not start.
[ ${#pending[@]} -eq 0 ] || scancel "${pending[@]}" 2>/dev/null
[ ${#running[@]} -eq 0 ] || scancel --signal=TERM "${running[@]}"
exit 0
