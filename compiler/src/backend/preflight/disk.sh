tenths() { printf '%s.%s GiB' "$(($1 / 1048576))" "$(($1 % 1048576 * 10 / 1048576))"; }
disk() { # KIBIBYTES PATH
  table=$(LC_ALL=C limit 60 df -Pk "$2" 2>&1) || fail 87 disk "$(printf '%s\n' "$table" | head -n 1)"
  free=$(printf '%s\n' "$table" | sed -n '$s/.* \([0-9][0-9]*\)  *[0-9-]*%* .*/\1/p')
  [ "$free" ] || fail 87 disk "df says: $table"
  [ "$free" -ge "$1" ] || fail 86 disk "$(tenths "$free") free in $2, $(tenths "$1") wanted"
  note disk "$(tenths "$free") free in $2"
}
