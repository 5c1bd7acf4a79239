for jobc_host in $(cut -d' ' -f1 /etc/jobc/hostfile); do
  [ "$jobc_host" != "$JOBC_SSH_SELF" ] || continue
  for jobc_try in $(seq 300); do
    ssh -o ConnectTimeout=2 -o BatchMode=yes "$jobc_host" true 2>/dev/null && break
    [ "$jobc_try" -lt 300 ] || { echo "jobc: $jobc_host does not answer by ssh" >&2; exit 1; }
    [ $((jobc_try % 30)) -ne 0 ] || echo "jobc: waiting for $jobc_host to answer by ssh" >&2
    sleep 1
  done
done
