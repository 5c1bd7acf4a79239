//! A group's path, from `linux.cgroupsPath`.

use std::path::PathBuf;

use jobc_sys::error::{Error, Kind, Result};

/// Where in config.json the path stands.
pub(super) const PLACE: &str = "/linux/cgroupsPath";

/// A group's path: its folders' names, from the tree's root or from the group of this process.
///
/// Each name is one folder: none is empty, `.` or `..`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupPath {
    /// Whether it begins at the tree's root; otherwise at the group of this process.
    pub absolute: bool,
    /// The folders' names, at least one.
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

    /// Reads a path, and refuses one that could lead elsewhere.
    pub fn parse(path: &str) -> Result<Self> {
        let wrong = |message: String| Error::new(Kind::Config, message).at(PLACE);
        let absolute = path.starts_with('/');
        let names = path.trim_start_matches('/').trim_end_matches('/');
        if names.is_empty() {
            return Err(wrong(format!("`{path}` names the root of all groups"))
                .help("name a group of the container's own, such as `/jobc/demo`"));
        }
        if !absolute && path.matches(':').count() == 2 && !path.contains('/') {
            return Err(wrong(format!(
                "`{path}` names a unit of systemd's, and control groups are not made by it here"
            ))
            .help("give `jobc oci` the option `--systemd-cgroup`, or write the group's path, such as `/jobc/demo`"));
        }
        let names: Vec<String> = names.split('/').map(ToOwned::to_owned).collect();
        for name in &names {
            let fault = match name.as_str() {
                "" => "has an empty name between two slashes",
                "." | ".." => "leads elsewhere by a dot",
                _ if name.len() > 255 => "has a name of more than 255 bytes",
                _ if name.bytes().any(|byte| byte < b' ' || byte == 0x7f) => "has a control character in it",
                _ => continue,
            };
            return Err(wrong(format!("`{}` {fault}", path.escape_debug()))
                .help("write names of folders between single slashes, such as `/jobc/demo`"));
        }
        Ok(Self { absolute, names })
    }

    /// The path without its first slash.
    pub fn relative(&self) -> PathBuf {
        self.names.iter().collect()
    }
}

#[cfg(test)]
mod tests;
