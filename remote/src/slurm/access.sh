# Prints what the user has on this cluster, one line each: `ok` or `no`, what it is needed for, and what it is. Arguments:
# CONTAINER IMAGES PARTITION PROGRAM of the target.
container=$1 images=$2 partition=$3 program=${4/#"~"/$HOME}
say() { # KEY WHAT TEST...
  local key=$1 what=$2 found=ok
  shift 2
  "$@" >/dev/null 2>&1 || found=no
  echo "$found $key $what"
}
say slurm "$(sinfo --version 2>&1 | tail -n 1)" scontrol ping
say directory "writable directory $directory" eval 'mkdir -p "$runs" && [ -w "$runs" ]'
if [ -n "$partition" ]; then
  for name in ${partition//,/ }; do
    say partition "partition $name" eval "sinfo --noheader --partition=$name --format=%P | grep -q ."
  done
fi
# What login nodes have may differ from what nodes have; it is the best guess without a job.
case $container in
  jobc)
    say container "user namespaces" unshare --user --map-root-user true
    ;;
  apptainer) say container "apptainer in PATH" command -v apptainer ;;
  pyxis) say container "pyxis: srun --container-image" eval 'srun --help | grep -q container-image' ;;
  oci) say container "oci.conf of the cluster" eval 'scontrol show config | grep -q "^OCI"' ;;
esac
[ -z "$program" ] || say program "$program" "$program" --version
[ -z "$images" ] || say images "directory $images" [ -d "$images" ]
say accounting "accounting (sacct)" sacct --noheader --allocations --starttime=now
say lock "flock in PATH" command -v flock
exit 0
