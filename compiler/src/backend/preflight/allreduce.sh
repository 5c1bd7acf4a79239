allreduce() { # PLACE PROCESSES GPUS ADDRESS FLOOR
  started='' number=0 failed=0
  while [ "$number" -lt "$2" ]; do
    python allreduce "$1" "$number" "$3" "$4" "$5" &
    started="$started $!" number=$((number + 1))
  done
  for one in $started; do wait "$one" || failed=$?; done
  [ "$failed" = 0 ] || exit "$failed"
}
