jobc_sshd=$(PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin" command -v sshd) || { echo "jobc: the image has no sshd; install openssh-server" >&2; exit 127; }
mkdir -p /run/sshd ~/.ssh && chmod 700 ~/.ssh
cp /etc/jobc/ssh/authorized_keys ~/.ssh/authorized_keys && chmod 600 ~/.ssh/authorized_keys
[ -e /run/sshd/host_key ] || ssh-keygen -q -t ed25519 -N '' -f /run/sshd/host_key
(
  umask 077
  while IFS= read -r -d '' jobc_variable; do
    case $jobc_variable in
      HOME=* | LOGNAME=* | OLDPWD=* | PWD=* | SHELL=* | SHLVL=* | SSH_* | USER=* | _=* | *$'\n'*) ;;
      *) printf '%s\n' "$jobc_variable" ;;
    esac
  done </proc/self/environ >/dev/shm/jobc-ssh-environment
)
ln -sf /dev/shm/jobc-ssh-environment ~/.ssh/environment
jobc_sshd_options="-p $JOBC_SSH_PORT -h /run/sshd/host_key -o PasswordAuthentication=no -o PermitUserEnvironment=yes -o StrictModes=no"
