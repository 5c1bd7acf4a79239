# Runs a command beside a task. Arguments: JOB NODE PID TASK CONTAINER TERMINAL INPUT COMMAND...
job=$1 node=$2 pid=$3 task=$4 container=$5 terminal=$6 input=$7
shift 7
# A heterogeneous job has an id for each of its components.
while read -r id nodes; do
  for other in $(scontrol show hostnames "$nodes"); do
    [ "$other" != "$node" ] || job=$id
  done
done < <(squeue --noheader --jobs="$job" --format='%A %N')
options=(--overlap --quiet --unbuffered --export=ALL "--jobid=$job" --nodes=1 --ntasks=1 "--nodelist=$node" --mem=0)
[ -z "$terminal" ] || options+=(--pty)
[ -n "$input$terminal" ] || options+=(--input=none)
# What runs on the node: the command has the environment and the directory of the task, in its container if it has one.
inner='
pid=$1 id=$2 container=$3 terminal=$4
shift 4
take_environment() {
  while IFS= read -r -d "" pair; do
    case $pair in SLURM_* | *"%%="* | _=*) ;; *=*) export "$pair" ;; esac
  done <"/proc/$pid/environ"
}
kill -0 "$pid" || { echo "jobc: the task has ended" >&2; exit 125; }
case $container in
  jobc)
    # A step has the PATH of this command, and jobc may be in that of a login.
    own="PATH=\$PATH:\$HOME/.local/bin:\$HOME/bin; exec jobc oci exec \"\$@\""
    exec bash -lc "$own" jobc ${terminal:+--tty} "$id" "$@"
    ;;
  none)
    take_environment
    cd "/proc/$pid/cwd" 2>/dev/null && cd -P . 2>/dev/null
    exec "$@"
    ;;
  *)
    # Containers of unprivileged users have a user namespace of their own, which their user may enter.
    take_environment
    exec nsenter --preserve-credentials --user --mount --target "$pid" --wd="/proc/$pid/cwd" -- "$@"
    ;;
esac
'
exec srun "${options[@]}" bash -c "$inner" jobc "$pid" "$job-$task" "$container" "$terminal" "$@"
