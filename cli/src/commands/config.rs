//! `jobc config`: lists and changes settings.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::args::FormatArg;
use crate::args::config::{ConfigArgs, ConfigCommand, FileArgs};
use crate::outcome::Outcome;
use crate::settings::names::{SETTINGS, Setting};
use crate::settings::{self, Origin, SetValue, SettingsError, edit, paths};
use crate::table::Table;
use crate::terminal;

pub(crate) fn run(config: &ConfigArgs, format: FormatArg) -> Outcome {
    let done = match config.command.as_ref().unwrap_or(&ConfigCommand::List) {
        ConfigCommand::List => list(format),
        ConfigCommand::Get { name } => get(name),
        ConfigCommand::Set { name, value, file } => change(name, Some(value), file),
        ConfigCommand::Unset { name, file } => change(name, None, file),
        ConfigCommand::Path { file } => path(file).map(|path| {
            terminal::print(&format!("{}\n", path.display()));
        }),
    };
    match done {
        Ok(()) => Outcome::Success,
        Err(error) => {
            terminal::eprint(&error.to_string());
            Outcome::UsageError
        }
    }
}

fn list(format: FormatArg) -> Result<(), SettingsError> {
    settings::load()?;
    let mut table = Table::new(["SETTING", "VALUE", "FROM"]);
    let mut values = Vec::new();
    for setting in SETTINGS {
        let SetValue { text, origin } = value(setting)?;
        values.push(json!({ "name": setting.name, "value": text, "from": from(&origin) }));
        let shown = if text.is_empty() { "-".to_owned() } else { text };
        table.row([setting.name.to_owned(), shown, origin.to_string()]);
    }
    if format == FormatArg::Json {
        terminal::print(&format!("{:#}\n", Value::Array(values)));
    } else {
        terminal::print(&table.render(terminal::columns_of_stdout()));
    }
    Ok(())
}

fn get(name: &str) -> Result<(), SettingsError> {
    let setting = Setting::of(name)?;
    settings::load()?;
    terminal::print(&format!("{}\n", value(setting)?.text));
    Ok(())
}

fn change(name: &str, value: Option<&str>, file: &FileArgs) -> Result<(), SettingsError> {
    let setting = Setting::of(name)?;
    let path = path(file)?;
    let changed = edit::change(&path, file.project, setting, value)?;
    let what = if changed { "wrote" } else { "unchanged:" };
    terminal::eprint(&format!("jobc: {what} `{}`\n", path.display()));
    Ok(())
}

fn path(file: &FileArgs) -> Result<PathBuf, SettingsError> {
    let path = if file.project { paths::new_project_path() } else { paths::user_path() };
    path.ok_or_else(|| {
        let (message, help) = if file.project {
            ("the current directory has been removed", "change to a directory that exists")
        } else {
            ("the home directory is unknown", "set `HOME` or `XDG_CONFIG_HOME`")
        };
        SettingsError::new(message, help)
    })
}

/// A setting's value, or its default.
fn value(setting: &Setting) -> Result<SetValue, SettingsError> {
    let value = settings::current().value(setting)?;
    Ok(value.unwrap_or_else(|| SetValue { text: setting.default.to_owned(), origin: Origin::Default }))
}

fn from(origin: &Origin) -> Value {
    match origin {
        Origin::Default => json!({ "kind": "default" }),
        Origin::User(path, line) => json!({ "kind": "user", "path": path, "line": line }),
        Origin::Project(path, line) => json!({ "kind": "project", "path": path, "line": line }),
        Origin::Environment(name) => json!({ "kind": "environment", "variable": name }),
    }
}
