use std::path::Path;

use super::names::SETTINGS;
use super::paths::{PROJECT_FILE, find_project};
use super::*;

fn user(text: &str) -> Result<SettingsFile, SettingsError> {
    SettingsFile::parse(Path::new("/u/config.toml"), text, false)
}

fn project(text: &str) -> Result<SettingsFile, SettingsError> {
    SettingsFile::parse(Path::new("/p/.jobc/config.toml"), text, true)
}

#[test]
fn the_closer_source_takes_precedence() {
    let user = user("color = \"never\"\ntarget = \"local\"\n").expect("settings");
    let project = project("# a comment\ntarget = \"cluster\"\n").expect("settings");
    let value = |settings: &Settings, setting, environment: Option<&str>| {
        let value = settings.value_in(setting, |_| environment.map(str::to_owned)).expect("a value");
        value.map_or_else(|| "-".to_owned(), |value| format!("{} {}", value.text, value.origin))
    };
    let both = Settings { user: Some(user.clone()), project: Some(project) };
    assert_eq!(value(&both, &names::TARGET, Some("pai")), "pai JOBC_TARGET");
    assert_eq!(value(&both, &names::TARGET, Some("")), "cluster /p/.jobc/config.toml:2");
    assert_eq!(value(&both, &names::TARGET, None), "cluster /p/.jobc/config.toml:2");
    assert_eq!(value(&both, &names::COLOR, None), "never /u/config.toml:1");
    let own = Settings { user: Some(user), project: None };
    assert_eq!(value(&own, &names::TARGET, None), "local /u/config.toml:2");
    assert_eq!(value(&own, &names::IMAGE_ROOT, None), "-");
    assert_eq!(value(&own, &names::ALLOW_UNENFORCED, Some("1")), "true JOBC_ALLOW_UNENFORCED");
    let wrong = own.value_in(&names::ALLOW_UNENFORCED, |_| Some("yes".to_owned())).expect_err("no switch");
    assert_eq!(wrong.message(), "JOBC_ALLOW_UNENFORCED: `allow-unenforced` cannot be `yes`");
}

#[test]
fn errors_have_a_line_and_a_fix() {
    let cases = [
        "target = \"local\"\nallow_unenforced = true\n",
        "allow-unenforced = \"true\"\n",
        "  color = \"blue\"\n",
        "color = 1\n",
        "image-root = \"images\"\n",
        "target = \"\"\n",
        "[registries]\n\"example.com\" = {insecure = true}\n",
        "[run]\nallow-unenforced = true\n",
        "target = local\n",
        "target = \"a\"\ntarget = \"b\"\n",
        "目標 = \"a\"\n",
        "\u{feff}target = \"a\"\nx\n",
    ];
    let shown = |text: &&str| format!("{text}----\n{}\n", user(text).expect_err("an error"));
    insta::assert_snapshot!(cases.iter().map(shown).collect::<String>());
}

/// A file in a checkout must not affect the host, files or trust of the user who cloned it.
#[test]
fn a_project_file_cannot_set_user_only_settings() {
    let allowed: Vec<&str> = SETTINGS
        .iter()
        .filter(|setting| {
            let value = match setting.form {
                names::Form::Switch => "true".to_owned(),
                names::Form::Word(words) => format!("\"{}\"", words[0]),
                names::Form::Path => "\"/tmp\"".to_owned(),
                names::Form::Name => "\"a\"".to_owned(),
            };
            let text = format!("{} = {value}\n", setting.name);
            user(&text).expect("a setting of the user");
            project(&text).is_ok()
        })
        .map(|setting| setting.name)
        .collect();
    assert_eq!(allowed, ["target"]);
    let error = project("\nimage-root = \"/tmp\"\n").expect_err("an error");
    assert_eq!(error.message(), "/p/.jobc/config.toml:2:1: `image-root` cannot be set by a project");
}

#[test]
fn a_change_keeps_comments_and_order() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("jobc/config.toml");
    let text = || std::fs::read_to_string(&path).expect("a file");
    let change = |setting, value| edit::change(&path, false, setting, value);
    assert_eq!(change(&names::TARGET, None), Ok(false));
    assert!(!path.exists());
    assert_eq!(change(&names::TARGET, Some("local")), Ok(true));
    assert_eq!(text(), "target = \"local\"\n");
    std::fs::write(&path, "# mine\ntarget = \"local\" # here\n\ncolor = \"never\"\n").expect("a file");
    assert_eq!(change(&names::TARGET, Some("lab")), Ok(true));
    assert_eq!(change(&names::ALLOW_UNENFORCED, Some("true")), Ok(true));
    assert_eq!(text(), "# mine\ntarget = \"lab\" # here\n\ncolor = \"never\"\nallow-unenforced = true\n");
    assert_eq!(change(&names::COLOR, Some("never")), Ok(false));
    assert!(change(&names::COLOR, Some("blue")).is_err());
    assert_eq!(change(&names::COLOR, None), Ok(true));
    assert!(edit::change(&path, true, &names::COLOR, Some("never")).is_err());
    std::fs::write(&path, "target = \n").expect("a file");
    assert!(change(&names::TARGET, Some("lab")).is_err());
    assert_eq!(text(), "target = \n");
}

#[test]
fn the_project_is_the_nearest_one_of_the_repository() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path();
    std::fs::create_dir_all(root.join("repository/a/b")).expect("a directory");
    let settings = |at: &str| {
        std::fs::create_dir_all(root.join(at).join(".jobc")).expect("a directory");
        std::fs::write(root.join(at).join(PROJECT_FILE), "").expect("a file");
    };
    let found = |at: &str| find_project(&root.join(at)).map(Path::to_owned);
    settings("");
    assert_eq!(found("repository/a"), Some(root.to_owned()));
    std::fs::create_dir(root.join("repository/.git")).expect("a directory");
    assert_eq!(found("repository/a/b"), None, "above the repository");
    settings("repository");
    assert_eq!(found("repository/a/b"), Some(root.join("repository")));
    settings("repository/a");
    assert_eq!(found("repository/a/b"), Some(root.join("repository/a")));
}
