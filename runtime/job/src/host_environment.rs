//! What roles with `image: {host: …}` get of the environment of the user who starts the job: its working directory, its
//! virtual environment, its variables.
//!
//! It is looked up when the job starts. Values of variables are handled like secrets: they are in this process's memory,
//! and nowhere else but where a task is given them ([`crate::secrets`]).

mod venv;

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use jobc_schema::plan::{ImageSource, JobPlan};

use crate::allocate::image::Image;
use jobc_container::secret::Secret;
use jobc_sys::error::{Error, Kind, Result};
use venv::VirtualEnvironment;

/// The environment of the user who starts a job.
#[derive(Debug)]
pub struct Caller {
    /// The working directory, absolute; none if it has been removed.
    pub directory: Option<PathBuf>,
    /// The environment variables.
    pub variables: Vec<(OsString, OsString)>,
}

/// The part of it that the tasks of a role get.
#[derive(Clone, Debug, Default)]
pub struct HostEnvironment {
    /// The settings that an image would provide: PATH, the working directory.
    pub(crate) settings: Image,
    /// Directories of the host at their own paths.
    pub(crate) mounts: Vec<HostMount>,
    /// The caller's home directory: a directory service may know it, and not the /etc/passwd of the host.
    pub(crate) home: Option<String>,
    /// Variables, whose values are in no file.
    pub(crate) variables: Vec<(String, Secret)>,
}

/// A directory of the host at its own path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostMount {
    pub(crate) path: PathBuf,
    pub(crate) writable: bool,
}

/// The environments of a job's images, by name; images that have none are not in it.
#[derive(Clone, Debug, Default)]
pub struct HostEnvironments(IndexMap<String, HostEnvironment>);

const OTHER_DIRECTORY: &str = "start the job in another directory";

/// The `PATH` of a user who passes none.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Directories that cannot be mounted: files of the container's own are mounted in them.
const RESERVED_DIRECTORIES: [&str; 4] = ["/proc", "/sys", "/dev", "/etc"];

impl Caller {
    /// That of this process, whose working directory may be another by now.
    pub fn of_process(directory: Option<PathBuf>) -> Self {
        Self { directory, variables: std::env::vars_os().collect() }
    }

    /// Whether a virtual environment or a conda environment is active.
    pub fn has_virtual_environment(&self) -> bool {
        VirtualEnvironment::active(self).is_ok()
    }

    /// The variables that a name, or the beginning of names with `*`, stands for.
    ///
    /// # Errors
    ///
    /// A variable that is not set; one that is not UTF-8.
    pub fn matching(&self, pattern: &str) -> Result<Vec<(&str, &str)>> {
        self.check_is_set(pattern)?;
        let variables = self.variables.iter().filter_map(|(name, value)| Some((name.to_str()?, value)));
        let found = variables.filter(|(name, _)| is_name(name) && matches(pattern, name));
        found
            .map(|(name, value)| match value.to_str() {
                Some(value) => Ok((name, value)),
                None => Err(Error::new(Kind::Config, format!("the value of `{name}` is not UTF-8"))
                    .help("leave it out")),
            })
            .collect()
    }

    /// Whether a variable has the name and the form of a secret, whose value is redacted in logs.
    pub fn is_secret(&self, name: &str) -> bool {
        self.variable(name).is_some_and(|value| is_secret(name, value.as_encoded_bytes()))
    }

    fn check_is_set(&self, pattern: &str) -> Result<()> {
        if pattern.ends_with('*') || self.variable(pattern).is_some() {
            return Ok(());
        }
        let message = format!("the environment variable `{pattern}` is not set");
        let help =
            format!("set it where the job is started (`export {pattern}=…`), or remove it from the list");
        Err(Error::new(Kind::Config, message).help(help))
    }

