older() { # VERSION OTHER
  a=$1. b=$2.
  while [ "$b" ]; do
    x=${a%%.*} y=${b%%.*} a=${a#*.} b=${b#*.}
    [ "${x:-0}" -eq "${y:-0}" ] || { [ "${x:-0}" -lt "${y:-0}" ] && return; return 1; }
  done
  return 1
}
driver() { # OLDEST NEEDED_BY CODE
  if command -v nvidia-smi >/dev/null; then
    found=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>&1 | head -n 1)
  else
    found=$(sed -n '1s/.*  \([0-9][0-9.]*\)  .*/\1/p' /proc/driver/nvidia/version 2>/dev/null)
  fi
  case $found in
    '') fail 86 driver 'no NVIDIA driver is loaded' ;;
    *[!0-9.]*) fail 86 driver "nvidia-smi says: $found" ;;
  esac
  if [ "$1" ] && older "$found" "$1"; then
    fail "$3" driver "the driver is $found, and $2 needs $1"
  fi
  note driver "$found"
}
