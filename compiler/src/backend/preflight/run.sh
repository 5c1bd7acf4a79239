run() { # SECONDS COMMAND
  limit "$1" sh -c "$2" </dev/null || {
    code=$?
    case $code in
      87 | 126 | 127) fail 87 run "$2: exit code $code" ;;
      137) fail 86 run "$2: no end within $1 s" ;;
      *) fail 86 run "$2: exit code $code" ;;
    esac
  }
  note run "$2 succeeded"
}
