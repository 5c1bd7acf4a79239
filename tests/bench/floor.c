/* The floor: the cost of a container if a program runs only this container, with the fewest syscalls.
 *
 *   floor ROOTFS GROUP [--seccomp] -- PROGRAM [ARGUMENT...]
 *
 * The result is that of the configuration that `tests/bench/start` gives the runtimes: namespaces for
 * mounts, pids, network, ipc, uts and cgroups; /proc, /dev with its nodes, /dev/pts, /dev/shm, /dev/mqueue, /sys and
 * /sys/fs/cgroup; masked and read-only paths; a memory and a pids limit; three capabilities, no new privileges. What a
 * runtime must also do is omitted: reading a configuration, checking paths, keeping a state, reporting
 * errors. It follows symlinks in the image and trusts its arguments: it is a baseline, not a runtime. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#define FINE(call) do { if ((call) < 0) { perror(#call); _exit(125); } } while (0)

static const char *const controllers[] = {"memory", "pids"};
static const char *const hierarchies[] = {"cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids", "systemd"};
static const unsigned long plain = MS_NOSUID | MS_NOEXEC | MS_NODEV;

static void put(const char *path, const char *text) {
    int file = open(path, O_WRONLY | O_CLOEXEC);
    FINE(file);
    FINE(write(file, text, strlen(text)));
    close(file);
}

static void filesystems(const char *root, int unified) {
    FINE(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
    FINE(mount(root, root, NULL, MS_BIND | MS_REC, NULL));
    FINE(chdir(root));
    FINE(mount("proc", "proc", "proc", plain, NULL));
    FINE(mount("tmpfs", "dev", "tmpfs", MS_NOSUID | MS_STRICTATIME, "mode=755,size=65536k"));
    static const struct { const char *path; int minor; int major; } nodes[] = {
        {"dev/null", 3, 1}, {"dev/zero", 5, 1}, {"dev/full", 7, 1}, {"dev/random", 8, 1}, {"dev/urandom", 9, 1}, {"dev/tty", 0, 5}};
    umask(0);
    for (unsigned i = 0; i < sizeof nodes / sizeof *nodes; i++)
        FINE(mknod(nodes[i].path, S_IFCHR | 0666, makedev(nodes[i].major, nodes[i].minor)));
    umask(022);
    FINE(symlink("/proc/self/fd", "dev/fd"));
    FINE(symlink("/proc/self/fd/0", "dev/stdin"));
    FINE(symlink("/proc/self/fd/1", "dev/stdout"));
    FINE(symlink("/proc/self/fd/2", "dev/stderr"));
    FINE(symlink("pts/ptmx", "dev/ptmx"));
    FINE(mkdir("dev/pts", 0755));
    FINE(mount("devpts", "dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620,gid=5"));
    FINE(mkdir("dev/shm", 0755));
    FINE(mount("shm", "dev/shm", "tmpfs", plain, "mode=1777,size=65536k"));
    FINE(mkdir("dev/mqueue", 0755));
    FINE(mount("mqueue", "dev/mqueue", "mqueue", plain, NULL));
    FINE(mount("sysfs", "sys", "sysfs", plain | MS_RDONLY, NULL));
    if (unified) {
        FINE(mount("cgroup", "sys/fs/cgroup", "cgroup2", plain | MS_RDONLY, NULL));
    } else {
        char path[64];
        FINE(mount("tmpfs", "sys/fs/cgroup", "tmpfs", plain, "mode=755"));
        for (unsigned i = 0; i < sizeof hierarchies / sizeof *hierarchies; i++) {
            const char *name = hierarchies[i];
            snprintf(path, sizeof path, "sys/fs/cgroup/%s", name);
            FINE(mkdir(path, 0755));
            FINE(mount("cgroup", path, "cgroup", plain | MS_RDONLY, strcmp(name, "systemd") ? name : "none,name=systemd"));
        }
        FINE(mount(NULL, "sys/fs/cgroup", NULL, MS_REMOUNT | plain | MS_RDONLY, "mode=755"));
    }
    FINE(syscall(SYS_pivot_root, ".", "."));
    FINE(umount2(".", MNT_DETACH));
    FINE(chdir("/"));
}

/* A missing path costs one call. */
static void hide(void) {
    static const char *const masked[] = {"/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
        "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware"};
    static const char *const readonly[] = {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"};
    for (unsigned i = 0; i < sizeof masked / sizeof *masked; i++)
        if (mount("/dev/null", masked[i], NULL, MS_BIND, NULL) && errno == ENOTDIR)
            FINE(mount("tmpfs", masked[i], "tmpfs", MS_RDONLY, "size=0k"));
    for (unsigned i = 0; i < sizeof readonly / sizeof *readonly; i++)
        if (!mount(readonly[i], readonly[i], NULL, MS_BIND | MS_REC, NULL))
            FINE(mount(NULL, readonly[i], NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | plain, NULL));
}

static void restrict_self(void) {
    const uint32_t kept = 1u << CAP_AUDIT_WRITE | 1u << CAP_KILL | 1u << CAP_NET_BIND_SERVICE;
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{kept, kept, 0}, {0, 0, 0}};
    for (int cap = 0; cap <= CAP_LAST_CAP; cap++)
        if (cap >= 32 || !(kept >> cap & 1)) prctl(PR_CAPBSET_DROP, cap);
    FINE(syscall(SYS_setgroups, 0, NULL));
    FINE(syscall(SYS_capset, &header, data));
    FINE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    FINE(syscall(SYS_close_range, 3, ~0u, 0));
}

