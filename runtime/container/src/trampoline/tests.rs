//! Real trampolines, executed by the kernel.
#![allow(unsafe_code, reason = "execveat between fork and exec")]

use std::ffi::{CString, c_long, c_uint};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use linux_raw_sys::general::{__NR_execveat, AT_EMPTY_PATH};
use linux_raw_sys::ptrace::{SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO, SECCOMP_RET_KILL_PROCESS, sock_filter};

use super::birth::Birth;
use super::*;

mod below_init;

unsafe extern "C" {
    fn alarm(seconds: c_uint) -> c_uint;
    fn syscall(number: c_long, ...) -> c_long;
}

/// The outcome of a trampoline.
struct Outcome {
    status: ExitStatus,
    out: String,
    err: String,
    report: Option<Failure>,
    /// The number of the filter's listener.
    listener: Option<RawFd>,
    /// Whether another process was created, whose status this is.
    born: bool,
    /// The inode of the pipe behind the report.
    pipe: u64,
}

/// A trampoline to run, with its surroundings.
#[derive(Default)]
struct Case<'a> {
    candidates: &'a [&'a str],
    arguments: &'a [&'a str],
    environment: &'a [&'a str],
    filter: Option<Program>,
    label: Option<Label<'a>>,
    /// The bytes where the answer about the filter's listener is read: none for end of file.
    reply: Option<&'a [u8]>,
    /// The process that becomes the program.
    process: ProgramProcess,
    /// Leave out no-new-privileges and become `nobody`, so that the kernel refuses the filter.
    powerless: bool,
}

fn strings(of: &[&str]) -> Vec<CString> {
    of.iter().map(|text| CString::new(*text).expect("no NUL in a test")).collect()
}

fn pointers(of: &[CString]) -> Vec<usize> {
    of.iter().map(|text| text.as_ptr().addr()).chain([0]).collect()
}

/// Executes a trampoline as a child of this test and waits for its end.
fn run(case: &Case<'_>) -> Outcome {
    let (mut reader, report) = pipe();
    let reply = case.reply.map(|answer| {
        let (reader, writer) = pipe();
        rustix::io::write(&writer, answer).expect("written");
        reader
    });
    let number = reply.as_ref().map(AsRawFd::as_raw_fd);
    let (filter, report_fd) = (case.filter.as_ref(), report.as_raw_fd());
    let trampoline =
        build(&strings(case.candidates), filter, case.label, report_fd, number, case.process).expect("built");
    let mut outcome = spawn(case, &trampoline, &report, number);
    outcome.pipe = rustix::fs::fstat(&report).expect("open").st_ino;
    drop(report);
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).expect("readable");
    // The last process may report before the first one has reported its number.
    let words = bytes.as_chunks().0;
    if let Some((at, pid)) = words.iter().enumerate().find_map(|(at, word)| Some((at, birth::born(*word)?))) {
        assert!(outcome.status.success(), "the first process: {:?}", outcome.status);
        let pid = rustix::process::Pid::from_raw(pid.cast_signed());
        let waited = rustix::process::waitpid(pid, rustix::process::WaitOptions::empty());
        let (_, status) = waited.expect("a child of this process").expect("ended");
        outcome.status = ExitStatus::from_raw(status.as_raw());
        outcome.born = true;
        bytes.drain(at * Failure::SIZE..(at + 1) * Failure::SIZE);
    }
    if let Some((word, rest)) = bytes.split_first_chunk()
        && let Some(listener) = Failure::listener(*word)
    {
        outcome.listener = Some(listener);
        bytes = rest.to_vec();
    }
    outcome.report = match bytes.len() {
        0 => None,
        _ => Some(Failure::of(bytes.try_into().expect("4 bytes"))),
    };
    outcome
}

fn pipe() -> (File, OwnedFd) {
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).expect("a pipe");
    (reader.into(), writer)
}

