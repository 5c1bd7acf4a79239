//! The active virtual environment of Python, or the active environment of conda.

use std::path::{Path, PathBuf};

use super::{Caller, text};
use jobc_sys::error::{Error, Kind, Result};

/// An environment that a user has activated.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct VirtualEnvironment {
    /// Where it is: directories that a task needs.
    pub(super) directories: Vec<PathBuf>,
    /// The directories to prepend to `PATH`.
    pub(super) programs: Vec<String>,
    /// The variables of an activated environment.
    pub(super) variables: Vec<(String, String)>,
}

/// The variable with an environment's directory, and others that its activation sets.
const KINDS: [(&str, &[&str]); 2] = [
    ("VIRTUAL_ENV", &["VIRTUAL_ENV_PROMPT"]),
    ("CONDA_PREFIX", &["CONDA_DEFAULT_ENV", "CONDA_EXE", "CONDA_PYTHON_EXE", "CONDA_SHLVL"]),
];

/// Directories whose content a task has only if it is mounted.
const HIDDEN_DIRECTORIES: [&str; 3] = ["/tmp", "/run", "/var/run"];

impl VirtualEnvironment {
    /// The active one; with both kinds active, as in a shell whose conda activates its base environment, both.
    ///
    /// # Errors
    ///
    /// None is active, or it has been removed.
    pub(super) fn active(caller: &Caller) -> Result<Self> {
        let mut found = Self::default();
        for (variable, others) in KINDS {
            let Some(directory) = caller.variable(variable).filter(|value| !value.is_empty()) else {
                continue;
            };
            let directory = Path::new(directory);
            if !directory.is_absolute() || !directory.join("bin").is_dir() {
                let message = format!("`{}` of `{variable}` is not an environment", directory.display());
                return Err(Error::new(Kind::Config, message).help(ACTIVATE));
            }
            found.programs.push(text(&directory.join("bin"))?);
            found.variables.push((variable.to_owned(), text(directory)?));
            for name in others {
                let value = caller.variable(name).and_then(|value| value.to_str());
                found.variables.extend(value.map(|value| ((*name).to_owned(), value.to_owned())));
            }
            found.directories.push(directory.to_owned());
            found.directories.extend(hidden_interpreter(directory));
        }
        if found.directories.is_empty() {
            let message = "no virtual environment and no conda environment is active";
            return Err(Error::new(Kind::Config, message).help(ACTIVATE));
        }
        Ok(found)
    }
}

const ACTIVATE: &str =
    "activate one where the job is started (`. .venv/bin/activate`, `conda activate NAME`), or remove `venv`";

/// The directory of the interpreter that a virtual environment was made with, where a task would not see it.
///
/// Its line `home` in pyvenv.cfg is the interpreter's `bin` (PEP 405).
fn hidden_interpreter(directory: &Path) -> Option<PathBuf> {
    let settings = std::fs::read_to_string(directory.join("pyvenv.cfg")).ok()?;
    let home = settings.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "home").then(|| PathBuf::from(value.trim()))
    })?;
    let hidden = HIDDEN_DIRECTORIES.iter().any(|hidden| home.starts_with(hidden));
    home.parent().filter(|_| hidden).map(Path::to_owned)
}
