jobc_ssh=~/.ssh
if [ "$(id -u)" -ne 0 ]; then
  jobc_user=$(id -un 2>/dev/null) || { echo "jobc: ssh needs a user with the id $(id -u) in /etc/passwd of the image" >&2; exit 1; }
  eval "jobc_ssh=~$jobc_user/.ssh"
  case $JOBC_SSH_USER in *[!0-9]*) ;; *) JOBC_SSH_USER=$jobc_user ;; esac
fi
mkdir -p "$jobc_ssh" && chmod 700 "$jobc_ssh" || { echo "jobc: ssh needs a home directory that the user can write to" >&2; exit 1; }
