//! The trampoline's instructions, one text for each architecture.
//!
//! They touch no memory but their own image and the stack they are given, and find the [`Header`](super::image::Header)
//! right behind themselves, so they are position-independent. Both texts do the same:
//!
//! 1. Make `report` close-on-exec, and check it. If it is not, it was closed by an earlier round: print a message and
//!    exit with 126. A filter loaded in that round cannot fake the result, which is not an error number.
//! 2. Where there is a label, open the attribute's file, write the label to it, and close the directory it was found
//!    in.
//! 3. Where the right to load the filter was kept for that alone, take it from what the program inherits (capset(2)):
//!    no call but `execve` follows the filter. `seccomp(SECCOMP_SET_MODE_FILTER, flags, program)` where there is a
//!    program. If an agent is notified of syscalls, a thread that was made before has no filter: it writes the
//!    listener's number to `report`, waits until the listener was taken, and ends. The first thread makes no call
//!    meanwhile and watches two words of its stack, so a filter may refuse or notify any call, those that handing over
//!    takes among them.
//! 4. Where a last process is to be made ([`birth`]), make it: before the filter, or after it and with the rights for it
//!    given up. It begins a session of its own and goes on; the first one writes its number to `report` and exits.
//!    Or make the program's process as a child, and stay as its [`init`].
//! 5. `execve` of each candidate, with execvp(3)'s rule for trying the next one.
//! 6. Report, and exit. Where even `exit_group` is filtered away, a trap ends the process.
#![allow(unsafe_code, reason = "assembly is, and so are the symbols that bound it")]

use core::arch::global_asm;

use linux_raw_sys::errno::{EACCES, ENOENT, ENOTDIR};
use linux_raw_sys::general::{
    __NR_capset, __NR_clone, __NR_close, __NR_close_range, __NR_execve, __NR_exit, __NR_exit_group,
    __NR_fcntl, __NR_getpid, __NR_ioctl, __NR_kill, __NR_openat, __NR_ppoll, __NR_prctl, __NR_read,
    __NR_rt_sigprocmask, __NR_rt_sigtimedwait, __NR_sched_yield, __NR_seccomp, __NR_setpgid, __NR_setsid,
    __NR_wait4, __NR_write, CLONE_FILES, CLONE_FS, CLONE_PARENT, CLONE_SIGHAND, CLONE_SYSVSEM, CLONE_THREAD,
    CLONE_VM, F_GETFD, F_SETFD, FD_CLOEXEC, O_CLOEXEC, O_WRONLY, POLLIN, SIG_SETMASK, SIGCHLD, SIGKILL,
    WNOHANG,
};
use linux_raw_sys::ioctl::{TIOCSCTTY, TIOCSPGRP};
use linux_raw_sys::prctl::{PR_SET_NAME, PR_SET_PDEATHSIG};
use linux_raw_sys::ptrace::SECCOMP_SET_MODE_FILTER;

use super::birth;
use super::failure::{Failure, LISTENER_TAKEN};
use super::image::Header;
use super::init;

/// Space on the stack for the threads' shared state: the listener's number, -1 until there is one; then 1 once it
/// was taken.
const SHARED_STATE_SIZE: u32 = 64;

/// The distance of the second thread's stack below the first one's, which grows by at most one word.
const SECOND_STACK_OFFSET: u32 = 256;

const THREAD_CLONE_FLAGS: u32 =
    CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;

/// Timeout in seconds for another process to take the listener; that process may have been killed.
const LISTENER_TIMEOUT_SECS: u32 = 30;

