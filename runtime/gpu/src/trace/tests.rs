//! A program that opens, queries and maps simulated nodes, traced for real.

use super::*;

#[test]
fn a_program_is_seen_talking_to_a_node() {
    if Command::new("strace").arg("-V").output().is_err() {
        jobc_test_skip::skip("strace");
        return;
    }
    // Files with the devices' names cannot be created here, so the program uses a node that the kernel has: the counted
    // calls are distinguished below.
    let script = "exec 3</dev/null; while :; do (: </dev/null); sleep 0.01; done";
    let mut program = Command::new("/bin/sh").args(["-c", script]).spawn().unwrap();
    let processes = process_tree(program.id());
    let calls = trace(&processes, Duration::from_millis(700), || false);
    let ran_on = program.try_wait().unwrap().is_none();
    program.kill().unwrap();
    program.wait().unwrap();
    match calls {
        Ok(calls) => {
            assert!(ran_on, "tracing leaves the program alone");
            assert!(calls.nodes.is_empty(), "{calls:?}");
            assert!((0.6..5.0).contains(&calls.seconds), "{calls:?}");
        }
        Err(error) => assert!(error.advice().is_some(), "{error}"),
    }
}

#[test]
fn the_family_of_a_process_is_all_that_it_started() {
    let mut program =
        Command::new("/bin/sh").args(["-c", "(sleep 5; :) & (sleep 5; :) & wait"]).spawn().unwrap();
    let mut all = vec![];
    for _ in 0..200 {
        all = process_tree(program.id());
        if all.len() >= 5 {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    for &process in &all {
        if let Some(pid) = i32::try_from(process).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    program.wait().unwrap();
    assert_eq!(all.len(), 5, "a shell, two of its own, and what those sleep with: {all:?}");
}

#[test]
fn missing_permission_to_attach_is_explained() {
    let mut output = StraceOutput::default();
    let (send, lines) = channel();
    send.send("strace: attach: ptrace(PTRACE_SEIZE, 12): Operation not permitted".to_owned()).unwrap();
    drop(send);
    while output.receive(&lines, DETACH_TIMEOUT) {}
    let error = output.finish(None).unwrap_err();
    assert!(
        error.message().contains("not permitted") && error.advice().unwrap().contains("trace"),
        "{}",
        error.message()
    );
}
