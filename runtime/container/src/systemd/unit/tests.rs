//! Units from paths.

use super::*;

/// The unit of a path and its parent groups, or why there is none.
fn check(path: Option<&str>, user: bool) -> String {
    match Unit::of(path, "demo", user) {
        Ok(unit) => format!("{} in {}: {}", unit.name, unit.slice, unit.groups().join(" > ")),
        Err(error) => format!("{error}; {}", error.advice().unwrap_or_default()),
    }
}

#[test]
fn paths_that_name_a_unit() {
    let of = |path: &str| check(Some(path), false);
    assert_eq!(check(None, false), "jobc-demo.scope in system.slice: system.slice > jobc-demo.scope");
    assert_eq!(check(Some(""), true), "jobc-demo.scope in user.slice: user.slice > jobc-demo.scope");
    assert_eq!(
        of("system.slice:libpod:7f"),
        "libpod-7f.scope in system.slice: system.slice > libpod-7f.scope"
    );
    assert_eq!(of(":cri:a:b"), "cri-a:b.scope in system.slice: system.slice > cri-a:b.scope");
    assert_eq!(of("x.slice::job"), "job.scope in x.slice: x.slice > job.scope");
    assert_eq!(of("-.slice:a:b"), "a-b.scope in -.slice: a-b.scope");
    assert_eq!(
        of("kube-pods-x.slice:cri:1"),
        "cri-1.scope in kube-pods-x.slice: kube.slice > kube-pods.slice > kube-pods-x.slice > cri-1.scope"
    );
    assert_eq!(of("up.slice::a-b.slice"), "a-b.slice in up.slice: a.slice > a-b.slice");
}

#[test]
fn paths_that_name_none() {
    insta::assert_snapshot!(check(Some("/jobc/demo"), false), @"config.json: /linux/cgroupsPath: `/jobc/demo` does not name a unit, but systemd creates the cgroup; write `slice:prefix:name`, such as `system.slice:jobc:demo`, or leave it empty");
    for (path, why) in [
        ("a.slice:b", "does not name a unit"),
        ("a.slice:b:", "does not name a unit"),
        ("a:b:c", "`a` is not a slice"),
        ("../x.slice:b:c", "contains `/`"),
        ("a.slice:b:c+d", "`b-c+d.scope` contains `+`"),
        ("a.slice:b:c\n", "contains `\\n`"),
        ("a--b.slice:c:d", "a part between its hyphens is empty"),
        ("-a.slice:c:d", "a part between its hyphens is empty"),
        (":c:-d.slice", "a part between its hyphens is empty"),
    ] {
        let output = check(Some(path), false);
        assert!(
            output.starts_with("config.json: /linux/cgroupsPath: ") && output.contains(why),
            "{path}: {output}"
        );
    }
    let long = format!("a.slice:b:{}", "x".repeat(250));
    assert!(check(Some(&long), false).contains("255 bytes"));
}

#[test]
fn the_scope_of_an_application() {
    let of = |name: &str| {
        let unit = Unit::application(name);
        assert_eq!((unit.slice.as_str(), unit.user), ("app.slice", true));
        assert_eq!(super::check(&unit.name), Ok(()), "systemd takes it");
        unit.name
    };
    assert_eq!(of("train.1"), "jobc-train.1.scope");
    assert_eq!(of("run-7_x"), "jobc-run-7_x.scope");
    assert_eq!(of("a+b"), r"jobc-a\x2bb.scope");
    assert!(of(&"x".repeat(255)).len() < 246, "with room for a process's number");
}

#[test]
fn the_unit_that_a_group_lies_in() {
    let of = |group: &str| {
        Unit::containing(Path::new(group), true)
            .map(|(unit, below)| format!("{} in {}: {below}", unit.name, unit.slice))
    };
    let scope = "app.slice/jobc-train.1.scope";
    assert_eq!(of(scope).as_deref(), Some("jobc-train.1.scope in app.slice: "));
    assert_eq!(
        of(&format!("{scope}/jobc/train.1/main-0")).as_deref(),
        Some("jobc-train.1.scope in app.slice: /jobc/train.1/main-0")
    );
    assert_eq!(of("a.slice/a-b.slice/x.service/y").as_deref(), Some("x.service in a-b.slice: /y"));
    assert_eq!(of("x.scope/y.slice").as_deref(), Some("x.scope in -.slice: /y.slice"));
    for none in ["", "app.slice", "jobc/train.1/main-0", "app.slice/jobc/x.scope"] {
        assert_eq!(of(none), None, "{none}");
    }
}
