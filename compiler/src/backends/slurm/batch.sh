# ---- The same in every job -----------------------------------------------------------------------

jobc_say() { echo "jobc: $*" >&2; }

# Writes down what happens to this group, for commands that ask later: Slurm forgets jobs that have ended.
jobc_note() { # WORD...
  printf '%(%s)T %s\n' -1 "$*" >>"$jobc_run/events/$jobc_group"
}

# Uses the directory that `jobc submit` made, in which each group has one Slurm job: of two, the first to start runs.
jobc_claim() { # RUN
  local id=${SLURM_ARRAY_TASK_ID+${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID} claimed
  id=${id:-$SLURM_JOB_ID}
  jobc_run=$1 jobc_secrets=$1/secrets jobc_bundles=$1/bundles/$SLURM_JOB_ID
  (set -C; echo "$id" >"$1/jobs/$jobc_group") 2>/dev/null || read -r claimed <"$1/jobs/$jobc_group"
  [ "${claimed:-$id}" = "$id" ] || { jobc_say "this is Slurm job $claimed already"; exit 0; }
  mkdir -p "$1/marks"
  jobc_marks=$1/marks/$jobc_group jobc_keeps=
  trap jobc_forget EXIT
}

# Removes values of secrets at the end of the last group: those that were submitted, and files with them that tasks made.
jobc_forget() {
  local file line last
  [ -z "$jobc_keeps" ] || return 0
  for file in "$jobc_run/target/slurm/"*.sbatch; do
    file=${file##*/} last=
    [ "$file" != array.sbatch ] || continue
    [ "${file%.sbatch}" != "$jobc_group" ] || continue
    [ ! -e "$jobc_run/events/${file%.sbatch}" ] || while read -r line; do last=$line; done <"$jobc_run/events/${file%.sbatch}"
    [[ $last == *' ended '* ]] || return 0
  done
  rm -rf "${jobc_run:?}/secrets" "${jobc_run:?}/etc"
}

# Writes down from time to time how long the files of the output are, so that times of their lines can be told later.
jobc_mark() {
  local size file
  [ -n "${jobc_marks-}" ] && [ "$SECONDS" -ge "$jobc_next_mark" ] || return 0
  jobc_next_mark=$((SECONDS + 10))
  while read -r size file; do
    [ "${jobc_sizes[$file]-}" != "$size" ] || continue
    jobc_sizes[$file]=$size
    printf '%(%s)T %s %s\n' -1 "$size" "$file"
  done < <(cd "$jobc_run" && stat --format='%s %n' -- logs/*.log out/*.log 2>/dev/null) >>"$jobc_marks"
}

# The nodes of a part of the allocation, in the order of their names.
jobc_nodes() { # VARIABLE
  [ -n "${!1-}" ] || { jobc_say "no $1: submit this script with \`sbatch\`"; exit 125; }
  scontrol show hostnames "${!1}"
}

# How many instances of a role have come to a state.
jobc_count() { # STATE ROLE
  local files
  shopt -s nullglob
  files=("$jobc_run/state/$2/"*".$1")
  shopt -u nullglob
  echo "${#files[@]}"
}
jobc_reached() { # STATE ROLE MIN
  [ "$(jobc_count "$1" "$2")" -ge "$3" ]
}
# Whether all instances of a role have succeeded, and its step has ended.
jobc_succeeded() { # ROLE
  [ "${jobc_state[$1]-}" = succeeded ]
}

# Sends a signal to `srun` and what it has started here.
jobc_signal() { # SIGNAL
  local children=
  read -r children <"/proc/$jobc_srun/task/$jobc_srun/children"
  kill -s "$1" "$jobc_srun" $children
} 2>/dev/null

# Runs the step of a role once.
#
# A cancelled job gets SIGCONT, then SIGTERM, in its script and in all steps. `srun` would have the tasks killed at once. So
# it is stopped by the first of them, and the tasks have the time that Slurm itself gives them (`KillWait`).
jobc_run_step() { # ROLE
  local code again until
  jobc_held=
  jobc_step "$1" &
  jobc_srun=$!
  while :; do
    wait "$jobc_srun"
    code=$?
    kill -0 "$jobc_srun" 2>/dev/null || break
    [ -n "$jobc_held" ] || continue
    until=$((SECONDS + 2))
    # SIGCONT alone continues a job that was suspended.
    while [ -z "$jobc_told" ] && [ "$SECONDS" -lt "$until" ]; do sleep 0.1; done
    while [ -n "$jobc_told" ] && ! jobc_all_ended "$1"; do sleep 0.2; done
    jobc_held=
    jobc_signal CONT
  done
  # A signal that came with the end of the step has given the first answer its own number.
  if [ "$code" -gt 128 ]; then
    wait "$jobc_srun" 2>/dev/null
    again=$?
    [ "$again" -eq 127 ] || code=$again
  fi
  return "$code"
}

# Whether all instances of a role that have started have ended.
jobc_all_ended() { # ROLE
  [ "$(jobc_count started "$1")" -le $(($(jobc_count succeeded "$1") + $(jobc_count failed "$1"))) ]
}

# Runs the step of a role, again where the role says so, and writes how it ended.
jobc_role() { # ROLE RETRIES BACKOFF EXIT_CODE...
  local role=$1 retries=$2 backoff=$3 attempt=0 code
  shift 3
  jobc_told=
  trap 'jobc_told=yes' TERM
  trap 'jobc_held=yes; jobc_signal STOP' CONT
  while :; do
    rm -f "$jobc_run/state/$role/"*
    jobc_run_step "$role"
    code=$?
    [ ! -e "$jobc_run/state/$role/first" ] || read -r _ code <"$jobc_run/state/$role/first"
    [ "$code" -ne 0 ] && [ -z "$jobc_told" ] && [ "$attempt" -lt "$retries" ] && jobc_may_retry "$code" "$@" || break
    attempt=$((attempt + 1))
    jobc_say "role $role ended with exit code $code; retry $attempt of $retries"
    sleep "$backoff"
  done
  echo "$code" >"$jobc_run/state/$role/end.new"
  mv "$jobc_run/state/$role/end.new" "$jobc_run/state/$role/end"
}

# Whether an exit code is retried: all are where none is named, and all others after `not`.
jobc_may_retry() { # EXIT_CODE [not] LISTED...
  local code=$1 listed
  shift
  [ $# -gt 0 ] || return 0
  if [ "$1" = not ]; then
    shift
    ! jobc_may_retry "$code" "$@"
    return
  fi
  for listed; do [ "$listed" != "$code" ] || return 0; done
  return 1
}

# Starts the roles whose needs are met, and notes those that have ended.
jobc_look() {
  local role code running=0 waiting=
  for role in "${jobc_roles[@]}"; do
    if [ "${jobc_state[$role]}" = waiting ] && [ -z "$jobc_stopping" ] && jobc_needs "$role"; then
      jobc_state[$role]=running
      mkdir -p "$jobc_run/state/$role"
      jobc_launch "$role" &
    fi
    if [ "${jobc_state[$role]}" = running ]; then
      running=1
      [ -e "$jobc_run/state/$role/end" ] || continue
      read -r code <"$jobc_run/state/$role/end"
      if [ "$code" -eq 0 ]; then
        jobc_state[$role]=succeeded
      else
        jobc_state[$role]=failed
        [ -n "$jobc_end" ] || jobc_end=$code jobc_failed=$role
        [ -n "$jobc_stopping" ] || jobc_say "role $role failed: instance $(jobc_first "$role")"
      fi
    elif [ "${jobc_state[$role]}" = waiting ]; then
      waiting=$role
    fi
  done
  if [ -e "$jobc_run/state/$jobc_group.enough" ] && [ -z "$jobc_end" ]; then
    jobc_end=0
  fi
  if [ "$running" -eq 0 ] && [ -z "$jobc_end" ]; then
    if [ -n "$jobc_stopping" ]; then
      jobc_end=143
    elif [ -n "$waiting" ]; then
      jobc_say "role $waiting cannot start: what it needs has ended without success"
      jobc_end=1
    else
      jobc_end=0
    fi
  fi
}

# The instance that failed first, and how.
jobc_first() { # ROLE
  local index code
  if [ -e "$jobc_run/state/$1/first" ]; then
    read -r index code <"$jobc_run/state/$1/first"
    echo "$index ended with exit code $code"
  else
    echo "unknown; exit code $(cat "$jobc_run/state/$1/end")"
  fi
}

# Whether a role's step is still running.
jobc_runs() {
  local role
  for role in "${jobc_roles[@]}"; do
    [ "${jobc_state[$role]}" != running ] || [ -e "$jobc_run/state/$role/end" ] || return 0
  done
  return 1
}

# Ends what still runs: SIGTERM, and at the latest after the grace period all that is left ends with this script.
jobc_stop() {
  local until=$((SECONDS + jobc_grace))
  jobc_runs || return 0
  scancel --signal=TERM "$SLURM_JOB_ID" 2>/dev/null
  while jobc_runs && [ "$SECONDS" -lt "$until" ]; do
    sleep 0.2
  done
}

jobc_main() { # [RUN]
  local role restarts until why=
  jobc_slurm_job=$SLURM_JOB_ID
  case ${1-} in
    /*) jobc_claim "$1" ;;
    *) jobc_run=$jobc_base/jobc-${1:-$SLURM_JOB_ID} ;;
  esac
  [ -e "$jobc_directory/$jobc_probe" ] || {
    jobc_say "no $jobc_probe in $jobc_directory: run \`sbatch\` in the directory with this script, or with \`--chdir\`"
    exit 125
  }
  if [ "${SLURM_RESTART_COUNT:-0}" -gt "$jobc_max_restarts" ] && [ "$jobc_max_restarts" -gt 0 ]; then
    jobc_say "restarted $SLURM_RESTART_COUNT times, and the limit is $jobc_max_restarts"
    exit 1
  fi
  # Files with secrets may be below it.
  (umask 077; mkdir -p "$jobc_run") && mkdir -p "$jobc_run/logs" "$jobc_run/state" "$jobc_run/events" "$jobc_run/tasks" || exit 125
  jobc_note started "${SLURM_RESTART_COUNT:-0}" "$SLURM_JOB_ID" "${SLURM_JOB_NODELIST-}"
  rm -f "$jobc_run/state/$jobc_group".*
  for role in "${jobc_roles[@]}"; do rm -rf "$jobc_run/state/${role:?}"; done
  jobc_port=$((jobc_first_port + SLURM_JOB_ID % (jobc_port_range / jobc_ports) * jobc_ports))
  jobc_assign || exit 125
  jobc_proctrack=$(scontrol show config | sed -n 's/^ProctrackType *= *proctrack.//p')
  {
    declare -p jobc_directory jobc_group jobc_port jobc_proctrack
    for role in "${jobc_known[@]}"; do declare -p "jobc_hosts_${role//-/_}" 2>/dev/null; done
    declare -p jobc_run jobc_secrets jobc_slurm_job jobc_bundles
  } >"$jobc_run/state/$jobc_group.addresses"
  jobc_places >"$jobc_run/state/$jobc_group.places"
  jobc_stopping='' jobc_end='' jobc_failed=''
  declare -gA jobc_state jobc_sizes=()
  jobc_next_mark=0
  for role in "${jobc_roles[@]}"; do jobc_state[$role]=waiting; done
  trap 'jobc_stopping=yes' TERM INT
  while :; do
    # `jobc stop` says so in a file and signals the steps only: `srun` kills its tasks when it is told to end.
    [ ! -e "$jobc_run/stopped" ] || jobc_stopping=yes
    jobc_look
    [ -z "$jobc_end" ] || break
    jobc_mark
    sleep 0.5 &
    wait -n
  done
  # `srun` ends so when a node fails, for which Slurm ends this script in a moment.
  for ((until = 10; jobc_end == 255 && until > 0; until--)); do
    [ -z "$jobc_stopping" ] || break
    sleep 0.2
  done
  if [ -n "$jobc_stopping" ]; then
    until=$((SECONDS + jobc_grace))
    while jobc_runs && [ "$SECONDS" -lt "$until" ]; do sleep 0.2; done
    if jobc_runs; then scancel --signal=KILL "$SLURM_JOB_ID" 2>/dev/null; fi
    while jobc_runs; do sleep 0.2; done
    jobc_end=143
  fi
  jobc_stop
  jobc_clean
  restarts=${SLURM_RESTART_COUNT:-0}
  if [ -n "$jobc_failed" ] && [ -z "$jobc_stopping" ] && [ "$restarts" -lt "${jobc_restarts[$jobc_failed]:-0}" ] &&
    jobc_may_retry "$jobc_end" ${jobc_restart_codes[$jobc_failed]-}; then
    jobc_say "exit code $jobc_end; retry $((restarts + 1)) of ${jobc_restarts[$jobc_failed]}"
    jobc_note requeued "$jobc_end"
    jobc_keeps=yes
    # Before this script ends, so that jobs that wait for this one go on waiting. It stops this script.
    scontrol requeue "$SLURM_JOB_ID" && { sleep 600; exit "$jobc_end"; }
  fi
  echo "$jobc_end" >"$jobc_run/state/$jobc_group.end"
  if [ -n "$jobc_stopping" ]; then
    why=$(scontrol show job "$SLURM_JOB_ID" --oneliner 2>/dev/null | sed -n '1s/.* Reason=\([^ ]*\) .*/\1/p')
  fi
  # A job that was preempted may start again.
  [ -z "$jobc_stopping" ] || [ "$jobc_max_restarts" -eq 0 ] || [ "$why" = TimeLimit ] || [ -e "$jobc_run/stopped" ] ||
    jobc_keeps=yes
  jobc_note ended "$jobc_end" ${why:+"$why"}
  # Slurm calls a job cancelled only if it cancels it.
  [ ! -e "$jobc_run/stopped" ] || { scancel "$SLURM_JOB_ID" && sleep 60; }
  exit "$jobc_end"
}

jobc_main "$@"
