mkdir -p ~/.ssh && chmod 700 ~/.ssh
cp /etc/jobc/openpai/ssh_config ~/.ssh/config && chmod 600 ~/.ssh/config
if [ ! -e /etc/jobc/ssh/id_ed25519 ]; then
  echo "jobc: there are no keys in /etc/jobc/ssh, so no task can log in to another" >&2
elif ! jobc_sshd=$(command -v sshd); then
  echo "jobc: the image has no sshd, so no task can log in here; install openssh-server" >&2
else
  cp /etc/jobc/ssh/id_ed25519 ~/.ssh/id_ed25519 && chmod 600 ~/.ssh/id_ed25519
  cp /etc/jobc/ssh/authorized_keys ~/.ssh/authorized_keys && chmod 600 ~/.ssh/authorized_keys
  mkdir -p /run/sshd
  [ -e /run/sshd/host_key ] || ssh-keygen -q -t ed25519 -N '' -f /run/sshd/host_key
  "$jobc_sshd" -p "$PAI_CONTAINER_SSH_PORT" -h /run/sshd/host_key -o PasswordAuthentication=no -o StrictModes=no
  if [ -e /etc/jobc/openpai/barrier ]; then
    while read -r jobc_peer <&3; do
      for jobc_try in $(seq 300); do
        ssh -o ConnectTimeout=2 -o BatchMode=yes "$jobc_peer" true </dev/null 2>/dev/null && break
        [ "$jobc_try" -lt 300 ] || { echo "jobc: $jobc_peer does not answer by ssh" >&2; exit 1; }
        sleep 1
      done
    done 3</etc/jobc/openpai/barrier
  fi
fi
