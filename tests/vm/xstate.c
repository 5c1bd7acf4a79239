// Lets User-Mode Linux 6.1 run on a processor with more extended state than it supports, such as AMX: `LD_PRELOAD` of `uml`.
//
// That kernel keeps 2,696 bytes of a process's extended state. ptrace(2) reads that many, but rejects writes of less than all of it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

static long (*original)(int, int, void *, void *);
static char state[64 * 1024] __attribute__((aligned(64)));

long ptrace(enum __ptrace_request request, ...) {
    va_list list;
    va_start(list, request);
    int pid = va_arg(list, int);
    void *address = va_arg(list, void *), *data = va_arg(list, void *);
    va_end(list);
    if (!original) original = dlsym(RTLD_NEXT, "ptrace");
    struct iovec *given = data;
    if (request == PTRACE_SETREGSET && address == (void *)NT_X86_XSTATE) {
        struct iovec whole = {state, sizeof state};
        if (original(PTRACE_GETREGSET, pid, address, &whole) == 0 && whole.iov_len > given->iov_len) {
            memcpy(state, given->iov_base, given->iov_len);
            return original(request, pid, address, &whole);
        }
    }
    return original(request, pid, address, data);
}
