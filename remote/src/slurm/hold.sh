# Holds a run back, or lets it go on. Arguments: RUN `hold` or RUN `release`.
[ -e "$runs/$1/job.json" ] || exit 45
what=$2
# Most sites allow operators only to suspend a job that runs. Its user may have it start again later, if it has `--requeue`.
pause() { # ID
  local said
  said=$(scontrol suspend "$1" 2>&1) && return
  case $(scontrol show job --oneliner "$1") in
    *' Requeue=1 '*) scontrol requeuehold "$1" || exit 1 ;;
    *) echo "${said##*$'\n'}" >&2; exit 46 ;;
  esac
  # Its tasks have their grace period. Until they have ended it cannot be released.
  while [[ $(squeue --noheader --jobs="$1" --format=%T 2>/dev/null) =~ RUNNING|COMPLETING ]]; do sleep 0.5; done
}
hold() { # ID STATE
  case $what:$2 in
    hold:PENDING) scontrol hold "$1" || exit 1 ;;
    hold:RUNNING) pause "$1" ;;
    release:PENDING) scontrol release "$1" || exit 1 ;;
    release:SUSPENDED) scontrol resume "$1" || exit 1 ;;
  esac
}
each_job "$1" hold
exit 0
