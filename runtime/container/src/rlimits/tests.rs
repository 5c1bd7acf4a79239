use serde_json::{Value, json};

use super::*;

/// A list of config.json, and the resulting limits or the error.
fn check(limits: &Value) -> String {
    let typed: Vec<PosixRlimit> = serde_json::from_value(limits.clone()).expect("a list of limits");
    let output = match from_config(&typed) {
        Ok(limits) => {
            limits.iter().map(|limit| format!("{:?} ", (limit.name, limit.soft, limit.hard))).collect()
        }
        Err(error) => error.to_string(),
    };
    format!("{limits}\n  {output}\n")
}

#[test]
fn limits_of_config_json() {
    let cases = [
        check(&json!([])),
        check(
            &json!([{"type": "RLIMIT_NOFILE", "soft": 1024, "hard": 4096}, {"type": "RLIMIT_CORE", "soft": 0, "hard": u64::MAX}]),
        ),
        check(&json!([{"type": "RLIMIT_NPROC", "soft": 2, "hard": 1}])),
        check(
            &json!([{"type": "RLIMIT_AS", "soft": 1, "hard": 1}, {"type": "RLIMIT_AS", "soft": 1, "hard": 1}]),
        ),
    ];
    insta::assert_snapshot!(cases.concat());
}

#[test]
fn every_name_is_the_kernel_s_number() {
    // getrlimit(2) on x86-64 and aarch64 (asm-generic/resource.h).
    let numbers = [
        "CPU",
        "FSIZE",
        "DATA",
        "STACK",
        "CORE",
        "RSS",
        "NPROC",
        "NOFILE",
        "MEMLOCK",
        "AS",
        "LOCKS",
        "SIGPENDING",
        "MSGQUEUE",
        "NICE",
        "RTPRIO",
        "RTTIME",
    ];
    for (number, name) in (0..).zip(numbers) {
        let typed: Vec<PosixRlimit> =
            serde_json::from_value(json!([{"type": format!("RLIMIT_{name}"), "soft": 1, "hard": 2}]))
                .expect("a limit");
        let limits = from_config(&typed).expect("a sound limit");
        assert_eq!((limits[0].resource, limits[0].name), (number, format!("RLIMIT_{name}").as_str()));
    }
}
