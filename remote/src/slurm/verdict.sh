# Writes down how Slurm jobs ended whose scripts did not say it. Arguments: RUN GROUP ID, again and again.
verdict() { # RUN GROUP STATE CODE
  mkdir -p "$runs/$1/events" && printf '%(%s)T verdict %s %s\n' -1 "$3" "$4" >>"$runs/$1/events/$2"
}
while [ $# -ge 3 ]; do
  state='' code='' name='' comment=''
  shown=$(scontrol show job --oneliner "$3" 2>&1)
  [[ ! $shown =~ ' JobName='([^ ]*) ]] || name=${BASH_REMATCH[1]}
  [[ ! $shown =~ ' Comment='([^ ]*) ]] || comment=${BASH_REMATCH[1]}
  if [[ $shown == *' JobState='* ]] && is_of "$1" "$name" "$comment"; then
    [[ ! $shown =~ ' JobState='([A-Z_]+) ]] || state=${BASH_REMATCH[1]}
    [[ ! $shown =~ ' ExitCode='([0-9:]+) ]] || code=${BASH_REMATCH[1]}
  elif [[ $shown == *[Ii]'nvalid job id'* || -n $name ]]; then
    if accounted=$(sacct --allocations --user="$UID" --jobs="$3" --noheader --parsable2 --format=State,ExitCode,JobName 2>&1); then
      IFS='|' read -r state code name <<<"$accounted"
      state=${state%% *}
      # The tasks of an array have the name of the matrix.
      [[ $3 == *_* ]] || is_of "$1" "$name" '' || state=
      # Slurm and its accounting have never heard of it, or forgot it.
      [ -n "$state" ] || state=LOST
    elif [[ $accounted == *'accounting storage is disabled'* ]]; then
      state=LOST
    fi
  fi
  case $state in
    LOST)
      # A job that never started was cancelled, or its dependency failed.
      grep -qs ' started ' "$runs/$1/events/$2" || state=CANCELLED
      verdict "$1" "$2" "$state" 0:0
      ;;
    COMPLETED | FAILED | TIMEOUT | DEADLINE | CANCELLED | OUT_OF_MEMORY | PREEMPTED | NODE_FAIL | BOOT_FAIL | REVOKED)
      verdict "$1" "$2" "$state" "${code:-0:0}"
      ;;
  esac
  shift 3
done
exit 0
