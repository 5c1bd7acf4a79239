jobc_sshd=$(command -v sshd) || { echo "jobc: the image has no sshd; install openssh-server" >&2; exit 127; }
mkdir -p /run/sshd ~/.ssh && chmod 700 ~/.ssh
cp /etc/jobc/ssh/authorized_keys ~/.ssh/authorized_keys && chmod 600 ~/.ssh/authorized_keys
[ -e /run/sshd/host_key ] || ssh-keygen -q -t ed25519 -N '' -f /run/sshd/host_key
jobc_sshd_options="-p $JOBC_SSH_PORT -h /run/sshd/host_key -o PasswordAuthentication=no -o StrictModes=no"