fn spawn(case: &Case<'_>, trampoline: &OwnedFd, report: &OwnedFd, reply: Option<RawFd>) -> Outcome {
    let (arguments, environment) = (strings(case.arguments), strings(case.environment));
    let (argv, envp) = (pointers(&arguments), pointers(&environment));
    let (fd, powerless) = (trampoline.as_raw_fd(), case.powerless);
    let attributes = case.label.map(|label| label.attributes);
    let report = report.as_raw_fd();
    let mut command = Command::new("/nowhere");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if powerless {
        command.uid(65534).gid(65534);
    }
    // SAFETY: nothing here allocates, and the arrays outlive the call.
    unsafe {
        command.pre_exec(move || {
            if !powerless {
                rustix::thread::set_no_new_privs(true)?;
            }
            rustix::io::fcntl_setfd(BorrowedFd::borrow_raw(report), rustix::io::FdFlags::empty())?;
            if let Some(reply) = reply {
                rustix::io::fcntl_setfd(BorrowedFd::borrow_raw(reply), rustix::io::FdFlags::empty())?;
            }
            if let Some(attributes) = attributes {
                rustix::io::fcntl_setfd(BorrowedFd::borrow_raw(attributes), rustix::io::FdFlags::empty())?;
            }
            alarm(20); // ends an endless round of execve, which nothing else would
            let (execveat, empty_path) = (c_long::from(__NR_execveat), AT_EMPTY_PATH);
            syscall(execveat, fd, c"".as_ptr(), argv.as_ptr(), envp.as_ptr(), empty_path);
            Err(std::io::Error::last_os_error())
        });
    }
    let output = command.spawn().expect("the trampoline is executed").wait_with_output().expect("it ends");
    Outcome {
        status: output.status,
        out: String::from_utf8(output.stdout).expect("text"),
        err: String::from_utf8(output.stderr).expect("text"),
        report: None,
        listener: None,
        born: false,
        pipe: 0,
    }
}

const LOAD: u16 = 0x20;
const IF_EQUAL: u16 = 0x15;
const RET: u16 = 0x06;

/// A filter that returns `action` for every call except those named, which it allows.
fn all_but(action: u32, allowed: &[u32]) -> Program {
    let mut instructions = vec![sock_filter { code: LOAD, jt: 0, jf: 0, k: 0 }];
    for number in allowed {
        instructions.push(sock_filter { code: IF_EQUAL, jt: 0, jf: 1, k: *number });
        instructions.push(sock_filter { code: RET, jt: 0, jf: 0, k: SECCOMP_RET_ALLOW });
    }
    instructions.push(sock_filter { code: RET, jt: 0, jf: 0, k: action });
    Program { instructions, flags: 0, unknown: vec![], rights_after: None, rights_without: None }
}

#[test]
fn arguments_and_environment_arrive() {
    let outcome = run(&Case {
        candidates: &["/bin/sh"],
        arguments: &["a name", "-c", "echo \"$0\" \"$#\" \"$1\" \"$A\"; exit 7", "zero", "one"],
        environment: &["A=b", "C="],
        ..Case::default()
    });
    assert_eq!(outcome.out, "zero 1 one b\n");
    assert_eq!((outcome.status.code(), outcome.report), (Some(7), None));
}

#[test]
fn no_arguments_and_no_environment_are_passed_on() {
    let outcome = run(&Case { candidates: &["/usr/bin/env"], ..Case::default() });
    assert_eq!((outcome.out.as_str(), outcome.status.code(), outcome.report), ("", Some(0), None));
}

#[test]
fn candidates_are_tried_as_execvp_does() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    std::fs::write(path("plain"), "no program").expect("written");
    std::fs::write(path("text"), "no program").expect("written");
    std::fs::set_permissions(path("text"), std::fs::Permissions::from_mode(0o755)).expect("changed");
    let (none, plain, text, below) = (path("none"), path("plain"), path("text"), path("plain/below"));
    let good = "/bin/true";
    for (candidates, code, report) in [
        (vec![good], 0, None),
        (vec![&none, &below, &plain, good], 0, None),
        (vec![], 127, Some(Failure::Exec(Errno::NOENT))),
        (vec![&*none], 127, Some(Failure::Exec(Errno::NOENT))),
        (vec![&*none, &below], 127, Some(Failure::Exec(Errno::NOTDIR))),
        (vec![&*plain, &none], 126, Some(Failure::Exec(Errno::ACCESS))),
        (vec![&*none, &plain], 126, Some(Failure::Exec(Errno::ACCESS))),
        (vec!["/"], 126, Some(Failure::Exec(Errno::ACCESS))),
        (vec![&*text, good], 126, Some(Failure::Exec(Errno::NOEXEC))),
    ] {
        let outcome = run(&Case { candidates: &candidates, arguments: &["x"], ..Case::default() });
        assert_eq!((outcome.status.code(), outcome.report), (Some(code), report), "{candidates:?}");
        assert_eq!(outcome.err, "", "{candidates:?}");
    }
}

