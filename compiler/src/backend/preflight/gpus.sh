gpus() { # COUNT LINE DEVICES
  count=$1 line=$2 seen=0
  if [ "$line" ] && command -v nvidia-smi >/dev/null; then
    list=$(nvidia-smi -L 2>&1) || fail 86 gpus "nvidia-smi says: $(printf '%s\n' "$list" | head -n 1)"
    seen=$(printf '%s\n' "$list" | grep -c "^ *$line ")
  else
    for device in $3; do [ ! -e "$device" ] || seen=$((seen + 1)); done
  fi
  [ "$seen" -ge "$count" ] || fail 86 gpus "$seen of $count are visible"
  note gpus "$seen visible"
}