/* As many consecutive comparisons as the default profile has calls; all are allowed. */
static void filter(void) {
    enum { CALLS = 374 };
    static struct sock_filter code[CALLS + 6];
    unsigned n = 0;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4);
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
#ifdef __x86_64__
        AUDIT_ARCH_X86_64,
#else
        AUDIT_ARCH_AARCH64,
#endif
        1, 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0);
    /* An equal number continues with the next comparison, so that every call runs all of them. */
    for (unsigned call = 0; call < CALLS; call++)
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1000 + call, 0, 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {n, code};
    FINE(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
}

int main(int argc, char **argv) {
    if (argc < 5) return fputs("floor ROOTFS GROUP [--seccomp] -- PROGRAM [ARGUMENT...]\n", stderr), 125;
    const char *root = argv[1], *group = argv[2];
    int seccomp = !strcmp(argv[3], "--seccomp"), unified = !access("/sys/fs/cgroup/cgroup.controllers", F_OK);
    char **program = argv + 4 + seccomp, path[2][256], file[320];
    int entrance[2] = {-1, -1}, groups = unified ? 1 : 2;
    for (int i = 0; i < groups; i++) {
        snprintf(path[i], sizeof path[i], "/sys/fs/cgroup/%s/%s", unified ? "" : controllers[i], group);
        FINE(mkdir(path[i], 0755));
        snprintf(file, sizeof file, unified ? "%s" : "%s/cgroup.procs", path[i]);
        FINE(entrance[i] = open(file, unified ? O_RDONLY | O_DIRECTORY | O_CLOEXEC : O_WRONLY | O_CLOEXEC));
    }
    snprintf(file, sizeof file, "%s/%s", path[0], unified ? "memory.max" : "memory.limit_in_bytes");
    put(file, "268435456");
    snprintf(file, sizeof file, "%s/pids.max", path[groups - 1]);
    put(file, "128");

    struct clone_args how = {.flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS, .exit_signal = SIGCHLD};
    if (unified) {
        how.flags |= CLONE_INTO_CGROUP | CLONE_NEWCGROUP;
        how.cgroup = (uint64_t)entrance[0];
    }
    pid_t child = (pid_t)syscall(SYS_clone3, &how, sizeof how);
    FINE(child);
    if (child == 0) {
        if (!unified) {
            for (int i = 0; i < groups; i++) FINE(write(entrance[i], "0", 1));
            FINE(unshare(CLONE_NEWCGROUP));
        }
        FINE(sethostname("tested", 6));
        FINE(setsid());
        filesystems(root, unified);
        hide();
        restrict_self();
        if (seccomp) filter();
        char *environment[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TERM=xterm", "HOME=/root", NULL};
        execve(program[0], program, environment);
        perror(program[0]);
        _exit(127);
    }
    int status;
    FINE(waitpid(child, &status, 0));
    for (int i = 0; i < groups; i++) FINE(rmdir(path[i]));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