#[test]
fn the_filter_is_active() {
    let outcome = run(&Case {
        candidates: &["/bin/sh"],
        arguments: &["sh", "-c", "grep -E '^(Seccomp|NoNewPrivs):' /proc/self/status; readlink /proc/$$/exe"],
        environment: &["PATH=/usr/bin:/bin"],
        filter: Some(all_but(SECCOMP_RET_ALLOW, &[])),
        ..Case::default()
    });
    let lines: Vec<&str> = outcome.out.lines().collect();
    assert_eq!(lines[..2], ["NoNewPrivs:\t1", "Seccomp:\t2"]);
    assert!(lines[2].starts_with("/usr/bin/"), "the executable is the program: {lines:?}");
}

#[test]
fn the_program_gets_no_file_descriptor_of_the_trampoline() {
    let candidates = &["/bin/ls"];
    let outcome = run(&Case { candidates, arguments: &["ls", "-l", "/proc/self/fd"], ..Case::default() });
    assert_eq!(outcome.status.code(), Some(0), "{}", outcome.err);
    for strange in [format!("pipe:[{}]", outcome.pipe), "memfd".into()] {
        assert!(!outcome.out.contains(&strange), "{strange} in {}", outcome.out);
    }
}

#[test]
fn a_profile_need_allow_nothing_but_execve_before_the_program() {
    use linux_raw_sys::general::{__NR_execve, __NR_exit_group, __NR_write};
    let kill = |allowed: &[u32]| {
        let filter = Some(all_but(SECCOMP_RET_KILL_PROCESS, allowed));
        run(&Case { candidates: &["/none"], filter, ..Case::default() })
    };
    let outcome = kill(&[__NR_execve, __NR_write, __NR_exit_group]);
    assert_eq!((outcome.status.code(), outcome.report), (Some(127), Some(Failure::Exec(Errno::NOENT))));
    let outcome = kill(&[]);
    assert_eq!(outcome.status.code(), None, "killed by the filter: {:?}", outcome.status);
}

#[test]
fn a_profile_that_refuses_everything_ends_in_a_trap_not_in_a_loop() {
    let outcome = run(&Case {
        candidates: &["/bin/true"],
        filter: Some(all_but(SECCOMP_RET_ERRNO | 1, &[])),
        ..Case::default()
    });
    assert_eq!((outcome.status.code(), outcome.report), (None, None), "{:?}", outcome.status);
}

/// It has a session of its own, and its parent is this process, not the first one.
#[test]
fn the_last_process_is_another_child_in_its_own_session() {
    let process = ProgramProcess::Last(Birth { end_with_parent: true, terminal: false });
    let script = "read -r line </proc/self/stat; set -- $line; echo $1 $4 $6; exit 5";
    for filter in [None, Some(all_but(SECCOMP_RET_ALLOW, &[]))] {
        let outcome = run(&Case {
            candidates: &["/bin/sh"],
            arguments: &["sh", "-c", script],
            filter,
            process,
            ..Case::default()
        });
        assert_eq!((outcome.status.code(), outcome.report), (Some(5), None), "{}", outcome.err);
        let numbers: Vec<u32> = outcome.out.split_whitespace().map(|word| word.parse().unwrap()).collect();
        assert_eq!((numbers[0], numbers[1], outcome.born), (numbers[2], std::process::id(), true));
    }
    let absent = run(&Case { candidates: &["/none"], arguments: &["x"], process, ..Case::default() });
    assert_eq!((absent.status.code(), absent.report), (Some(127), Some(Failure::Exec(Errno::NOENT))));
    // Standard input is not a terminal here.
    let process = ProgramProcess::Last(Birth { end_with_parent: false, terminal: true });
    let without = run(&Case { candidates: &["/bin/true"], arguments: &["true"], process, ..Case::default() });
    assert_eq!((without.status.code(), without.report), (Some(125), Some(Failure::Birth(Errno::NOTTY))));
}

