//! The unit that holds a container, from `linux.cgroupsPath`.
//!
//! `slice:prefix:name` is the form that runc, crun and their callers agree on; the path of a unit's group follows from
//! the names of its slices (systemd.slice(5)).

use std::path::Path;

use serde::{Deserialize, Serialize};

use jobc_sys::error::{Error, Kind, Result};

const CGROUPS_PATH_POINTER: &str = "/linux/cgroupsPath";
/// How many bytes a unit's name may have (systemd.unit(5)).
const MAX_UNIT_NAME_LEN: usize = 255;
const CGROUPS_PATH_HELP: &str =
    "write `slice:prefix:name`, such as `system.slice:jobc:demo`, or leave it empty";

/// A unit of systemd's that holds a container's processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    /// Its name: `<prefix>-<name>.scope`, or that of a slice.
    pub name: String,
    /// The slice that it is in; the one that it represents, where it is a slice itself.
    pub slice: String,
    /// Whether it is one of the user's own systemd, and not of the host's.
    pub user: bool,
}

impl Unit {
    /// Reads `linux.cgroupsPath` as systemd's users write it; where it is absent or empty the unit is
    /// `jobc-<id>.scope`.
    ///
    /// # Errors
    ///
    /// A path of directories, and names that systemd would not take.
    pub fn of(path: Option<&str>, id: &str, user: bool) -> Result<Self> {
        let path = path.unwrap_or_default();
        let mut parts = path.splitn(3, ':');
        let (slice, prefix, name) = match (parts.next(), parts.next(), parts.next()) {
            (Some(""), None, _) => ("", "jobc", id),
            (Some(slice), Some(prefix), Some(name)) if !name.is_empty() => (slice, prefix, name),
            _ => {
                let message =
                    format!("`{}` does not name a unit, but systemd creates the cgroup", path.escape_debug());
                return Err(Error::new(Kind::Config, message)
                    .at(CGROUPS_PATH_POINTER)
                    .help(CGROUPS_PATH_HELP));
            }
        };
        let slice = if !slice.is_empty() {
            slice
        } else if user {
            "user.slice"
        } else {
            "system.slice"
        };
        let name = match prefix {
            _ if is_slice(name) => name.to_owned(),
            "" => format!("{name}.scope"),
            _ => format!("{prefix}-{name}.scope"),
        };
        for name in [slice, name.as_str()] {
            check(name).map_err(|why| {
                Error::new(Kind::Config, format!("`{}` {why}", name.escape_debug()))
                    .at(CGROUPS_PATH_POINTER)
                    .help(CGROUPS_PATH_HELP)
            })?;
        }
        if !is_slice(slice) {
            let message = format!("`{slice}` is not a slice: its name does not end in `.slice`");
            return Err(Error::new(Kind::Config, message).at(CGROUPS_PATH_POINTER).help(CGROUPS_PATH_HELP));
        }
        let unit = Self { slice: slice.to_owned(), name, user };
        let wrong =
            [&unit.slice, &unit.name].into_iter().find(|name| is_slice(name) && directories(name).is_none());
        if let Some(name) = wrong {
            let message = format!("`{name}` is not a slice: a part between its hyphens is empty");
            return Err(Error::new(Kind::Config, message).at(CGROUPS_PATH_POINTER).help(CGROUPS_PATH_HELP));
        }
        Ok(unit)
    }

    /// The scope of a job or container called `name` among a user's applications (systemd.special(7), `app.slice`).
    ///
    /// Characters not allowed in a unit name are written as systemd.unit(5) escapes it, `\x2b`; a name is cut where it
    /// would be too long.
    pub fn application(name: &str) -> Self {
        let mut stem = String::from("jobc-");
        for letter in name.bytes() {
            if letter.is_ascii_alphanumeric() || b":-_.".contains(&letter) {
                stem.push(letter.into());
            } else {
                stem += &format!("\\x{letter:02x}");
            }
        }
        // With room for `-<pid>.scope`.
        stem.truncate(MAX_UNIT_NAME_LEN - 20);
        Self { name: stem + ".scope", slice: "app.slice".to_owned(), user: true }
    }

    /// The unit of a user's or the host's systemd that contains a group, and the group's path in it: empty, or with a
    /// leading slash.
    ///
    /// `group` is relative to the group of that systemd. Units that are not slices have no units below them.
    pub fn containing(group: &Path, user: bool) -> Option<(Self, String)> {
        let mut names = group.iter().map(|name| name.to_str());
        let mut slice = "-.slice";
        loop {
            let name = names.next()??;
            if is_slice(name) {
                slice = name;
                continue;
            }
            name.rsplit_once('.').filter(|(_, kind)| matches!(*kind, "scope" | "service"))?;
            let below = names.map(|name| Some(format!("/{}", name?))).collect::<Option<String>>()?;
            return Some((Self { name: name.to_owned(), slice: slice.to_owned(), user }, below));
        }
    }

    /// Whether it is a slice, in which systemd puts no process.
    pub fn is_slice(&self) -> bool {
        is_slice(&self.name)
    }

    /// The names of the groups from that of systemd itself to the unit's own.
    pub fn groups(&self) -> Vec<String> {
        if self.is_slice() {
            return directories(&self.name).unwrap_or_default();
        }
        let mut groups = directories(&self.slice).unwrap_or_default();
        groups.push(self.name.clone());
        groups
    }
}

/// Whether a name is that of a slice; systemd distinguishes unit types by their suffix, which is case-sensitive.
fn is_slice(name: &str) -> bool {
    name.strip_suffix(".slice").is_some()
}

/// Invalid unit names (systemd.unit(5)).
fn check(name: &str) -> std::result::Result<(), String> {
    let wrong = name.chars().find(|letter| !(letter.is_ascii_alphanumeric() || ":-_.\\".contains(*letter)));
    match wrong {
        Some(letter) => {
            Err(format!("contains `{}`, which is not allowed in a unit name", letter.escape_debug()))
        }
        None if name.len() > MAX_UNIT_NAME_LEN => {
            Err("is longer than the 255 bytes of a unit's name".to_owned())
        }
        None => Ok(()),
    }
}

/// The groups of a slice: that of `a-b.slice` is in that of `a.slice`; `-.slice` is the root.
fn directories(slice: &str) -> Option<Vec<String>> {
    let stem = slice.strip_suffix(".slice")?;
    if stem == "-" {
        return Some(vec![]);
    }
    let parts: Vec<&str> = stem.split('-').collect();
    let whole = parts.iter().all(|part| !part.is_empty());
    whole.then(|| (1..=parts.len()).map(|depth| format!("{}.slice", parts[..depth].join("-"))).collect())
}

#[cfg(test)]
mod tests;
