//! `linux.intelRdt`: the class of cache and memory bandwidth that the container's processes are in, and the group that
//! counts their use, as directories of a resctrl file system (Documentation/filesystems/resctrl.rst).
//!
//! The rules are those of config-linux.md, "IntelRdt". A class that is named is its owner's: it is never removed, and one
//! that exists is not changed.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use oci_spec::runtime::{Linux, LinuxIntelRdt};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use jobc_sys::error::{Error, Kind, Result};

const PLACE: &str = "/linux/intelRdt";
/// Where it is mounted by convention.
const USUAL_PLACE: &str = "/sys/fs/resctrl";
/// `RDTGROUP_SUPER_MAGIC` of linux/magic.h.
const MAGIC: u64 = 0x0765_5821;
/// Directories of the file system that are not classes.
const NO_CLASSES: [&str; 5] = ["info", "mon_groups", "mon_data", ".", ".."];

/// Where a container's class and group are, for later commands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClassRecord {
    /// The class.
    pub class: PathBuf,
    /// Whether it was created for the container, and is removed with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub created: bool,
    /// The group that counts its use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitor: Option<PathBuf>,
}

/// Whether config.json has anything of it.
pub fn are_wanted(linux: &Linux) -> bool {
    linux.intel_rdt().as_ref().is_some_and(|written| *written != LinuxIntelRdt::default())
}

/// The errors of the section.
pub(crate) fn check(linux: &Linux) -> Vec<Error> {
    let mut errors = Vec::new();
    let Some(written) = linux.intel_rdt().as_ref().filter(|_| are_wanted(linux)) else { return errors };
    let mut wrong = |field: String, message: String, help: &str| {
        errors.push(Error::new(Kind::Config, message).at(format!("{PLACE}/{field}")).help(help));
    };
    if let Some(class) = written.clos_id().as_deref().filter(|class| *class != "/" && !class.is_empty())
        && (class.contains(['/', '\0', '\n']) || NO_CLASSES.contains(&class) || class.len() > 255)
    {
        let message = format!("`{}` is not a name of a class", class.escape_debug());
        wrong("closID".to_owned(), message, "write the name of a directory, or `/` for the default class");
    }
    for (field, start, line) in
        [("l3CacheSchema", "L3", written.l3_cache_schema()), ("memBwSchema", "MB:", written.mem_bw_schema())]
    {
        if let Some(line) = line.as_deref().filter(|line| !line.is_empty())
            && (!line.starts_with(start) || line.contains(['\n', '\0']))
        {
            let message = format!("`{}` is not one line that begins with `{start}`", line.escape_debug());
            wrong(field.to_owned(), message, "write a line such as `L3:0=ff;1=c0` or `MB:0=20;1=70`");
        }
    }
    for (index, line) in written.schemata().iter().flatten().enumerate() {
        if line.contains(['\n', '\0']) {
            let message = "an item of `schemata` has more than one line".to_owned();
            wrong(format!("schemata/{index}"), message, "write an item for each line");
        }
    }
    errors
}

/// Prepares what config.json asks for, in the resctrl file system of this mount namespace.
///
/// # Errors
///
/// Without such a file system, or as the specification demands. What was created is removed then.
pub fn create(written: &LinuxIntelRdt, id: &str) -> Result<ClassRecord> {
    let Some(root) = find() else {
        let error = Error::new(Kind::Unenforceable, "no resctrl file system is mounted").at(PLACE);
        return Err(error.help(
            "mount it with `mount -t resctrl resctrl /sys/fs/resctrl` where the processor has cache and bandwidth \
             classes, or remove `intelRdt`",
        ));
    };
    create_in(&root, written, id, &|path| std::fs::create_dir(path))
}

/// The file system's root.
fn find() -> Option<PathBuf> {
    let usual = rustix::fs::statfs(USUAL_PLACE).ok()?;
    if u64::try_from(usual.f_type) == Ok(MAGIC) {
        return Some(USUAL_PLACE.into());
    }
    let table = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mounted = table.lines().filter_map(|line| line.split_once(" - "));
    let (fields, _) = mounted.into_iter().find(|(_, kind)| kind.starts_with("resctrl "))?;
    fields.split(' ').nth(4).map(PathBuf::from)
}

