# Stops a run. Arguments: RUN. A job that runs gets SIGTERM in its steps; its script, which finds the file, ends what is left
# after the job's own time.
run=$runs/$1
[ -e "$run/job.json" ] || exit 45
[ -e "$run/stopped" ] || printf '%(%s)T\n' -1 >"$run/stopped"
shopt -s nullglob
pending=() running=()
for file in "$run"/jobs/*; do
  read -r id <"$file"
  known=$(squeue --user="$UID" --noheader --states=all --jobs="$id" --format=$'%T\x1f%j\x1f%k' 2>&1) || {
    [[ $known == *[Ii]'nvalid job id'* ]] || { echo "${known##*$'\n'}" >&2; exit 42; }
    continue
  }
  IFS=$'\x1f' read -r state name comment <<<"$known"
  is_of "$1" "$name" "$comment" || continue
  case $state in
    RUNNING | SUSPENDED) running+=("$id") ;;
    *) pending+=("$id") ;;
  esac
done
# Those that wait for others first: they must not start.
[ ${#pending[@]} -eq 0 ] || scancel "${pending[@]}" 2>/dev/null
[ ${#running[@]} -eq 0 ] || scancel --signal=TERM "${running[@]}"
exit 0
