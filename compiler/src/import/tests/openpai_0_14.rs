//! Behavior of OpenPAI 0.14 for jobs of protocol v1 that protocol v2 lacks.

use serde_json::{Value as Json, json};

use super::run;
use crate::diagnostic::{Severity, codes};

/// The imported job, and the codes of its findings except notes.
fn import(text: &str) -> (Json, Vec<&'static str>) {
    let (_, document, sink) = run(text);
    let found = sink.diagnostics().iter().filter(|d| d.severity > Severity::Note).map(|d| d.code.as_str());
    (document.expect("a job").to_json(), found.collect())
}

fn job(fields: &str, roles: &str) -> String {
    format!(r#"{{"jobName": "x", "image": "i:1"{fields}, "taskRoles": [{roles}]}}"#)
}

#[test]
fn tasks_that_may_use_ssh_get_the_plugin() {
    let plugin = json!([{"plugin": "ssh", "failurePolicy": "ignore", "parameters": {"jobssh": true}}]);
    for roles in [
        r#"{"name": "a", "taskNumber": 2, "command": "c"}"#,
        r#"{"name": "a", "command": "c"}, {"name": "b", "command": "c"}"#,
        r#"{"name": "a", "command": "ssh a-0 hostname"}"#,
    ] {
        let (job, found) = import(&job("", roles));
        assert_eq!(job["openpai"]["plugins"], plugin, "{roles}");
        assert_eq!(found, [""; 0], "{roles}");
    }
    let (alone, _) = import(&job("", r#"{"name": "a", "command": "c"}"#));
    assert_eq!(alone["openpai"]["plugins"], Json::Null);
    let own = r#", "extras": {"com.microsoft.pai.runtimeplugin": [{"plugin": "ssh", "parameters": {"jobssh": true}}]}"#;
    let (own, _) = import(&job(own, r#"{"name": "a", "taskNumber": 2, "command": "c"}"#));
    assert_eq!(own["openpai"]["plugins"], Json::Null);
}

#[test]
fn changed_names_of_tasks_in_a_command_are_reported() {
    let role = |command: &str| format!(r#"{{"name": "my_w", "taskNumber": 2, "command": "{command}"}}"#);
    let codes = |command: &str| import(&job("", &role(command))).1;
    assert_eq!(codes("mpirun -H my_w-0,my_w-1 t"), [codes::OPENPAI_RENAMED.as_str()]);
    assert_eq!(codes("mpirun -H myw-0,myw-1 t"), [""; 0]);
    assert_eq!(codes("python my_w-train.py"), [""; 0]);
}

#[test]
fn code_on_the_host_is_copied_and_code_in_the_cluster_is_reported() {
    let role = r#"{"name": "a", "command": "cd resnet && python train.py"}"#;
    let (host, found) = import(&job(r#", "codeDir": "/home/ada/resnet/""#, role));
    assert_eq!(host["data"]["code"], json!({"source": "/home/ada/resnet/", "mount": "/pai/code/resnet"}));
    assert_eq!(host["env"]["PAI_CODE_DIR"], "/home/ada/resnet/");
    assert_eq!(host["roles"]["a"]["setup"], "cp -r /pai/code/* ./");
    assert_eq!(found, [""; 0]);

    let (_, _, sink) = run(&job(r#", "codeDir": "hdfs://h:9000/ada/resnet""#, role));
    let found = sink.diagnostics().iter().find(|d| d.code == codes::OPENPAI_CODE).expect("a warning");
    assert_eq!(found.severity, Severity::Warning);
    assert_eq!(
        found.labels.iter().map(|label| label.text.as_str()).collect::<Vec<_>>(),
        ["", "looks for it"]
    );
}

#[test]
fn variables_of_the_job_are_kept() {
    let role = r#"{"name": "a", "command": "c"}"#;
    for nothing in ["{}", "null", r#"{"paiAzRDMA": false, "isDebug": false}"#] {
        let (job, found) = import(&job(&format!(r#", "jobEnvs": {nothing}"#), role));
        assert_eq!((&job["env"], found), (&Json::Null, vec![]), "{nothing}");
    }
    let (some, found) = import(&job(r#", "jobEnvs": {"A": "b c", "N": 1, "isDebug": true}"#, role));
    assert_eq!(some["env"], json!({"A": "b c", "N": "1"}));
    assert_eq!(found, [codes::OPENPAI_IGNORED.as_str()]);
    let (none, found) = import(&job(r#", "killAllOnCompletedTaskNumber": 0, "authFile": """#, role));
    assert_eq!((&none["env"], found), (&Json::Null, vec![]));
}

#[test]
fn default_resources_are_those_of_openpai() {
    let (job, _) = import(&job("", r#"{"name": "a", "command": "c"}"#));
    assert_eq!(job["roles"]["a"]["resources"], json!({"cpu": 1, "memory": "100MiB", "gpu": 0}));
}

#[test]
fn a_threshold_above_the_number_of_tasks_is_never_reached() {
    let role = r#"{"name": "a", "taskNumber": 2, "command": "c", "minSucceededTaskCount": 3, "minFailedTaskCount": 2}"#;
    let (job, found) = import(&job("", role));
    assert_eq!(job["roles"]["a"]["completion"], json!({"min_failed": 2, "min_succeeded": "none"}));
    assert_eq!(found, [codes::OPENPAI_THRESHOLD.as_str()]);
}