/// In a file system at `root`; `make` creates a directory.
fn create_in(
    root: &Path,
    written: &LinuxIntelRdt,
    id: &str,
    make: &dyn Fn(&Path) -> io::Result<()>,
) -> Result<ClassRecord> {
    let named = written.clos_id().as_deref().filter(|class| !class.is_empty());
    let class = match named {
        Some("/") => root.to_owned(),
        Some(name) => root.join(name),
        None => root.join(id),
    };
    let lines: Vec<&str> = [written.l3_cache_schema(), written.mem_bw_schema()]
        .into_iter()
        .filter_map(|line| line.as_deref())
        .chain(written.schemata().iter().flatten().map(String::as_str))
        .filter(|line| !line.is_empty())
        .collect();
    let failed = |what: String| {
        let root = root.to_owned();
        move |error: io::Error| {
            let system = Error::system(what, Errno::from_io_error(&error).unwrap_or(Errno::IO)).at(PLACE);
            // The kernel's own words, such as "Mask out of range".
            let status = std::fs::read_to_string(root.join("info/last_cmd_status")).unwrap_or_default();
            match status.trim() {
                "" | "ok" => system,
                status => system.help(format!("the kernel says: {status}")),
            }
        }
    };
    let exists = class.is_dir();
    if !exists && named.is_some() && lines.is_empty() {
        let message = format!("the class `{}` does not exist", class.display());
        let error = Error::new(Kind::Config, message).at(format!("{PLACE}/closID"));
        return Err(error.help("create it on the host, or write `schemata` for a new one"));
    }
    let mut record = ClassRecord { class: class.clone(), created: false, monitor: None };
    if !exists {
        make(&class).map_err(failed(format!("create the class `{}`", class.display())))?;
        record.created = named.is_none();
    }
    let fill = || {
        let schemata = class.join("schemata");
        let change = || failed(format!("write `{}`", schemata.display()));
        if exists && named.is_some() {
            let there = std::fs::read_to_string(&schemata).map_err(change())?;
            if let Some(line) = lines.iter().find(|line| !has(&there, line)) {
                let message = format!("the class `{}` exists, and does not have `{line}`", class.display());
                let error = Error::new(Kind::Config, message).at(format!("{PLACE}/closID"));
                return Err(error.help("write what the class has, or the name of another class"));
            }
        } else if !lines.is_empty() {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let mut file = OpenOptions::new().write(true).open(&schemata).map_err(change())?;
            file.write_all(text.as_bytes()).map_err(change())?;
        }
        if written.enable_monitoring().unwrap_or(false) {
            let monitor = class.join("mon_groups").join(id);
            make(&monitor).map_err(failed(format!("create the group `{}`", monitor.display())))?;
            return Ok(Some(monitor));
        }
        Ok(None)
    };
    match fill() {
        Ok(monitor) => Ok(ClassRecord { monitor, ..record }),
        Err(error) => {
            let _ = record.remove();
            Err(error)
        }
    }
}

/// Whether the lines of a class have a line, in any order of caches, with or without leading zeros and blanks.
fn has(schemata: &str, line: &str) -> bool {
    fn parse(line: &str) -> Option<(&str, BTreeMap<&str, &str>)> {
        let (resource, domains) = line.split_once(':')?;
        let domains = domains.split(';').filter_map(|domain| domain.split_once('='));
        let number = |text: &'_ str| -> usize { text.len() - text.trim_start_matches('0').len() };
        let plain = domains.map(|(id, value)| {
            let value = value.trim();
            (id.trim(), &value[number(value).min(value.len().saturating_sub(1))..])
        });
        Some((resource.trim(), plain.collect()))
    }
    let Some((resource, wanted)) = parse(line) else { return false };
    schemata.lines().filter_map(parse).any(|(name, there)| {
        name == resource
            && wanted
                .iter()
                .all(|(id, value)| there.get(id).is_some_and(|old| old.eq_ignore_ascii_case(value)))
    })
}

impl ClassRecord {
    /// The `tasks` files that a process of the container writes itself to.
    pub fn tasks(&self) -> Result<Vec<OwnedFd>> {
        let open = |directory: &PathBuf| {
            let path = directory.join("tasks");
            File::options().write(true).open(&path).map(OwnedFd::from).map_err(|error| {
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                Error::system(format!("open `{}`", path.display()), errno).at(PLACE)
            })
        };
        std::iter::once(&self.class).chain(&self.monitor).map(open).collect()
    }

    /// Removes what was created for the container.
    pub fn remove(&self) -> Result<()> {
        let created = self.created.then_some(&self.class);
        for path in self.monitor.iter().chain(created) {
            match std::fs::remove_dir(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                    return Err(Error::system(format!("remove `{}`", path.display()), errno));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
