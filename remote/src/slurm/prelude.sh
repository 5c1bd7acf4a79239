# What every script begins with. Arguments: DIRECTORY, then those of the script.
# Settings of the user's own commands would change what Slurm's print, and an allocation around this what they do.
account=${SBATCH_ACCOUNT-}
unset "${!SBATCH_@}" "${!SQUEUE_@}" "${!SCONTROL_@}" "${!SACCT_@}" "${!SINFO_@}" "${!SRUN_@}"
for name in "${!SLURM_@}"; do [ "$name" = SLURM_CONF ] || unset "$name"; done
command -v sbatch >/dev/null || exit 41
directory=${1:-$HOME/.local/state/jobc/slurm}
runs=$directory/runs
shift

# Whether a Slurm job is that of a run, by its name or its comment: numbers are given again when a cluster is set up anew. The
# task of an array has those of the array.
is_of() { # RUN NAME COMMENT
  case $2 in "$1" | "$1"-*) return 0 ;; esac
  case $3 in "jobc:$1" | "jobc:$1":* | jobc:*:array) return 0 ;; esac
  return 1
}

# Makes the directories for outputs of a run that stay when it is removed; `files` has links to them.
make_outputs() { # RUN
  local job path
  [ -e "$runs/$1/outputs" ] || return 0
  job=$(sed -n 's/.*"job":"\([^"]*\)".*/\1/p' "$runs/$1/job.new")
  while read -r path; do mkdir -p "$directory/outputs/$job/$path" || return; done <"$runs/$1/outputs"
}

# Has `sbatch` charge the account that the user's own commands do, unless the script names one.
use_account() { # SCRIPT
  unset SBATCH_ACCOUNT
  [ -z "$account" ] || grep -q '^#SBATCH --account=' "$1" || export SBATCH_ACCOUNT=$account
}

# Gives jobs a program of the user: the name with its version alone leads to it.
use_program() { # jobc-VERSION-BUILD, or nothing
  local link=$directory/bin/${1%-*}
  [ -n "$1" ] || return 0
  [ -x "$directory/bin/$1" ] || { cat >/dev/null; exit 47; }
  [ "$(readlink "$link")" = "$1" ] || { ln -sfn "$1" "$link.$$" && mv -T "$link.$$" "$link"; } || exit 1
}

# Finds on a node the first process of a task by its number in the first step of a job, where Slurm alone runs it.
own_pid='
own_pid() { # NUMBER
  local file
  pid=0
  for file in $(grep -lzx "SLURM_JOB_ID=$SLURM_JOB_ID" /proc/[0-9]*/environ 2>/dev/null | sort -t/ -k3n); do
    if grep -qzx "SLURM_PROCID=$1" "$file" 2>/dev/null && grep -qzx "SLURM_STEP_ID=0" "$file" 2>/dev/null; then
      file=${file#/proc/} pid=${file%/environ}
      return
    fi
  done
}
'
# The id of the component of a heterogeneous job that a node is in; otherwise that of the job.
component() { # JOB NODE
  local id nodes other found=$1
  while read -r id nodes; do
    for other in $(scontrol show hostnames "$nodes"); do
      [ "$other" != "$2" ] || found=$id
    done
  done < <(squeue --noheader --jobs="$1" --format='%A %N')
  echo "$found"
}

# Prints small files of runs, each line after its path.
print_files() { # FILE...
  [ $# -eq 0 ] || printf '%s\0' "$@" | xargs -0 grep -sH '' --
}
# Prints what `srun` and Slurm say of tasks in the output of batch scripts, each line after the path of the file.
print_errors() { # FILE...
  [ $# -eq 0 ] || printf '%s\0' "$@" | xargs -0 grep -sHE -m 1000 \
    '^(srun: error: [^ ]*: tasks? [0-9]|slurmstepd.*(DUE TO JOB REQUEUE|oom.kill))' --
}
# Prints the user's Slurm jobs, those that have ended until Slurm forgets them.
print_queue() { # FORMAT
  printf '\036\n'
  SLURM_TIME_FORMAT=%s squeue --user="$UID" --states=all --array --noheader --format="$1" || exit 42
}

# Whether jobc runs the tasks of a group on the nodes.
is_by_jobc() { # RUN GROUP
  grep -q '^exec .* node ' "$runs/$1/target/slurm/$2.sbatch" 2>/dev/null
}
# Whether Slurm alone runs the tasks of a group.
is_direct() { # RUN GROUP
  grep -Eq '^(exec )?srun --job-name=' "$runs/$1/target/slurm/$2.sbatch" 2>/dev/null
}

# Calls a function with the id, the state and the group of each job of a run that Slurm still knows.
each_job() { # RUN FUNCTION
  local file id known state name comment
  shopt -s nullglob
  for file in "$runs/$1"/jobs/*; do
    read -r id <"$file"
    known=$(squeue --user="$UID" --noheader --states=all --jobs="$id" --format=$'%T\x1f%j\x1f%k' 2>&1) || {
      [[ $known == *[Ii]'nvalid job id'* ]] || { echo "${known##*$'\n'}" >&2; exit 42; }
      continue
    }
    IFS=$'\x1f' read -r state name comment <<<"$known"
    ! is_of "$1" "$name" "$comment" || "$2" "$id" "$state" "${file##*/}"
  done
}
