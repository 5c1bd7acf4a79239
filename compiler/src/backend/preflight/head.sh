note() { printf 'jobc: preflight: %s: %s\n' "$1" "$2" >&2; }
fail() { # CODE CHECK MESSAGE
  case $1 in 86) who=node ;; *) who=job ;; esac
  printf 'jobc: preflight failed: %s: %s (%s on %s: the %s is at fault)\n' "$2" "$3" "$jobc_task" "$jobc_node" "$who" >&2
  [ "$who" = node ] || exit 87
  exit 86
}
