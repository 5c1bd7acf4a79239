//! One file of settings: reading it, with errors at their lines.

use std::path::{Path, PathBuf};

use toml_edit::{Document, Item, Value};

use super::error::SettingsError;
use super::names::{Form, Setting};
use super::paths;

/// The settings of a file.
#[derive(Clone, Debug)]
pub(crate) struct SettingsFile {
    pub path: PathBuf,
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    name: &'static str,
    text: String,
    line: usize,
}

impl SettingsFile {
    /// Reads a file; none if it does not exist.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, is not TOML, or has something else than settings.
    pub(crate) fn read(path: &Path, is_project: bool) -> Result<Option<Self>, SettingsError> {
        read_text(path)?.map(|text| Self::parse(path, &text, is_project)).transpose()
    }

    /// The settings of a text.
    pub(crate) fn parse(path: &Path, text: &str, is_project: bool) -> Result<Self, SettingsError> {
        let place = |offset: usize| {
            let before = text.get(..offset).unwrap_or(text);
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
            (format!("{}:{line}:{column}", path.display()), line)
        };
        let document = Document::parse(text).map_err(|error| {
            let (place, _) = place(error.span().map_or(0, |span| span.start));
            let message = error.message().split('\n').collect::<Vec<_>>().join(", ");
            SettingsError::new(message, "write TOML, such as `allow-unenforced = true`").at(place)
        })?;
        let mut entries = Vec::new();
        for (name, item) in document.iter() {
            let start = document.as_table().key(name).and_then(toml_edit::Key::span).or(item.span());
            let (at_key, line) = place(start.map_or(0, |span| span.start));
            let setting = Setting::of(name).map_err(|error| error.at(&at_key))?;
            if is_project && !setting.is_of_project {
                return Err(user_only(setting).at(at_key));
            }
            let (at_value, _) = place(item.span().map_or(0, |span| span.start));
            let text = value(setting, item).map_err(|error| error.at(at_value))?;
            entries.push(Entry { name: setting.name, text, line });
        }
        Ok(Self { path: path.to_owned(), entries })
    }

    /// A setting's value and its line.
    pub(super) fn get(&self, name: &str) -> Option<(&str, usize)> {
        self.entries.iter().find(|entry| entry.name == name).map(|entry| (entry.text.as_str(), entry.line))
    }
}

/// The text of a file; none if it does not exist.
pub(super) fn read_text(path: &Path) -> Result<Option<String>, SettingsError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error)
            if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) =>
        {
            Ok(None)
        }
        Err(error) => {
            let message = format!("cannot read the settings: {}", crate::input::reason(&error));
            Err(SettingsError::new(message, "correct the file or its permissions, or remove it")
                .at(path.display().to_string()))
        }
    }
}

/// The error for a setting that only the user may decide.
pub(super) fn user_only(setting: &Setting) -> SettingsError {
    let file = paths::user_path().unwrap_or_else(|| "~/.config/jobc/config.toml".into());
    SettingsError::new(
        format!("`{}` cannot be set by a project", setting.name),
        format!("only you decide it: write it into `{}`, if you want it for all projects", file.display()),
    )
}

fn value(setting: &Setting, item: &Item) -> Result<String, SettingsError> {
    let what = match (setting.form, item) {
        (Form::Switch, Item::Value(Value::Boolean(value))) => return Ok(value.value().to_string()),
        (Form::Word(_) | Form::Path | Form::Name, Item::Value(Value::String(value))) => {
            return setting.parse(value.value());
        }
        (_, item) => match item.type_name() {
            "integer" => "an integer",
            "string" => "a string",
            "boolean" => "a boolean",
            "array" | "array of tables" => "an array",
            "table" | "inline table" => "a table",
            _ => "a value of this type",
        },
    };
    Err(setting.misfit(what))
}
