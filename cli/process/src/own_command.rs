//! A command line of this program.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use camino::Utf8PathBuf;

/// The environment variable with the directories below which a command reads files, with `:` between them.
pub const READ_BELOW: &str = "JOBC_READ_BELOW";

/// What a command without all of the environment sees of it, besides variables that begin with `JOBC_`: a job's parameters can have
/// defaults from variables, and must not read secrets there.
const ENVIRONMENT: [&str; 15] = [
    "APPDATA",
    "HOME",
    "LANG",
    "LC_ALL",
    "LOCALAPPDATA",
    "PATH",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "TMPDIR",
    "TZ",
    "USERPROFILE",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
];

/// A command line of this program, and how it runs.
#[derive(Clone, Debug)]
pub struct OwnCommand {
    /// The words after the program.
    pub words: Vec<String>,
    /// Its input.
    pub stdin: Vec<u8>,
    /// The working directory.
    pub directory: Utf8PathBuf,
    /// The directories below which it reads files; all files without any.
    pub confined_to: Vec<Utf8PathBuf>,
    /// Whether it gets all variables of the environment.
    pub has_environment: bool,
    /// How long it may take.
    pub timeout: Duration,
}

impl OwnCommand {
    /// The process, before it is started: in a process group of its own, so that its children are killed with it.
    ///
    /// # Errors
    /// This program is not found.
    pub fn process(&self) -> std::io::Result<Command> {
        let mut process = Command::new(program()?);
        process.args(&self.words).current_dir(&self.directory);
        if !self.has_environment {
            let is_kept = |name: &str| ENVIRONMENT.contains(&name) || name.starts_with("JOBC_");
            process.env_clear();
            process.envs(std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_kept)));
        }
        if !self.confined_to.is_empty() {
            let directories = self.confined_to.iter().map(|directory| directory.as_std_path());
            process.env(READ_BELOW, std::env::join_paths(directories).map_err(std::io::Error::other)?);
        }
        process.env("JOBC_COLOR", "never");
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut process, 0);
        Ok(process)
    }
}

/// This program, also after its file was replaced by a newer one.
fn program() -> std::io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    Ok(if cfg!(target_os = "linux") && !path.exists() { "/proc/self/exe".into() } else { path })
}
