# Sends a signal to the tasks of a run. Arguments: RUN SIGNAL. KILL ends the run: its script gets the signal too, and jobs
# that wait are canceled.
run=$runs/$1 signal=$2
[ -e "$run/job.json" ] || exit 45
[ "$signal" != KILL ] || [ -e "$run/stopped" ] || printf '%(%s)T\n' -1 >"$run/stopped"
kill_job() { # ID STATE
  case $signal:$2 in
    KILL:RUNNING | KILL:SUSPENDED)
      # A script that has `retry` would start it again.
      scontrol update "jobid=$1" requeue=0 2>/dev/null
      scancel --signal=KILL --full "$1"
      ;;
    KILL:*) scancel "$1" 2>/dev/null ;;
    *:RUNNING) scancel --signal="$signal" "$1" || exit 1 ;;
  esac
}
each_job "$1" kill_job
exit 0
