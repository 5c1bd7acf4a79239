#!/bin/bash
# Role evaluate of job pipeline: one task of Slurm for each instance, started by the batch script.
. "$1"

# The addresses of a role's instances, each with a port where there is one.
jobc_list() { # ROLE PORT STEP BEFORE AFTER SEPARATOR
  local -n jobc_hosts=jobc_hosts_$1
  local i list=
  for i in "${!jobc_hosts[@]}"; do
    [ "$i" = 0 ] || list+=$6
    list+=$4${jobc_hosts[i]}
    [ -z "$2" ] || list+=:$(($2 + i * $3))
    list+=$5
  done
  printf %s "$list"
}
# Consecutive numbers with commas between.
jobc_numbers() { # FIRST COUNT
  local i list=$1
  for ((i = 1; i < $2; i++)); do list+=,$(($1 + i)); done
  printf %s "$list"
}

# ---- The same in every task ----------------------------------------------------------------------

jobc_say() { echo "jobc: $*" >&2; }

# Which instance this is, by the node. What ends this script before its command has started is a failure of the instance,
# unless it runs a command for another instance: then it has more than one argument.
jobc_begin() { # ROLE ARGUMENTS
  local -n jobc_hosts=jobc_hosts_${1//-/_}
  local i
  jobc_role=$1 jobc_index=
  for i in "${!jobc_hosts[@]}"; do
    [ "${jobc_hosts[i]}" != "$SLURMD_NODENAME" ] || jobc_index=$i
  done
  [ -n "$jobc_index" ] || { jobc_say "node $SLURMD_NODENAME is not one of role $1"; exit 125; }
  jobc_states=$jobc_run/state/$1 jobc_etc=$jobc_run/etc/$1-$jobc_index
  [ "$2" -eq 1 ] || return 0
  mkdir -p "$jobc_states"
  jobc_next
  trap jobc_unstarted EXIT
  # Another instance has failed, or the job was stopped.
  trap 'trap - EXIT; exit 143' TERM
}
jobc_unstarted() {
  local code=$?
  [ "$code" -ne 0 ] || code=125
  : >"$jobc_states/$jobc_index.started"
  jobc_note started "$jobc_number" "$SLURMD_NODENAME" "$$"
  jobc_note ended "$jobc_number" "$code"
  jobc_ended "$code"
}

# Writes down what happens to this instance.
jobc_note() { # WORD...
  printf '%(%s)T %s\n' -1 "$*" >>"$jobc_run/tasks/$jobc_role-$jobc_index"
}

# The number of the next attempt, and the file for its output: that of the first one is given by the step.
jobc_next() {
  local what
  jobc_number=1
  if [ -e "$jobc_run/tasks/$jobc_role-$jobc_index" ]; then
    while read -r _ what _; do
      [ "$what" != started ] || jobc_number=$((jobc_number + 1))
    done <"$jobc_run/tasks/$jobc_role-$jobc_index"
  fi
  [ "$jobc_number" -eq 1 ] || exec >>"$jobc_run/logs/$jobc_role-$jobc_index.$jobc_number.log" 2>&1
}

# Puts the value of a secret into a variable.
jobc_secret() { # VARIABLE SECRET
  [ -r "$jobc_secrets/$2" ] || {
    jobc_say "no value of the secret $2: \`submit.sh\` writes it to $jobc_secrets/$2"
    exit 125
  }
  IFS= read -r -d '' "$1" <"$jobc_secrets/$2" || :
  export "${1?}"
}

# Sends SIGTERM to the programs of processes that handle it, which tell their own workers: what waits for them or reads from
# them would end before. False if there are none.
jobc_tell() { # PID...
  local pid key value name found=1
  for pid; do
    name='' value=''
    while read -r key value; do
      case $key in Name:) name=$value ;; SigCgt:) break ;; esac
    done 2>/dev/null <"/proc/$pid/status"
    if [[ $value != *[4567cdef]??? || $name == @(timeout|starter*|appinit) || $name == *sh && -n ${jobc_trap-} ]]; then
      # shellcheck disable=SC2046
      jobc_tell $(cat "/proc/$pid/task/"*/children 2>/dev/null) || continue
    else
      kill -s TERM "$pid" 2>/dev/null || continue
    fi
    found=0
  done
  return "$found"
}

# Passes a signal of Slurm on to the command. With proctrack/cgroup only this script gets it, otherwise all processes do.
jobc_forward() { # SIGNAL
  local to=$jobc_child
  [ "$jobc_proctrack" = cgroup ] && [ -n "$to" ] || return 0
  [ "$1" != TERM ] || ! jobc_tell "$to" || return 0
  # `timeout` passes on SIGTERM alone.
  [ -z "$jobc_timeout" ] || [ "$1" = TERM ] || read -r to _ <"/proc/$to/task/$to/children"
  kill -s "$1" "$to" 2>/dev/null
}

# Runs the command once.
jobc_once() { # COMMAND...
  local code again
  if [ -n "$jobc_timeout" ]; then
    set -- timeout --kill-after="$jobc_grace" "$jobc_timeout" "$@"
  fi
  "$@" <&0 &
  jobc_child=$!
  [ -z "$jobc_stopped" ] || kill -s TERM "$jobc_child" 2>/dev/null
  jobc_note started "$jobc_number" "$SLURMD_NODENAME" "$jobc_child"
  while :; do
    wait "$jobc_child"
    code=$?
    kill -0 "$jobc_child" 2>/dev/null || break
  done
  # A signal that came with the end of the command has given the first answer its own number.
  if [ "$code" -gt 128 ]; then
    wait "$jobc_child" 2>/dev/null
    again=$?
    [ "$again" -eq 127 ] || code=$again
  fi
  return "$code"
}

