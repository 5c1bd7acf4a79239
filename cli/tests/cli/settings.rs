//! Settings in files and variables, and `jobc config`.

use crate::directory::{Directory, HELLO, Run, binary};

const TARGETS: &str = "targets: {near: {backends: [oci]}, far: {backends: [kubernetes]}}\n";

/// A directory with a job, targets, and a file of the user's settings.
fn directory(targets: &str, user: &str) -> Directory {
    let directory = Directory::with_job(HELLO);
    directory.write("targets.yaml", &format!("version: 1\n{targets}"));
    directory.write("home/jobc/config.toml", user);
    directory
}

fn jobc(directory: &Directory, words: &[&str], variable: Option<&str>) -> Run {
    let mut command = directory.command(binary());
    command.args(words).env("XDG_CONFIG_HOME", directory.path().join("home"));
    Run::of(command.envs(variable.map(|target| ("JOBC_TARGET", target))))
}

/// The targets that are built for.
fn built(directory: &Directory, words: &[&str], variable: Option<&str>) -> Vec<String> {
    let run = jobc(directory, &[&["plan", "--format", "json"], words].concat(), variable).exits(0);
    let plan: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    let jobs = plan["jobs"].as_array().unwrap();
    jobs.iter().map(|job| job["target"]["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_nearest_target_wins() {
    let plain = directory(TARGETS, "target = \"far\"\n");
    assert_eq!(built(&plain, &[], None), ["far"]);
    assert_eq!(built(&plain, &["--target", "near"], None), ["near"]);
    assert_eq!(built(&plain, &[], Some("near")), ["near"]);
    plain.write(".jobc/config.toml", "target = \"near\"\n");
    assert_eq!(built(&plain, &[], None), ["near"]);
    assert_eq!(built(&plain, &[], Some("far")), ["far"]);
    jobc(&plain, &["check"], Some("fat"))
        .exits(1)
        .says("unknown target `fat`")
        .says("did you mean `far`?")
        .says("set by `JOBC_TARGET`");
    // The user's is for all projects: it applies if it exists and the project has no default.
    let with_default = directory(&format!("default: [near]\n{TARGETS}"), "target = \"far\"\n");
    assert_eq!(built(&with_default, &[], None), ["near"]);
    assert_eq!(built(&with_default, &[], Some("far")), ["far"]);
    assert_eq!(built(&directory(TARGETS, "target = \"elsewhere\"\n"), &[], None), ["near", "far"]);
}

#[test]
fn a_file_with_errors_stops_what_it_would_change() {
    let wrong = directory(TARGETS, "\ncolour = \"never\"\n");
    for command in ["build", "check", "plan"] {
        let run = jobc(&wrong, &[command], None).exits(2);
        assert_eq!(run.out, "");
        run.says("config.toml:2:1: unknown setting `colour`\n = help: write `color`\n");
    }
    jobc(&wrong, &["config"], None).exits(2).says("config.toml:2:1: ");
    jobc(&wrong, &["explain", "J0101"], None).exits(0);
    jobc(&wrong, &["config", "path"], None).exits(0);
    // The file is not changed either.
    jobc(&wrong, &["config", "set", "color", "never"], None).exits(2).says("config.toml:2:1: ");
    assert_eq!(wrong.read("home/jobc/config.toml"), "\ncolour = \"never\"\n");
}

#[test]
fn settings_are_changed_and_listed() {
    let here = directory(TARGETS, "");
    jobc(&here, &["config", "set", "color", "always"], None).exits(0).says("home/jobc/config.toml`\n");
    jobc(&here, &["config", "set", "--project", "target", "near"], None).exits(0);
    jobc(&here, &["config", "set", "--project", "color", "never"], None)
        .exits(2)
        .says("`color` cannot be set by a project");
    assert_eq!(here.read(".jobc/config.toml"), "target = \"near\"\n");
    let listed = jobc(&here, &["config"], None).exits(0).out;
    let lines: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
    let user = here.path().join("home/jobc/config.toml").to_string() + ":1";
    assert!(lines.contains(&vec!["color", "always", &user]), "{listed}");
    assert!(lines.contains(&vec!["allow-unenforced", "false", "default"]), "{listed}");
    assert_eq!(jobc(&here, &["config", "get", "target"], Some("far")).exits(0).out, "far\n");
    let json = jobc(&here, &["config", "list", "--format", "json"], Some("far")).exits(0).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[4]["from"], serde_json::json!({"kind": "environment", "variable": "JOBC_TARGET"}));
    // Colors of the settings are those of what is printed.
    assert!(jobc(&here, &["check", "--set", "count=x"], None).exits(1).err.contains("\u{1b}["));
    jobc(&here, &["config", "unset", "color"], None).exits(0);
    assert!(!jobc(&here, &["check", "--set", "count=x"], None).exits(1).err.contains("\u{1b}["));
    jobc(&here, &["config", "get", "colr"], None).exits(2).says("write `color`");
}
