# Removes the directory of a run. Arguments: RUN. Files that are still open on NFS are gone a moment later.
run=$runs/$1
[ -e "$run/job.json" ] || [ -e "$run/jobs" ] || exit 45
# Without its record it is no run any more.
rm -f "$run/job.json"
for _ in 1 2 3 4 5; do
  ! rm -rf "${run:?}" 2>/dev/null || exit 0
  sleep 0.5
done
rm -rf "${run:?}"
