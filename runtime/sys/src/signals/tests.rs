use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::*;

#[allow(unsafe_code)]
fn raise(signal: Signal) {
    let (process, thread) = (rustix::process::getpid(), rustix::thread::gettid());
    let number = |pid: rustix::process::Pid| pid.as_raw_nonzero().get().unsigned_abs() as usize;
    let arguments = [number(process), number(thread), signal.number().unsigned_abs() as usize, 0, 0, 0];
    // SAFETY: tgkill(2) takes three numbers.
    unsafe { crate::syscall::raw::syscall(linux_raw_sys::general::__NR_tgkill, arguments) }.expect("ours");
}

#[test]
fn a_signal_has_names_and_a_number() {
    for (text, number, shown) in [
        ("TERM", 15, "TERM"),
        ("SIGTERM", 15, "TERM"),
        ("sigterm", 15, "TERM"),
        ("15", 15, "TERM"),
        ("KILL", 9, "KILL"),
        ("9", 9, "KILL"),
        ("poll", 29, "IO"),
        ("RTMIN", 34, "34"),
        ("RTMIN+3", 37, "37"),
        ("SIGRTMAX-1", 63, "63"),
        ("RTMAX", 64, "64"),
        ("64", 64, "64"),
    ] {
        let signal = Signal::parse(text).expect(text);
        assert_eq!((signal.number(), signal.to_string().as_str()), (number, shown), "{text}");
    }
    for text in ["", "SIG", "0", "65", "-9", "TREM", "RTMIN-1", "RTMAX+1", "RTMIN+99", "SIGSIGTERM", "9 "] {
        assert_eq!(
            Signal::parse(text).expect_err(text).to_string(),
            format!("unknown signal `{text}`"),
            "{text}"
        );
    }
    for (text, number) in [("0", Some(0)), ("9", Some(9)), ("00", None), ("SIG0", None)] {
        assert_eq!(Signal::parse_or_probe(text).ok().map(Signal::number), number, "{text}");
    }
    assert_eq!(Signal::parse_or_probe("0").map(Signal::bit), Ok(0));
}

#[test]
fn what_a_program_does_about_a_signal_is_read_from_its_status() {
    let status = "Name:\tsh\nNSpid:\t4711\n\
        SigBlk:\t0000000000010000\nSigIgn:\t0000000000000006\nSigCgt:\t0000000000004001\n";
    let of = |signal| Disposition::parse(status, signal);
    assert_eq!(of(Signal::HUP), Some(Disposition::Caught));
    assert_eq!(of(Signal::INT), Some(Disposition::Ignored));
    assert_eq!(of(Signal::TERM), Some(Disposition::Caught));
    assert_eq!(
        of(Signal::by_number(17).expect("CHLD")),
        Some(Disposition::Caught),
        "it may wait for what it blocks"
    );
    let first = status.replace("4711", "4711\t1");
    assert_eq!(Disposition::parse(&first, Signal::by_number(10).expect("USR1")), Some(Disposition::Exempt));
    assert_eq!(Disposition::parse(&first, Signal::TERM), Some(Disposition::Caught));
    let nested = status.replace("4711", "4711\t1\t9");
    assert_eq!(Disposition::parse(&nested, Signal::by_number(10).expect("USR1")), Some(Disposition::Default));
    let first = status.replace("4711", "4711\t1");
    let usr1 = Signal::by_number(10).expect("USR1");
    assert_eq!(of(usr1), Some(Disposition::Default));
    assert_eq!(Disposition::parse(&first, usr1), Some(Disposition::Exempt));
    assert_eq!(Disposition::parse(&first, Signal::TERM), Some(Disposition::Caught));
    assert_eq!(Disposition::parse(&status.replace("4711", "4711\t1\t9"), usr1), Some(Disposition::Default));
    assert_eq!(Disposition::parse("Name:\tsh\n", Signal::INT), None);
    assert!(Disposition::of(std::process::id(), Signal::TERM).is_some());
}

#[test]
fn a_process_that_makes_another_blocks_for_a_moment() {
    let check = |state: &str, blocked: &str, caught: &str, expected: bool| {
        let status = format!("State:\t{state}\nSigBlk:\t{blocked}\nSigIgn:\t0\nSigCgt:\t{caught}\n");
        assert_eq!(blocks_for_a_moment(&status, Signal::TERM), expected, "{status}");
    };
    check("D (disk sleep)", "fffffffe7ffbfeff", "0", true);
    check("R (running)", "fffffffe7ffbfeff", "0", true);
    check("S (sleeping)", "fffffffe7ffbfeff", "0", false);
    check("R (running)", "fffffffe7ffbfeff", "4000", false);
    check("R (running)", "0", "0", false);
}

#[test]
fn blocked_signals_are_read() {
    let signals = Signals::block_forwarded().expect("taken");
    assert_eq!(signals.next(), None);
    // To this thread only: the tests' other thread blocks nothing.
    raise(Signal::TERM);
    let mut waited = [PollFd::new(&signals, PollFlags::IN)];
    let time = Timespec { tv_sec: 10, tv_nsec: 0 };
    assert_eq!(poll(&mut waited, Some(&time)), Ok(1));
    assert_eq!(signals.next(), Some(Signal::TERM));
    assert_eq!(signals.next(), None);
}

#[test]
fn a_program_can_start_with_no_signal_blocked() {
    let blocked = |status: &str| {
        status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap().trim().to_owned()
    };
    let of_child = || {
        let child = std::process::Command::new("cat").arg("/proc/self/status").output().unwrap();
        blocked(&String::from_utf8(child.stdout).unwrap())
    };
    let signals = Signals::block_forwarded().unwrap();
    assert_ne!(of_child(), "0".repeat(16));
    assert_eq!(with_none_blocked(of_child).unwrap(), "0".repeat(16));
    // Afterwards they are blocked again.
    raise(Signal::TERM);
    assert_eq!(signals.next(), Some(Signal::TERM));
}

#[test]
fn a_signal_to_continue_is_read_only_where_that_is_wanted() {
    let continued = |signals: &Signals| {
        raise(Signal::CONT);
        signals.next()
    };
    let wanted = Signals::block_forwarded_and_continue().expect("taken");
    assert_eq!(continued(&wanted), Some(Signal::CONT));
    drop(wanted);
    assert_eq!(continued(&Signals::block_forwarded().expect("taken")), None);
}
