# The addresses of a role's instances, each with a port where there is one.
jobc_list() { # ROLE PORT STEP BEFORE AFTER SEPARATOR
  local -n jobc_hosts=jobc_hosts_$1
  local i list=
  for i in "${!jobc_hosts[@]}"; do
    [ "$i" = 0 ] || list+=$6
    list+=$4${jobc_hosts[i]}
    [ -z "$2" ] || list+=:$(($2 + i * $3))
    list+=$5
  done
  printf %s "$list"
}
# Consecutive numbers with commas between.
jobc_numbers() { # FIRST COUNT
  local i list=$1
  for ((i = 1; i < $2; i++)); do list+=,$(($1 + i)); done
  printf %s "$list"
}
