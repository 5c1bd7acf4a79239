//! The text for aarch64.
//!
//! x19 header, x20 arguments, x21 environment, x22 next candidate, w23 error number, w24 exit code
#![allow(clippy::wildcard_imports, reason = "`trampoline` lists the numbers for both texts")]

use super::*;

trampoline!(
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
    below_bit = const birth::BELOW_INIT.trailing_zeros(),
    after_bit = const birth::AFTER_FILTER.trailing_zeros(),
    end_bit = const birth::END_WITH_PARENT.trailing_zeros(),
    terminal_bit = const birth::TERMINAL.trailing_zeros(),
    closed_on_exec = const O_CLOEXEC,
    write_only = const O_WRONLY,
    thread_low = const THREAD_CLONE_FLAGS & 0xffff,
    thread_high = const THREAD_CLONE_FLAGS >> 16,
);
