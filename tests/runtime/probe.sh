#!/bin/sh
# Runs inside the container and prints what it finds, one section after each `== name`. It observes the shell that
# runs it, whose state is as the runtime left it.
say() { printf '== %s\n' "$1"; }

say status
grep -E '^(Uid|Gid|Groups|Cap[A-Za-z]+|NoNewPrivs|Seccomp|Seccomp_filters|Umask|NSpid|Sig(Blk|Ign|Cgt)):' /proc/$$/status
say identity
echo "user $(id -u):$(id -g)"
echo "cwd $(pwd -P)"
echo "umask $(umask)"
echo "hostname $(hostname)"
echo "pid $$"
echo "domainname $(cat /proc/sys/kernel/domainname)"
echo "personality $(cat /proc/$$/personality 2>&1)"
say arguments
printf '%s\n' "$0" "$@"
say env
tr '\0' '\n' </proc/$$/environ
say mounts
cat /proc/$$/mountinfo
say limits
cat /proc/$$/limits
say dev
find /dev -mindepth 1 ! -path '/dev/pts/[0-9]*' | sort | while read -r node; do stat -c '%N|%A %u %g %t:%T' "$node"; done
stat -c '%N|%A %u %g' /dev
say fds
ls -l /proc/$$/fd
say cgroup
cat /proc/$$/cgroup
say masked
for path in /proc/acpi /proc/kcore /proc/keys /proc/latency_stats /proc/timer_list /proc/scsi /sys/firmware /secret /secrets; do
    [ -e "$path" ] || continue
    if [ -d "$path" ]; then echo "$path $(ls -A "$path" 2>&1 | wc -l) entries"; else echo "$path $(head -c 1 "$path" 2>&1 | wc -c) bytes"; fi
done
say writable
for path in / /tmp /dev /proc/sys/kernel/hostname /proc/sysrq-trigger /sys/kernel /sys/fs/cgroup /readonly /volume /volume/sub /root; do
    [ -e "$path" ] || continue
    if [ -d "$path" ]; then
        (: >"$path/.probe") 2>/dev/null && rm -f "$path/.probe" && echo "$path"
    else
        (: >>"$path") 2>/dev/null && echo "$path"
    fi
done
say sysctl
for name in kernel/shm_rmid_forced kernel/msgmax net/ipv4/ip_forward net/ipv4/ping_group_range; do
    echo "$name $(cat /proc/sys/$name 2>&1)"
done
say network
ls /sys/class/net 2>/dev/null || true
say calls
mkdir /tmp/.made 2>&1 && rmdir /tmp/.made
unshare -U true 2>&1
mknod /tmp/.node c 1 3 2>&1 && rm /tmp/.node
chroot / true 2>&1
say clocks
cat /proc/$$/timens_offsets 2>&1
say maps
cat /proc/$$/uid_map /proc/$$/gid_map /proc/$$/setgroups
say terminal
tty 2>&1
stty size 2>/dev/null
stat -c '%A %t' -L /proc/$$/fd/0 2>/dev/null
say volume
for path in /volume /volume/sub /nested/place /file /var/link/place; do
    [ -e "$path" ] && stat -c '%N|%A %u %g' "$path"
done
ls -A /copied 2>/dev/null
say end
read -r _
exit 7
