/* The floor of a rootless container in a step: its namespaces and mounts with the fewest syscalls.
 *
 *   floor ROOT -- PROGRAM [ARGUMENT...]
 *
 * The caller becomes root of a user namespace. ROOT is below an overlay whose upper layer is in memory. The container has
 * what a job's bundle has: /proc, /dev with nodes of the host, /dev/pts, /dev/shm, /dev/mqueue, /sys, /sys/fs/cgroup, three
 * files of the host, masked and read-only paths, fourteen capabilities, no new privileges, and a filter of syscalls with as
 * many instructions; its network and cgroup are those of the step. What a runtime must also do is omitted: reading a
 * configuration, checking paths, keeping a state, reporting errors. It trusts its arguments: it is a baseline, not a
 * runtime. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FINE(call) do { if ((call) < 0) { perror(#call); _exit(125); } } while (0)
#define COUNT(list) (sizeof(list) / sizeof *(list))

static const unsigned long plain = MS_NOSUID | MS_NOEXEC | MS_NODEV;

static void put(const char *path, const char *text) {
    int file = open(path, O_WRONLY | O_CLOEXEC);
    FINE(file);
    FINE(write(file, text, strlen(text)));
    close(file);
}

/* Mounts without permission to write, in two steps as for any bind mount. */
static void bind_readonly(const char *from, const char *to) {
    FINE(mount(from, to, NULL, MS_BIND | MS_REC, NULL));
    FINE(mount(NULL, to, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY | plain, NULL));
}

static void map(void) {
    char text[64];
    unsigned user = getuid(), group = getgid();
    FINE(unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP));
    put("/proc/self/setgroups", "deny");
    snprintf(text, sizeof text, "0 %u 1", user);
    put("/proc/self/uid_map", text);
    snprintf(text, sizeof text, "0 %u 1", group);
    put("/proc/self/gid_map", text);
}

static void cgroups(void) {
    static const char *const hierarchies[] = {"cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids", "systemd"};
    if (access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0) {
        FINE(mount("cgroup", "sys/fs/cgroup", "cgroup2", plain | MS_RDONLY, NULL));
        return;
    }
    FINE(mount("tmpfs", "sys/fs/cgroup", "tmpfs", plain, "mode=755"));
    for (unsigned i = 0; i < COUNT(hierarchies); i++) {
        char from[64], to[64];
        const char *name = hierarchies[i];
        snprintf(from, sizeof from, "/sys/fs/cgroup/%s", name);
        if (access(from, F_OK) != 0) continue;
        snprintf(to, sizeof to, "sys/fs/cgroup/%s", name);
        FINE(mkdir(to, 0755));
        FINE(mount("cgroup", to, "cgroup", plain, strcmp(name, "systemd") ? name : "none,name=systemd"));
    }
    FINE(mount(NULL, "sys/fs/cgroup", NULL, MS_BIND | MS_REMOUNT | MS_RDONLY | plain, NULL));
}

