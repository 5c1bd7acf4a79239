use std::process::Command;

use super::*;

#[test]
fn a_programs_name_may_hold_anything() {
    let line = |name: &str, state: &str| {
        format!("7 ({name}) {state} 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 87654 2232320 ")
    };
    for name in ["sleep", "a b", ") Z 1 2", "((", "x) R 5 5 5 5 5 5 5 5 5 5 5 5 5 5 5 5 5 5 5 5 5"] {
        let stat = parse(line(name, "S").as_bytes()).expect(name);
        assert!(!stat.zombie, "{name}");
        assert_eq!(stat.start_time, 87654, "{name}");
        assert!(parse(line(name, "Z").as_bytes()).expect(name).zombie, "{name}");
    }
    for broken in ["", "7 sleep S 1", "7 (sleep)", "7 (sleep) S 1 2 3"] {
        assert!(parse(broken.as_bytes()).is_none(), "{broken}");
    }
}

#[test]
fn a_recycled_number_is_another_process() {
    let me = Process::of(std::process::id()).expect("this process runs");
    assert!(me.is_alive());
    assert!(me.open().expect("no error").is_some());
    let earlier = Process { start_time: me.start_time - 1, ..me };
    assert!(!earlier.is_alive());
    assert!(earlier.open().expect("no error").is_none());
}

#[test]
fn a_process_that_waits_to_be_reaped_is_gone() {
    let mut child = Command::new("sleep").arg("60").spawn().expect("sleep runs");
    let process = Process::of(child.id()).expect("it runs");
    assert!(!process.wait(1).expect("no error"));
    child.kill().expect("ours");
    assert!(process.wait(10_000).expect("no error"));
    assert!(!process.is_alive());
    assert_eq!(Process::of(child.id()), None);
    assert_eq!(Process::of_child(child.id()), Some(process));
    assert!(process.open().expect("no error").is_none());
    child.wait().expect("ours");
    assert!(process.wait(0).expect("no error"));
}
