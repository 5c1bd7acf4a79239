//! Paths of groups.

use super::*;

/// How a path is read, or why not.
fn check(written: Option<&str>) -> String {
    match GroupPath::of(written, "demo") {
        Ok(path) => format!(
            "{} {}",
            if path.absolute { "from the root" } else { "from here" },
            path.names.join(" > ")
        ),
        Err(error) => format!("{error}; {}", error.advice().unwrap_or_default()),
    }
}

#[test]
fn paths_that_name_a_group() {
    assert_eq!(check(None), "from the root jobc > demo");
    assert_eq!(check(Some("")), "from the root jobc > demo");
    assert_eq!(check(Some("/a/b.c/d_e-f")), "from the root a > b.c > d_e-f");
    assert_eq!(check(Some("a/b/")), "from here a > b");
    assert_eq!(check(Some("/a:b:c/d")), "from the root a:b:c > d");
    assert_eq!(check(Some("/..x/y..")), "from the root ..x > y..");
}

#[test]
fn paths_that_could_lead_elsewhere() {
    for path in ["/a/../b", "..", "/..", "a/./b", "/a//b", "/", "///", "a/\u{1}b", "/a\nb"] {
        let output = check(Some(path));
        assert!(output.starts_with("config.json: /linux/cgroupsPath: `"), "{output}");
        assert!(output.contains("such as `/jobc/demo`"), "{output}");
    }
    let long = format!("/a/{}", "x".repeat(256));
    assert!(check(Some(&long)).contains("more than 255 bytes"));
    insta::assert_snapshot!(check(Some("/a/../b")), @"config.json: /linux/cgroupsPath: `/a/../b` contains `.` or `..`; write directory names with single slashes between them, such as `/jobc/demo`");
    insta::assert_snapshot!(check(Some("system.slice:jobc:demo")), @"config.json: /linux/cgroupsPath: `system.slice:jobc:demo` names a systemd unit, but systemd does not create the cgroup here; pass `--systemd-cgroup` to `jobc oci`, or write a cgroup path, such as `/jobc/demo`");
}