static void filesystems(const char *root) {
    FINE(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
    /* It may be below /tmp. */
    FINE(chdir(root));
    FINE(mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755"));
    FINE(mkdir("/tmp/upper", 0755));
    FINE(mkdir("/tmp/work", 0755));
    FINE(mkdir("/tmp/root", 0755));
    FINE(mount("overlay", "/tmp/root", "overlay", 0, "lowerdir=.,upperdir=/tmp/upper,workdir=/tmp/work,userxattr"));
    FINE(chdir("/tmp/root"));
    static const char *const made[] = {"proc", "dev", "sys"};
    for (unsigned i = 0; i < COUNT(made); i++) mkdir(made[i], 0755);
    FINE(mount("proc", "proc", "proc", plain, NULL));
    FINE(mount("tmpfs", "dev", "tmpfs", MS_NOSUID | MS_STRICTATIME, "mode=755,size=65536k"));
    static const char *const nodes[] = {"null", "zero", "full", "random", "urandom", "tty"};
    for (unsigned i = 0; i < COUNT(nodes); i++) {
        char from[64], to[64];
        snprintf(from, sizeof from, "/dev/%s", nodes[i]);
        snprintf(to, sizeof to, "dev/%s", nodes[i]);
        close(open(to, O_CREAT | O_WRONLY | O_CLOEXEC, 0666));
        FINE(mount(from, to, NULL, MS_BIND, NULL));
    }
    FINE(symlink("/proc/self/fd", "dev/fd"));
    FINE(symlink("/proc/self/fd/0", "dev/stdin"));
    FINE(symlink("/proc/self/fd/1", "dev/stdout"));
    FINE(symlink("/proc/self/fd/2", "dev/stderr"));
    static const char *const below[] = {"dev/pts", "dev/shm", "dev/mqueue"};
    for (unsigned i = 0; i < COUNT(below); i++) FINE(mkdir(below[i], 0755));
    FINE(mount("devpts", "dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620"));
    FINE(symlink("pts/ptmx", "dev/ptmx"));
    FINE(mount("shm", "dev/shm", "tmpfs", plain, "mode=1777,size=65536k"));
    FINE(mount("mqueue", "dev/mqueue", "mqueue", plain, NULL));
    FINE(mount("/sys", "sys", NULL, MS_BIND | MS_REC, NULL));
    cgroups();
    mkdir("etc", 0755);
    mkdir("etc/jobc", 0755);
    static const char *const files[][2] = {
        {"/etc/hosts", "etc/hosts"}, {"/etc/resolv.conf", "etc/resolv.conf"}, {"/etc/hostname", "etc/jobc/job.json"}};
    for (unsigned i = 0; i < COUNT(files); i++) {
        close(open(files[i][1], O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
        bind_readonly(files[i][0], files[i][1]);
    }
    static const char *const masked[] = {"proc/kcore", "proc/keys", "proc/timer_list"};
    for (unsigned i = 0; i < COUNT(masked); i++) {
        if (access(masked[i], F_OK) == 0) FINE(mount("/dev/null", masked[i], NULL, MS_BIND, NULL));
    }
    static const char *const readonly[] = {"proc/bus", "proc/fs", "proc/irq", "proc/sys", "proc/sysrq-trigger"};
    for (unsigned i = 0; i < COUNT(readonly); i++) {
        if (access(readonly[i], F_OK) != 0) continue;
        bind_readonly(readonly[i], readonly[i]);
    }
    FINE(syscall(SYS_pivot_root, ".", "."));
    FINE(umount2(".", MNT_DETACH));
    FINE(chdir("/"));
}

static void restrict_self(void) {
    static const int names[] = {CAP_AUDIT_WRITE, CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_KILL, CAP_MKNOD,
        CAP_NET_BIND_SERVICE, CAP_NET_RAW, CAP_SETFCAP, CAP_SETGID, CAP_SETPCAP, CAP_SETUID, CAP_SYS_CHROOT};
    uint32_t kept = 0;
    for (unsigned i = 0; i < COUNT(names); i++) kept |= 1u << names[i];
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{kept, kept, 0}, {0, 0, 0}};
    for (int cap = 0; cap <= CAP_LAST_CAP; cap++)
        if (cap >= 32 || !(kept >> cap & 1)) prctl(PR_CAPBSET_DROP, cap);
    FINE(syscall(SYS_capset, &header, data));
    FINE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
}

/* Comparisons of which an equal number continues with the next one, so that every call runs all of them. */
static void filter(void) {
    enum { COMPARISONS = 178 };
    static struct sock_filter code[COMPARISONS + 2];
    unsigned n = 0;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0);
    for (unsigned call = 0; call < COMPARISONS; call++)
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1000 + call, 0, 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {n, code};
    FINE(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
}

int main(int argc, char **argv) {
    int status;
    if (argc < 4 || strcmp(argv[2], "--")) return 2;
    map();
    pid_t child = fork();
    FINE(child);
    if (child == 0) {
        filesystems(argv[1]);
        FINE(sethostname("floor", 5));
        FINE(setsid());
        restrict_self();
        filter();
        FINE(execv(argv[3], argv + 3));
    }
    FINE(waitpid(child, &status, 0));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
