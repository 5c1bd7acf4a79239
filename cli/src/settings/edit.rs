//! Changing one setting of a file: comments and order stay.

use std::io;
use std::path::Path;

use toml_edit::{DocumentMut, Item, Value};

use super::error::SettingsError;
use super::file::{SettingsFile, read_text, user_only};
use super::names::{Form, Setting};

/// Sets a setting in a file, or removes it without a value. Returns whether the file has changed.
///
/// # Errors
///
/// A value that does not fit, a setting that the file cannot have, a file with errors, one that cannot be written.
pub(crate) fn change(
    path: &Path,
    is_project: bool,
    setting: &Setting,
    text: Option<&str>,
) -> Result<bool, SettingsError> {
    if is_project && !setting.is_of_project {
        return Err(user_only(setting));
    }
    let old = read_text(path)?.unwrap_or_default();
    SettingsFile::parse(path, &old, is_project)?;
    let mut document: DocumentMut =
        old.parse().map_err(|_| SettingsError::new("the file is not TOML", "correct it"))?;
    match text {
        Some(text) => {
            let text = setting.parse(text)?;
            let mut new = match setting.form {
                Form::Switch => Value::from(text == "true"),
                Form::Word(_) | Form::Path | Form::Name => Value::from(text),
            };
            // The comment behind the old value.
            if let Some(old) = document.get(setting.name).and_then(Item::as_value) {
                *new.decor_mut() = old.decor().clone();
            }
            document[setting.name] = Item::Value(new);
        }
        None => drop(document.remove(setting.name)),
    }
    let new = document.to_string();
    if new == old {
        return Ok(false);
    }
    write(path, &new).map(|()| true).map_err(|error| {
        let message = format!("cannot write `{}`: {}", path.display(), crate::input::reason(&error));
        SettingsError::new(message, "correct the directory's permissions, or free space")
    })
}

/// Replaces a file, or makes it with its directory. Where it is a link, the file that it names is replaced.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    let new = path.with_extension(format!("toml.{}", std::process::id()));
    let written = std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, &path));
    if written.is_err() {
        let _ = std::fs::remove_file(&new);
    }
    written
}
