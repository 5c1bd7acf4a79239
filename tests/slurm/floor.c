/* The floor of a rootless container in a step: its namespaces and mounts with the fewest syscalls.
 *
 *   floor ROOT -- PROGRAM [ARGUMENT...]
 *
 * The caller becomes root of a user namespace. ROOT is below an overlay whose upper layer is in memory. The container has
 * /proc, /dev with nodes of the host, /dev/pts, /dev/shm, /dev/mqueue, /sys, masked and read-only paths, and no new
 * privileges; its network and cgroup are those of the step. What a runtime must also do is omitted: reading a configuration,
 * checking paths, keeping a state, reporting errors. It trusts its arguments: it is a baseline, not a runtime. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
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
    static const char *const masked[] = {"proc/kcore", "proc/keys", "proc/timer_list"};
    for (unsigned i = 0; i < COUNT(masked); i++) {
        if (access(masked[i], F_OK) == 0) FINE(mount("/dev/null", masked[i], NULL, MS_BIND, NULL));
    }
    static const char *const readonly[] = {"proc/bus", "proc/fs", "proc/irq", "proc/sys", "proc/sysrq-trigger"};
    for (unsigned i = 0; i < COUNT(readonly); i++) {
        if (access(readonly[i], F_OK) != 0) continue;
        FINE(mount(readonly[i], readonly[i], NULL, MS_BIND | MS_REC, NULL));
        FINE(mount(NULL, readonly[i], NULL, MS_BIND | MS_REMOUNT | MS_RDONLY | plain, NULL));
    }
    FINE(syscall(SYS_pivot_root, ".", "."));
    FINE(umount2(".", MNT_DETACH));
    FINE(chdir("/"));
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
        FINE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
        FINE(execv(argv[3], argv + 3));
    }
    FINE(waitpid(child, &status, 0));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
