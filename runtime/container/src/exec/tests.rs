use insta::assert_snapshot;

use super::*;

const CONTAINER: &str = r#"{
    "ociVersion": "1.0.2",
    "process": {
        "cwd": "/work", "args": ["server"], "terminal": true,
        "env": ["PATH=/bin", "HOME=/root", "EMPTY="],
        "user": {"uid": 5, "gid": 6, "additionalGids": [7]},
        "capabilities": {"bounding": ["CAP_CHOWN"], "inheritable": ["CAP_KILL"]}
    }
}"#;

fn check(container: &str, changes: &ProcessOverrides) -> String {
    let spec: Spec = serde_json::from_str(container).expect("a configuration");
    match changes.apply(&spec) {
        Ok((process, warning)) => {
            let mut process = json!(process);
            // Sets are unordered.
            for set in process["capabilities"].as_object_mut().into_iter().flat_map(|sets| sets.values_mut())
            {
                let list = list(set);
                list.sort_by_key(Value::to_string);
            }
            warning.map(|warning| format!("warning: {warning}\n")).unwrap_or_default() + &process.to_string()
        }
        Err(error) => error.to_string(),
    }
}

#[test]
fn unchanged_settings_come_from_the_container() {
    let changes = ProcessOverrides { arguments: vec!["id".to_owned()], ..ProcessOverrides::default() };
    assert_snapshot!(check(CONTAINER, &changes), @r#"{"terminal":false,"user":{"uid":5,"gid":6,"additionalGids":[7]},"args":["id"],"env":["PATH=/bin","HOME=/root","EMPTY="],"cwd":"/work","capabilities":{"bounding":["CAP_CHOWN"],"inheritable":["CAP_KILL"]}}"#);
}

#[test]
fn changes_are_made() {
    let changes = ProcessOverrides {
        arguments: vec!["sh".to_owned(), "-c".to_owned(), "id".to_owned()],
        directory: Some("/tmp".to_owned()),
        variables: vec!["HOME=/home/a=b".to_owned(), "NEW=".to_owned()],
        user: Some((100, None)),
        groups: vec![8, 9],
        capabilities: vec!["sys_admin".to_owned(), "CAP_CHOWN".to_owned()],
        no_new_privileges: true,
        profile: Some("judged".to_owned()),
        label: None,
        terminal: true,
    };
    assert_snapshot!(check(CONTAINER, &changes), @r#"{"terminal":true,"user":{"uid":100,"gid":0,"additionalGids":[8,9]},"args":["sh","-c","id"],"env":["PATH=/bin","EMPTY=","HOME=/home/a=b","NEW="],"cwd":"/tmp","capabilities":{"bounding":["CAP_CHOWN","CAP_SYS_ADMIN"],"effective":["CAP_CHOWN","CAP_SYS_ADMIN"],"inheritable":["CAP_KILL"],"permitted":["CAP_CHOWN","CAP_SYS_ADMIN"]},"noNewPrivileges":true,"apparmorProfile":"judged"}"#);
    assert_snapshot!(check(r#"{"ociVersion": "1.0.2"}"#, &changes), @r#"{"terminal":true,"user":{"uid":100,"gid":0,"additionalGids":[8,9]},"args":["sh","-c","id"],"env":["HOME=/home/a=b","NEW="],"cwd":"/tmp","capabilities":{"bounding":["CAP_CHOWN","CAP_SYS_ADMIN"],"effective":["CAP_CHOWN","CAP_SYS_ADMIN"],"permitted":["CAP_CHOWN","CAP_SYS_ADMIN"]},"noNewPrivileges":true,"apparmorProfile":"judged"}"#);
}

#[test]
fn an_impossible_change_is_reported() {
    let variable = ProcessOverrides { variables: vec!["=x".to_owned()], ..ProcessOverrides::default() };
    assert_snapshot!(check(CONTAINER, &variable), @"invalid environment variable `=x`");
    assert_snapshot!(read_process(b"{").expect_err("refused"), @"the process file is not JSON: EOF while parsing an object at line 1 column 1");
    assert_snapshot!(read_process(b"{\"cwd\": 1}").expect_err("refused"), @"`cwd` of the process: expected a string, found `1`");
}

#[test]
fn an_unknown_capability_is_a_warning() {
    let capabilities = vec!["FLY".to_owned(), "kill".to_owned()];
    let changes = ProcessOverrides { capabilities, ..ProcessOverrides::default() };
    assert_snapshot!(check(r#"{"ociVersion": "1.0.2"}"#, &changes), @r#"
    warning: `CAP_FLY` is not a capability that jobc knows, ignored
    {"terminal":false,"user":{"uid":0,"gid":0,"additionalGids":[]},"args":[],"cwd":"/","capabilities":{"bounding":["CAP_KILL"],"effective":["CAP_KILL"],"permitted":["CAP_KILL"]}}
    "#);
}

#[test]
fn a_process_is_checked_as_that_of_a_configuration() {
    let container = json!({
        "ociVersion": "1.1.0", "root": {"path": "rootfs"}, "process": {"cwd": "/", "user": {}},
        "linux": {"namespaces": [{"type": "mount"}]}
    });
    let container: Spec = serde_json::from_value(container).expect("a configuration");
    let check = |process: Value| match refuse(&container, &complete(process).expect("a process").0) {
        Ok(()) => "fine".to_owned(),
        Err(error) => error.to_string(),
    };
    assert_snapshot!(check(json!({"cwd": "/", "user": {}, "args": ["id"]})), @"fine");
    assert_snapshot!(check(json!({"cwd": "/", "user": {}, "args": ["id"], "commandLine": "x"})), @"`/process/commandLine`: `commandLine` is not supported: this runtime supports only Linux containers");
    assert_snapshot!(check(json!({"cwd": "work", "user": {}, "args": ["id"]})), @"`/process/cwd`: `work` is not an absolute path");
    let about =
        |kind, place: &str| without_config_pointer(Error::new(kind, "`x` is wrong").at(place)).to_string();
    assert_eq!(about(Kind::ProgramNotFound, "/process/args/0"), "`x` is wrong");
    assert_eq!(about(Kind::System, "/process/user"), "`/process/user`: `x` is wrong");
    assert_eq!(about(Kind::System, "/linux/seccomp"), "config.json: /linux/seccomp: `x` is wrong");
}
