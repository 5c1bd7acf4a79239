python() { # CHECK ARGUMENTS...
  program=$(command -v python3 || command -v python) || fail 87 "$1" 'the image has no python3'
  "$program" -c "$checks" "$@" || {
    code=$?
    case $code in 86 | 87) exit "$code" ;; *) fail 87 "$1" "$program ended with exit code $code" ;; esac
  }
}
