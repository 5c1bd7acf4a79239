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
    if !jobc_test_skip::is_root() {
        return;
    }
    let own: OwnedFd = File::open("/proc/self/ns/pid").unwrap().into();
    let join = JoinNamespace { kind: Namespace::Pid, fd: own.as_raw_fd(), path: "its own".to_owned() };
    assert_eq!(check(vec![join], vec![own]), output);
}

/// The process in between is killed while it joins namespaces, one after the other.
#[test]
fn the_process_in_between_may_be_killed_first() {
    const JOINS: usize = 2_000_000;
    if !jobc_test_skip::is_root() {
        return;
    }
    let own: OwnedFd = File::open("/proc/self/ns/pid").unwrap().into();
    let fd = own.as_raw_fd();
    let joins = (0..JOINS).map(|_| JoinNamespace { kind: Namespace::Pid, fd, path: String::new() }).collect();
    let children = format!("/proc/self/task/{}/children", rustix::thread::gettid().as_raw_nonzero());
    let output = std::thread::scope(|scope| {
        let killer = scope.spawn(move || {
            loop {
                let list = std::fs::read_to_string(&children).unwrap();
                if let Some(child) = list.split_whitespace().next() {
                    let child = rustix::process::Pid::from_raw(child.parse().unwrap()).unwrap();
                    return rustix::process::kill_process(child, rustix::process::Signal::KILL);
                }
                std::thread::yield_now();
            }
        });
        let output = check(joins, vec![own]);
        killer.join().unwrap().unwrap();
        output
    });
    insta::assert_snapshot!(output, @"config.json: /linux/namespaces: cannot make a process with new namespaces (none): operation canceled (ECANCELED)");
}
