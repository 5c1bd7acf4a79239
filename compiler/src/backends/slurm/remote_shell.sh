
# Options of ssh that have a value, and those that have none.
while [ $# -gt 0 ]; do
  case $1 in
    -[bcDEeFIiJLlmOopQRSWw]) shift 2 ;;
    -*) shift ;;
    *) break ;;
  esac
done
host=${1#*@}
shift
for role in "${!jobc_ranked[@]}"; do
  case " ${jobc_ranked[$role]} " in
    *" $host "*)
      read -ra options < <(jobc_options "$role")
      exec srun --jobid="$jobc_slurm_job" --overlap --nodes=1 --ntasks=1 --nodelist="$host" --export=ALL --quiet \
        "${options[@]}" bash "$jobc_directory/roles/$role.sh" "$jobc_addresses" "$*"
      ;;
  esac
done
echo "jobc: $host is not a node of this job" >&2
exit 255
