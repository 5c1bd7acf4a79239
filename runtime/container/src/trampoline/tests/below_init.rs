//! Programs below the trampoline as their init.

use super::*;

/// The init of a script, its name when it has ended, and its status.
fn below_init(script: &str, act: impl FnOnce(rustix::process::Pid)) -> (String, ExitStatus) {
    let (mut reader, report) = pipe();
    let process = ProgramProcess::BelowInit { terminal: false };
    let image = build(&strings(&["/bin/sh"]), None, None, report.as_raw_fd(), None, process).expect("built");
    let (arguments, environment) = (strings(&["sh", "-c", script]), strings(&["PATH=/bin:/usr/bin"]));
    let (argv, envp) = (pointers(&arguments), pointers(&environment));
    let (fd, number) = (image.as_raw_fd(), report.as_raw_fd());
    let mut command = Command::new("/nowhere");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    // SAFETY: nothing here allocates, and the arrays outlive the call.
    unsafe {
        command.pre_exec(move || {
            rustix::io::fcntl_setfd(BorrowedFd::borrow_raw(number), rustix::io::FdFlags::empty())?;
            let (execveat, empty_path) = (c_long::from(__NR_execveat), AT_EMPTY_PATH);
            syscall(execveat, fd, c"".as_ptr(), argv.as_ptr(), envp.as_ptr(), empty_path);
            Err(std::io::Error::last_os_error())
        });
    }
    let mut child = command.spawn().expect("the trampoline is executed");
    drop(report);
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).expect("readable");
    assert!(bytes.is_empty(), "the init keeps no report open, and none fails");
    // The end of the output: the init has none of it either.
    let mut out = child.stdout.take().expect("a pipe");
    let mut first = [0];
    out.read_exact(&mut first).expect("the script has begun");
    let pid = rustix::process::Pid::from_child(&child);
    act(pid);
    drop(child.stdin.take());
    out.read_to_end(&mut bytes).expect("readable");
    let ended = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
    rustix::process::waitid(rustix::process::WaitId::Pid(pid), ended).expect("a child of this process");
    let name = std::fs::read(format!("/proc/{}/comm", child.id())).expect("not waited for");
    let signal = init::signal_of(&name).map(|signal| format!(" signal {signal}")).unwrap_or_default();
    (format!("{}{signal}", String::from_utf8(bytes).expect("text").trim()), child.wait().expect("ended"))
}

/// It forwards signals, has no file descriptors, and exits as a shell does.
#[test]
fn an_init_forwards_signals_and_ends_with_its_program() {
    use rustix::process::{Pid, Signal, kill_process};
    let nothing = |_: Pid| ();
    let term = |pid: Pid| kill_process(pid, Signal::TERM).expect("alive");
    let ended = |(text, status): (String, ExitStatus)| (text, status.code());
    assert_eq!(ended(below_init("echo; exit 7", nothing)), (String::new(), Some(7)));
    assert_eq!(ended(below_init("echo; kill -9 $$", nothing)), (" signal 9".to_owned(), Some(137)));
    assert_eq!(ended(below_init("echo; exec sleep 20", term)), (" signal 15".to_owned(), Some(143)));
    let handler = "trap 'echo asked; exit 3' TERM; echo; sleep 20 & wait";
    assert_eq!(ended(below_init(handler, term)), ("asked".to_owned(), Some(3)));
    let looks = |pid: Pid| {
        let open = std::fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero())).expect("alive").count();
        let words = std::fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).expect("alive");
        assert_eq!((open, words.iter().all(|byte| *byte == 0)), (0, true));
    };
    assert_eq!(ended(below_init("echo; read -r line; echo closed", looks)), ("closed".to_owned(), Some(0)));
}
