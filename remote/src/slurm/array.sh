# Submits the jobs of a matrix as an array, or completes an earlier attempt. Arguments: PROGRAM PLAN WORKING_DIRECTORY LIMIT AFTER
# RUN... AFTER is the first run of another array, which ends before this one starts. Stdin is a tar archive with the files of all runs; the first run has the script of the array, `array.sbatch`, and its list
# of runs, `array`. Each run is written down as a task of the array.
use_program "$1"
plan=$2 cwd=$3 limit=$4 previous=$5
shift 5
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
    make_outputs "$name" && mkdir -p "$runs/$name/jobs" "$runs/$name/out" "$runs/$name/logs" && mv "$runs/$name/job.new" "$runs/$name/job.json" || exit 1
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
  # An array that has ended may be forgotten, and a dependency on it is refused.
  after=
  if [ -n "$previous" ] && read -r other <"$runs/$previous/array.id" && [ -n "$(squeue --jobs="$other" --noheader 2>/dev/null)" ]; then
    after=$other
  fi
  cd "$cwd" 2>/dev/null || cd || exit 1
  use_account "$run/array.sbatch"
  if ! answer=$(sbatch --parsable --hold "--array=0-$(($# - 1))${limit:+%$limit}" ${after:+"--dependency=afterany:$after"} --comment="jobc:$leader:$plan:array" \
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
