use serde_json::{Value, json};

use super::*;

/// A configuration in which nothing is wrong, with what the patches below need.
fn sound() -> Value {
    json!({
        "ociVersion": "1.1.0",
        "root": {"path": "rootfs"},
        "process": {"cwd": "/", "args": ["sh"], "env": ["PATH=/bin"], "user": {"uid": 0, "gid": 0}},
        "linux": {"namespaces": [{"type": "mount"}, {"type": "pid"}, {"type": "uts"}, {"type": "network"}]}
    })
}

/// Puts a patch over a document: objects are merged, `null` removes, anything else replaces (RFC 7396).
fn merge(document: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *document = patch.clone();
        return;
    };
    if !document.is_object() {
        *document = json!({});
    }
    let document = document.as_object_mut().expect("an object");
    for (key, value) in patch {
        if value.is_null() {
            document.remove(key);
        } else {
            merge(document.entry(key).or_insert(Value::Null), value);
        }
    }
}

/// The change to a valid configuration, and the findings.
fn check(patch: &Value) -> String {
    let mut document = sound();
    merge(&mut document, patch);
    let config = Config::read(document.to_string().as_bytes()).expect("a configuration");
    let mut text = format!("{patch}\n");
    for error in config.check() {
        assert!(
            !error.message().ends_with('.') && !error.message().starts_with(char::is_uppercase),
            "{error}"
        );
        text += &format!("    {error}\n");
        text += &error.advice().map(|help| format!("        {help}\n")).unwrap_or_default();
    }
    text
}

fn all<const N: usize>(patches: &[Value; N]) -> String {
    patches.iter().map(check).collect()
}

#[test]
fn nothing_is_wrong_with_a_sound_configuration() {
    assert_eq!(check(&json!({})), "{}\n");
}

#[test]
fn top_level_fields_are_checked() {
    let found = all(&[
        json!({"ociVersion": "1.0.2-dev"}),
        json!({"ociVersion": "1.3.0+x"}),
        json!({"ociVersion": "1.4.0"}),
        json!({"ociVersion": "0.9.0"}),
        json!({"ociVersion": "2.0.0"}),
        json!({"ociVersion": "one"}),
        json!({"ociVersion": "1.1"}),
        json!({"ociVersion": null}),
        json!({"root": null}),
        json!({"root": {"path": ""}}),
        json!({"root": {"path": "a\u{0}b"}}),
        json!({"process": null}),
        json!({"linux": null}),
        json!({"hostname": "h".repeat(65)}),
        json!({"hostname": "h", "domainname": "d\u{0}", "linux": {"namespaces": [{"type": "mount"}]}}),
        json!({"hostname": "", "linux": {"namespaces": [{"type": "mount"}]}}),
        json!({
            "hostname": "h", "domainname": "d",
            "linux": {"namespaces": [{"type": "mount"}, {"type": "uts", "path": "/proc/self/ns/uts"}]}
        }),
    ]);
    insta::assert_snapshot!(found);
}

#[test]
fn process_fields_are_checked() {
    let found = all(&[
        json!({"process": {"args": []}}),
        json!({"process": {"args": null}}),
        json!({"process": {"args": [""]}}),
        json!({"process": {"args": ["a", "b\u{0}"]}}),
        json!({"process": {"env": ["A=1", "B", "=C", "D=\u{0}", "E="]}}),
        json!({"process": {"cwd": "work"}}),
        json!({"process": {"cwd": ""}}),
        json!({"process": {"cwd": "/a\u{0}"}}),
        json!({"process": {"consoleSize": {"height": 25, "width": 80}}}),
        json!({"process": {"consoleSize": {"height": 25, "width": 65536}}}),
        json!({"process": {"user": {"uid": u32::MAX}}}),
        json!({"process": {"rlimits": [{"type": "RLIMIT_CORE", "soft": 1, "hard": 0}]}}),
        json!({"process": {"oomScoreAdj": -1001}}),
        json!({"process": {"oomScoreAdj": 1000}}),
        json!({"process": {"scheduler": {"policy": "SCHED_RR"}}}),
        json!({"process": {"ioPriority": {"class": "IOPRIO_CLASS_BE", "priority": 9}}}),
        json!({"process": {"capabilities": {"effective": ["CAP_KILL", "CAP_CHOWN"], "permitted": ["CAP_CHOWN"]}}}),
    ]);
    insta::assert_snapshot!(found);
}