    fn variable(&self, name: &str) -> Option<&OsString> {
        self.variables.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}

impl HostEnvironments {
    /// Looks up what the images of a job ask for.
    ///
    /// # Errors
    ///
    /// A variable that is not set, no active virtual environment, a directory that cannot be mounted; with the field.
    pub fn read(plan: &JobPlan, caller: &Caller) -> Result<Self> {
        let mut all = IndexMap::new();
        for (name, image) in &plan.images {
            let ImageSource::Host { cwd, venv, env } = &image.source else { continue };
            let field = image.declared_at.to_string().trim_start_matches('/').replace('/', ".");
            let at = |part: &str, error: Error| error.at_field(format!("{field}.host.{part}"));
            let home = caller.variable("HOME").and_then(|home| home.to_str());
            let home = home.map(str::to_owned);
            let mut environment = HostEnvironment { home, ..HostEnvironment::default() };
            if *cwd {
                environment.add_directory(caller.directory.as_deref()).map_err(|error| at("cwd", error))?;
            }
            environment.add_variables(env, caller).map_err(|error| at("env", error))?;
            let passed = environment.take_path();
            if *venv {
                let found = VirtualEnvironment::active(caller).map_err(|error| at("venv", error))?;
                environment.add_virtual_environment(&found, passed.as_deref().unwrap_or(DEFAULT_PATH));
            } else if let Some(path) = passed {
                environment.settings.env.push(format!("PATH={path}"));
            }
            all.insert(name.clone(), environment);
        }
        Ok(Self(all))
    }

    /// That of a role's image.
    pub(crate) fn of_role(&self, plan: &JobPlan, role: &str) -> Option<&HostEnvironment> {
        self.0.get(&plan.role(role)?.image)
    }

    /// The `PATH` of the tasks of a role, if the role sets no other.
    pub(crate) fn search_path(&self, plan: &JobPlan, role: &str) -> &str {
        let settings = self.of_role(plan, role).map(|environment| &environment.settings.env);
        let path = settings.into_iter().flatten().find_map(|variable| variable.strip_prefix("PATH="));
        path.unwrap_or(DEFAULT_PATH)
    }

    /// The values that must not be seen in logs: of variables whose names are those of secrets.
    pub fn secrets(&self) -> impl Iterator<Item = &[u8]> {
        let variables = self.0.values().flat_map(|environment| &environment.variables);
        variables.filter(|(name, value)| is_secret(name, value.bytes())).map(|(_, value)| value.bytes())
    }
}

impl HostEnvironment {
    /// The variables that a process does not have yet.
    pub(crate) fn variables(&self, has: impl Fn(&str) -> bool) -> impl Iterator<Item = &(String, Secret)> {
        self.variables.iter().filter(move |(name, _)| !has(name))
    }

    pub(crate) fn has_variable(&self, name: &str) -> bool {
        self.variables.iter().any(|(known, _)| known == name)
    }

    fn add_directory(&mut self, directory: Option<&Path>) -> Result<()> {
        let directory = directory.ok_or_else(|| {
            Error::new(Kind::Config, "the working directory has been removed").help(OTHER_DIRECTORY)
        })?;
        if directory == Path::new("/")
            || RESERVED_DIRECTORIES.iter().any(|place| directory.starts_with(place))
        {
            let message = format!("cannot mount the working directory `{}`", directory.display());
            return Err(Error::new(Kind::Config, message).help(OTHER_DIRECTORY));
        }
        self.settings.cwd = Some(directory.to_owned());
        self.mounts.push(HostMount { path: directory.to_owned(), writable: true });
        Ok(())
    }

    fn add_variables(&mut self, patterns: &[String], caller: &Caller) -> Result<()> {
        patterns.iter().try_for_each(|pattern| caller.check_is_set(pattern))?;
        for (name, value) in &caller.variables {
            let Some(name) = name.to_str().filter(|name| is_name(name)) else { continue };
            if patterns.iter().any(|pattern| matches(pattern, name)) {
                self.variables.push((name.to_owned(), Secret::new(value.clone().into_vec())));
            }
        }
        Ok(())
    }

    /// Takes PATH out of the variables: it goes with those of the virtual environment, and is not a secret.
    fn take_path(&mut self) -> Option<String> {
        let index = self.variables.iter().position(|(name, _)| name == "PATH")?;
        let (_, path) = self.variables.swap_remove(index);
        Some(String::from_utf8_lossy(path.bytes()).into_owned())
    }

