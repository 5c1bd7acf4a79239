//! Rules about devices: what they mean, what is written to cgroup v1, what the cgroup v2 program returns.

use oci_spec::runtime::LinuxDeviceCgroup;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::program::{AND, COPY, EXIT, Instruction, JUMP_IF, JUMP_UNLESS, LOAD, SET, SHIFT_RIGHT, assemble};
use super::*;

fn parse_rules(json: &Value) -> Vec<LinuxDeviceCgroup> {
    serde_json::from_value(json.clone()).expect("a list of rules")
}

/// The writes to cgroup v1 for a list.
fn check(json: &Value) -> String {
    let output = rules(&parse_rules(json)).and_then(|rules| writes(&rules));
    let output = match output {
        Ok(writes) => {
            writes.iter().map(|(file, line)| format!("{file} < {line}")).collect::<Vec<_>>().join("\n")
        }
        Err(error) => format!("{error}\n    {}", error.advice().unwrap_or_default()),
    };
    format!("{}\n{output}\n", serde_json::to_string(json).expect("JSON"))
}

#[test]
fn cgroup_v1_rules_are_shown() {
    let deny = json!({"allow": false, "access": "rwm"});
    let all = json!({"allow": true, "access": "rwm"});
    let list = [
        json!([]),
        json!([deny, {"allow": true, "type": "c", "major": 195, "access": "rw"}]),
        json!([all]),
        json!([all, {"allow": false, "type": "b", "access": "rwm"}]),
        json!([{"allow": true, "major": 9, "minor": 9, "access": "r"}]),
        json!([{"allow": true, "type": "b", "major": 8, "access": "rw"}, {"allow": false, "type": "b", "access": "w"}]),
        json!([{"allow": true, "type": "c", "major": 10, "access": "r"}, {"allow": true, "type": "c", "major": 10, "access": "w"}]),
        // The usual devices come last, so they cannot be taken away.
        json!([{"allow": false, "type": "c", "major": 1, "minor": 3, "access": "rwm"}]),
    ];
    insta::assert_snapshot!(list.iter().map(check).collect::<Vec<_>>().join("\n"));
}

#[test]
fn limits_that_cgroup_v1_or_no_version_enforces() {
    let list = [
        json!([{"allow": true, "type": "c", "major": 10, "access": "rw"}, {"allow": false, "type": "c", "major": 10, "minor": 200, "access": "w"}]),
        json!([{"allow": true, "type": "p", "access": "r"}]),
        json!([{"allow": true, "type": "c", "major": -7, "access": "r"}]),
        json!([{"allow": true, "type": "c", "minor": 4_294_967_296_i64, "access": "r"}]),
        json!([{"allow": true, "type": "c", "access": "rx"}]),
    ];
    insta::assert_snapshot!(list.iter().map(check).collect::<Vec<_>>().join("\n"));
}

#[test]
fn a_list_that_only_allows_takes_nothing_away() {
    assert!(!has_effective_deny(&parse_rules(&json!([]))));
    assert!(!has_effective_deny(&parse_rules(
        &json!([{"allow": false, "access": "rwm"}, {"allow": true, "type": "c", "access": "r"}])
    )));
    assert!(has_effective_deny(&parse_rules(
        &json!([{"allow": true, "access": "rwm"}, {"allow": false, "type": "c", "access": "r"}])
    )));
}

/// A device that is opened, or made.
#[derive(Clone, Copy, Debug)]
struct DeviceAccess {
    kind: DeviceKind,
    major: u32,
    minor: u32,
    access: u32,
}

/// What the rules mean: for each access, the last rule that covers it applies.
fn expected_access(rules: &[Rule], opened: DeviceAccess) -> bool {
    [MKNOD, READ, WRITE].into_iter().filter(|bit| opened.access & bit != 0).all(|bit| {
        let device = Rule {
            allow: true,
            kind: Some(opened.kind),
            major: Some(opened.major),
            minor: Some(opened.minor),
            access: bit,
        };
        rules
            .iter()
            .rev()
            .find(|rule| rule.access & bit != 0 && rule.covers(&device))
            .is_some_and(|rule| rule.allow)
    })
}