#[test]
fn mounts() {
    let mounts = |list: Value| json!({"mounts": list});
    let one = json!([{"containerID": 0, "hostID": 1000, "size": 1}]);
    let wrong = json!([{"containerID": 0, "hostID": 1000, "size": 0}]);
    let bind = json!({"destination": "/a", "type": "bind", "source": "/b"});
    let in_user_namespace = json!({
        "mounts": [{"destination": "/a", "type": "bind", "source": "/b", "options": ["idmap"]}],
        "linux": {"namespaces": [{"type": "mount"}, {"type": "user"}], "uidMappings": one, "gidMappings": one}
    });
    let owners = |more: Value| {
        let mut mount = bind.clone();
        merge(&mut mount, &more);
        mounts(json!([mount]))
    };
    let found = all(&[
        mounts(json!([{"destination": "/proc", "type": "proc"}, {"destination": "data", "type": "tmpfs"}])),
        mounts(json!([{"destination": "/", "type": "tmpfs"}])),
        mounts(json!([{"destination": "/a/../..", "type": "tmpfs"}])),
        mounts(json!([{"destination": "/a\u{0}", "type": "tm\u{0}", "source": "\u{0}"}])),
        mounts(json!([{"destination": "/a"}])),
        mounts(json!([{"destination": "/a", "type": "none", "source": "/b"}])),
        mounts(json!([{"destination": "/a", "type": "none", "source": "/b", "options": ["bind"]}])),
        mounts(json!([{"destination": "/a", "type": "bind", "source": "/b"}])),
        mounts(json!([{"destination": "/a", "options": ["rbind"]}])),
        mounts(json!([{"destination": "/a", "type": "bind", "source": ""}])),
        mounts(json!([{"destination": "/a", "type": "tmpfs", "options": ["size=1m", "nosiud", "remount"]}])),
        owners(json!({"uidMappings": one, "gidMappings": one})),
        owners(json!({"uidMappings": one, "gidMappings": one, "options": ["ridmap"]})),
        owners(json!({"uidMappings": one, "gidMappings": [], "options": ["idmap"]})),
        owners(json!({"uidMappings": [], "gidMappings": one})),
        owners(json!({"uidMappings": one, "gidMappings": wrong})),
        owners(json!({"options": ["idmap"]})),
        owners(json!({"type": "tmpfs", "uidMappings": one, "gidMappings": one, "options": ["idmap"]})),
        in_user_namespace,
    ]);
    insta::assert_snapshot!(found);
}

#[test]
fn namespaces_and_ids() {
    let one = json!([{"containerID": 0, "hostID": 1000, "size": 1}]);
    let spaces = |list: Value| json!({"linux": {"namespaces": list}});
    let found = all(&[
        spaces(json!([{"type": "pid"}])),
        spaces(json!([{"type": "mount"}, {"type": "pid"}, {"type": "pid", "path": "/proc/1/ns/pid"}])),
        spaces(json!([{"type": "mount", "path": "/proc/self/ns/mnt"}])),
        spaces(json!([{"type": "mount", "path": ""}])),
        spaces(json!([{"type": "mount"}, {"type": "network", "path": "ns/net"}])),
        spaces(json!([{"type": "mount"}, {"type": "user"}])),
        spaces(json!([{"type": "mount"}, {"type": "user", "path": "/proc/1/ns/user"}])),
        json!({"linux": {"uidMappings": one, "gidMappings": one}}),
        json!({"linux": {"namespaces": [{"type": "mount"}, {"type": "user"}], "uidMappings": one}}),
        json!({"linux": {"namespaces": [{"type": "mount"}, {"type": "user"}], "uidMappings": one, "gidMappings": one}}),
        json!({
            "linux": {"namespaces": [{"type": "mount"}, {"type": "user"}], "uidMappings": one, "gidMappings": one},
            "process": {"user": {"uid": 1, "gid": 2, "additionalGids": [0, 3]}}
        }),
        json!({"linux": {"timeOffsets": {"monotonic": {"secs": 1}}}}),
        json!({"linux": {
            "namespaces": [{"type": "mount"}, {"type": "time"}],
            "timeOffsets": {"boottime": {"nanosecs": 1_000_000_000}, "realtime": {"secs": 1}}
        }}),
        json!({"linux": {
            "namespaces": [{"type": "mount"}, {"type": "time", "path": "/proc/1/ns/time"}],
            "timeOffsets": {"boottime": {"secs": 1}}
        }}),
    ]);
    insta::assert_snapshot!(found);
}

