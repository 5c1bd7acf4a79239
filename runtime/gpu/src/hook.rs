//! The `createContainer` hook that completes a container with NVIDIA's GPUs: what mounts cannot do.
//!
//! The hook is this program, called by the runtime after the container's mounts are made while the host's root is still
//! `/`. It creates the links that programs need, adds the driver's libraries to the container's loader cache, and
//! covers /proc/driver/nvidia with files that list only the container's own cards. The image is untrusted: its paths
//! are resolved inside the root, its cache is read as data, and none of its files is executed, nor is ldconfig.

mod links;
mod loader;
mod procfs;

use std::ffi::OsString;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rustix::fs::{CWD, Mode, OFlags, openat};
use serde_json::Value;

use jobc_sys::error::{Error, Kind, Result};

/// The command, for `jobc` itself.
pub const COMMAND: &str = "gpu-hook";

/// The task of the hook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookRequest {
    /// The driver's release.
    pub release: Option<String>,
    /// Libraries and links to them for the loader cache, by their paths in the container.
    pub libraries: Vec<PathBuf>,
    /// The same for 32-bit programs.
    pub libraries_32: Vec<PathBuf>,
    /// Links to create: path and target.
    pub links: Vec<(PathBuf, PathBuf)>,
}

impl HookRequest {
    /// Whether there is nothing to do but to cover /proc/driver/nvidia.
    pub fn is_empty(&self) -> bool {
        self.libraries.is_empty() && self.libraries_32.is_empty() && self.links.is_empty()
    }

    /// The hook's arguments, its name first.
    pub fn arguments(&self) -> Vec<String> {
        let mut words = vec!["jobc".to_owned(), COMMAND.to_owned()];
        let mut add = |option: &str, value: String| words.extend([option.to_owned(), value]);
        if let Some(release) = &self.release {
            add("--driver", release.clone());
        }
        for path in &self.libraries {
            add("--library", path.display().to_string());
        }
        for path in &self.libraries_32 {
            add("--library32", path.display().to_string());
        }
        for (path, target) in &self.links {
            add("--link", format!("{}::{}", target.display(), path.display()));
        }
        words
    }

    /// Reads the arguments behind the name.
    fn parse(words: impl Iterator<Item = OsString>) -> Result<Self> {
        let mut order = Self::default();
        let mut words = words.map(|word| word.to_string_lossy().into_owned());
        while let Some(option) = words.next() {
            let wrong = |what: &str| Error::new(Kind::Config, format!("`{option}` {what}"));
            let value = words.next().ok_or_else(|| wrong("has no value"))?;
            match option.as_str() {
                "--driver" => order.release = Some(value),
                "--library" => order.libraries.push(value.into()),
                "--library32" => order.libraries_32.push(value.into()),
                "--link" => {
                    let (target, path) =
                        value.split_once("::").ok_or_else(|| wrong("is not TARGET::PATH"))?;
                    order.links.push((path.into(), target.into()));
                }
                _ => return Err(wrong("is not an option of the hook")),
            }
        }
        Ok(order)
    }
}

/// The main function of the hook: `words` are the arguments after [`COMMAND`], the container's state is on stdin.
pub fn main(words: impl Iterator<Item = OsString>) -> ExitCode {
    match HookRequest::parse(words).and_then(|order| apply(&order, &container_root()?)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("jobc: {}", error.message());
            ExitCode::FAILURE
        }
    }
}

fn apply(order: &HookRequest, root: &OwnedFd) -> Result<()> {
    links::create_links(root, &order.links)?;
    if !order.libraries.is_empty() {
        loader::update_cache(root, order)?;
    }
    procfs::cover(root, Path::new("/proc/driver/nvidia"))
}

/// Maximum bytes read of a state or a config.json.
const MAX_FILE_SIZE: u64 = 16 << 20;

/// The container's root, by the state on standard input and the config.json of its bundle.
fn container_root() -> Result<OwnedFd> {
    let broken = |what: String| Error::new(Kind::Config, what);
    let mut state = Vec::new();
    std::io::stdin()
        .take(MAX_FILE_SIZE)
        .read_to_end(&mut state)
        .map_err(|error| broken(format!("cannot read the container's state: {error}")))?;
    let state: Value = serde_json::from_slice(&state)
        .map_err(|error| broken(format!("the container's state is not JSON: {error}")))?;
    let bundle =
        state["bundle"].as_str().ok_or_else(|| broken("the container's state names no bundle".to_owned()))?;
    let path = Path::new(bundle).join("config.json");
    let shown = path.display();
    let mut text = Vec::new();
    std::fs::File::open(&path)
        .and_then(|file| file.take(MAX_FILE_SIZE + 1).read_to_end(&mut text))
        .map_err(|error| broken(format!("cannot read `{shown}`: {error}")))?;
    if text.len() as u64 > MAX_FILE_SIZE {
        return Err(broken(format!("`{shown}` is larger than 16 MiB")));
    }
    let config: Value =
        serde_json::from_slice(&text).map_err(|error| broken(format!("`{shown}` is not JSON: {error}")))?;
    let root = config["root"]["path"].as_str().ok_or_else(|| broken(format!("`{shown}` names no root")))?;
    let root = Path::new(bundle).join(root);
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(CWD, &root, flags, Mode::empty())
        .map_err(|errno| Error::system(format!("open the container's root `{}`", root.display()), errno))
}

#[cfg(test)]
mod tests;
