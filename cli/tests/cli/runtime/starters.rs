//! The advice of `jobc init`: what it prints works on this host, as printed.

use crate::directory::Directory;

/// Without a network a run is only prepared.
const DRY_RUN: &str = r#"jobc() { "$JOBC" run --dry-run "${@:2}"; };"#;

#[test]
fn the_next_step_of_each_starter_runs_on_two_cpus() {
    let directory = Directory::new();
    let list = directory.jobc(&["init", "--list"]).exits(0).out;
    let mut followed = 0;
    for name in list.lines().filter_map(|line| line.split_whitespace().next()) {
        let init = directory.jobc(&["init", name, "--example", name]).exits(0).out;
        let next = init.split("; next: ").nth(1).and_then(|rest| rest.lines().next());
        let next = next.unwrap_or_else(|| panic!("no next step: {init}"));
        // What builds for a cluster is built by another test, and a base image is made by tests/images.
        if !next.contains("jobc run ") || next.starts_with("sh ") {
            continue;
        }
        let run = directory.bash(&format!("{DRY_RUN} {next}")).exits(0);
        let cpus = run.out.split("takes at most: ").skip(1).filter_map(|rest| rest.split(' ').next());
        for cpus in cpus {
            assert!(cpus.parse::<f64>().is_ok_and(|cpus| cpus <= 2.0), "{name}: {}", run.out);
        }
        followed += 1;
    }
    assert_eq!(followed, 23);
}

#[test]
fn init_names_a_starter_for_a_host_without_a_network() {
    for example in ["hello-cpu", "std/torchrun"] {
        let directory = Directory::new();
        let hint = directory.jobc(&["init", "--example", example]).exits(0).out;
        let command = hint.split("start with `jobc ").nth(1).and_then(|rest| rest.split('`').next());
        let command = command.unwrap_or_else(|| panic!("no advice: {hint}"));
        directory.jobc(&command.split(' ').collect::<Vec<_>>()).exits(0);
        directory.jobc(&["run", "--dry-run", "local-dag"]).exits(0);
    }
}
