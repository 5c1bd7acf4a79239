#!/bin/bash
# Submits job pipeline to Slurm, and prints the numbers of its Slurm jobs.
set -euo pipefail
cd "$(dirname "$0")"

options=("$@") jobs=()
trap '[ $? -eq 0 ] || [ ${#jobs[@]} -eq 0 ] || scancel "${jobs[@]}"' EXIT
submit() { # SCRIPT ARGUMENT OPTION...
  submitted=$(sbatch --parsable ${options[@]+"${options[@]}"} "${@:3}" "$1.sbatch" ${2:+"$2"})
  submitted=${submitted%%;*}
  jobs+=("$submitted")
  echo "$1 $submitted"
}
submit prepare '' --hold
job_prepare=$submitted
submit train '' --dependency=afterok:$job_prepare --kill-on-invalid-dep=yes
job_train=$submitted
submit evaluate '' --dependency=afterok:$job_train --kill-on-invalid-dep=yes
job_evaluate=$submitted
scontrol release "$job_prepare"
