//! `jobc submit` without a cluster: targets that it refuses, and dry runs.

use crate::directory::{Directory, Run, binary};

#[test]
fn jobs_for_openpai_are_built_and_not_submitted() {
    let directory = Directory::new();
    directory.write(
        "targets.yaml",
        "version: 1\ntargets: {pai: {backends: [openpai]}, host: {backends: [oci]}}\n",
    );
    directory.write(
        "job.yaml",
        "version: 1\nname: j\nimage: python:3.12-slim\nroles:\n  main:\n    resources: {cpu: 1, memory: 1GiB}\n    run: python -V\n",
    );
    let refused = directory.jobc(&["submit", "job.yaml", "--target", "pai"]).exits(2);
    assert!(refused.err.contains("jobs cannot be submitted to the target `pai`"), "{}", refused.err);
    assert!(refused.err.contains("submit that file in OpenPAI's web portal"), "{}", refused.err);
    let refused = directory.jobc(&["targets", "check", "pai"]).exits(2);
    assert!(refused.err.contains("submit that file in OpenPAI's web portal"), "{}", refused.err);
    let refused = directory.jobc(&["submit", "job.yaml", "--target", "host"]).exits(2);
    assert!(
        refused.err.contains("it needs the backend `kubernetes` or `slurm`, or `ssh`"),
        "{}",
        refused.err
    );
}

/// Runs the binary without a kubeconfig.
fn without_kubeconfig(directory: &Directory, arguments: &[&str]) -> Run {
    let mut command = directory.command(binary());
    command.args(arguments).env("HOME", directory.path()).env_remove("KUBECONFIG");
    Run::of(command.env_remove("KUBERNETES_SERVICE_HOST"))
}

#[test]
fn a_dry_run_without_a_kubeconfig_prints_what_would_be_created() {
    let directory = Directory::new();
    directory.write("targets.yaml", "version: 1\ntargets: {lab: {backends: [kubernetes]}}\n");
    directory.write(
        "job.yaml",
        "version: 1\nname: j\nimage: python:3.12-slim@sha256:1111111111111111111111111111111111111111111111111111111111111111\nmatrix: {lr: [1, 2]}\nroles:\n  main:\n    resources: {cpu: 1, memory: 1GiB}\n    run: python -V\n",
    );
    let refused = without_kubeconfig(&directory, &["submit", "job.yaml"]).exits(2);
    assert!(refused.err.contains("error: there is no kubeconfig: "), "{}", refused.err);
    let dry = without_kubeconfig(&directory, &["submit", "--dry-run", "job.yaml"]).exits(0);
    let jobs: Vec<&str> = dry.out.lines().collect();
    assert_eq!(jobs.len(), 2, "{}", dry.out);
    for (index, line) in jobs.into_iter().enumerate() {
        assert!(line.starts_with(&format!("j-{index}: would create ")), "{line}");
        assert!(line.contains(&format!("Job `j-{index}-")) && line.ends_with(" on `lab`"), "{line}");
    }
    let config = directory.path().join(".kube/config");
    let reason = format!(
        "jobc: the cluster was not asked: there is no kubeconfig: `{config}` does not exist; nothing was created\n"
    );
    assert!(dry.err.ends_with(&reason), "{}", dry.err);
    let json =
        without_kubeconfig(&directory, &["submit", "--dry-run", "--format", "json", "job.yaml"]).exits(0);
    let first: serde_json::Value = serde_json::from_str(json.out.lines().next().unwrap()).unwrap();
    assert_eq!((&first["target"], &first["job"]), (&"lab".into(), &"j-0".into()));
    assert!(first["objects"].as_array().unwrap().iter().any(|object| object["kind"] == "Job"), "{first}");
}

#[test]
fn check_and_submit_say_the_same_about_an_image_without_a_registry() {
    let directory = Directory::new();
    directory.write("targets.yaml", "version: 1\ntargets: {lab: {backends: [kubernetes]}}\n");
    let job = "version: 1\nname: j\nimage: {from: \"python:3.12-slim@sha256:1111111111111111111111111111111111111111111111111111111111111111\", run: [\"true\"]}\nroles:\n  main:\n    resources: {cpu: 1, memory: 1GiB}\n    run: python -V\n";
    directory.write("job.yaml", job);
    let checked = directory.jobc(&["check", "job.yaml"]).exits(0);
    let dry = without_kubeconfig(&directory, &["submit", "--dry-run", "job.yaml"]).exits(1);
    let message = |text: &str| text.lines().find(|line| line.contains("J0416")).unwrap().to_owned();
    assert_eq!(message(&checked.err).replace("warning", "error"), message(&dry.err));
    directory.write("job.yaml", &format!("{job}x-jobc-allow: [J0416]\n"));
    directory.jobc(&["check", "job.yaml"]).exits(0);
    without_kubeconfig(&directory, &["submit", "--dry-run", "job.yaml"]).exits(0);
}
