"""Jobs with limits, for the tests of limits and of scopes."""

LIMITS = """\
version: 1
name: tested-limits
image: host
network: none
roles:
  main:
    shell: sh
    resources: {cpu: 0.5, memory: 96MiB, shm: 24MiB, pids: 60, ulimits: {nofile: 333}}
    run: |
      echo "nofile $(ulimit -n)"
      echo "shm $(df -B1 /dev/shm | tail -1 | while read name size rest; do echo $size; done)"
      for file in memory.max pids.max cpu.max memory/memory.limit_in_bytes pids/pids.max cpu/cpu.cfs_quota_us cpu/cpu.cfs_period_us; do
        [ -r /sys/fs/cgroup/$file ] && echo "$file $(cat /sys/fs/cgroup/$file)"
      done
      sleep 600
"""

OUT_OF_MEMORY = """\
version: 1
name: tested-hungry
image: host
network: none
roles:
  main:
    shell: sh
    resources: {memory: 48MiB}
    run: |
      # Every round doubles the shell's memory.
      x=0123456789abcdef; while :; do x=$x$x; done
"""

# What the job requests, in the files of cgroup v2 and v1, in the container and on the host.
V2 = {"memory.max": str(96 << 20), "pids.max": "60", "cpu.max": "50000 100000"}
V1 = {"memory/memory.limit_in_bytes": str(96 << 20), "pids/pids.max": "60", "cpu/cpu.cfs_quota_us": "50000"}

# The disk of the job's own directory, which is not in memory; direct writes, because cgroup v1 limits no others.
DISK_TRAFFIC = """\
version: 1
name: tested-traffic
image: {host: {cwd: true}}
network: none
roles:
  main:
    shell: sh
    resources: {io: {%s: {write: 1MiB, read_ops: 50}}}
    run: |
      start=$(date +%%s%%N)
      dd if=/dev/zero of=written bs=64k count=48 oflag=direct 2>/dev/null
      rm written
      echo "took $(( ($(date +%%s%%N) - start) / 1000000 ))"
      sleep 600
"""
