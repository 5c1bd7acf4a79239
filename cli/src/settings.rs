//! Settings of the user and of the project, in files `config.toml`; docs/reference/settings.md describes them.
//!
//! A value comes from the command line, else from the environment, the project's file, the user's file, or it is the
//! default. The command line is not known here.

pub(crate) mod edit;
mod error;
mod file;
pub(crate) mod names;
pub(crate) mod paths;

use std::path::PathBuf;
use std::sync::OnceLock;

pub(crate) use error::SettingsError;
use file::SettingsFile;
use jobc_compiler::compile::DefaultTarget;
use names::{Setting, TARGET};

/// The settings of this process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    user: Option<SettingsFile>,
    project: Option<SettingsFile>,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Default,
    /// A line of the user's file.
    User(PathBuf, usize),
    /// A line of the project's file.
    Project(PathBuf, usize),
    /// A variable of the environment.
    Environment(&'static str),
}

/// A value that is not the default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SetValue {
    pub text: String,
    pub origin: Origin,
}

static CURRENT: OnceLock<Settings> = OnceLock::new();

/// Reads the files of this process, for [`current`].
///
/// # Errors
///
/// A file that cannot be read, or has an error; with its line.
pub(crate) fn load() -> Result<(), SettingsError> {
    let settings = Settings {
        user: paths::user_path().map(|path| SettingsFile::read(&path, false)).transpose()?.flatten(),
        project: paths::project_path().map(|path| SettingsFile::read(&path, true)).transpose()?.flatten(),
    };
    // A second call finds the same files.
    let _ = CURRENT.set(settings);
    Ok(())
}

/// The settings that were loaded; none if they were not.
pub(crate) fn current() -> &'static Settings {
    CURRENT.get_or_init(Settings::default)
}

/// The target to use if none is requested. That of the user's file is for all projects, so it only applies if it exists
/// and `targets.yaml` has no default.
pub(crate) fn default_target() -> Option<DefaultTarget> {
    let SetValue { text, origin } = current().value(&TARGET).ok()??;
    let overrides_file = !matches!(origin, Origin::User(..));
    Some(DefaultTarget { name: text, origin: format!("`{origin}`"), overrides_file })
}

impl Settings {
    /// A setting's value; none for the default.
    ///
    /// # Errors
    ///
    /// A variable of the environment that does not fit the setting.
    pub(crate) fn value(&self, setting: &Setting) -> Result<Option<SetValue>, SettingsError> {
        self.value_in(setting, |name| std::env::var(name).ok())
    }

    fn value_in(
        &self,
        setting: &Setting,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<SetValue>, SettingsError> {
        if let Some(text) = variable(setting.variable).filter(|text| !text.is_empty()) {
            let text = setting.parse_variable(&text).map_err(|error| error.at(setting.variable))?;
            return Ok(Some(SetValue { text, origin: Origin::Environment(setting.variable) }));
        }
        let of = |file: &Option<SettingsFile>, origin: fn(PathBuf, usize) -> Origin| {
            let file = file.as_ref()?;
            let (text, line) = file.get(setting.name)?;
            Some(SetValue { text: text.to_owned(), origin: origin(file.path.clone(), line) })
        };
        Ok(of(&self.project, Origin::Project).or_else(|| of(&self.user, Origin::User)))
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::User(path, line) | Self::Project(path, line) => write!(f, "{}:{line}", path.display()),
            Self::Environment(name) => f.write_str(name),
        }
    }
}

#[cfg(test)]
mod tests;
