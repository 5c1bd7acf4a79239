//! Large files: validation is linear, and shows a hundred findings per code instead of ten thousand.

use std::fmt::Write as _;

use super::findings;

fn many(role: &str) -> String {
    let mut text = String::from("version: 1\nname: x\nroles:\n");
    for index in 0..10_000 {
        let _ = writeln!(text, "  r{index}: {role}");
    }
    text
}

#[test]
fn ten_thousand_valid_roles_are_accepted() {
    let (_, found) =
        findings(&many("{run: x, resources: {cpu: 8, memory: 32GiB, gpu: {count: 1}}, env: {A: b}}"));
    assert!(found.is_empty(), "{:?}", found.first());
}

#[test]
fn a_hundred_of_ten_thousand_errors_are_shown() {
    let check = |role: &str, code: &str, more: &str| {
        let (_, found) = findings(&many(role));
        let of_code: Vec<_> = found.iter().filter(|d| d.code.as_str() == code).collect();
        assert_eq!(of_code.len(), 101, "{role}");
        assert!(of_code.iter().any(|d| d.message.starts_with(more)), "{:?}", of_code.last());
    };
    check("{ron: x}", "J0101", "9900 more mistakes");
    check("{run: 5}", "J0103", "9900 more mistakes");
    check("{setup: x}", "J0116", "9900 more mistakes");
    check("{run: x, resources: {memory: 1_0}}", "J0105", "9900 more mistakes");
}

#[test]
fn one_map_with_ten_thousand_unknown_keys() {
    let mut text = String::from("version: 1\nname: x\nroles: {a: {run: x}}\n");
    for index in 0..10_000 {
        let _ = writeln!(text, "zzz{index}: 1");
    }
    let (_, found) = findings(&text);
    assert_eq!(found.len(), 101);
}
