//! The location of a template: built in, a file, or a file of a Git repository.

use std::fmt;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};

use super::git::GitReference;

/// The file of a template in a directory.
pub const MAIN_FILE: &str = "template.yaml";

/// The location of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TemplateLocation {
    /// The name after `std/`.
    BuiltIn(String),
    /// A path relative to the job file's directory, or an absolute one.
    File(String),
    /// A file of a repository; its path is relative to the template's directory.
    Git {
        /// The text of `uses`, which `jobc.lock` has.
        uses: String,
        /// Its parts.
        reference: GitReference,
        /// The file.
        file: String,
    },
}

/// Why a name is invalid, and what to do.
pub(super) struct Misplaced {
    pub(super) message: String,
    pub(super) note: &'static str,
}

impl TemplateLocation {
    /// Resolves the name of a template in a job file, or in another template.
    pub(super) fn of(
        name: &str,
        from: Option<&Self>,
        is_directory: impl Fn(&Utf8Path) -> bool,
    ) -> Result<Self, Misplaced> {
        if let Some(name) = name.strip_prefix("std/") {
            return Ok(Self::BuiltIn(name.to_owned()));
        }
        if GitReference::is_one(name) {
            let reference =
                GitReference::parse(name).map_err(|(message, note)| Misplaced { message, note })?;
            let file = if reference.is_file() { file_name(&reference.path) } else { MAIN_FILE };
            return Ok(Self::Git { uses: name.to_owned(), file: file.to_owned(), reference });
        }
        match from {
            Some(Self::Git { uses, reference, file }) => {
                let path = Utf8Path::new(file).parent().unwrap_or(Utf8Path::new("")).join(name);
                let path = normal(&path);
                if path.is_absolute() || path.starts_with("..") {
                    return Err(Misplaced {
                        message: format!("`{name}` is outside of the template's directory"),
                        note: "a template from Git can use built-in templates, files of its directory, and templates from Git",
                    });
                }
                let path = if is_file_name(path.as_str()) { path } else { path.join(MAIN_FILE) };
                Ok(Self::Git { uses: uses.clone(), reference: reference.clone(), file: path.into_string() })
            }
            Some(Self::File(from)) => Ok(Self::file(Utf8Path::new(from).parent(), name, is_directory)),
            Some(Self::BuiltIn(_)) | None => Ok(Self::file(None, name, is_directory)),
        }
    }

    /// A file, or the template in a directory.
    fn file(directory: Option<&Utf8Path>, name: &str, is_directory: impl Fn(&Utf8Path) -> bool) -> Self {
        let path = normal(&directory.unwrap_or(Utf8Path::new("")).join(name));
        let main = path.join(MAIN_FILE);
        Self::File(
            if !is_file_name(path.as_str()) && is_directory(&main) { main } else { path }.into_string(),
        )
    }

    /// The directory of the template, relative to the job file's; only files on disk have one.
    pub(super) fn directory(&self) -> Option<&str> {
        let Self::File(path) = self else { return None };
        let parent = Utf8Path::new(path).parent().map(Utf8Path::as_str);
        Some(parent.filter(|parent| !parent.is_empty()).unwrap_or("."))
    }
}

/// The location as shown in findings.
impl fmt::Display for TemplateLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn(name) => write!(f, "std/{name}"),
            Self::File(path) => f.write_str(path),
            Self::Git { reference, file, .. } => {
                let directory = if reference.is_file() {
                    Utf8Path::new(&reference.path).parent().unwrap_or(Utf8Path::new(""))
                } else {
                    Utf8Path::new(&reference.path)
                };
                let path = directory.join(file).into_string();
                GitReference { path, ..reference.clone() }.fmt(f)
            }
        }
    }
}

/// Whether a path is that of a template file, and not of a directory.
pub(super) fn is_file_name(path: &str) -> bool {
    [".yaml", ".yml", ".json"].iter().any(|end| path.ends_with(end))
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A path without `.` and, after a name, without `..`.
fn normal(path: &Utf8Path) -> Utf8PathBuf {
    let mut out = Utf8PathBuf::new();
    for part in path.components() {
        match part {
            Utf8Component::CurDir => {}
            Utf8Component::ParentDir if out.file_name().is_some() => _ = out.pop(),
            part => out.push(part),
        }
    }
    out
}