// r12 header, r13 arguments, r14 environment, rbx next candidate, ebp error number, edi exit code
#[cfg(target_arch = "x86_64")]
global_asm!(
    "
    .pushsection .rodata.jobc_trampoline, \"a\", @progbits
    .balign 16
    .hidden jobc_trampoline_start
    .hidden jobc_trampoline_end
    .globl jobc_trampoline_start
    .globl jobc_trampoline_end
jobc_trampoline_start:
    lea     r12, [rip + jobc_trampoline_end]
    mov     rax, [rsp]
    lea     r13, [rsp + 8]
    lea     r14, [r13 + rax*8 + 8]
    mov     eax, {fcntl}
    mov     edi, [r12 + {report}]
    mov     esi, {setfd}
    mov     edx, {cloexec}
    syscall
    mov     eax, {fcntl}
    mov     esi, {getfd}
    syscall
    cmp     rax, {cloexec}
    jne     80f
    mov     rsi, [r12 + {attribute}]
    test    rsi, rsi
    jz      10f
    mov     eax, {openat}
    mov     edi, [r12 + {attributes}]
    mov     edx, {to_write}
    syscall
    test    rax, rax
    js      65f
    mov     edi, eax
    mov     eax, {write}
    mov     rsi, [r12 + {label}]
    mov     rdx, [r12 + {length}]
    syscall
    test    rax, rax
    js      65f
    mov     eax, {close}
    mov     edi, [r12 + {attributes}]
    syscall
10: mov     eax, [r12 + {birth}]
    and     eax, {when}
    cmp     eax, {make}
    jne     11f
    call    85f
11: mov     rdx, [r12 + {program}]
    test    rdx, rdx
    jz      20f
    mov     rdi, [r12 + {capabilities}]
    test    rdi, rdi
    jz      12f
    lea     rsi, [rdi + 8]
    mov     eax, {capset}
    syscall
    test    rax, rax
    js      60f
12: sub     rsp, {shared}
    mov     r15d, [r12 + {reply}]
    test    r15d, r15d
    js      15f
    mov     dword ptr [rsp], -1
    mov     dword ptr [rsp + 4], 0
    mov     eax, {clone}
    mov     edi, {thread}
    lea     rsi, [rsp - {apart}]
    xor     edx, edx
    xor     r10d, r10d
    xor     r8d, r8d
    syscall
    test    rax, rax
    js      60f
    jz      75f
    mov     rdx, [r12 + {program}]
15: mov     eax, {seccomp}
    mov     edi, {set_filter}
    mov     esi, [r12 + {flags}]
    syscall
    test    rax, rax
    js      60f
    test    r15d, r15d
    js      20f
    mov     [rsp], eax
16: pause
    cmp     dword ptr [rsp + 4], 0
    je      16b
20: mov     eax, [r12 + {birth}]
    test    eax, {after_filter}
    jz      21f
    mov     eax, {capset}
    mov     rdi, [r12 + {last_capabilities}]
    lea     rsi, [rdi + 8]
    syscall
    test    rax, rax
    js      60f
    call    85f
21: mov     eax, [r12 + {birth}]
    test    eax, {below_init}
    jz      22f
    call    92f
22: mov     rbx, [r12 + {candidates}]
    mov     ebp, {noent}
30: mov     rdi, [rbx]
    test    rdi, rdi
    jz      50f
    add     rbx, 8
    mov     eax, {execve}
    mov     rsi, r13
    mov     rdx, r14
    syscall
    neg     eax
    cmp     eax, {noent}
    je      40f
    cmp     eax, {notdir}
    je      40f
    mov     ebp, eax
    cmp     eax, {acces}
    je      30b
    jmp     50f
40: cmp     ebp, {acces}
    je      30b
    mov     ebp, eax
    jmp     30b
50: mov     ebx, 127
    cmp     ebp, {noent}
    je      70f
    cmp     ebp, {notdir}
    je      70f
    mov     ebx, 126
    jmp     70f
60: neg     eax
    mov     ebp, eax
    or      ebp, {filter}
    mov     ebx, 125
    jmp     70f
65: neg     eax
    mov     ebp, eax
    or      ebp, {labelled}
    mov     ebx, 125
    jmp     70f
66: neg     eax
    mov     ebp, eax
    or      ebp, {unborn}
    mov     ebx, 125
70: push    rbp
    mov     eax, {write}
    mov     edi, [r12 + {report}]
    mov     rsi, rsp
    mov     edx, {size}
    syscall
    jmp     90f
75: mov     eax, [rsp + {apart}]
    test    eax, eax
    jns     76f
    mov     eax, {sched_yield}
    syscall
    jmp     75b
76: or      eax, {listener}
    mov     [rsp + 8], eax
    mov     eax, {write}
    mov     edi, [r12 + {report}]
    lea     rsi, [rsp + 8]
    mov     edx, {size}
    syscall
    mov     [rsp + 16], r15d
    mov     dword ptr [rsp + 20], {poll_in}
    mov     qword ptr [rsp + 24], {timeout}
    mov     qword ptr [rsp + 32], 0
    mov     eax, {ppoll}
    lea     rdi, [rsp + 16]
    mov     esi, 1
    lea     rdx, [rsp + 24]
    xor     r10d, r10d
    xor     r8d, r8d
    syscall
    cmp     rax, 1
    jne     77f
    mov     eax, {read}
    mov     edi, r15d
    lea     rsi, [rsp + 8]
    mov     edx, 1
    syscall
    cmp     rax, 1
    jne     77f
    cmp     byte ptr [rsp + 8], {taken}
    jne     77f
    mov     eax, {close}
    mov     edi, r15d
    syscall
    mov     dword ptr [rsp + {apart} + 4], 1
    mov     eax, {exit}
    xor     edi, edi
    syscall
77: mov     ebx, 125
    jmp     90f
85: mov     eax, {clone}
    mov     edi, {clone_parent}
    xor     esi, esi
    xor     edx, edx
    xor     r10d, r10d
    xor     r8d, r8d
    syscall
    test    rax, rax
    js      66b
    jz      86f
    or      eax, {born}
    push    rax
    mov     eax, {write}
    mov     edi, [r12 + {report}]
    mov     rsi, rsp
    mov     edx, {size}
    syscall
    xor     ebx, ebx
    jmp     90f
86: mov     eax, {setsid}
    syscall
    test    rax, rax
    js      66b
    mov     eax, [r12 + {birth}]
    test    eax, {terminal}
    jz      87f
    mov     eax, {ioctl}
    xor     edi, edi
    mov     esi, {tiocsctty}
    xor     edx, edx
    syscall
    test    rax, rax
    js      66b
87: mov     eax, [r12 + {birth}]
    test    eax, {end_with_parent}
    jz      88f
    mov     eax, {prctl}
    mov     edi, {pdeathsig}
    mov     esi, {sigkill}
    xor     edx, edx
    xor     r10d, r10d
    xor     r8d, r8d
    syscall
    test    rax, rax
    js      66b
    sub     rsp, 24
    mov     edi, [r12 + {report}]
    mov     [rsp], edi
    mov     dword ptr [rsp + 4], 0
    mov     qword ptr [rsp + 8], 0
    mov     qword ptr [rsp + 16], 0
    mov     eax, {ppoll}
    mov     rdi, rsp
    mov     esi, 1
    lea     rdx, [rsp + 8]
    xor     r10d, r10d
    xor     r8d, r8d
    syscall
    add     rsp, 24
    test    rax, rax
    jg      77b
88: ret
92: sub     rsp, 152
    mov     qword ptr [rsp + 136], -1
    mov     eax, {sigprocmask}
    mov     edi, {setmask}
    lea     rsi, [rsp + 136]
    lea     rdx, [rsp + 144]
    mov     r10d, 8
    syscall
    mov     eax, {clone}
    mov     edi, {sigchld}
    xor     esi, esi
    xor     edx, edx
    xor     r10d, r10d
    xor     r8d, r8d
    syscall
    test    rax, rax
    js      66b
    jnz     94f
    mov     eax, {setpgid}
    xor     edi, edi
    xor     esi, esi
    syscall
    mov     eax, [r12 + {birth}]
    test    eax, {terminal}
    jz      93f
    mov     eax, {getpid}
    syscall
    mov     [rsp], eax
    mov     eax, {ioctl}
    xor     edi, edi
    mov     esi, {tiocspgrp}
    mov     rdx, rsp
    syscall
93: mov     eax, {sigprocmask}
    mov     edi, {setmask}
    lea     rsi, [rsp + 144]
    xor     edx, edx
    mov     r10d, 8
    syscall
    add     rsp, 152
    ret
94: mov     r15d, eax
    mov     eax, {close}
    mov     edi, [r12 + {report}]
    syscall
    mov     eax, {close_range}
    xor     edi, edi
    mov     esi, -1
    xor     edx, edx
    syscall
    test    rax, rax
    jz      96f
    mov     ebx, 1023
95: mov     eax, {close}
    mov     edi, ebx
    syscall
    dec     ebx
    jns     95b
96: mov     eax, {prctl}
    mov     edi, {set_name}
    lea     rsi, [rip + 89f]
    syscall
    mov     rdi, [r13]
    test    rdi, rdi
    jz      97f
    mov     rcx, [r14]
    sub     rcx, rdi
    jbe     97f
    xor     eax, eax
    rep     stosb
97: mov     eax, {sigtimedwait}
    lea     rdi, [rsp + 136]
    mov     rsi, rsp
    xor     edx, edx
    mov     r10d, 8
    syscall
    test    eax, eax
    js      97b
    cmp     eax, {sigchld}
    je      61f
    mov     esi, eax
    mov     edi, r15d
    mov     eax, {kill}
    syscall
    jmp     97b
61: mov     eax, {wait4}
    mov     rdi, -1
    mov     rsi, rsp
    mov     edx, {wnohang}
    xor     r10d, r10d
    syscall
    test    eax, eax
    jle     97b
    cmp     eax, r15d
    jne     61b
    movzx   ebx, byte ptr [rsp + 1]
    mov     eax, [rsp]
    and     eax, 127
    jz      90f
    lea     ebx, [rax + 128]
    add     eax, {no_signal}
    mov     rcx, [rip + 91f]
    mov     [rsp], rcx
    mov     [rsp + 7], al
    mov     byte ptr [rsp + 8], 0
    mov     eax, {prctl}
    mov     edi, {set_name}
    mov     rsi, rsp
    syscall
    jmp     90f
80: mov     eax, {write}
    mov     edi, 2
    lea     rsi, [rip + 98f]
    lea     rdx, [rip + 99f]
    sub     rdx, rsi
    syscall
    mov     ebx, 126
90: mov     eax, {exit_group}
    mov     edi, ebx
    syscall
    ud2
89: .asciz  \"jobc-init\"
91: .ascii  \"killed: \"
98: .ascii  \"jobc: the program is `/proc/self/exe`, which does not work in a container\\n\"
99: .balign 16
jobc_trampoline_end:
    .popsection
    ",
    fcntl = const __NR_fcntl,
    birth = const core::mem::offset_of!(Header, birth),
    below_init = const birth::BELOW_INIT,
    sigprocmask = const __NR_rt_sigprocmask,
    setmask = const SIG_SETMASK,
    sigchld = const SIGCHLD,
    setpgid = const __NR_setpgid,
    getpid = const __NR_getpid,
    tiocspgrp = const TIOCSPGRP,
    close_range = const __NR_close_range,
    set_name = const PR_SET_NAME,
    sigtimedwait = const __NR_rt_sigtimedwait,
    kill = const __NR_kill,
    wait4 = const __NR_wait4,
    wnohang = const WNOHANG,
    no_signal = const init::NO_SIGNAL,
    last_capabilities = const core::mem::offset_of!(Header, last_capabilities),
    when = const birth::MAKE | birth::AFTER_FILTER,
    make = const birth::MAKE,
    after_filter = const birth::AFTER_FILTER,
    end_with_parent = const birth::END_WITH_PARENT,
    terminal = const birth::TERMINAL,
    clone_parent = const CLONE_PARENT,
    unborn = const Failure::BIRTH,
    born = const birth::BORN,
    setsid = const __NR_setsid,
    ioctl = const __NR_ioctl,
    tiocsctty = const TIOCSCTTY,
    prctl = const __NR_prctl,
    pdeathsig = const PR_SET_PDEATHSIG,
    sigkill = const SIGKILL,
    setfd = const F_SETFD,
    getfd = const F_GETFD,
    cloexec = const FD_CLOEXEC,
    seccomp = const __NR_seccomp,
    capset = const __NR_capset,
    capabilities = const core::mem::offset_of!(Header, capabilities),
    set_filter = const SECCOMP_SET_MODE_FILTER,
    execve = const __NR_execve,
    write = const __NR_write,
    exit_group = const __NR_exit_group,
    noent = const ENOENT,
    notdir = const ENOTDIR,
    acces = const EACCES,
    openat = const __NR_openat,
    close = const __NR_close,
    to_write = const O_WRONLY | O_CLOEXEC,
    filter = const Failure::FILTER,
    labelled = const Failure::LABEL,
    size = const Failure::SIZE,
    report = const core::mem::offset_of!(Header, report),
    attribute = const core::mem::offset_of!(Header, attribute),
    attributes = const core::mem::offset_of!(Header, attributes),
    label = const core::mem::offset_of!(Header, label),
    length = const core::mem::offset_of!(Header, length),
    flags = const core::mem::offset_of!(Header, flags),
    reply = const core::mem::offset_of!(Header, reply),
    shared = const SHARED_STATE_SIZE,
    apart = const SECOND_STACK_OFFSET,
    clone = const __NR_clone,
    thread = const THREAD_CLONE_FLAGS,
    sched_yield = const __NR_sched_yield,
    listener = const Failure::LISTENER,
    poll_in = const POLLIN,
    timeout = const LISTENER_TIMEOUT_SECS,
    ppoll = const __NR_ppoll,
    read = const __NR_read,
    exit = const __NR_exit,
    taken = const LISTENER_TAKEN,
    program = const core::mem::offset_of!(Header, program),
    candidates = const core::mem::offset_of!(Header, candidates),
);