#[test]
fn other_linux_fields_are_checked() {
    let found = all(&[
        json!({"linux": {"sysctl": {"net.core.somaxconn": "1", "kernel.sem": "1", "vm.swappiness": "1"}}}),
        json!({"linux": {"devices": [
            {"path": "/dev/fuse", "type": "c", "major": 10, "minor": 229},
            {"path": "/dev/fuse", "type": "u", "major": 10, "minor": 229},
            {"path": "pipe", "type": "p"},
            {"path": "/dev/all", "type": "a"},
            {"path": "/dev/x", "type": "b", "major": 4096, "minor": 1_048_576, "uid": u32::MAX, "gid": u32::MAX},
            {"path": "/dev/y", "type": "c", "major": -1, "minor": 4}
        ]}}),
        json!({"linux": {"resources": {"devices": [
            {"allow": false, "access": "rwm"},
            {"allow": true, "type": "c", "major": -1, "minor": -1, "access": "rx"},
            {"allow": true, "type": "p", "major": -2, "minor": 4_294_967_296_i64}
        ]}}}),
        json!({"linux": {"rootfsPropagation": "rslave"}}),
        json!({"linux": {"rootfsPropagation": ""}}),
        json!({"linux": {"rootfsPropagation": "ro"}}),
        json!({"linux": {"rootfsPropagation": "rshared"}}),
        json!({"linux": {"resources": {
            "memory": {"limit": -7, "reservation": -2, "swap": -1}, "cpu": {"quota": -3}, "pids": {"limit": -4}
        }}}),
        json!({"linux": {"maskedPaths": ["/proc/kcore", "proc/keys"], "readonlyPaths": ["", "/a\u{0}"]}}),
        json!({"linux": {"cgroupsPath": "/jobc/../../evil"}}),
        json!({"linux": {"cgroupsPath": "system.slice:jobc:one"}}),
        json!({"linux": {"personality": {"domain": "LINUX32", "flags": ["x"]}}}),
    ]);
    insta::assert_snapshot!(found);
}

#[test]
fn hooks_of_every_stage() {
    let found = all(&[
        json!({"hooks": {"prestart": [{"path": "/bin/true", "args": ["true"], "env": ["A=1"], "timeout": 5}]}}),
        json!({"hooks": {"createRuntime": [{"path": "/bin/true"}, {"path": "true"}]}}),
        json!({"hooks": {"createContainer": [{"path": "/a\u{0}", "args": ["\u{0}"]}]}}),
        json!({"hooks": {"startContainer": [{"path": "/a", "env": ["A"]}]}}),
        json!({"hooks": {"poststart": [{"path": "/a", "timeout": 0}]}}),
        json!({"hooks": {"poststop": [{"path": "/a", "timeout": -1}]}}),
    ]);
    insta::assert_snapshot!(found);
}

#[test]
fn several_mistakes_are_reported_at_once() {
    let text =
        check(&json!({"root": null, "process": {"cwd": "a", "args": []}, "windows": {"servicing": true}}));
    assert_eq!(text.matches("config.json: ").count(), 4, "{text}");
}

#[test]
fn a_refusal_names_every_place() {
    let refusal = |patch: Value| {
        let mut document = sound();
        merge(&mut document, &patch);
        Config::read(document.to_string().as_bytes()).expect("a configuration").refuse()
    };
    assert_eq!(refusal(json!({})), Ok(()));
    let error = refusal(json!({"process": {"cwd": "a", "oomScoreAdj": 2000}, "root": {"path": ""}}))
        .expect_err("wrong");
    assert_eq!(error.to_string(), "config.json: /root/path: the root path is empty");
    let help =
        "write `rootfs`, or the path of a directory; then see also `/process/cwd`, `/process/oomScoreAdj`";
    assert_eq!(error.advice().as_deref(), Some(help));
    let alone = refusal(json!({"root": {"path": ""}})).expect_err("wrong");
    assert_eq!(alone.advice().as_deref(), Some("write `rootfs`, or the path of a directory"));
}

#[test]
fn what_the_kernel_gives_no_program_is_reported_before() {
    let longest = 32 * rustix::param::page_size() - 1;
    let (fits, long) = ("x".repeat(longest), "x".repeat(longest + 1));
    let wrong = |patch: Value| check(&patch).replace(&long, "…").replace(&fits, "…");
    assert!(!wrong(json!({"process": {"args": ["a", fits]}})).contains("config.json"));
    let output = wrong(json!({"process": {"args": ["a", long]}}));
    let expected = format!(
        "config.json: /process/args/1: an argument of {} bytes, but the kernel allows at most {longest}\n",
        longest + 1
    );
    assert!(output.contains(&expected), "{output}");
    let output = wrong(json!({"process": {"env": [format!("A={fits}")]}}));
    let expected = format!(
        "config.json: /process/env/0: a variable of {} bytes, but the kernel allows at most {longest}\n",
        longest + 2
    );
    assert!(output.contains(&expected), "{output}");
}
