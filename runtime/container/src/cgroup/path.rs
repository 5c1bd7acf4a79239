//! A group's path, from `linux.cgroupsPath`.

use std::path::{Path, PathBuf};

use jobc_sys::error::{Error, Kind, Result};

/// The place of the path in config.json.
pub(super) const CGROUPS_PATH_POINTER: &str = "/linux/cgroupsPath";

/// A group's path: its directories' names, from the tree's root or from the group of this process.
///
/// Each name is one directory: none is empty, `.` or `..`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupPath {
    /// Whether it begins at the tree's root; otherwise at the group of this process.
    pub absolute: bool,
    /// The directories' names, at least one.
    pub names: Vec<String>,
}

impl GroupPath {
    /// Reads `linux.cgroupsPath`; where it is absent or empty the path is `/jobc/<id>`.
    pub fn of(written: Option<&str>, id: &str) -> Result<Self> {
        match written.filter(|path| !path.is_empty()) {
            Some(path) => Self::parse(path),
            None => Self::parse(&format!("/jobc/{id}")),
        }
    }

    /// Parses a path, and rejects one that could lead elsewhere.
    pub fn parse(path: &str) -> Result<Self> {
        let wrong = |message: String| Error::new(Kind::Config, message).at(CGROUPS_PATH_POINTER);
        let absolute = path.starts_with('/');
        let names = path.trim_start_matches('/').trim_end_matches('/');
        if names.is_empty() {
            return Err(wrong(format!("`{path}` is the root cgroup"))
                .help("write a cgroup of the container's own, such as `/jobc/demo`"));
        }
        if !absolute && path.matches(':').count() == 2 && !path.contains('/') {
            return Err(wrong(format!(
                "`{path}` names a systemd unit, but systemd does not create the cgroup here"
            ))
            .help("pass `--systemd-cgroup` to `jobc oci`, or write a cgroup path, such as `/jobc/demo`"));
        }
        let names: Vec<String> = names.split('/').map(ToOwned::to_owned).collect();
        for name in &names {
            let fault = match name.as_str() {
                "" => "has an empty name between two slashes",
                "." | ".." => "contains `.` or `..`",
                _ if name.len() > 255 => "has a name of more than 255 bytes",
                _ if name.bytes().any(|byte| byte < b' ' || byte == 0x7f) => "contains a control character",
                _ => continue,
            };
            return Err(wrong(format!("`{}` {fault}", path.escape_debug()))
                .help("write directory names with single slashes between them, such as `/jobc/demo`"));
        }
        Ok(Self { absolute, names })
    }

    /// The path without its first slash.
    pub fn relative(&self) -> PathBuf {
        self.names.iter().collect()
    }
}

/// A directory below another, without a trailing slash if they are the same.
pub(super) fn join_below(directory: &Path, path: &Path) -> PathBuf {
    if path.as_os_str().is_empty() { directory.to_owned() } else { directory.join(path) }
}

#[cfg(test)]
mod tests;
