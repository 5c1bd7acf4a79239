mkdir -p /run/sshd ~/.ssh && chmod 700 ~/.ssh
cp /etc/jobc/ssh/authorized_keys ~/.ssh/authorized_keys && chmod 600 ~/.ssh/authorized_keys
command -v sshd >/dev/null || { echo "jobc: the image has no sshd; install openssh-server" >&2; exit 127; }
ssh-keygen -q -t ed25519 -N '' -f /run/sshd/host_key <<<y >/dev/null 2>&1 || :
exec "$(command -v sshd)" -D -e -p "$JOBC_SSH_PORT" -h /run/sshd/host_key -o PasswordAuthentication=no -o StrictModes=no
