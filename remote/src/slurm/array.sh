# Submits the jobs of a matrix as an array, or completes an earlier attempt. Arguments: PLAN WORKING_DIRECTORY LIMIT RUN...
# Stdin is a tar archive with the files of all runs; the first run has the script of the array, `array.sbatch`, and its list
# of runs, `array`. Each run is written down as a task of the array.
plan=$1 cwd=$2 limit=$3
shift 3
leader=$1
run=$runs/$leader
mkdir -p "$runs" && { [ -d "$run" ] || mkdir -m 700 "$run" 2>/dev/null || [ -d "$run" ]; } || exit 1
exec 9>>"$run/lock" || exit 1
! command -v flock >/dev/null || flock --wait 120 9 || { echo "another submission of these jobs goes on" >&2; exit 1; }
known=
# Runs of another submission stay as they are: each missing one is submitted on its own.
if [ -e "$run/array.complete" ]; then
  [ "$(cat "$run/array")" = "$(printf '%s\n' "$@")" ] || { cat >/dev/null; exit 46; }
else
  for name; do
    [ ! -e "$runs/$name/jobs/job" ] && [ ! -e "$runs/$name/submitted" ] || { cat >/dev/null; exit 46; }
  done
fi
if [ -e "$run/array.complete" ]; then
  known=yes
  cat >/dev/null
else
  for name; do (umask 077; mkdir -p "$runs/$name"); rm -rf "$runs/${name:?}/target" "$runs/$name/files"; done
  tar -xpf - -C "$runs" && [ -e "$run/array.new" ] || { echo "the files of the jobs did not arrive" >&2; exit 1; }
  for name; do
    make_outputs "$name" && mkdir -p "$runs/$name/jobs" "$runs/$name/out" && mv "$runs/$name/job.new" "$runs/$name/job.json" || exit 1
  done
  mv "$run/array.new" "$run/array.complete" || exit 1
fi
id=
if [ -s "$run/array.id" ]; then
  read -r id <"$run/array.id"
elif [ -n "$known" ]; then
  while read -r found comment; do
    [ "$comment" != "jobc:$leader:$plan:array" ] || id=${found%%_*}
  done < <(squeue --user="$UID" --states=PENDING,RUNNING,CONFIGURING,COMPLETING --noheader --format='%i %k')
fi
if [ -z "$id" ]; then
  cd "$cwd" 2>/dev/null || cd || exit 1
  if ! answer=$(sbatch --parsable --hold "--array=0-$(($# - 1))${limit:+%$limit}" --comment="jobc:$leader:$plan:array" \
    --open-mode=append --chdir="$run" --output="$run/out/array-%a.log" "$run/array.sbatch" 2>&1); then
    printf 'refused job\n%s\n' "$answer"
    for name; do rm -rf "$runs/${name:?}"; done
    exit 43
  fi
  id=${answer##*$'\n'} id=${id%%;*}
fi
echo "$id" >"$run/array.id"
number=0
for name; do
  (set -C; echo "${id}_$number" >"$runs/$name/jobs/job") 2>/dev/null
  number=$((number + 1))
done
if [ ! -e "$run/submitted" ]; then
  released=$(scontrol release "$id" 2>&1) || [ -n "$known" ] || { echo "$released" >&2; exit 1; }
fi
# The first run is the last: until it is complete, the same command completes all of them.
number=$#
while [ "$number" -gt 0 ]; do
  printf '%(%s)T\n' -1 >"$runs/${!number}/submitted"
  number=$((number - 1))
done
exit 0
