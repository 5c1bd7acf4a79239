//! Settings of the user and of the project, in files `config.toml`; docs/reference/settings.md describes them.
//!
//! A value comes from the command line, else from the environment, the project's file, the user's file, or it is the
//! default. The command line is not known here.

pub(crate) mod edit;
mod file;
pub(crate) mod names;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub(crate) use file::{SettingsError, SettingsFile};
use jobc_compiler::compile::DefaultTarget;
use names::{Setting, TARGET};

/// The path of a project's file below its directory.
const PROJECT_FILE: &str = ".jobc/config.toml";

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
        user: user_path().map(|path| SettingsFile::read(&path, false)).transpose()?.flatten(),
        project: project_path().map(|path| SettingsFile::read(&path, true)).transpose()?.flatten(),
    };
    // A second call finds the same files.
    let _ = CURRENT.set(settings);
    Ok(())
}

/// The settings that were loaded; none if they were not.
pub(crate) fn current() -> &'static Settings {
    CURRENT.get_or_init(Settings::default)
}

/// The target to use if none is requested. That of the user's file is for all projects, so it counts only where it is
/// known and `targets.yaml` has no default.
pub(crate) fn default_target() -> Option<DefaultTarget> {
    let SetValue { text, origin } = current().value(&TARGET).ok()??;
    let overrides_file = !matches!(origin, Origin::User(..));
    Some(DefaultTarget { name: text, origin: format!("`{origin}`"), overrides_file })
}

/// The directory with the user's files.
pub(crate) fn user_directory() -> Option<PathBuf> {
    let absolute = |path: &PathBuf| path.is_absolute();
    let directory = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(absolute);
    let directory = directory.or_else(|| Some(home()?.join(".config")));
    directory.map(|directory| directory.join("jobc"))
}

/// The user's file, which may not exist.
pub(crate) fn user_path() -> Option<PathBuf> {
    user_directory().map(|directory| directory.join("config.toml"))
}

/// The file of the project that has the current directory, if there is one.
fn project_path() -> Option<PathBuf> {
    find_project(&std::env::current_dir().ok()?).map(|directory| directory.join(PROJECT_FILE))
}

/// The project's file, or where it belongs: at the root of the repository, else in the current directory.
pub(crate) fn new_project_path() -> Option<PathBuf> {
    project_path().or_else(|| {
        let here = std::env::current_dir().ok()?;
        let root = here.ancestors().find(|directory| directory.join(".git").exists());
        Some(root.unwrap_or(&here).join(PROJECT_FILE))
    })
}

/// The directory with the project's file: this one, or a parent up to the root of the repository. Outside a repository
/// only this one counts, as for `targets.yaml`.
fn find_project(directory: &Path) -> Option<&Path> {
    let is_root = |directory: &Path| directory.join(".git").exists();
    let inside_repository = directory.ancestors().any(is_root);
    for directory in directory.ancestors() {
        if directory.join(PROJECT_FILE).is_file() {
            return Some(directory);
        }
        if !inside_repository || is_root(directory) {
            return None;
        }
    }
    None
}

/// The home directory of the user.
pub(crate) fn home() -> Option<PathBuf> {
    std::env::home_dir().filter(|path| path.is_absolute())
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
