use insta::assert_snapshot;

use super::*;

fn exec(words: &[&str]) -> Command {
    Command::Exec(words.iter().map(|word| (*word).to_owned()).collect())
}

fn shell(text: &str) -> Command {
    Command::Shell(text.to_owned())
}

/// The settings that some instructions make of a base, as the image's configuration has them.
fn check(base: Execution, change: impl FnOnce(&mut Settings)) -> String {
    let (mut settings, _) = Settings::of_base(base, None);
    change(&mut settings);
    serde_json::to_string(&settings.execution).expect("JSON")
}

#[test]
fn a_base_without_a_search_path_gets_the_usual_one() {
    assert_snapshot!(check(Execution::default(), |_| {}), @r#"{"Env":["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]}"#);
    let own = Execution { env: vec!["A=1".into(), "PATH=/bin".into()], ..Execution::default() };
    assert_snapshot!(check(own, |_| {}), @r#"{"Env":["A=1","PATH=/bin"]}"#);
}

#[test]
fn a_variable_keeps_its_place() {
    let base =
        Execution { env: vec!["PATH=/bin".into(), "A=1".into(), "B=2".into()], ..Execution::default() };
    assert_snapshot!(check(base, |settings| {
        settings.env("A", "x=y");
        settings.env("C", "");
    }), @r#"{"Env":["PATH=/bin","A=x=y","B=2","C="]}"#);
}

#[test]
fn an_entrypoint_takes_the_command_of_the_base_away_and_not_the_stages_own() {
    let base =
        || Execution { env: vec!["PATH=/bin".into()], cmd: vec!["old".into()], ..Execution::default() };
    assert_snapshot!(check(base(), |settings| settings.entrypoint(&exec(&["new"]))), @r#"{"Env":["PATH=/bin"],"Entrypoint":["new"]}"#);
    assert_snapshot!(check(base(), |settings| {
        settings.cmd(&shell("own && more"));
        settings.entrypoint(&exec(&["new"]));
    }), @r#"{"Env":["PATH=/bin"],"Entrypoint":["new"],"Cmd":["/bin/sh","-c","own && more"]}"#);
    assert_snapshot!(check(base(), |settings| settings.cmd(&exec(&[]))), @r#"{"Env":["PATH=/bin"]}"#);
}

#[test]
fn shell_forms_stand_behind_the_stages_shell() {
    assert_snapshot!(check(Execution { env: vec!["PATH=/bin".into()], ..Execution::default() }, |settings| {
        settings.shell(vec!["/bin/bash".into(), "-ec".into()]);
        settings.entrypoint(&shell("serve"));
    }), @r#"{"Env":["PATH=/bin"],"Entrypoint":["/bin/bash","-ec","serve"],"Shell":["/bin/bash","-ec"]}"#);
}

#[test]
fn paths_are_relative_to_the_working_directory() {
    let (mut settings, _) = Settings::of_base(Execution::default(), None);
    let mut output = String::new();
    for path in ["app", "../data/./x", "/srv//y/", "..", "../../.."] {
        settings.workdir(path);
        output += &format!("{path} -> {}\n", settings.execution.working_dir);
    }
    assert_snapshot!(output, @r"
    app -> /app
    ../data/./x -> /data/x
    /srv//y/ -> /srv/y
    .. -> /srv
    ../../.. -> /
    ");
}

#[test]
fn triggers_of_the_base_are_carried_out_and_not_handed_on() {
    let base = Execution { on_build: vec!["RUN make".into()], ..Execution::default() };
    let (settings, triggers) = Settings::of_base(base, None);
    assert_eq!(triggers, ["RUN make"]);
    assert!(settings.execution.on_build.is_empty());
}

#[test]
fn a_health_check_has_dockers_form() {
    let check = |check: &Healthcheck| {
        let mut settings = Settings::default();
        settings.healthcheck(check);
        settings.execution.healthcheck.unwrap_or_default().to_string()
    };
    assert_snapshot!(check(&Healthcheck::None), @r#"{"Test":["NONE"]}"#);
    assert_snapshot!(check(&Healthcheck::Cmd {
        command: shell("curl localhost"),
        interval: Some(30_000_000_000),
        timeout: None,
        start_period: Some(0),
        start_interval: None,
        retries: Some(3),
    }), @r#"{"Test":["CMD-SHELL","curl localhost"],"Interval":30000000000,"Retries":3}"#);
}