/// What the kernel does with the rules of cgroup v1 (security/device_cgroup.c).
fn actual_access(writes: &[(&str, String)], opened: DeviceAccess) -> bool {
    let mut all = false;
    let mut exceptions: Vec<(String, u32)> = vec![];
    let bits = |letters: &str| {
        letters
            .chars()
            .map(|letter| match letter {
                'r' => READ,
                'w' => WRITE,
                _ => MKNOD,
            })
            .sum()
    };
    for (file, line) in writes {
        let allow = *file == "devices.allow";
        match line.rsplit_once(' ') {
            None => (all, exceptions) = (allow, vec![]),
            Some((device, letters)) => {
                assert_ne!(allow, all, "an exception is of the other sort");
                exceptions.push((device.to_owned(), bits(letters)));
            }
        }
    }
    let kind = if opened.kind == DeviceKind::Block { 'b' } else { 'c' };
    let names = [
        format!("{kind} {}:{}", opened.major, opened.minor),
        format!("{kind} {}:*", opened.major),
        format!("{kind} *:{}", opened.minor),
        format!("{kind} *:*"),
    ];
    let mut matching = exceptions.iter().filter(|(device, _)| names.contains(device));
    if all {
        !matching.any(|(_, access)| access & opened.access != 0)
    } else {
        matching.any(|(_, access)| opened.access & !access == 0)
    }
}

/// Runs a device program as the kernel would; checks what its verifier checks of jumps and registers.
fn run(program: &[Instruction], opened: DeviceAccess) -> bool {
    let kind = if opened.kind == DeviceKind::Block { 1 } else { 2 };
    let context = [opened.access << 16 | kind, opened.major, opened.minor];
    let mut registers: [Option<u64>; 11] = [None; 11];
    let mut at = 0;
    for _ in 0..program.len() {
        let instruction = program[at];
        let to = usize::from(instruction.registers & 15);
        let from = usize::from(instruction.registers >> 4);
        let number = i64::from(instruction.immediate).cast_unsigned();
        let value = |register: usize| registers[register].expect("it was set before it is read");
        at += 1;
        match instruction.code {
            LOAD => {
                registers[to] = Some(context[usize::try_from(instruction.offset / 4).expect("in it")].into());
            }
            SET => registers[to] = Some(number),
            COPY => registers[to] = Some(value(from)),
            AND => registers[to] = Some(value(to) & number),
            SHIFT_RIGHT => registers[to] = Some(value(to) >> number),
            JUMP_IF | JUMP_UNLESS => {
                assert!(instruction.offset >= 0, "it only goes forward, so it ends");
                if (value(to) == number) == (instruction.code == JUMP_IF) {
                    at += usize::try_from(instruction.offset).expect("forward");
                }
            }
            EXIT => return value(0) != 0,
            other => panic!("an instruction that was not meant: {other:#x}"),
        }
    }
    panic!("it ran over its end")
}

/// Whether every instruction can be reached: the verifier refuses a program with one that cannot.
fn all_reached(program: &[Instruction]) -> bool {
    let mut reached = vec![false; program.len()];
    let mut next = vec![0];
    while let Some(at) = next.pop() {
        if std::mem::replace(&mut reached[at], true) {
            continue;
        }
        let instruction = program[at];
        if instruction.code != EXIT {
            next.push(at + 1);
        }
        if matches!(instruction.code, JUMP_IF | JUMP_UNLESS) {
            next.push(at + 1 + usize::try_from(instruction.offset).expect("forward"));
        }
    }
    reached.into_iter().all(|reached| reached)
}

fn kinds() -> impl Strategy<Value = DeviceKind> {
    prop_oneof![Just(DeviceKind::Block), Just(DeviceKind::Character)]
}

prop_compose! {
    fn any_rule()(
        allow in any::<bool>(),
        kind in proptest::option::of(kinds()),
        major in proptest::option::of(1..3_u32),
        minor in proptest::option::of(1..3_u32),
        access in 1..=ALL,
    ) -> Rule {
        Rule { allow, kind, major, minor, access }
    }
}

prop_compose! {
    fn any_opened()(kind in kinds(), major in 1..4_u32, minor in 1..4_u32, access in 1..=ALL) -> DeviceAccess {
        DeviceAccess { kind, major, minor, access }
    }
}

proptest! {
    #[test]
    fn the_program_answers_what_the_rules_mean(
        rules in proptest::collection::vec(any_rule(), 0..8),
        opened in any_opened(),
    ) {
        let program = assemble(&rules);
        prop_assert!(all_reached(&program));
        prop_assert_eq!(run(&program, opened), expected_access(&rules, opened));
    }

    #[test]
    fn version_1_keeps_what_the_rules_mean_or_refuses_them(
        rules in proptest::collection::vec(any_rule(), 0..8),
        opened in any_opened(),
    ) {
        if let Ok(writes) = writes(&rules) {
            // To open a device for several accesses, the kernel requires one exception that has all of them.
            let one = [MKNOD, READ, WRITE].map(|bit| DeviceAccess { access: opened.access & bit, ..opened });
            for opened in one.into_iter().filter(|opened| opened.access != 0) {
                prop_assert_eq!(actual_access(&writes, opened), expected_access(&rules, opened), "{:?}", writes);
            }
        }
    }
}

#[test]
fn the_usual_program_is_short() {
    let rules = rules(&[]).expect("fine");
    assert_eq!(rules, DEFAULT_RULES);
    assert!(assemble(&rules).len() < 64);
}
