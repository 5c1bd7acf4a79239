# Holds a run back, or lets it go on. Arguments: RUN `hold` or RUN `release`. Jobs that run are suspended, which most sites
# allow operators only.
[ -e "$runs/$1/job.json" ] || exit 45
what=$2
hold() { # ID STATE
  case $what:$2 in
    hold:PENDING) scontrol hold "$1" || exit 1 ;;
    hold:RUNNING) scontrol suspend "$1" || exit 1 ;;
    release:PENDING) scontrol release "$1" || exit 1 ;;
    release:SUSPENDED) scontrol resume "$1" || exit 1 ;;
  esac
}
each_job "$1" hold
exit 0
