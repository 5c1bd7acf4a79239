use insta::assert_snapshot;

use super::*;

fn check(names: &[&str]) -> String {
    names
        .iter()
        .map(|name| match Id::new(name) {
            Ok(id) => format!("{id}: fine\n"),
            Err(error) => format!("{error}\n"),
        })
        .collect()
}

#[test]
fn a_name_is_one_part_of_a_path_and_nothing_else() {
    let long = "x".repeat(256);
    assert_snapshot!(check(&["a", "train-0_1+b.c", "...", "-x", &long[1..]]).replace("xxxxxxxx", ""), @r"
    a: fine
    train-0_1+b.c: fine
    ...: fine
    -x: fine
    xxxxxxx: fine
    ");
    assert_snapshot!(check(&["", ".", "..", "a/b", "../x", "a b", "a\nb", "ü", "日本", "a\0", &long]), @r"
    the container's name `` is empty
    the container's name `.` is not allowed
    the container's name `..` is not allowed
    the container's name `a/b` has the character `/`
    the container's name `../x` has the character `/`
    the container's name `a b` has the character ` `
    the container's name `a\nb` has the character `\n`
    the container's name `ü` has the character `ü`
    the container's name `日本` has the character `日`
    the container's name `a\0` has the character `\0`
    the container's name `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx` has 256 bytes, and a directory's name at most 255
    ");
}

#[test]
fn a_time_is_printed_in_utc() {
    // Compared with date(1): `date -u -d @N +%FT%TZ`.
    for (seconds, output) in [
        (0, "1970-01-01T00:00:00Z"),
        (951_782_399, "2000-02-28T23:59:59Z"),
        (951_782_400, "2000-02-29T00:00:00Z"),
        (951_868_800, "2000-03-01T00:00:00Z"),
        (1_795_267_913, "2026-11-21T13:31:53Z"),
        (4_107_542_399, "2100-02-28T23:59:59Z"),
        (4_107_542_400, "2100-03-01T00:00:00Z"),
        (253_402_300_799, "9999-12-31T23:59:59Z"),
    ] {
        assert_eq!(rfc3339(seconds), output);
    }
}

#[test]
fn the_state_is_the_specifications_structure() {
    let config: Spec = serde_json::from_str(
        r#"{"ociVersion": "1.0.2", "root": {"path": "rootfs"}, "annotations": {"b": "2", "a": "1"}}"#,
    )
    .expect("a configuration");
    let record = Record {
        version: 1,
        id: "web".to_owned(),
        bundle: "/bundles/web".into(),
        created: 0,
        owner: 1000,
        process: Some(Process { pid: 42, start_time: 7 }),
        cgroup: None,
        unit: None,
        class: None,
        unenforced: Vec::new(),
        pid_namespace: false,
        removed_by_creator: false,
        poststop: false,
        hooks_inherit_environment: false,
    };
    let output = |status| serde_json::to_string(&record.state(&config, status)).expect("JSON");
    assert_snapshot!(output(Status::Running), @r#"{"ociVersion":"1.3.0","id":"web","pid":42,"status":"running","bundle":"/bundles/web","rootfs":"/bundles/web/rootfs","created":"1970-01-01T00:00:00Z","owner":1000,"annotations":{"a":"1","b":"2"}}"#);
    assert_snapshot!(output(Status::Stopped), @r#"{"ociVersion":"1.3.0","id":"web","pid":0,"status":"stopped","bundle":"/bundles/web","rootfs":"/bundles/web/rootfs","created":"1970-01-01T00:00:00Z","owner":1000,"annotations":{"a":"1","b":"2"}}"#);
}
