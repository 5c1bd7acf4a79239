//! Settings of the command line: parameters, targets, backends; and what it refuses.

use snapbox::assert_data_eq;
use snapbox::str;

use crate::directory::{Directory, HELLO};

#[test]
fn parameters_are_set_in_order() {
    let directory = Directory::with_job(HELLO);
    directory.write("params.yaml", "greeting: from a file\ncount: 5\n");
    directory.write("params.json", r#"{"greeting": "from JSON"}"#);
    let plan = |arguments: &[&str]| {
        directory.jobc(&[&["plan", "--format", "yaml"], arguments].concat()).exits(0).out
    };
    assert!(plan(&[]).contains("echo hello"));
    assert!(plan(&["--set", "greeting=good day"]).contains("echo good day"));
    assert!(plan(&["--set", "greeting=a=b"]).contains("echo a=b"));
    assert!(plan(&["--params", "params.yaml"]).contains("echo from a file"));
    assert!(plan(&["--params", "params.yaml"]).contains("instances: 5"));
    assert!(plan(&["--params", "params.yaml", "--params", "params.json"]).contains("echo from JSON"));
    assert!(plan(&["--set", "greeting=last", "--params", "params.yaml"]).contains("echo last"));
    assert!(plan(&["--set", "count=1", "--set", "count=3"]).contains("instances: 3"));
    assert!(plan(&["--set", "greeting=42"]).contains("echo 42"));
}

#[test]
fn a_value_of_the_wrong_type_is_the_jobs_error() {
    let directory = Directory::with_job(HELLO);
    let run = directory.jobc(&["build", "--set", "count=many", "--format", "short"]).exits(1);
    assert_data_eq!(
        run.err,
        str![[r"
job.yaml:4:27: error[J0203]: `many` is not an integer, which the parameter `count` takes

"]]
    );
    let run = directory.jobc(&["build", "--set", "cuont=3", "--format", "short"]).exits(1);
    assert_data_eq!(
        run.err,
        str![[r"
job.yaml:4:1: error[J0201]: unknown parameter `cuont` of `hello`

"]]
    );
    directory.write("params.yaml", "count: [1]\n");
    let run = directory.jobc(&["build", "--params", "params.yaml", "--format", "short"]).exits(1);
    assert_data_eq!(
        run.err,
        str![[r"
params.yaml:1:8: error[J0203]: a list is not an integer, which the parameter `count` takes

"]]
    );
    assert!(directory.out().is_empty());
}

#[test]
fn commands_of_other_tools_are_accepted_or_explained() {
    let directory = Directory::with_job(HELLO);
    for check in ["lint", "validate"] {
        directory.jobc(&[check]).exits(0);
    }
    let run = directory.jobc(&["apply", "-f", "job.yaml"]).exits(2);
    assert_data_eq!(
        run.err,
        str![[r"
error: `apply` is not a command of `jobc`
 = help: `jobc submit` submits a job to a cluster, and `jobc run` runs it on this host

"]]
    );
    directory.jobc(&["biuld"]).exits(2).says("'build'");
}

#[test]
fn set_without_an_equals_sign_is_a_usage_error() {
    let directory = Directory::with_job(HELLO);
    directory.jobc(&["build", "--set", "count"]).exits(2).says("NAME=VALUE");
    directory.jobc(&["build", "--set", "=3"]).exits(2).says("NAME=VALUE");
    directory.jobc(&["build", "--params", "absent.yaml"]).exits(2).says("cannot read `absent.yaml`");
}

#[test]
fn an_unknown_target_suggests_a_similar_one() {
    let directory = Directory::with_job(HELLO);
    let run = directory.jobc(&["build", "--target", "kubernets", "--format", "text"]).exits(1);
    assert_data_eq!(
        run.err,
        str![[r"
error[J0501]: unknown target `kubernets`
 |
 = note: did you mean `kubernetes`?
 = note: known: `local`, `kubernetes` and `openpai`

for more about an error, run `jobc explain J0501`
1 error

"]]
    );
    directory.write("targets.yaml", "version: 1\ntargets:\n  lab: {backends: [kubernetes]}\n");
    directory.jobc(&["build", "--target", "lap"]).exits(1).says("did you mean `lab`?");
    directory.jobc(&["build", "--target", "lab"]).exits(0);
    assert!(directory.path().join("out/hello/lab/kubernetes").exists());
}

#[test]
fn without_a_targets_file_the_target_is_this_host() {
    // Kubernetes and OpenPAI refuse `ulimits`, OpenPAI also labels.
    let job = HELLO
        .replace("    run:", "    labels: {team: vision}\n    run:")
        .replace("gpu: 0}", "gpu: 0, ulimits: {nofile: 1024}}");
    let directory = Directory::with_job(&job);
    for command in ["check", "plan", "build"] {
        let run = directory.jobc(&[command]).exits(0);
        // Notes on this host follow.
        let expected = if command == "check" { "no findings\n" } else { "" };
        assert!(run.err.starts_with(expected) && !run.err.contains("J0"), "{command}: {}", run.err);
    }
    let targets: Vec<_> = directory.path().join("out/hello").read_dir_utf8().unwrap().collect();
    assert_eq!(targets.len(), 1, "{targets:?}");
    for target in ["kubernetes", "openpai"] {
        let run = directory.jobc(&["check", "--target", target, "--format", "short"]).exits(1);
        assert!(run.err.contains(&format!("backend `{target}` cannot express")), "{}", run.err);
    }
    directory.jobc(&["check", "--backend", "kubernetes"]).exits(1);
    // What this host cannot express is a note with the way to others.
    let claim = job.replace("params:", "data: {set: {source: \"pvc:set\", mount: /data}}\nparams:");
    directory.write("job.yaml", &claim);
    directory.jobc(&["check"]).exits(0).says("J0404").says("`--target NAME` selects another");
    directory.jobc(&["check", "--target", "local"]).exits(1).says("J0401");
    // A setting names another default.
    directory.jobc(&["config", "set", "--project", "target", "kubernetes"]).exits(0);
    directory.jobc(&["plan"]).exits(0);
    directory.jobc(&["check"]).exits(1).says("backend `kubernetes` cannot express");
}

#[test]
fn an_unknown_backend_or_option_is_a_usage_error() {
    let directory = Directory::with_job(HELLO);
    directory
        .jobc(&["build", "--backend", "k8s"])
        .exits(1)
        .says("no target has the requested backends: `k8s`");
    directory
        .jobc(&["build", "--backend", "K8s"])
        .exits(2)
        .says("a backend has a name of lower-case letters");
    directory.jobc(&["build", "--tagret", "x"]).exits(2).says("--target");
    directory.jobc(&["biuld"]).exits(2).says("build");
    directory.jobc(&[]).exits(2).says("Usage:");
    directory.jobc(&["build", "--check", "--stdout"]).exits(2).says("cannot be used with");
}

#[test]
fn only_the_requested_backend_is_written() {
    let directory = Directory::with_job(HELLO);
    directory.jobc(&["build", "--backend", "cgroup"]).exits(0);
    let out = directory.out();
    assert!(out.keys().all(|path| path.starts_with("hello/local")), "{:?}", out.keys());
    assert!(!directory.path().join("out/hello/local/oci").exists());
}

#[test]
fn unsupported_features_are_errors_or_with_allow_lossy_warnings() {
    let build = ["build", "--target", "kubernetes", "--format", "short"];
    let lossy = Directory::with_job(&HELLO.replace("    run:", "    retry: {max: 1, backoff: 9s}\n    run:"));
    let refused = lossy.jobc(&build).exits(1);
    assert!(refused.err.contains("error[J0402]"), "{}", refused.err);
    assert!(lossy.out().is_empty());
    let allowed = lossy.jobc(&[&build[..], &["--allow-lossy"]].concat()).exits(0);
    assert!(allowed.err.contains("warning[J0403]"), "{}", allowed.err);
    assert!(!lossy.out().is_empty());
    // A part that is refused cannot be left out.
    let image = HELLO.replace("image: busybox:1.36", "image: host");
    assert_ne!(image, HELLO);
    let refused = Directory::with_job(&image);
    let err = refused.jobc(&[&build[..], &["--allow-lossy"]].concat()).exits(1).err;
    assert!(err.contains("error[J0401]") && refused.out().is_empty(), "{err}");
}

#[test]
fn deny_warnings_turns_warnings_into_errors() {
    let directory = Directory::with_job(&HELLO.replace("busybox:1.36", "busybox"));
    let run = directory.jobc(&["check"]).exits(0);
    assert!(run.err.contains("warning["), "{}", run.err);
    directory.jobc(&["check", "--deny-warnings"]).exits(1);
    assert!(directory.out().is_empty(), "`check` writes nothing");
}
