# Writes down how Slurm jobs ended whose scripts did not say it. Arguments: RUN GROUP ID, again and again. Times are those of
# Slurm.
export SLURM_TIME_FORMAT=%s
verdict() { # RUN GROUP ID STATE CODE START END NODES RESTARTS
  local events=$runs/$1/events/$2 end=$7
  mkdir -p "$runs/$1/events" || return
  [[ $end =~ ^[0-9]+$ ]] || printf -v end '%(%s)T' -1
  if [[ $6 =~ ^[0-9]+$ && -n $8 && $8 != '(null)' && $8 != 'None assigned' ]] && ! grep -qs ' started ' "$events"; then
    printf '%s started %s %s %s\n' "$6" "${9:-0}" "$3" "$8" >>"$events"
  fi
  printf '%s verdict %s %s\n' "$end" "$4" "$5" >>"$events"
}
# How a job that Slurm alone runs ended, by its output: Slurm has forgotten it, and has no accounting.
guess() { # RUN GROUP
  local out=$runs/$1/out/$2.log logs=("$runs/$1"/logs/*.log)
  [ -e "$out" ] || [ -e "${logs[0]}" ] || return 0
  state=COMPLETED code=0:0
  if grep -qs 'DUE TO TIME LIMIT' "$out"; then
    state=TIMEOUT
  elif grep -qs 'DUE TO NODE FAILURE' "$out"; then
    state=NODE_FAIL
  elif grep -qsE '^slurmstepd.*\*\*\* JOB .* CANCELLED' "$out"; then
    state=CANCELLED
  elif grep -qs '^srun: error: ' "$out"; then
    state=FAILED code=$(sed -nE 's/^srun: error: .*Exited with exit code ([0-9]+)$/\1/p' "$out" | head -n 1)
    code=${code:-1}:0
  fi
}
# The value of a field in what `scontrol` shows.
field() { # NAME
  [[ $shown =~ (^| )"$1="([^ ]*) ]] && printf %s "${BASH_REMATCH[2]}"
}
while [ $# -ge 3 ]; do
  state='' code='' name='' start='' end='' nodes='' restarts=''
  shown=$(scontrol show job --oneliner "$3" 2>&1)
  name=$(field JobName)
  if [[ $shown == *' JobState='* ]] && is_of "$1" "$name" "$(field Comment)"; then
    state=$(field JobState) code=$(field ExitCode) start=$(field StartTime) end=$(field EndTime)
    nodes=$(field NodeList) restarts=$(field Restarts)
  elif [[ $shown == *[Ii]'nvalid job id'* || -n $name ]]; then
    if accounted=$(sacct --allocations --user="$UID" --jobs="$3" --noheader --parsable2 \
      --format=State,ExitCode,JobName,Start,End,NodeList 2>&1); then
      IFS='|' read -r state code name start end nodes <<<"$accounted"
      state=${state%% *}
      # The tasks of an array have the name of the matrix.
      [[ $3 == *_* ]] || is_of "$1" "$name" '' || state=
      # Slurm and its accounting have never heard of it, or forgot it.
      [ -n "$state" ] || state=LOST
    elif [[ $accounted == *'accounting storage is disabled'* ]]; then
      state=LOST
    fi
  fi
  [ "$state" != LOST ] || ! is_direct "$1" "$2" || guess "$1" "$2"
  case $state in
    LOST)
      # A job that never started was cancelled, or its dependency failed.
      grep -qs ' started ' "$runs/$1/events/$2" || state=CANCELLED
      verdict "$1" "$2" "$3" "$state" 0:0
      ;;
    COMPLETED | FAILED | TIMEOUT | DEADLINE | CANCELLED | OUT_OF_MEMORY | PREEMPTED | NODE_FAIL | BOOT_FAIL | REVOKED)
      verdict "$1" "$2" "$3" "$state" "${code:-0:0}" "$start" "$end" "$nodes" "$restarts"
      ;;
  esac
  shift 3
done
exit 0
