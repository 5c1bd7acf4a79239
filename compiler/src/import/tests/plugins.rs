//! Runtime plugins in `extras` or in prerequisites.

use serde_json::Value as Json;

use super::{protocol_2, run};
use crate::diagnostic::{Diagnostic, Severity};

/// The role of an imported job with these fields.
fn role(job: &str, role: &str) -> Json {
    let (_, document, sink) = run(&protocol_2(job, role));
    let document = document.unwrap_or_else(|| panic!("{:#?}", sink.diagnostics()));
    document.to_json()["roles"]["a"].clone()
}

/// The findings that are not notes: `error J0522 …`.
fn found(job: &str) -> Vec<String> {
    let (_, _, sink) = run(&protocol_2(job, "    commands: [c]\n"));
    let line = |d: &Diagnostic| format!("{} {} {}", d.severity.as_str(), d.code, d.message);
    sink.diagnostics().iter().filter(|d| d.severity > Severity::Note).map(line).collect()
}

fn extras(plugins: &str) -> String {
    format!("extras: {{com.microsoft.pai.runtimeplugin: [{plugins}]}}\n")
}

#[test]
fn commands_of_a_prerequisite_run_as_callbacks_or_lists() {
    let prerequisite = |fields: &str| {
        let prefix = "com.microsoft.pai.runtimeplugin";
        format!("  - {{name: p, type: script, plugin: {prefix}.{fields}}}\n")
    };
    let named = "    prerequisites: [p]\n    commands: [c]\n";
    for fields in [
        "cmd, callbacks: [{event: taskStarts, commands: [before]}, {event: taskSucceeds, commands: [after]}]",
        "cmd, preCommands: [before], postCommands: [after]",
    ] {
        let role = role(&prerequisite(fields), named);
        assert_eq!(role["setup"], "(\nbefore\n)\n", "{fields}");
        assert_eq!(role["run"], "c\n(\nafter\n)\n", "{fields}");
    }
    let ignored = role(&prerequisite("cmd, failurePolicy: ignore, preCommands: [before]"), named);
    assert_eq!(ignored["setup"], "(\nbefore\n) || true\n");
    let cloned = role(&prerequisite("git, repo_uri: https://example.com/r.git, clone_dir: /r"), named);
    assert_eq!(cloned["setup"], "(\ngit clone https://example.com/r.git /r\n)\n");
}

#[test]
fn parameters_that_the_runtime_ignores_or_rejects_are_reported() {
    for (plugin, expected) in [
        ("{plugin: sshh}", "error J0527 unknown runtime plugin `sshh`"),
        ("{plugin: our_cache}", "warning J0527 unknown runtime plugin `our_cache`"),
        ("{plugin: cmd, parameters: {preCommand: [a]}}", "error J0521 unknown field `preCommand`"),
        ("{plugin: ssh, parameters: {jobsh: true}}", "error J0521 unknown field `jobsh`"),
        (
            "{plugin: ssh, parameters: {color: red}}",
            "warning J0529 the plugin `ssh` has no parameter `color`",
        ),
        ("{plugin: git}", "error J0523 `repo_uri` is missing"),
        (
            "{plugin: cmd, parameters: {callbacks: [{event: taskStart, commands: [a]}]}}",
            "error J0522 `event` must be `taskStarts`",
        ),
        (
            "{plugin: cmd, parameters: {callbacks: [{event: taskStarts}]}}",
            "error J0523 `commands` is missing",
        ),
    ] {
        let found = found(&extras(plugin));
        assert_eq!(found.len(), 1, "{plugin}: {found:#?}");
        assert!(found[0].starts_with(expected), "{plugin}: {found:#?}");
    }
    for plugin in [
        "{plugin: ssh, parameters: {jobssh: true, sshbarrier: true, sshbarrierTimeout: 9, userssh: {type: custom}}}",
        "{plugin: cmd, parameters: {preCommands: [a], postCommands: [b]}}",
        "{plugin: cmd}",
        "{plugin: teamwise_storage, parameters: {storageConfigNames: [a]}}",
        "{plugin: tensorboard, parameters: {port: 1, logdir: {a: /a}}}",
    ] {
        assert_eq!(found(&extras(plugin)), [""; 0], "{plugin}");
    }
}