# Checks until the instance is ready; an instance that never is fails.
jobc_probe() { # DELAY EVERY TRY_TIMEOUT TIMEOUT COMMAND...
  local every=$2 try=$3 until=$((SECONDS + $4))
  sleep "$1"
  shift 4
  until timeout "$try" "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$until" ] || {
      jobc_say "$jobc_role-$jobc_index is not ready in time"
      kill -RTMIN $$
      return
    }
    sleep "$every"
  done
  : >"$jobc_states/$jobc_index.ready"
}

# Runs the command as often as the role says, and writes how it ended.
jobc_task() { # COMMAND...
  local attempt=0 code
  trap - EXIT
  jobc_stopped='' jobc_child=''
  trap 'jobc_stopped=yes; jobc_forward TERM' TERM
  trap 'kill -TERM "$jobc_child"' RTMIN
  trap 'jobc_forward CONT' CONT
  trap 'jobc_forward HUP' HUP
  trap 'jobc_forward USR1' USR1
  trap 'jobc_forward USR2' USR2
  # A run that was stopped before this step was there has told nobody here.
  [ ! -e "$jobc_run/stopped" ] || exit 143
  : >"$jobc_states/$jobc_index.started"
  while :; do
    jobc_next
    jobc_once "$@"
    code=$?
    jobc_note ended "$jobc_number" "$code"
    [ "$code" -ne 0 ] && [ -z "$jobc_stopped" ] && [ "$attempt" -lt "$jobc_retries" ] && jobc_retried "$code" || break
    attempt=$((attempt + 1))
    jobc_say "$jobc_role-$jobc_index ended with exit code $code; retry $attempt of $jobc_retries"
    sleep "$jobc_backoff"
    [ -z "$jobc_stopped" ] || break
  done
  jobc_ended "$code"
}

# Whether the role retries an exit code: one of a list, or one that is not in it.
jobc_retried() { # EXIT_CODE
  case $jobc_codes in
    '') ;;
    not*) [[ " $jobc_codes " != *" $1 "* ]] ;;
    *) [[ " $jobc_codes " == *" $1 "* ]] ;;
  esac
}

# Writes how the instance ended; the exit code is that of a failure only where that ends the role.
jobc_ended() { # EXIT_CODE
  local files
  rm -rf ${jobc_scratch:+"$jobc_scratch"}
  shopt -s nullglob
  if [ "$1" -eq 0 ]; then
    : >"$jobc_states/$jobc_index.succeeded"
    files=("$jobc_states"/*.succeeded)
    [ -z "$jobc_min_succeeded" ] || [ "${#files[@]}" -lt "$jobc_min_succeeded" ] || : >"$jobc_run/state/$jobc_group.enough"
    exit 0
  fi
  echo "$1" >"$jobc_states/$jobc_index.failed"
  files=("$jobc_states"/*.failed)
  [ -n "$jobc_min_failed" ] && [ "${#files[@]}" -ge "$jobc_min_failed" ] || exit 0
  # The first one says why the role failed; the others were stopped because of it.
  (set -C; echo "$jobc_index $1" >"$jobc_states/first") 2>/dev/null
  exit "$1"
}

# ---- This role ---------------------------------------------------------------------------------

jobc_timeout='' jobc_grace=30 jobc_retries=0 jobc_backoff=0 jobc_codes=''
jobc_min_succeeded='' jobc_min_failed=1
jobc_begin evaluate $#
mkdir -p /scratch/work || exit 125
PATH=$PATH:$HOME/.local/bin:$HOME/bin
command -v jobc >/dev/null || { jobc_say "no jobc in PATH of $SLURMD_NODENAME: copy it to ~/.local/bin"; exit 125; }

# A copy of the instance's bundle with the addresses of this job.
jobc_fill() { # ROLE
  local from=$jobc_directory/../oci/$1-$jobc_index
  jobc_bundle=$jobc_bundles/$1-$jobc_index
  mkdir -p "$jobc_bundles" && rm -rf "$jobc_bundle" && cp -r "$from" "$jobc_bundle" &&
    find "$jobc_bundle" -type f -exec sed -i -f "$jobc_run/state/$jobc_group.places" {} +
}
jobc_fill evaluate || exit 125

# The files of an image: a directory, or an archive beside it; otherwise its registry has them.
jobc_image() { # PATH...
  jobc_from=()
  for jobc_place; do
    for jobc_root in "$jobc_place" "$jobc_place.tar" "$jobc_place.tar.gz"; do
      [ ! -e "$jobc_root" ] || { jobc_from=(--root "$jobc_root"); return; }
    done
  done
}
jobc_store=${TMPDIR:-/tmp}/jobc-$UID
(umask 077; mkdir -p "$jobc_store") && [ -O "$jobc_store" ] || {
  jobc_say "the directory $jobc_store belongs to another user: write another one as \`store\` of the target"
  exit 125
}
jobc_store+=/images
jobc_image /scratch/images/pytorch_pytorch_2.4.0-cuda12.4-cudnn9-runtime "$jobc_directory"/images/pytorch_pytorch_2.4.0-cuda12.4-cudnn9-runtime
jobc_task jobc run --cgroup inherited "${jobc_from[@]}" --image-root "$jobc_store" --id "$SLURM_JOB_ID-$jobc_role-$jobc_index-$$" "$jobc_bundle"
