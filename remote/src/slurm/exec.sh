# Runs a command beside a task. Arguments: JOB NODE PROCESS TASK CONTAINER PROGRAM TERMINAL INPUT COMMAND...
job=$1 node=$2 pid=$3 task=$4 container=$5 program=$6 terminal=$7 input=$8
shift 8
options=(--overlap --quiet --unbuffered --export=ALL "--jobid=$(component "$job" "$node")" --nodes=1 --ntasks=1
  "--nodelist=$node" --mem=0 --chdir=/)
[ -z "$terminal" ] || options+=(--pty)
[ -n "$input$terminal" ] || options+=(--input=none)
# What runs on the node: the command has the environment and the directory of the task, in its container if it has one.
inner=$own_pid'
pid=$1 id=$2 container=$3 program=${4/#"~"/$HOME} terminal=$5
shift 5
take_environment() {
  while IFS= read -r -d "" pair; do
    case $pair in SLURM_* | *"%%="* | _=*) ;; *=*) export "$pair" ;; esac
  done <"/proc/$pid/environ"
}
find_inside() {
  local own inside queue=("$pid") next
  own=$(readlink /proc/self/ns/mnt)
  while [ ${#queue[@]} -gt 0 ]; do
    next=${queue[0]} queue=("${queue[@]:1}")
    inside=$(readlink "/proc/$next/ns/mnt")
    if [ -n "$inside" ] && [ "$inside" != "$own" ]; then
      pid=$next
      return
    fi
    queue+=($(cat "/proc/$next/task/"*/children 2>/dev/null))
  done
}
direct=
[ "${pid#@}" = "$pid" ] || { direct=yes; own_pid "${pid#@}"; }
kill -0 "$pid" 2>/dev/null || { echo "jobc: the task has ended" >&2; exit 125; }
run() {
  case $container in
    jobc)
      # It has the variables of a login, as the task had, whose profiles may print.
      own="exec \"\$0\" oci exec \"\$@\" >&5 2>&6 5>&- 6>&-"
      # The name of a container ends with the process that started it, for several attempts of a task. Where Slurm alone runs
      # the tasks, that process becomes jobc itself.
      read -r _ _ _ parent _ <"/proc/$pid/stat"
      [ -z "$direct" ] || id=$SLURM_JOB_ID-${id#*-} parent=$pid
      exec bash -lc "$own" "$program" ${terminal:+--tty} "$id-$parent" "$@" 5>&1 6>&2 >/dev/null 2>&1
      ;;
    none)
      take_environment
      cd "/proc/$pid/cwd" 2>/dev/null && cd -P . 2>/dev/null
      exec "$@"
      ;;
    *)
      # Containers of unprivileged users have a user namespace of their own, which their user may enter. The program that
      # starts one stays outside.
      find_inside
      take_environment
      exec nsenter --preserve-credentials --user --mount --target "$pid" --wd="/proc/$pid/cwd" -- "$@"
      ;;
  esac
}
[ -z "$terminal" ] || run "$@"
# Unbuffered output of a step is a terminal, which programs would take for one.
(run "$@") | cat
exit "${PIPESTATUS[0]}"
'
exec srun "${options[@]}" bash -c "$inner" jobc "$pid" "$job-$task" "$container" "$program" "$terminal" "$@"
