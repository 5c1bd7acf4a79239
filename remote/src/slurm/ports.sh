# Prints the addresses that the script of a group wrote, and the plan. Arguments: RUN GROUP.
cd "$runs/$1" || exit 45
grep -s 'jobc_port=' "state/$2.addresses"
printf '\036\n'
cat target/plan.json