// x19 header, x20 arguments, x21 environment, x22 next candidate, w23 error number, w24 exit code
#[cfg(target_arch = "aarch64")]
global_asm!(
    "
    .pushsection .rodata.jobc_trampoline, \"a\", %progbits
    .balign 16
    .hidden jobc_trampoline_start
    .hidden jobc_trampoline_end
    .globl jobc_trampoline_start
    .globl jobc_trampoline_end
jobc_trampoline_start:
    adr     x19, jobc_trampoline_end
    ldr     x0, [sp]
    add     x20, sp, #8
    add     x21, x20, x0, lsl #3
    add     x21, x21, #8
    mov     x8, #{fcntl}
    ldr     w0, [x19, #{report}]
    mov     x1, #{setfd}
    mov     x2, #{cloexec}
    svc     #0
    ldr     w0, [x19, #{report}]
    mov     x1, #{getfd}
    svc     #0
    cmp     x0, #{cloexec}
    b.ne    80f
    ldr     x1, [x19, #{attribute}]
    cbz     x1, 10f
    mov     x8, #{openat}
    ldr     w0, [x19, #{attributes}]
    mov     w2, #{closed_on_exec}
    orr     w2, w2, #{write_only}
    svc     #0
    tbnz    x0, #63, 65f
    mov     x8, #{write}
    ldr     x1, [x19, #{label}]
    ldr     x2, [x19, #{length}]
    svc     #0
    tbnz    x0, #63, 65f
    mov     x8, #{close}
    ldr     w0, [x19, #{attributes}]
    svc     #0
10: ldr     w0, [x19, #{birth}]
    and     w0, w0, #{when}
    cmp     w0, #{make}
    b.ne    11f
    bl      85f
11: ldr     x2, [x19, #{program}]
    cbz     x2, 20f
    ldr     x0, [x19, #{capabilities}]
    cbz     x0, 12f
    add     x1, x0, #8
    mov     x8, #{capset}
    svc     #0
    tbnz    x0, #63, 60f
    ldr     x2, [x19, #{program}]
12: sub     sp, sp, #{shared}
    ldr     w25, [x19, #{reply}]
    tbnz    w25, #31, 15f
    mov     w0, #-1
    str     w0, [sp]
    str     wzr, [sp, #4]
    mov     x8, #{clone}
    mov     w0, #{thread_low}
    movk    w0, #{thread_high}, lsl #16
    sub     x1, sp, #{apart}
    mov     x2, #0
    mov     x3, #0
    mov     x4, #0
    svc     #0
    tbnz    x0, #63, 60f
    cbz     x0, 75f
    ldr     x2, [x19, #{program}]
15: mov     x8, #{seccomp}
    mov     x0, #{set_filter}
    ldr     w1, [x19, #{flags}]
    svc     #0
    tbnz    x0, #63, 60f
    tbnz    w25, #31, 20f
    mov     x1, sp
    stlr    w0, [x1]
    add     x1, sp, #4
16: yield
    ldar    w0, [x1]
    cbz     w0, 16b
20: ldr     w0, [x19, #{birth}]
    tbz     w0, #{after_bit}, 21f
    mov     x8, #{capset}
    ldr     x0, [x19, #{last_capabilities}]
    add     x1, x0, #8
    svc     #0
    tbnz    x0, #63, 60f
    bl      85f
21: ldr     w0, [x19, #{birth}]
    tbz     w0, #{below_bit}, 22f
    bl      92f
22: ldr     x22, [x19, #{candidates}]
    mov     w23, #{noent}
30: ldr     x0, [x22]
    cbz     x0, 50f
    add     x22, x22, #8
    mov     x8, #{execve}
    mov     x1, x20
    mov     x2, x21
    svc     #0
    neg     w0, w0
    cmp     w0, #{noent}
    b.eq    40f
    cmp     w0, #{notdir}
    b.eq    40f
    mov     w23, w0
    cmp     w0, #{acces}
    b.eq    30b
    b       50f
40: cmp     w23, #{acces}
    b.eq    30b
    mov     w23, w0
    b       30b
50: mov     w24, #127
    cmp     w23, #{noent}
    b.eq    70f
    cmp     w23, #{notdir}
    b.eq    70f
    mov     w24, #126
    b       70f
60: neg     w0, w0
    orr     w23, w0, #{filter}
    mov     w24, #125
    b       70f
65: neg     w0, w0
    orr     w23, w0, #{labelled}
    mov     w24, #125
    b       70f
66: neg     w0, w0
    orr     w23, w0, #{unborn}
    mov     w24, #125
70: sub     sp, sp, #16
    str     w23, [sp]
    mov     x8, #{write}
    ldr     w0, [x19, #{report}]
    mov     x1, sp
    mov     x2, #{size}
    svc     #0
    b       90f
75: add     x1, sp, #{apart}
    ldar    w0, [x1]
    tbz     w0, #31, 76f
    mov     x8, #{sched_yield}
    svc     #0
    b       75b
76: orr     w0, w0, #{listener}
    str     w0, [sp, #8]
    mov     x8, #{write}
    ldr     w0, [x19, #{report}]
    add     x1, sp, #8
    mov     x2, #{size}
    svc     #0
    str     w25, [sp, #16]
    mov     w0, #{poll_in}
    str     w0, [sp, #20]
    mov     x0, #{timeout}
    str     x0, [sp, #24]
    str     xzr, [sp, #32]
    mov     x8, #{ppoll}
    add     x0, sp, #16
    mov     x1, #1
    add     x2, sp, #24
    mov     x3, #0
    mov     x4, #0
    svc     #0
    cmp     x0, #1
    b.ne    77f
    mov     x8, #{read}
    mov     w0, w25
    add     x1, sp, #8
    mov     x2, #1
    svc     #0
    cmp     x0, #1
    b.ne    77f
    ldrb    w0, [sp, #8]
    cmp     w0, #{taken}
    b.ne    77f
    mov     x8, #{close}
    mov     w0, w25
    svc     #0
    add     x1, sp, #({apart} + 4)
    mov     w0, #1
    stlr    w0, [x1]
    mov     x8, #{exit}
    mov     x0, #0
    svc     #0
77: mov     w24, #125
    b       90f
85: mov     x8, #{clone}
    mov     x0, #{clone_parent}
    mov     x1, #0
    mov     x2, #0
    mov     x3, #0
    mov     x4, #0
    svc     #0
    tbnz    x0, #63, 66b
    cbz     x0, 86f
    orr     w0, w0, #{born}
    sub     sp, sp, #16
    str     w0, [sp]
    mov     x8, #{write}
    ldr     w0, [x19, #{report}]
    mov     x1, sp
    mov     x2, #{size}
    svc     #0
    mov     w24, #0
    b       90f
86: mov     x8, #{setsid}
    svc     #0
    tbnz    x0, #63, 66b
    ldr     w0, [x19, #{birth}]
    tbz     w0, #{terminal_bit}, 87f
    mov     x8, #{ioctl}
    mov     x0, #0
    mov     x1, #{tiocsctty}
    mov     x2, #0
    svc     #0
    tbnz    x0, #63, 66b
87: ldr     w0, [x19, #{birth}]
    tbz     w0, #{end_bit}, 88f
    mov     x8, #{prctl}
    mov     x0, #{pdeathsig}
    mov     x1, #{sigkill}
    mov     x2, #0
    mov     x3, #0
    mov     x4, #0
    svc     #0
    tbnz    x0, #63, 66b
    sub     sp, sp, #32
    ldr     w0, [x19, #{report}]
    str     w0, [sp]
    str     wzr, [sp, #4]
    str     xzr, [sp, #8]
    str     xzr, [sp, #16]
    mov     x8, #{ppoll}
    mov     x0, sp
    mov     x1, #1
    add     x2, sp, #8
    mov     x3, #0
    mov     x4, #0
    svc     #0
    add     sp, sp, #32
    cmp     x0, #0
    b.gt    77b
88: ret
92: sub     sp, sp, #160
    mov     x0, #-1
    str     x0, [sp, #136]
    mov     x8, #{sigprocmask}
    mov     x0, #{setmask}
    add     x1, sp, #136
    add     x2, sp, #144
    mov     x3, #8
    svc     #0
    mov     x8, #{clone}
    mov     x0, #{sigchld}
    mov     x1, #0
    mov     x2, #0
    mov     x3, #0
    mov     x4, #0
    svc     #0
    tbnz    x0, #63, 66b
    cbnz    x0, 94f
    mov     x8, #{setpgid}
    mov     x0, #0
    mov     x1, #0
    svc     #0
    ldr     w0, [x19, #{birth}]
    tbz     w0, #{terminal_bit}, 93f
    mov     x8, #{getpid}
    svc     #0
    str     w0, [sp]
    mov     x8, #{ioctl}
    mov     x0, #0
    mov     x1, #{tiocspgrp}
    mov     x2, sp
    svc     #0
93: mov     x8, #{sigprocmask}
    mov     x0, #{setmask}
    add     x1, sp, #144
    mov     x2, #0
    mov     x3, #8
    svc     #0
    add     sp, sp, #160
    ret
94: mov     w25, w0
    mov     x8, #{close}
    ldr     w0, [x19, #{report}]
    svc     #0
    mov     x8, #{close_range}
    mov     x0, #0
    mov     w1, #-1
    mov     x2, #0
    svc     #0
    cbz     x0, 96f
    mov     w22, #1023
95: mov     x8, #{close}
    mov     w0, w22
    svc     #0
    subs    w22, w22, #1
    b.pl    95b
96: mov     x8, #{prctl}
    mov     x0, #{set_name}
    adr     x1, 89f
    svc     #0
    ldr     x0, [x20]
    cbz     x0, 97f
    ldr     x1, [x21]
    cmp     x1, x0
    b.ls    97f
31: strb    wzr, [x0], #1
    cmp     x0, x1
    b.lo    31b
97: mov     x8, #{sigtimedwait}
    add     x0, sp, #136
    mov     x1, sp
    mov     x2, #0
    mov     x3, #8
    svc     #0
    tbnz    w0, #31, 97b
    cmp     w0, #{sigchld}
    b.eq    61f
    mov     w1, w0
    mov     w0, w25
    mov     x8, #{kill}
    svc     #0
    b       97b
61: mov     x8, #{wait4}
    mov     x0, #-1
    mov     x1, sp
    mov     x2, #{wnohang}
    mov     x3, #0
    svc     #0
    cmp     w0, #0
    b.le    97b
    cmp     w0, w25
    b.ne    61b
    ldrb    w24, [sp, #1]
    ldr     w0, [sp]
    and     w0, w0, #127
    cbz     w0, 90f
    add     w24, w0, #128
    add     w0, w0, #{no_signal}
    adr     x1, 91f
    ldr     x2, [x1]
    str     x2, [sp]
    strb    w0, [sp, #7]
    strb    wzr, [sp, #8]
    mov     x8, #{prctl}
    mov     x0, #{set_name}
    mov     x1, sp
    svc     #0
    b       90f
80: mov     x8, #{write}
    mov     x0, #2
    adr     x1, 98f
    adr     x2, 99f
    sub     x2, x2, x1
    svc     #0
    mov     w24, #126
90: mov     x8, #{exit_group}
    mov     w0, w24
    svc     #0
    brk     #0
89: .asciz  \"jobc-init\"
    .balign 8
91: .ascii  \"killed: \"
98: .ascii  \"jobc: the program is `/proc/self/exe`, which does not work in a container\\n\"
99: .balign 16
jobc_trampoline_end:
    .popsection
    ",
    fcntl = const __NR_fcntl,
    birth = const core::mem::offset_of!(Header, birth),
    below_bit = const birth::BELOW_INIT.trailing_zeros(),
    sigprocmask = const __NR_rt_sigprocmask,
    setmask = const SIG_SETMASK,
    sigchld = const SIGCHLD,
    setpgid = const __NR_setpgid,
    getpid = const __NR_getpid,
    tiocspgrp = const TIOCSPGRP,
    close_range = const __NR_close_range,
    set_name = const PR_SET_NAME,
    sigtimedwait = const __NR_rt_sigtimedwait,
    kill = const __NR_kill,
    wait4 = const __NR_wait4,
    wnohang = const WNOHANG,
    no_signal = const init::NO_SIGNAL,
    last_capabilities = const core::mem::offset_of!(Header, last_capabilities),
    when = const birth::MAKE | birth::AFTER_FILTER,
    make = const birth::MAKE,
    clone_parent = const CLONE_PARENT,
    unborn = const Failure::BIRTH,
    born = const birth::BORN,
    setsid = const __NR_setsid,
    ioctl = const __NR_ioctl,
    tiocsctty = const TIOCSCTTY,
    prctl = const __NR_prctl,
    pdeathsig = const PR_SET_PDEATHSIG,
    sigkill = const SIGKILL,
    after_bit = const birth::AFTER_FILTER.trailing_zeros(),
    end_bit = const birth::END_WITH_PARENT.trailing_zeros(),
    terminal_bit = const birth::TERMINAL.trailing_zeros(),
    setfd = const F_SETFD,
    getfd = const F_GETFD,
    cloexec = const FD_CLOEXEC,
    seccomp = const __NR_seccomp,
    capset = const __NR_capset,
    capabilities = const core::mem::offset_of!(Header, capabilities),
    set_filter = const SECCOMP_SET_MODE_FILTER,
    execve = const __NR_execve,
    write = const __NR_write,
    exit_group = const __NR_exit_group,
    noent = const ENOENT,
    notdir = const ENOTDIR,
    acces = const EACCES,
    openat = const __NR_openat,
    close = const __NR_close,
    closed_on_exec = const O_CLOEXEC,
    write_only = const O_WRONLY,
    filter = const Failure::FILTER,
    labelled = const Failure::LABEL,
    size = const Failure::SIZE,
    report = const core::mem::offset_of!(Header, report),
    attribute = const core::mem::offset_of!(Header, attribute),
    attributes = const core::mem::offset_of!(Header, attributes),
    label = const core::mem::offset_of!(Header, label),
    length = const core::mem::offset_of!(Header, length),
    flags = const core::mem::offset_of!(Header, flags),
    reply = const core::mem::offset_of!(Header, reply),
    shared = const SHARED_STATE_SIZE,
    apart = const SECOND_STACK_OFFSET,
    clone = const __NR_clone,
    thread_low = const THREAD_CLONE_FLAGS & 0xffff,
    thread_high = const THREAD_CLONE_FLAGS >> 16,
    sched_yield = const __NR_sched_yield,
    listener = const Failure::LISTENER,
    poll_in = const POLLIN,
    timeout = const LISTENER_TIMEOUT_SECS,
    ppoll = const __NR_ppoll,
    read = const __NR_read,
    exit = const __NR_exit,
    taken = const LISTENER_TAKEN,
    program = const core::mem::offset_of!(Header, program),
    candidates = const core::mem::offset_of!(Header, candidates),
);

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("the trampoline is written for x86_64 and aarch64");

unsafe extern "C" {
    safe static jobc_trampoline_start: u8;
    safe static jobc_trampoline_end: u8;
}

/// The instructions, to be followed directly by the header.
pub(super) fn bytes() -> &'static [u8] {
    let start = &raw const jobc_trampoline_start;
    let end = &raw const jobc_trampoline_end;
    // SAFETY: the assembly above puts both symbols into one section, the second after the first, and the bytes between
    // them are constant.
    unsafe { std::slice::from_raw_parts(start, end.addr() - start.addr()) }
}
