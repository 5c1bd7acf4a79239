# Measures running tasks on their nodes, by one step for each allocation: that of the cgroup of the task's step where Slurm
# has one, otherwise the sum over its processes. Arguments: JOB NODE PROCESS TASK, again and again. Prints lines
# `TASK CPU MEMORY LIMIT`: thousandths of a processor, bytes, and bytes or nothing.
inner=$own_pid$(cat <<'END'
# The clock ticks and the pages of a process with all below it.
tree() { # PID
  cat /proc/[0-9]*/stat 2>/dev/null | awk -v root="$1" '
    {
      rest = $0
      while ((at = index(rest, ") ")) > 0) rest = substr(rest, at + 2)
      split(rest, field, " ")
      parent[$1] = field[2]
      ticks[$1] = field[12] + field[13] + field[14] + field[15]
      pages[$1] = field[22]
    }
    END {
      for (pid in parent) {
        other = pid
        for (depth = 0; depth < 100 && other != root && other > 1; depth++) other = parent[other]
        if (other == root) { time += ticks[pid]; memory += pages[pid] }
      }
      print time + 0, memory + 0
    }'
}
# The directory of the step of a process in the hierarchy of a controller.
step() { # PID CONTROLLER
  local number names path
  while IFS=: read -r number names path; do
    [[ $path =~ ^(.*/step_[^/]+) ]] || continue
    path=${BASH_REMATCH[1]}
    if [ "$number" = 0 ] && [ -e "/sys/fs/cgroup$path/cgroup.controllers" ]; then
      echo "/sys/fs/cgroup$path"
    elif [[ ,$names, == *",$2,"* ]] && [ -d "/sys/fs/cgroup/$2$path" ]; then
      echo "/sys/fs/cgroup/$2$path"
    fi
  done <"/proc/$1/cgroup"
}
# The microseconds of all processors, bytes, and the limit of bytes.
sample() { # PID
  local pid=$1 time pages memory limit='' own value
  read -r time pages <<<"$(tree "$pid")"
  time=$((time * 1000000 / $(getconf CLK_TCK)))
  memory=$((pages * $(getconf PAGESIZE)))
  own=$(step "$pid" cpuacct)
  if [ -e "$own/cpu.stat" ]; then
    while read -r name value; do [ "$name" != usage_usec ] || time=$value; done <"$own/cpu.stat"
  elif [ -e "$own/cpuacct.usage" ]; then
    time=$(($(<"$own/cpuacct.usage") / 1000))
  fi
  own=$(step "$pid" memory)
  for file in "$own/memory.current" "$own/memory.usage_in_bytes"; do
    [ -z "$own" ] || [ ! -r "$file" ] || memory=$(<"$file")
  done
  if [ -n "$own" ] && [ -r "$own/memory.stat" ]; then
    # What can be reclaimed at once is not in use.
    while read -r name value; do
      case $name in inactive_file | total_inactive_file) pages=$value ;; esac
    done <"$own/memory.stat"
    [ "$pages" -gt "$memory" ] || memory=$((memory - pages))
  fi
  for file in "$own/memory.max" "$own/memory.limit_in_bytes"; do
    [ -z "$own" ] || [ ! -r "$file" ] || limit=$(<"$file")
  done
  [[ $limit =~ ^[0-9]{1,15}$ ]] || limit=
  echo "$time $memory $limit"
}
tasks=()
while [ $# -ge 3 ]; do
  pid=$2
  [ "$1" != "$SLURMD_NODENAME" ] || [ "${pid#@}" = "$pid" ] || own_pid "${pid#@}"
  [ "$1" != "$SLURMD_NODENAME" ] || ! kill -0 "$pid" 2>/dev/null || tasks+=("$pid $3")
  shift 3
done
declare -A since before
for task in "${tasks[@]}"; do
  before[$task]=$(sample "${task% *}")
  since[$task]=${EPOCHREALTIME//[.,]/}
done
sleep 0.5
for task in "${tasks[@]}"; do
  read -r first _ <<<"${before[$task]}"
  read -r time memory limit <<<"$(sample "${task% *}")"
  elapsed=$((${EPOCHREALTIME//[.,]/} - since[$task]))
  [ -z "$time" ] || echo "${task#* } $(((time - first) * 1000 / elapsed)) $memory $limit"
done
exit 0
END
)
declare -A words nodes
while [ $# -ge 4 ]; do
  job=$(component "$1" "$2")
  words[$job]+=" $2 $3 $4"
  case ",${nodes[$job]-}," in *",$2,"*) ;; *) nodes[$job]+=${nodes[$job]:+,}$2 ;; esac
  shift 4
done
for job in "${!words[@]}"; do
  count=$(tr , '\n' <<<"${nodes[$job]}" | wc -l)
  # The words are names of nodes and tasks, and numbers.
  srun --overlap --quiet --input=none --export=ALL "--jobid=$job" "--nodes=$count" "--ntasks=$count" --ntasks-per-node=1 \
    "--nodelist=${nodes[$job]}" --mem=0 --chdir=/ bash -c "$inner" jobc ${words[$job]} &
done
wait
exit 0
