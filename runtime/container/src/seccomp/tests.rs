mod kernel;
mod machine;
mod semantics;

use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use machine::{Call, decide, listing};

/// The profile of a bundle as `jobc build` writes it.
const BUNDLE: &str = include_str!("../../../../examples/dag/out/pipeline/local/oci/train-0/config.json");

const ALLOW: u32 = 0x7fff_0000;
const ERRNO: u32 = 0x0005_0000;
const KILL_PROCESS: u32 = 0x8000_0000;

fn profile(json: Value) -> LinuxSeccomp {
    serde_json::from_value(json).expect("a profile")
}

fn bundle() -> LinuxSeccomp {
    let config: Value = serde_json::from_str(BUNDLE).expect("JSON");
    profile(config.pointer(PROFILE_POINTER).expect("a profile").clone())
}

fn compiled(json: Value) -> Program {
    compile(&profile(json)).expect("compiled")
}

fn by_name(program: &Program, name: &str, arguments: &[u64]) -> u32 {
    decide(program, &Call::new(numbers::number(name).expect("known"), arguments))
}

/// A profile that refuses all but what the rules allow.
#[allow(clippy::needless_pass_by_value, reason = "tests write `json!` in place")]
fn strict(rules: Value) -> Value {
    json!({"defaultAction": "SCMP_ACT_ERRNO", "syscalls": rules})
}

