use std::fs::File;

use super::*;
use crate::operation::Operation;

/// The error of a process that fails at its first step, as its maker reports it.
fn check(joined_before: Vec<JoinNamespace>, descriptors: Vec<OwnedFd>) -> String {
    let operation = Operation::FindProgram(vec![c"/not/there".to_owned()]);
    let steps = vec![Step { operation, pointer: Some("/process/args/0".to_owned()) }];
    let launch = Launch {
        steps,
        namespaces: 0,
        join_before_clone: joined_before,
        set_not_dumpable: false,
        cgroup: None,
        has_parent_work: false,
        in_user_namespace: false,
        agent: None,
        program: Program {
            image: File::open("/dev/null").unwrap().into(),
            failure: None,
            failure_writer: None,
            reply: None,
            reply_writer: None,
            makes_last: false,
            attributes: None,
            arguments: CList::new(vec![c"/not/there".to_owned()]),
            environment: CList::new(Vec::new()),
        },
        descriptors,
    };
    Process::spawn(launch, &mut |_, _| Ok(())).unwrap_err().to_string()
}

#[test]
fn a_step_that_fails_is_reported_as_such_whoever_made_the_process() {
    let output = check(Vec::new(), Vec::new());
    insta::assert_snapshot!(output, @"config.json: /process/args/0: cannot execute `/not/there`: no such file or directory (ENOENT)");
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root joins a pid namespace");
        return;
    }
    let own: OwnedFd = File::open("/proc/self/ns/pid").unwrap().into();
    let join = JoinNamespace { kind: Namespace::Pid, fd: own.as_raw_fd(), path: "its own".to_owned() };
    assert_eq!(check(vec![join], vec![own]), output);
}
