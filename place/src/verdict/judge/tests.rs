use super::*;

fn exit(code: u8) -> Facts {
    Facts { exit_code: Some(code), ..Facts::default() }
}

fn signal(name: &str, code: u8) -> Facts {
    Facts { signal: Some(name.to_owned()), ..exit(code) }
}

fn said(code: u8, lines: &[&str]) -> Facts {
    Facts { lines: lines.iter().map(|&line| line.to_owned()).collect(), ..exit(code) }
}

fn word(code: u8, word: &str) -> Facts {
    Facts { reason: Some(word.to_owned()), word: Some(word.to_owned()), ..exit(code) }
}

fn lost() -> NodeFault {
    NodeFault {
        what: "GPU 2: XID 79: it has fallen off the bus".to_owned(),
        next: "have it drained".to_owned(),
    }
}

fn cut(cut: Cut, why: &str) -> Facts {
    Facts { cut: Some(cut), reason: Some(why.to_owned()), ..signal("SIGTERM", 143) }
}

#[test]
fn each_end_has_a_verdict() {
    let oom = "out of memory: used 2 GiB of 2 GiB";
    let table: &[(Facts, Verdict, &str)] = &[
        (exit(0), Verdict::Success, ""),
        (exit(1), Verdict::UserError, "exit 1"),
        (exit(127), Verdict::UserError, "exit 127: a command was not found"),
        (signal("SIGSEGV", 139), Verdict::UserError, "killed by SIGSEGV (segmentation fault)"),
        (exit(139), Verdict::UserError, "exit 139: a command was killed by SIGSEGV (segmentation fault)"),
        (signal("SIGKILL", 137), Verdict::Infrastructure, "killed by SIGKILL"),
        (exit(143), Verdict::Infrastructure, "exit 143: a command was killed by SIGTERM"),
        // A program's own codes, though above 128.
        (exit(200), Verdict::UserError, "exit 200"),
        (
            // Whatever the program prints then.
            Facts { fault: Some(lost()), ..said(1, &["CUDA out of memory", "SyntaxError: x"]) },
            Verdict::Node,
            "exit 1 | GPU 2: XID 79: it has fallen off the bus",
        ),
        (Facts { fault: Some(lost()), ..exit(0) }, Verdict::Success, ""),
        (
            Facts { reason: Some(oom.to_owned()), oom_kills: 1, ..signal("SIGKILL", 137) },
            Verdict::OutOfMemory,
            "out of memory: used 2 GiB of 2 GiB | killed by SIGKILL",
        ),
        (
            Facts { oom_kills: 2, ..exit(1) },
            Verdict::OutOfMemory,
            "the kernel killed 2 of its processes | exit 1",
        ),
        // The kernel's counter of a success says nothing against it.
        (Facts { oom_kills: 2, ..exit(0) }, Verdict::Success, ""),
        (cut(Cut::TimeLimit, "time limit 2s reached"), Verdict::Timeout, "time limit 2s reached"),
        (cut(Cut::NotReady, "not ready within 2s"), Verdict::Timeout, "not ready within 2s"),
        (cut(Cut::Stall, "no progress for 5m"), Verdict::Stall, "no progress for 5m"),
        (cut(Cut::Preempted, "suspended"), Verdict::Preempted, "suspended"),
        (Facts { cut: Some(Cut::Preempted), ..exit(0) }, Verdict::Preempted, ""),
        (
            word(137, "OOMKilled"),
            Verdict::OutOfMemory,
            "OOMKilled | exit 137: a command was killed by SIGKILL",
        ),
        (word(143, "PREEMPTED"), Verdict::Preempted, "PREEMPTED | exit 143: a command was killed by SIGTERM"),
        (word(137, "NODE_FAIL"), Verdict::Node, "NODE_FAIL | exit 137: a command was killed by SIGKILL"),
        (word(1, "Unheard"), Verdict::UserError, "Unheard | exit 1"),
        (
            Facts { is_unstarted: true, reason: Some("`train` was not found".to_owned()), ..exit(127) },
            Verdict::UserError,
            "`train` was not found",
        ),
        (
            Facts {
                is_unstarted: true,
                reason: Some("mount /data: No space left on device".to_owned()),
                ..exit(125)
            },
            Verdict::Node,
            "mount /data: No space left on device",
        ),
        (
            Facts { is_unstarted: true, reason: Some("cannot create a pipe".to_owned()), ..exit(125) },
            Verdict::Infrastructure,
            "cannot create a pipe",
        ),
        (Facts::default(), Verdict::Infrastructure, ""),
    ];
    for (facts, kind, evidence) in table {
        let judgment = judge(facts);
        assert_eq!((judgment.kind, judgment.evidence.join(" | ").as_str()), (*kind, *evidence), "{facts:?}");
        let is_plain = matches!(evidence, &("" | "exit 1" | "exit 200" | "Unheard | exit 1"));
        assert!(judgment.next.is_some() || is_plain, "{facts:?}");
    }
}

