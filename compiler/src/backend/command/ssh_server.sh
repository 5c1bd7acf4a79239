jobc_sshd=$(PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin" command -v sshd) || { echo "jobc: the image has no sshd; install openssh-server" >&2; exit 127; }
jobc_host_key=/run/sshd/host_key jobc_sshd_options=
if [ "$(id -u)" -ne 0 ]; then
  jobc_host_key=$jobc_ssh/jobc_host_key jobc_sshd_options="-f /dev/null -o PidFile=none"
fi
mkdir -p "${jobc_host_key%/*}"
cp /etc/jobc/ssh/authorized_keys "$jobc_ssh/authorized_keys" && chmod 600 "$jobc_ssh/authorized_keys"
[ -e "$jobc_host_key" ] || ssh-keygen -q -t ed25519 -N '' -f "$jobc_host_key"
(
  umask 077
  while IFS= read -r -d '' jobc_variable; do
    case $jobc_variable in
      HOME=* | LOGNAME=* | OLDPWD=* | PWD=* | SHELL=* | SHLVL=* | SSH_* | USER=* | _=* | *$'\n'*) ;;
      *) printf '%s\n' "$jobc_variable" ;;
    esac
  done </proc/self/environ >/dev/shm/jobc-ssh-environment
)
ln -sf /dev/shm/jobc-ssh-environment "$jobc_ssh/environment"
jobc_sshd_options="$jobc_sshd_options -p $JOBC_SSH_PORT -h $jobc_host_key -o PasswordAuthentication=no -o PermitUserEnvironment=yes -o StrictModes=no"