/// A filter that a right is needed for is loaded before the last process is made, unless it denies what follows.
#[test]
fn the_last_process_is_made_with_the_programs_rights() {
    use linux_raw_sys::general::{__NR_clone, __NR_execve, __NR_mkdirat, __NR_ppoll, __NR_setsid};
    let own = jobc_sys::syscall::CapabilityBits::default();
    let with = jobc_sys::syscall::CapabilityBits { effective: 1 << 21, permitted: 1 << 21, ..own };
    let birth = Birth { end_with_parent: true, terminal: false };
    let flags = |denied: u32, rights, birth: Birth| {
        let mut filter = all_but(SECCOMP_RET_ALLOW, &[]);
        let refuse = sock_filter { code: RET, jt: 0, jf: 0, k: SECCOMP_RET_ERRNO | 1 };
        filter.instructions.splice(1..1, [sock_filter { code: IF_EQUAL, jt: 0, jf: 1, k: denied }, refuse]);
        (filter.rights_after, filter.rights_without) = (rights, Some(own));
        birth.flags(Some(&filter), 3) & birth::AFTER_FILTER != 0
    };
    for (denied, after) in
        [(__NR_mkdirat, true), (__NR_execve, true), (__NR_clone, false), (__NR_setsid, false)]
    {
        assert_eq!(flags(denied, Some(with), birth), after, "{denied}");
    }
    assert!(!flags(__NR_ppoll, Some(with), birth));
    assert!(flags(__NR_ppoll, Some(with), Birth { end_with_parent: false, ..birth }));
    assert!(!flags(__NR_mkdirat, Some(own), birth), "nothing is kept for the filter alone");
    assert!(!flags(__NR_mkdirat, None, birth));
}

/// Without a syscall of the thread that has the filter: the second thread has ended when the program starts, and its
/// file descriptors are closed.
#[test]
fn a_filters_listener_is_handed_over_before_the_program_begins() {
    let filter = || {
        let flags = linux_raw_sys::ptrace::SECCOMP_FILTER_FLAG_NEW_LISTENER;
        Some(Program { flags, ..all_but(SECCOMP_RET_ALLOW, &[]) })
    };
    let case = |reply| Case {
        candidates: &["/bin/sh"],
        arguments: &["sh", "-c", "echo /proc/self/fd/*; set -- /proc/self/task/*; echo $#"],
        filter: filter(),
        reply: Some(reply),
        ..Case::default()
    };
    let taken = run(&case(&[LISTENER_TAKEN]));
    assert!(taken.status.success() && taken.listener.is_some() && taken.report.is_none(), "{}", taken.err);
    let without = run(&Case { filter: None, reply: None, ..case(&[]) });
    assert_eq!(taken.out, without.out);
    assert!(taken.out.ends_with("\n1\n"), "one thread: {}", taken.out);
    for refused in [&b"0"[..], b""] {
        let outcome = run(&case(refused));
        assert_eq!((outcome.status.code(), outcome.out.as_str()), (Some(125), ""));
        assert!(outcome.listener.is_some());
    }
}

#[test]
fn a_refused_filter_is_reported_and_the_program_is_not_run() {
    let broken =
        Program { instructions: vec![], flags: 0, unknown: vec![], rights_after: None, rights_without: None };
    let outcome = run(&Case { candidates: &["/bin/true"], filter: Some(broken), ..Case::default() });
    assert_eq!((outcome.status.code(), outcome.report), (Some(125), Some(Failure::Filter(Errno::INVAL))));
    if jobc_test_skip::is_root() {
        let filter = Some(all_but(SECCOMP_RET_ALLOW, &[]));
        let outcome = run(&Case { candidates: &["/bin/true"], filter, powerless: true, ..Case::default() });
        assert_eq!(
            (outcome.status.code(), outcome.report),
            (Some(125), Some(Failure::Filter(Errno::ACCESS)))
        );
    }
}