    fn add_virtual_environment(&mut self, found: &VirtualEnvironment, path: &str) {
        let has = |directory: &str| path.split(':').any(|known| known == directory);
        let first: Vec<&str> =
            found.programs.iter().map(String::as_str).filter(|directory| !has(directory)).collect();
        let path = first.into_iter().chain([path]).collect::<Vec<_>>().join(":");
        self.settings.env.push(format!("PATH={path}"));
        for (name, value) in &found.variables {
            self.variables.retain(|(known, _)| known != name);
            self.settings.env.push(format!("{name}={value}"));
        }
        for directory in &found.directories {
            if !self.mounts.iter().any(|mount| directory.starts_with(&mount.path)) {
                self.mounts.push(HostMount { path: directory.clone(), writable: false });
            }
        }
    }
}

/// Variables of a login session, of a terminal and of the place where a program runs: they mean nothing in a container.
#[rustfmt::skip]
const SESSION_VARIABLES: [&str; 42] = [
    "BASHOPTS", "DBUS_*", "DESKTOP_SESSION", "DISPLAY", "GPG_AGENT_INFO", "GPG_TTY", "HISTFILE", "HOST", "HOSTNAME",
    "ICEAUTHORITY", "INVOCATION_ID", "JOURNAL_STREAM", "KUBERNETES_*", "LD_PRELOAD", "LISTEN_*", "MAIL", "MANAGERPID",
    "NOTIFY_SOCKET", "OLDPWD", "PWD", "SESSION_MANAGER", "SHELLOPTS", "SHLVL", "SSH_*", "STY", "SYSTEMD_*", "TEMP",
    "TMP", "TMPDIR", "TMUX", "TMUX_PANE", "VTE_VERSION", "WAYLAND_DISPLAY", "WINDOWID", "XAUTHORITY",
    "XDG_CURRENT_DESKTOP", "XDG_RUNTIME_DIR", "XDG_SEAT*", "XDG_SESSION_*", "XDG_VTNR", "_", "container",
];

/// Variables that a job sets from the host's environment.
#[rustfmt::skip]
const JOB_VARIABLES: [&str; 9] = [
    "JOBC_*", "CUDA_VISIBLE_DEVICES", "CUDA_MPS_*", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES",
    "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK",
];

/// Whether a pattern of a job file matches a variable; `*` alone leaves out those that belong to the caller's session.
fn matches(pattern: &str, name: &str) -> bool {
    let fits = |pattern: &str| match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == pattern,
    };
    let is_own = || SESSION_VARIABLES.iter().chain(&JOB_VARIABLES).any(|pattern| fits(pattern));
    fits(pattern) && (pattern != "*" || !is_own())
}

/// Whether the shells would take it for a name: the functions that bash exports are none.
fn is_name(name: &str) -> bool {
    let letters = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(letters)
}

/// Words in the names of variables that hold secrets; `KEY` counts after one of the others.
const SECRET_WORDS: [&str; 9] =
    ["APIKEY", "CREDENTIAL", "CREDENTIALS", "PASSPHRASE", "PASSWD", "PASSWORD", "SECRET", "SECRETS", "TOKEN"];
const KEY_WORDS: [&str; 5] = ["ACCESS", "API", "AUTH", "PRIVATE", "SECRET"];

/// Values of fewer bytes are not taken for secrets.
const MIN_SECRET_BYTES: usize = 8;

/// Whether a variable's name suggests a secret. A path to a secret does not count.
fn is_secret(name: &str, value: &[u8]) -> bool {
    let upper = name.to_ascii_uppercase();
    let words: Vec<&str> = upper.split('_').collect();
    let key = words.windows(2).any(|pair| pair[1] == "KEY" && KEY_WORDS.contains(&pair[0]));
    let named = key || words.iter().any(|word| SECRET_WORDS.contains(word));
    named && value.len() >= MIN_SECRET_BYTES && !value.starts_with(b"/")
}

/// The text of a path; a plan and an environment hold texts.
fn text(path: &Path) -> Result<String> {
    std::str::from_utf8(path.as_os_str().as_bytes()).map(str::to_owned).map_err(|_| {
        Error::new(Kind::Config, format!("the path `{}` is not UTF-8", path.display())).help("rename it")
    })
}

#[cfg(test)]
mod tests;
