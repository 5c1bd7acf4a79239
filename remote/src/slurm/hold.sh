# Holds a run back, or lets it go on. Arguments: RUN `hold` or RUN `release`. Jobs that run are suspended, which most sites
# allow operators only.
run=$runs/$1
[ -e "$run/job.json" ] || exit 45
shopt -s nullglob
for file in "$run"/jobs/*; do
  read -r id <"$file"
  known=$(squeue --user="$UID" --noheader --states=all --jobs="$id" --format=$'%T\x1f%j\x1f%k' 2>&1) || {
    [[ $known == *[Ii]'nvalid job id'* ]] || { echo "${known##*$'\n'}" >&2; exit 42; }
    continue
  }
  IFS=$'\x1f' read -r state name comment <<<"$known"
  is_of "$1" "$name" "$comment" || continue
  case $2:$state in
    hold:PENDING) scontrol hold "$id" || exit 1 ;;
    hold:RUNNING) scontrol suspend "$id" || exit 1 ;;
    release:PENDING) scontrol release "$id" || exit 1 ;;
    release:SUSPENDED) scontrol resume "$id" || exit 1 ;;
  esac
done
exit 0