/// A plain directory replaces that of the attributes.
#[test]
fn a_label_is_written_before_the_filter_and_its_directory_is_closed() {
    use linux_raw_sys::general::{__NR_openat, __NR_write};
    let directory = tempfile::tempdir().expect("a directory");
    let attributes = std::fs::File::open(directory.path()).expect("opened");
    let label = Label { attributes: attributes.as_raw_fd(), file: c"module/exec", text: b"exec a profile" };
    let case = |candidates: &'static [&str], filter: Option<Program>| Case {
        candidates,
        arguments: &["ls", "-l", "/proc/self/fd"],
        filter,
        label: Some(label),
        ..Case::default()
    };
    let outcome = run(&case(&["/bin/ls"], None));
    assert_eq!((outcome.status.code(), outcome.report), (Some(125), Some(Failure::Label(Errno::NOENT))));
    assert_eq!(outcome.out, "", "the program does not run without its label");
    let path = directory.path().join("module/exec");
    std::fs::create_dir(directory.path().join("module")).expect("made");
    std::fs::write(&path, "").expect("made");
    let outcome = run(&case(&["/none", "/bin/ls"], None));
    assert_eq!((outcome.status.code(), outcome.report), (Some(0), None), "{}", outcome.err);
    assert_eq!(std::fs::read_to_string(&path).expect("there"), "exec a profile");
    assert!(!outcome.out.contains(&directory.path().display().to_string()), "{}", outcome.out);
    // The label was written before the filter that denies the same syscalls.
    std::fs::write(&path, "").expect("made");
    let mut filter = all_but(SECCOMP_RET_ALLOW, &[]);
    for call in [__NR_openat, __NR_write] {
        let refuse = sock_filter { code: RET, jt: 0, jf: 0, k: SECCOMP_RET_KILL_PROCESS };
        filter.instructions.splice(1..1, [sock_filter { code: IF_EQUAL, jt: 0, jf: 1, k: call }, refuse]);
    }
    run(&case(&["/bin/ls"], Some(filter)));
    assert_eq!(std::fs::read_to_string(&path).expect("there"), "exec a profile");
}

/// Without a security module the kernel takes no such text; with one it knows none of that name.
#[test]
fn a_label_that_the_kernel_refuses_is_reported() {
    let attributes = std::fs::File::open("/proc/self/attr").expect("opened");
    let label = Label { attributes: attributes.as_raw_fd(), file: c"exec", text: b"no_such:label" };
    let outcome = run(&Case { candidates: &["/bin/true"], label: Some(label), ..Case::default() });
    assert_eq!(outcome.status.code(), Some(125));
    assert!(matches!(outcome.report, Some(Failure::Label(_))), "{:?}", outcome.report);
    let output = outcome.report.expect("reported").error("true").to_string();
    assert!(output.contains("cannot set the"), "{output}");
}

#[test]
fn the_program_itself_as_its_own_program_ends_with_a_message() {
    let directory = tempfile::tempdir().expect("a directory");
    let script = directory.path().join("script").display().to_string();
    std::fs::write(&script, "#!/proc/self/exe\n").expect("written");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("changed");
    // A filter that feigns success of fcntl must not make it loop.
    let mut feigned = all_but(SECCOMP_RET_ALLOW, &[]);
    feigned.instructions.splice(
        1..1,
        [
            sock_filter { code: IF_EQUAL, jt: 0, jf: 1, k: linux_raw_sys::general::__NR_fcntl },
            sock_filter { code: RET, jt: 0, jf: 0, k: SECCOMP_RET_ERRNO },
        ],
    );
    for candidate in ["/proc/self/exe", &script] {
        for filter in [None, Some(feigned.clone())] {
            let started = Instant::now();
            let outcome =
                run(&Case { candidates: &[candidate], arguments: &["x"], filter, ..Case::default() });
            assert_eq!((outcome.status.code(), outcome.report), (Some(126), None), "{candidate}");
            assert_eq!(
                outcome.err,
                "jobc: the program is `/proc/self/exe`, which does not work in a container\n"
            );
            assert!(started.elapsed() < Duration::from_secs(5), "bounded");
        }
    }
}

