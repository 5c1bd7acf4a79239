# Submits a run, or completes an earlier attempt. Arguments: PROGRAM RUN PLAN WORKING_DIRECTORY, then GROUP AFTER ROLE for each
# Slurm job, with the role of a script that Slurm alone runs. Stdin is a tar archive with the files of the run, of which `RUN/job.new` is the last.
#
# Every step can be repeated. A run exists with its `job.json`, which is renamed last. Of several Slurm jobs, the first are
# held until all are there and their ids written down, so none can end before. One whose id was not written down is found
# by its comment, or its script has written it. The lock stays with `sbatch` even if this script is killed, so no second
# one runs beside it.
use_program "$1"
name=$2 plan=$3 cwd=$4
shift 4
run=$runs/$name
mkdir -p "$runs" && { [ -d "$run" ] || mkdir -m 700 "$run" 2>/dev/null || [ -d "$run" ]; } || exit 1
mkdir -p "$run/jobs" "$run/out" "$run/logs" && exec 9>>"$run/lock" || exit 1
! command -v flock >/dev/null || flock --wait 120 9 || { echo "another submission of this run goes on" >&2; exit 1; }
known=
if [ -e "$run/job.json" ]; then
  known=yes
  cat >/dev/null
  grep -qs "\"plan\":\"$plan\"" "$run/job.json" || exit 44
else
  rm -rf "${run:?}/target" "${run:?}/secrets" "$run/files"
  tar -xpf - -C "$runs" && [ -e "$run/job.new" ] || { echo "the files of the job did not arrive" >&2; exit 1; }
  make_outputs "$name" && mv "$run/job.new" "$run/job.json" || exit 1
fi

# The id of the Slurm job of a group that an earlier attempt submitted.
find_id() { # GROUP
  local id comment
  while read -r id comment; do
    if [ "$comment" = "jobc:$name:$plan:$1" ]; then
      echo "${id%%[_+]*}"
      return
    fi
  done < <(squeue --user="$UID" --states=PENDING,RUNNING,CONFIGURING,COMPLETING --noheader --format='%i %k')
}
# Takes back what this attempt has done.
take_back() {
  [ ${#ids[@]} -eq 0 ] || scancel "${ids[@]}"
  rm -rf "${run:?}"
}

cd "$cwd" 2>/dev/null || cd || exit 1
declare -A ids
held=() several=
[ $# -eq 3 ] || several=yes
while [ $# -ge 3 ]; do
  group=$1 after=$2 role=$3 id=''
  shift 3
  if [ -s "$run/jobs/$group" ]; then
    read -r id <"$run/jobs/$group"
  else
    [ -z "$known" ] || id=$(find_id "$group")
    if [ -z "$id" ]; then
      options=()
      [ -z "$several" ] || options=(--hold)
      if [ -n "$after" ]; then
        options=(--kill-on-invalid-dep=yes --dependency=afterok)
        for other in ${after//,/ }; do options[1]+=:${ids[$other]}; done
      fi
      use_account "$run/target/slurm/$group.sbatch"
      arguments=("$run")
      [ -z "$role" ] || arguments=("--output=${run//%/%%}/logs/$role-%t.log" --open-mode=append)
      if ! answer=$(sbatch --parsable "${options[@]}" --comment="jobc:$name:$plan:$group" --open-mode=append \
        --chdir="$run/target/slurm" --output="$run/out/$group.log" "$run/target/slurm/$group.sbatch" "${arguments[@]}" 2>&1); then
        printf 'refused %s\n%s\n' "$group" "$answer"
        take_back
        exit 43
      fi
      # Warnings stand before the id.
      id=${answer##*$'\n'} id=${id%%;*}
    fi
    # The script of a job writes it too; of two, the first one counts.
    if ! (set -C; echo "$id" >"$run/jobs/$group") 2>/dev/null; then
      read -r other <"$run/jobs/$group"
      [ "$other" = "$id" ] || scancel "$id"
      id=$other
    fi
  fi
  ids[$group]=$id
  [ -n "$after" ] || held+=("$id")
done
if [ ! -e "$run/submitted" ]; then
  # One that was released before may run or have ended.
  [ -z "$several" ] || released=$(scontrol release "$(IFS=,; echo "${held[*]}")" 2>&1) || [ -n "$known" ] ||
    { echo "$released" >&2; exit 1; }
  printf '%(%s)T\n' -1 >"$run/submitted"
fi
exit 0
