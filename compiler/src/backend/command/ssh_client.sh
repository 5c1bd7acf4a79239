cp /etc/jobc/ssh/id_ed25519 "$jobc_ssh/id_ed25519" && chmod 600 "$jobc_ssh/id_ed25519"
printf 'Host *\n  Port %s\n  User %s\n  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n' "$JOBC_SSH_PORT" "$JOBC_SSH_USER" >"$jobc_ssh/config"