#[test]
fn it_is_read_only() {
    let (_reader, report) = pipe();
    let trampoline =
        build(&strings(&["/bin/true"]), None, None, report.as_raw_fd(), None, ProgramProcess::Same)
            .expect("built");
    let own = format!("/proc/self/fd/{}", trampoline.as_raw_fd());
    let mut file = std::fs::OpenOptions::new().write(true).open(&own).expect("root may open it");
    assert_eq!(file.write(b"x").expect_err("sealed").raw_os_error(), Some(1), "EPERM");
    assert_eq!(rustix::fs::ftruncate(&trampoline, 0), Err(Errno::PERM));
    assert_eq!(rustix::fs::fcntl_add_seals(&trampoline, SealFlags::empty()), Err(Errno::PERM));
    assert!(rustix::io::fcntl_getfd(&trampoline).expect("open").contains(rustix::io::FdFlags::CLOEXEC));
}

/// Runs a test of this file in its own pid namespace with `vm.memfd_noexec` set; the host's setting does not change.
fn with_memfd_noexec(level: u8, test: &str) -> Option<bool> {
    let script =
        format!("echo {level} > /proc/sys/vm/memfd_noexec || exit 77; exec \"$0\" --exact --ignored {test}");
    let status = Command::new("unshare")
        .args(["--pid", "--fork", "--mount-proc", "sh", "-c", &script])
        .arg(std::env::current_exe().expect("known"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match status.ok()?.code() {
        Some(77 | 1) => None,
        code => Some(code == Some(0)),
    }
}

#[test]
fn the_sysctl_against_executable_memory_is_met_or_named() {
    for (level, test, passes) in
        [(1, "is_built", true), (2, "is_built", false), (2, "is_refused_with_advice", true)]
    {
        match with_memfd_noexec(level, &format!("trampoline::tests::{test}")) {
            Some(passed) => assert_eq!(passed, passes, "{test} with vm.memfd_noexec={level}"),
            None => jobc_test_skip::skip("root, and a kernel with vm.memfd_noexec"),
        }
    }
}

#[test]
#[ignore = "run by another, where vm.memfd_noexec is 1"]
fn is_built() {
    let outcome = run(&Case { candidates: &["/bin/true"], arguments: &["true"], ..Case::default() });
    assert_eq!((outcome.status.code(), outcome.report), (Some(0), None));
}

#[test]
#[ignore = "run by another, where vm.memfd_noexec is 2"]
fn is_refused_with_advice() {
    let error = build(&[], None, None, 3, None, ProgramProcess::Same).expect_err("refused");
    assert!(error.advice().expect("advice").contains("vm.memfd_noexec"));
}

#[test]
fn the_image_is_an_elf_file_as_others_read_it() {
    let filter = all_but(SECCOMP_RET_ALLOW, &[1, 2, 3]);
    let image = image::build_image(
        code::bytes(),
        &strings(&["/bin/true", "/x"]),
        Some(&filter),
        None,
        5,
        None,
        ProgramProcess::Same,
    );
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("image");
    std::fs::write(&path, &image).expect("written");
    let Ok(output) = Command::new("readelf").args(["-hlW"]).arg(&path).env("LC_ALL", "C").output() else {
        jobc_test_skip::skip("readelf");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    for part in
        ["EXEC (Executable file)", "LOAD           0x000000 0x0000000000400000", " R E 0x10000", "GNU_STACK"]
    {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    assert!(image.len() < 2048, "{} bytes", image.len());
}

#[test]
fn a_failure_speaks_of_the_program() {
    let text = |code: u32| {
        let error = Failure::of(code.to_ne_bytes()).error("train");
        (error.to_string(), error.exit_code())
    };
    for (code, start, exit) in [
        (2, "config.json: /process/args/0: cannot execute `train`: no such file or directory", 127),
        (13, "config.json: /process/args/0: cannot execute `train`: permission denied", 126),
        (0x1_0016, "config.json: /linux/seccomp: cannot load the seccomp filter: invalid argument", 125),
        (0x2_0016, "cannot make the last steps to the program: invalid argument", 125),
    ] {
        let (text, code) = text(code);
        assert!(text.starts_with(start), "{text}");
        assert_eq!(code, exit, "{text}");
    }
    // A report can come from the container: any four bytes must do.
    let _ = (text(0), text(u32::MAX));
}
