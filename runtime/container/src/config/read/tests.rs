use super::*;

/// A text, and the findings below it.
fn check(text: &str) -> String {
    let output = match Config::read(text.as_bytes()) {
        Ok(config) if config.unknown.is_empty() => "read\n".to_owned(),
        Ok(config) => format!("unknown: {}\n", config.unknown.join(" ")),
        Err(error) => {
            format!("{error}\n")
                + &error.hints.iter().map(|help| format!("  help: {help}\n")).collect::<String>()
        }
    };
    format!("{text}\n{output}\n")
}

#[test]
fn texts_that_are_not_json() {
    let deep = "[".repeat(200);
    let cases = [
        "",
        "{",
        "{\n  \"root\": {\"path\": \"x\"",
        "{\"ociVersion\": 1.}",
        "{} {}",
        "hello",
        &deep,
        "\u{feff}{}",
    ];
    insta::assert_snapshot!(cases.map(check).concat());
}

#[test]
fn values_of_the_wrong_type() {
    let cases = [
        " [\"1.1.0\"]",
        "null",
        r#"{"ociVersion": 1}"#,
        "{\n  \"root\": {\n    \"path\": \"rootfs\",\n    \"readonly\": \"yes\"\n  }\n}",
        r#"{"mounts": [{"destination": "/a"}, {"type": "tmpfs"}]}"#,
        r#"{"mounts": {"destination": "/a"}}"#,
        r#"{"mounts": [{"destination": "/a", "options": "ro"}]}"#,
        r#"{"process": {"cwd": "/", "user": {"uid": -1}}}"#,
        r#"{"process": {"cwd": "/", "user": {"uid": 4294967296}}}"#,
        r#"{"process": {"cwd": "/", "user": {}, "oomScoreAdj": 1.5}}"#,
        r#"{"process": {"cwd": "/", "user": {}, "args": ["a", null]}}"#,
        r#"{"process": {"cwd": "/", "user": {}, "capabilities": {"bounding": ["CAP_KILL", "CAP_FLY"]}}}"#,
        r#"{"process": {"cwd": "/", "user": {}, "rlimits": [{"type": "RLIMIT_COFFEE", "hard": 1, "soft": 1}]}}"#,
        r#"{"process": {"user": {}}}"#,
        r#"{"linux": {"namespaces": [{"type": "pid"}, {"type": "wormhole"}]}}"#,
        r#"{"linux": {"namespaces": [{"type": 7}]}}"#,
        r#"{"linux": {"devices": [{"path": "/dev/x", "type": "z"}]}}"#,
        r#"{"linux": {"resources": {"memory": {"limit": "1g"}}}}"#,
        r#"{"linux": {"resources": {"blockIO": {"weight": 70000}}}}"#,
        r#"{"linux": {"seccomp": {"syscalls": []}}}"#,
        r#"{"linux": {"seccomp": {"defaultAction": "SCMP_ACT_DANCE"}}}"#,
        r#"{"annotations": {"a/b~c": 1}}"#,
        r#"{"hostname": "a", "hostname": "b"}"#,
    ];
    insta::assert_snapshot!(cases.map(check).concat());
}

#[test]
fn unknown_properties_are_found_everywhere() {
    let cases = [
        "{}",
        r#"{"ociVersion": "1.1.0", "com.example/x~y": 1, "process": {"cwd": "/", "user": {"shell": "/bin/sh"}}}"#,
        r#"{"mounts": [{"destination": "/a"}, {"destination": "/b", "readOnly": true}]}"#,
        r#"{"linux": {"resources": {"memory": {"limt": 1}, "cpus": {"a": {"b": 1}}}, "namespaces": [{"type": "pid", "pth": ""}]}}"#,
        r#"{"hooks": {"prestrat": []}, "annotations": {"anything": "goes"}}"#,
        r#"{"uidMappings": [], "gidMappings": [], "freebsd": {"jail": {}}}"#,
    ];
    insta::assert_snapshot!(cases.map(check).concat());
}
