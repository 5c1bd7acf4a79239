# Prints the addresses that the script of a group wrote, or the number of its Slurm job, and the plan. Arguments: RUN GROUP.
cd "$runs/$1" || exit 45
if ! grep -s 'jobc_port=' "state/$2.addresses"; then
  read -r id <"jobs/$2"
  squeue --noheader --jobs="$id" --format='job=%A' 2>/dev/null | head -n 1
fi
printf '\036\n'
cat target/plan.json
