# Asks the cluster about scripts without submitting them. Arguments: the lengths of the scripts, which stdin has one after
# the other.
ask() { scontrol --oneliner <<<$'show config\nshow partition\n'; }
# Both at the same time: each waits for the controller.
exec 3< <(ask 2>&1)
answers=''
for length; do
  text=$(head -c "$length")
  use_account <(echo "$text")
  answer=$(sbatch --test-only --chdir=/ 2>&1 <<<"$text")
  code=$?
  # It counts no nodes that are down or drained; `sbatch` itself lets a job wait for them.
  [[ $answer != *'configuration is not available'* ]] ||
    answer+=$'\nout '$(sinfo --noheader --states=down,drain,fail,maint --format=%N 2>/dev/null | sort -u | paste -sd ,)
  answers+=$'\036\n'$answer$'\nexit '$code$'\n'
done
facts=$(cat <&3)
# A busy controller may drop a question; one that is down was asked for long enough.
[[ $facts == *SLURM_VERSION* || $facts == *'connect failure'* ]] || facts=$(ask 2>&1)
# What is left of an error without the prompt.
[[ $facts == *SLURM_VERSION* ]] || { echo "${facts//scontrol: /}" >&2; exit 42; }
printf '%s\n%s' "$facts" "$answers"
exit 0
