# Moves bytes between stdin, stdout and a port of a node. Arguments: JOB NODE PORT. A program that listens on loopback
# only, or behind a firewall, is reached by a step on its node.
job=$1 node=$2 port=$3
relay='
exec 3<>"/dev/tcp/$1/$2" || exit 1
cat <&3 3>&- 4<&- & down=$!
cat <&4 >&3 3>&- 4<&- & up=$!
exec 3>&- 4<&-
wait "$down"
kill "$up" 2>/dev/null
exit 0
'
exec 4<&0
if (exec 3<>"/dev/tcp/$node/$port") 2>/dev/null; then
  exec bash -c "$relay" relay "$node" "$port" </dev/null
fi
exec 4<&-
exec srun --overlap --quiet --unbuffered "--jobid=$job" --nodes=1 --ntasks=1 "--nodelist=$node" --mem=0 --chdir=/ \
  bash -c "exec 4<&0; $relay" relay 127.0.0.1 "$port"
