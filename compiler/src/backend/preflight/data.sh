unreadable() { # PATH MESSAGE
  case $2 in
    *'Permission denied'* | *'No such file'*) fail 87 data "$2" ;;
    '') fail 86 data "$1 does not answer within 60 s" ;;
    *) fail 86 data "$2" ;;
  esac
}
data() { # PATH
  file=$(LC_ALL=C limit 60 find -L "$1" -type f -print -quit 2>/dev/null) || [ "$file" ] ||
    unreadable "$1" "$(LC_ALL=C limit 60 ls -A "$1" 2>&1 >/dev/null | head -n 1)"
  [ "$file" ] || fail 87 data "$1 has no files"
  error=$(LC_ALL=C limit 60 dd if="$file" of=/dev/null bs=4096 count=1 2>&1) ||
    unreadable "$file" "$(printf '%s\n' "$error" | head -n 1)"
  note data "$file can be read"
}