#[test]
fn a_small_program_is_as_short_as_it_can_be() {
    let json = strict(json!([
        {"names": ["read", "write"], "action": "SCMP_ACT_ALLOW"},
        {"names": ["close"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": 0x1_0000_0002_u64, "op": "SCMP_CMP_GT"}]},
    ]));
    let program = compiled(json.clone());
    let shown = format!("{json:#}\n\n{}", listing(&program));
    if cfg!(target_arch = "x86_64") {
        insta::assert_snapshot!(shown); // numbers differ elsewhere
    }
}

#[test]
fn every_operator_compares_all_64_bits() {
    const VALUES: [u64; 11] = [
        0,
        1,
        2,
        0x7fff_ffff,
        0xffff_ffff,
        1 << 32,
        (1 << 32) + 1,
        (2 << 32) + 1,
        1 << 63,
        u64::MAX - 1,
        u64::MAX,
    ];
    type Test = fn(u64, u64) -> bool;
    let operators: [(&str, Test); 6] = [
        ("SCMP_CMP_NE", |a, b| a != b),
        ("SCMP_CMP_LT", |a, b| a < b),
        ("SCMP_CMP_LE", |a, b| a <= b),
        ("SCMP_CMP_EQ", |a, b| a == b),
        ("SCMP_CMP_GE", |a, b| a >= b),
        ("SCMP_CMP_GT", |a, b| a > b),
    ];
    let check = |argument: Value, holds: &dyn Fn(u64) -> bool| {
        for index in 0..6 {
            let mut argument = argument.clone();
            argument["index"] = json!(index);
            let rule = json!([{"names": ["read"], "action": "SCMP_ACT_ALLOW", "args": [argument]}]);
            let program = compiled(strict(rule));
            for value in VALUES {
                let mut arguments = [0x5555_5555_5555_5555; 6];
                arguments[index] = value;
                let expected = if holds(value) { ALLOW } else { ERRNO | 1 };
                assert_eq!(by_name(&program, "read", &arguments), expected, "{value:#x} {argument}");
            }
        }
    };
    for value in VALUES {
        for (operator, test) in operators {
            check(json!({"value": value, "valueTwo": 7, "op": operator}), &|given| test(given, value));
        }
        for second in VALUES {
            let argument = json!({"value": value, "valueTwo": second, "op": "SCMP_CMP_MASKED_EQ"});
            check(argument, &|given| given & value == second & value);
        }
    }
}

#[test]
fn a_rule_without_conditions_decides_and_the_first_of_several() {
    let program = compiled(strict(json!([
        {"names": ["read"], "action": "SCMP_ACT_ERRNO", "errnoRet": 5, "args": [{"index": 0, "value": 0, "op": "SCMP_CMP_EQ"}]},
        {"names": ["read", "write"], "action": "SCMP_ACT_ALLOW"},
        {"names": ["read", "write"], "action": "SCMP_ACT_KILL_PROCESS"},
        {"names": ["close"], "action": "SCMP_ACT_ERRNO"},
        {"names": ["close"], "action": "SCMP_ACT_ALLOW"},
    ])));
    for name in ["read", "write", "close"] {
        assert_eq!(by_name(&program, name, &[0]), ALLOW, "{name}");
    }
}

#[test]
fn conditions_of_a_rule_must_all_hold_but_for_those_on_one_argument() {
    let on = |index: usize, value: u64| json!({"index": index, "value": value, "op": "SCMP_CMP_EQ"});
    let rule = |arguments: Value| {
        strict(json!([{"names": ["read"], "action": "SCMP_ACT_ALLOW", "args": arguments}]))
    };
    let both = compiled(rule(json!([on(0, 1), on(1, 2)])));
    let either = compiled(rule(json!([on(0, 1), on(0, 2)])));
    for (program, arguments, expected) in [
        (&both, [1, 2], ALLOW),
        (&both, [1, 3], ERRNO | 1),
        (&both, [3, 2], ERRNO | 1),
        (&either, [1, 9], ALLOW),
        (&either, [2, 9], ALLOW),
        (&either, [3, 9], ERRNO | 1),
    ] {
        assert_eq!(by_name(program, "read", &arguments), expected, "{arguments:?}");
    }
}

#[test]
fn other_architectures_end_the_process_whatever_the_profile_says() {
    for default in ["SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO"] {
        for listed in [json!(null), json!(["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"])] {
            let program = compiled(json!({"defaultAction": default, "architectures": listed}));
            for architecture in [machine::I386, machine::ARM, 0, u32::MAX] {
                for number in [0, 1, 59, 400] {
                    let call = Call { architecture, ..Call::new(number, &[]) };
                    assert_eq!(decide(&program, &call), KILL_PROCESS);
                }
            }
            let x32 = decide(&program, &Call::new(0x4000_0027, &[]));
            assert_eq!(x32 == KILL_PROCESS, cfg!(target_arch = "x86_64"), "{x32:#x}");
        }
    }
}

#[test]
fn calls_newer_than_the_profile_are_not_there() {
    let newest = |default: &str, number: u32| {
        let rules = json!([{"names": ["openat2", "read"], "action": "SCMP_ACT_ALLOW"}]);
        decide(&compiled(json!({"defaultAction": default, "syscalls": rules})), &Call::new(number, &[]))
    };
    let openat2 = numbers::number("openat2").expect("known");
    assert_eq!(newest("SCMP_ACT_ERRNO", openat2 - 1), ERRNO | 1);
    assert_eq!(newest("SCMP_ACT_ERRNO", openat2), ALLOW);
    for number in [openat2 + 1, 460, 600, 0x3fff_ffff] {
        assert_eq!(newest("SCMP_ACT_ERRNO", number), ERRNO | ENOSYS);
        assert_eq!(newest("SCMP_ACT_ALLOW", number), ALLOW);
        assert_eq!(newest("SCMP_ACT_KILL_PROCESS", number), KILL_PROCESS);
    }
    assert_eq!(newest("SCMP_ACT_ERRNO", u32::MAX) & 0xffff_0000, ERRNO);
}

#[test]
fn actions_are_the_kernels() {
    for (action, errno, expected) in [
        ("SCMP_ACT_KILL", None, 0),
        ("SCMP_ACT_KILL_THREAD", None, 0),
        ("SCMP_ACT_KILL_PROCESS", None, KILL_PROCESS),
        ("SCMP_ACT_TRAP", None, 0x0003_0000),
        ("SCMP_ACT_ERRNO", None, 0x0005_0001),
        ("SCMP_ACT_ERRNO", Some(0), 0x0005_0000),
        ("SCMP_ACT_ERRNO", Some(4095), 0x0005_0fff),
        ("SCMP_ACT_TRACE", None, 0x7ff0_0001),
        ("SCMP_ACT_TRACE", Some(65535), 0x7ff0_ffff),
        ("SCMP_ACT_LOG", None, 0x7ffc_0000),
        ("SCMP_ACT_ALLOW", None, ALLOW),
    ] {
        let rule = json!([{"names": ["read"], "action": action, "errnoRet": errno}]);
        let program = compiled(json!({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": rule}));
        assert_eq!(by_name(&program, "read", &[]), expected, "{action}");
        let program = compiled(json!({"defaultAction": action, "defaultErrnoRet": errno}));
        assert_eq!(by_name(&program, "read", &[]), expected, "default {action}");
    }
}

#[test]
fn what_has_no_meaning_is_refused_at_its_place() {
    let argument = |index: u64| json!([{"index": index, "value": 0, "op": "SCMP_CMP_EQ"}]);
    for (json, expected) in [
        (
            strict(json!([{"names": ["read"], "action": "SCMP_ACT_NOTIFY"}])),
            "config.json: /linux/seccomp/listenerPath: `SCMP_ACT_NOTIFY` needs `listenerPath`",
        ),
        (
            json!({"defaultAction": "SCMP_ACT_NOTIFY", "listenerPath": ""}),
            "config.json: /linux/seccomp/listenerPath: `SCMP_ACT_NOTIFY` needs `listenerPath`",
        ),
        (
            json!({"defaultAction": "SCMP_ACT_NOTIFY", "listenerPath": "run/agent"}),
            "config.json: /linux/seccomp/listenerPath: `run/agent` is not an absolute path",
        ),
        (
            json!({"defaultAction": "SCMP_ACT_NOTIFY", "listenerPath": "/run/agent", "defaultErrnoRet": 1}),
            "config.json: /linux/seccomp/defaultErrnoRet: `SCMP_ACT_NOTIFY` does not return an error number",
        ),
        (
            json!({"defaultAction": "SCMP_ACT_ALLOW", "defaultErrnoRet": 1}),
            "config.json: /linux/seccomp/defaultErrnoRet: `SCMP_ACT_ALLOW` does not return an error number",
        ),
        (
            strict(json!([{"names": ["read"], "action": "SCMP_ACT_ERRNO", "errnoRet": 4096}])),
            "config.json: /linux/seccomp/syscalls/0/errnoRet: 4096 is not an error number: the highest is 4095",
        ),
        (
            strict(json!([{"names": ["read"], "action": "SCMP_ACT_ALLOW", "args": argument(6)}])),
            "config.json: /linux/seccomp/syscalls/0/args/0/index: invalid argument index 6: it must be 0 to 5",
        ),
        (
            strict(json!([{"names": ["read"], "action": "SCMP_ACT_ALLOW", "args": argument(1 << 32)}])),
            "config.json: /linux/seccomp/syscalls/0/args/0/index: invalid argument index 4294967296: it must be 0 to 5",
        ),
        (
            json!({"defaultAction": "SCMP_ACT_ALLOW", "listenerMetadata": "x"}),
            "config.json: /linux/seccomp/listenerMetadata: `listenerMetadata` needs `listenerPath`",
        ),
    ] {
        assert_eq!(compile(&profile(json)).expect_err("refused").to_string(), expected);
    }
}

/// The kernel refuses to wait for an agent where there is none, so the flags follow from what the filter returns.
#[test]
fn a_filter_has_a_listener_where_a_call_is_notified() {
    let flags = |action: &str| {
        let wait = json!(["SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV"]);
        let calls = json!([{"names": ["read"], "action": action}]);
        let json = json!({
            "defaultAction": "SCMP_ACT_ALLOW", "syscalls": calls, "listenerPath": "/run/agent", "flags": wait
        });
        let program = compile(&profile(json)).expect("a filter");
        (program.notifies(), program.flags)
    };
    let both = SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    assert_eq!(flags("SCMP_ACT_NOTIFY"), (true, both));
    assert_eq!(flags("SCMP_ACT_ERRNO"), (false, 0));
}

#[test]
fn too_many_rules_are_refused_and_long_jumps_reach() {
    let rules = |count: u64| {
        let rules: Vec<Value> = (0..count)
            .map(|value| {
                let name = ["read", "getpid", "openat2"][usize::try_from(value % 3).expect("small")];
                let argument = json!({"index": value % 6, "value": value, "op": "SCMP_CMP_EQ"});
                json!({"names": [name], "action": "SCMP_ACT_ALLOW", "args": [argument]})
            })
            .collect();
        profile(strict(json!(rules)))
    };
    let program = compile(&rules(700)).expect("fits");
    for value in 0..700 {
        let name = ["read", "getpid", "openat2"][value % 3];
        let mut arguments = [u64::MAX; 6];
        arguments[value % 6] = value as u64;
        assert_eq!(by_name(&program, name, &arguments), ALLOW, "rule {value}");
        arguments[value % 6] = 800;
        assert_eq!(by_name(&program, name, &arguments), ERRNO | 1, "rule {value}");
    }
    let error = compile(&rules(1000)).expect_err("too long");
    assert_eq!(error.pointer(), Some("/linux/seccomp/syscalls"));
}

#[test]
fn unknown_names_are_passed_over_and_kept() {
    let rules = json!([{"names": ["read", "mmap2", "time_travel"], "action": "SCMP_ACT_ALLOW"}]);
    let program = compiled(strict(rules));
    assert_eq!(program.unknown, ["mmap2", "time_travel"]);
    assert_eq!(by_name(&program, "read", &[]), ALLOW);
}

#[test]
fn flags_are_the_kernels_and_some_say_nothing() {
    let flags = |names: &[&str]| compiled(json!({"defaultAction": "SCMP_ACT_ALLOW", "flags": names})).flags;
    assert_eq!(flags(&["SECCOMP_FILTER_FLAG_LOG"]), 2);
    assert_eq!(flags(&["SECCOMP_FILTER_FLAG_LOG", "SECCOMP_FILTER_FLAG_SPEC_ALLOW"]), 6);
    assert_eq!(flags(&["SECCOMP_FILTER_FLAG_TSYNC", "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV"]), 0);
}

#[test]
fn names_and_numbers_are_the_headers_of_this_host() {
    let mut known: Vec<_> = numbers::all().collect();
    assert!(numbers::all().all(|(name, number)| numbers::number(name) == Some(number)), "sorted");
    known.sort_by_key(|(_, number)| *number);
    known.windows(2).for_each(|pair| assert_ne!(pair[0].1, pair[1].1, "{pair:?}"));
    assert_eq!(known.last().map(|(_, number)| number + 1), Some(numbers::END));
    let header = format!("/usr/include/{}-linux-gnu/asm/unistd_64.h", std::env::consts::ARCH);
    let Ok(text) = std::fs::read_to_string(&header) else {
        jobc_test_skip::skip("the headers of Linux");
        return;
    };
    for line in text.lines() {
        if let Some((name, number)) = line.strip_prefix("#define __NR_").and_then(|rest| rest.split_once(' '))
        {
            assert_eq!(
                numbers::number(name).map(|number| number.to_string()).as_deref(),
                Some(number),
                "{name}"
            );
        }
    }
}

#[test]
fn a_bundles_profile_is_kept_for_every_call() {
    let profile = bundle();
    let program = compile(&profile).expect("compiled");
    for arguments in [[0; 6], [0x7e02_0000, 0, 0, 0, 0, 0], [40, 1, 0, 0, 0, 0], [0xffff_ffff, 1, 2, 3, 4, 5]]
    {
        for number in 0..600 {
            let call = Call::new(number, &arguments);
            assert_eq!(decide(&program, &call), semantics::of(&profile, &call), "{call:?}");
        }
    }
    assert_eq!(by_name(&program, "clone", &[0x1000_0000]), ERRNO | 1, "a user namespace");
    assert_eq!(by_name(&program, "clone", &[0x0011]), ALLOW);
    assert_eq!(by_name(&program, "clone3", &[]), ERRNO | ENOSYS);
    assert_eq!(by_name(&program, "socket", &[40]), ERRNO | 1);
    assert_eq!(by_name(&program, "mount", &[]), ERRNO | 1);
    let steps = (0..500).map(|number| machine::steps(&program, &Call::new(number, &[]))).max();
    assert!(steps < Some(25), "{steps:?} instructions for a call");
}

fn some_profile() -> impl Strategy<Value = Value> {
    let names = ["read", "write", "close", "openat", "ioctl", "openat2", "getpid", "clone", "mseal", "mmap2"];
    let values = prop::sample::select(vec![0_u64, 1, 2, 0xffff_ffff, 1 << 32, (1 << 32) + 1, u64::MAX]);
    let operators = ["NE", "LT", "LE", "EQ", "GE", "GT", "MASKED_EQ"].map(|name| format!("SCMP_CMP_{name}"));
    let argument = (0_usize..6, values.clone(), prop::option::of(values), prop::sample::select(operators.to_vec()))
        .prop_map(|(index, value, second, op)| json!({"index": index, "value": value, "valueTwo": second, "op": op}));
    let action = prop_oneof![
        prop::sample::select(vec!["ALLOW", "LOG", "TRAP", "KILL", "KILL_PROCESS"])
            .prop_map(|name| (name, None)),
        prop::option::of(0_u32..4096).prop_map(|errno| ("ERRNO", errno)),
        prop::option::of(0_u32..65536).prop_map(|errno| ("TRACE", errno)),
    ];
    let action = action.prop_map(|(name, errno)| (format!("SCMP_ACT_{name}"), errno));
    let rule = (
        prop::collection::vec(prop::sample::select(names.to_vec()), 1..4),
        action.clone(),
        prop::collection::vec(argument, 0..4),
    )
        .prop_map(|(names, (action, errno), arguments)| {
            json!({"names": names, "action": action, "errnoRet": errno, "args": arguments})
        });
    (action, prop::collection::vec(rule, 0..12)).prop_map(|((action, errno), rules)| {
        json!({"defaultAction": action, "defaultErrnoRet": errno, "syscalls": rules})
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_program_does_what_its_profile_says(
        json in some_profile(),
        arguments in prop::collection::vec(
            prop::array::uniform6(prop::sample::select(vec![0_u64, 1, 2, 3, 0xffff_ffff, 1 << 32, u64::MAX])),
            1..12,
        ),
    ) {
        let profile = profile(json);
        let program = compile(&profile).expect("compiled");
        machine::verify(&program);
        for arguments in arguments {
            for number in (0..600).chain([0x3fff_ffff, 0x4000_0000, 0x4000_0001, 0xffff_fffe, 0xffff_ffff]) {
                let call = Call::new(number, &arguments);
                prop_assert_eq!(decide(&program, &call), semantics::of(&profile, &call), "{:?}", call);
            }
        }
    }
}

/// Run with `--ignored --nocapture`: how long a bundle's profile takes and how long its program is.
#[test]
#[ignore = "a measurement"]
fn time_to_compile() {
    let profile = bundle();
    let mut times: Vec<Duration> = (0..2_000)
        .map(|_| {
            let started = Instant::now();
            std::hint::black_box(compile(&profile).expect("compiled"));
            started.elapsed()
        })
        .collect();
    times.sort();
    let program = compile(&profile).expect("compiled");
    let steps: Vec<usize> =
        (0..470).map(|number| machine::steps(&program, &Call::new(number, &[]))).collect();
    let names: usize = profile.syscalls().iter().flatten().map(|call| call.names().len()).sum();
    println!(
        "{names} names: {} instructions, at most {} for a call, {} on average; median {:?}, 95 % {:?}",
        program.instructions.len(),
        steps.iter().max().expect("some"),
        steps.iter().sum::<usize>() / steps.len(),
        times[1_000],
        times[1_900],
    );
}
