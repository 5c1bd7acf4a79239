//! The text for x86_64.
//!
//! r12 header, r13 arguments, r14 environment, rbx next candidate, ebp error number, edi exit code
#![allow(clippy::wildcard_imports, reason = "`trampoline` lists the numbers for both texts")]

use super::*;

trampoline!(
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
    below_init = const birth::BELOW_INIT,
    after_filter = const birth::AFTER_FILTER,
    end_with_parent = const birth::END_WITH_PARENT,
    terminal = const birth::TERMINAL,
    to_write = const O_WRONLY | O_CLOEXEC,
    thread = const THREAD_CLONE_FLAGS,
);