/// The last lines of real programs.
#[test]
fn known_lines_decide() {
    let table: &[(&[&str], u8, Verdict)] = &[
        (
            &[
                "Traceback (most recent call last):",
                "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB",
                "[rank0]:[W1129 ProcessGroupNCCL.cpp:1250] Warning: process group has NOT been destroyed",
            ],
            1,
            Verdict::OutOfMemory,
        ),
        (
            &[
                "[rank1]:[E1129 ProcessGroupNCCL.cpp:632] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, OpType=ALLREDUCE)",
                "terminate called after throwing an instance of 'c10::DistBackendError'",
            ],
            134,
            Verdict::Stall,
        ),
        (
            &[
                "torch.distributed.DistBackendError: NCCL error in: ../NCCLUtils.hpp:268, remote process exited or there was a network error",
            ],
            1,
            Verdict::Infrastructure,
        ),
        (&["OSError: [Errno 28] No space left on device"], 1, Verdict::Node),
        (&["OSError: [Errno 28] No space left on device: '/dev/shm/torch_7_1'"], 1, Verdict::OutOfMemory),
        (&["ModuleNotFoundError: No module named 'flash_attn'"], 1, Verdict::UserError),
        (&["PermissionError: [Errno 13] Permission denied: '/output/x'"], 1, Verdict::UserError),
        (&["bash: line 1: 12 Killed                  python train.py"], 137, Verdict::Infrastructure),
        (&["loss 0.1", "RuntimeError: CUDA error: uncorrectable ECC error encountered"], 1, Verdict::Node),
        // `Killed` in a program's own line, which ended otherwise.
        (&["Killed 3 zombies in the game"], 3, Verdict::UserError),
    ];
    for (lines, code, kind) in table {
        let judgment = judge(&said(*code, lines));
        assert_eq!(judgment.kind, *kind, "{lines:?}: {judgment:?}");
    }
}

#[test]
fn a_missing_gpu_is_the_fault_of_who_did_not_ask_for_it() {
    let facts = said(1, &["RuntimeError: No CUDA GPUs are available"]);
    assert_eq!(judge(&facts).kind, Verdict::UserError);
    assert_eq!(judge(&Facts { has_gpus: true, ..facts }).kind, Verdict::Node);
}

#[test]
fn a_lost_peer_is_a_consequence() {
    let is_consequence = |line: &str| super::is_consequence(&[line.to_owned()], 1);
    assert!(is_consequence("ConnectionResetError: [Errno 104] Connection reset by peer"));
    assert!(is_consequence("BrokenPipeError: [Errno 32] Broken pipe"));
    assert!(!is_consequence("ModuleNotFoundError: No module named 'x'") && !is_consequence("loss 0.1"));
}

#[test]
fn a_success_needs_no_look_at_the_lines() {
    assert_eq!(judge(&said(0, &["CUDA out of memory, trying a smaller batch"])).kind, Verdict::Success);
}

#[test]
fn long_lines_are_cut_at_characters() {
    let line = format!("MemoryError: {}", "語".repeat(400));
    let evidence = judge(&said(1, &[&line])).evidence;
    assert!(evidence[1].ends_with("語...") && evidence[1].chars().count() == MAX_LINE_CHARS + 3);
}
