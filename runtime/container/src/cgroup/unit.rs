//! Groups that systemd creates: the limits it gets as properties, and those written to them directly.

use std::path::PathBuf;

use super::create::create_group;
use super::devices::{self, DeviceKind, READ, Rule, WRITE};
use super::file::write;
use super::layout::{Layout, Version};
use super::limit::Limit;
use super::path::CGROUPS_PATH_POINTER;
use super::plan::{Group, Interface, Plan};
use super::property;
use super::record::Cgroup;
use super::request::CgroupRequest;
use super::unenforced::UnenforcedLimit;
use crate::systemd::{Property, Value};
use jobc_sys::error::{Error, Kind, Result};

impl Plan {
    /// The limits as properties of a unit, for a systemd of that version.
    pub(crate) fn properties(&self, systemd: u32) -> Vec<Property> {
        let mut list: Vec<Property> = vec![];
        for group in &self.groups {
            let version = match group.interface {
                Interface::V1(_) => Version::V1,
                Interface::V2 => Version::V2,
            };
            list.extend(property::from_limits(&group.limits, version, systemd));
            if let (Version::V1, Some(rules)) = (version, &group.devices) {
                list.extend(device_allow_properties(rules));
            }
        }
        list
    }

    /// Writes the limits to the groups that systemd has created around process `pid`, and creates those that systemd
    /// does not use.
    ///
    /// `cgroup` then has the existing groups, also after an error.
    ///
    /// # Errors
    ///
    /// As [`Cgroup::create`], and if the process is in another group.
    pub(crate) fn carry_out_around(
        &self,
        request: &CgroupRequest<'_>,
        pid: u32,
        cgroup: &mut Cgroup,
    ) -> Result<Vec<UnenforcedLimit>> {
        let is_slice = request.unit.is_some_and(|unit| unit.is_slice);
        if !is_slice {
            self.check_placement(pid)?;
        }
        let mut unenforced = self.unenforced.clone();
        for group in &self.groups {
            unenforced.extend(create_group(group, request, cgroup)?);
            let version_1 = matches!(group.interface, Interface::V1(_));
            let file = group.directory().join(if version_1 { "tasks" } else { "cgroup.procs" });
            // A group that cannot be made and that no limit needs is missing.
            if (version_1 || is_slice) && file.exists() {
                write(&file, &pid.to_string()).map_err(|errno| {
                    Error::system(format!("put process {pid} into `{}`", file.display()), errno)
                })?;
            }
        }
        // The container's first process is in all of them.
        cgroup.take_entry_fds();
        Ok(unenforced)
    }

    /// Checks that systemd has put a process where its group is expected: limits written elsewhere would hold for
    /// others.
    fn check_placement(&self, pid: u32) -> Result<()> {
        let seen = Layout::of_process(pid)?;
        for group in &self.groups {
            let own = match &group.interface {
                Interface::V2 => seen.unified.as_ref().and_then(|unified| unified.own_group.as_ref()),
                Interface::V1(one) if one.name == "name=systemd" => {
                    let same = seen.hierarchies.iter().find(|other| other.name == one.name);
                    same.and_then(|same| same.own_group.as_ref())
                }
                Interface::V1(_) => continue,
            };
            let wanted = group.relative_path();
            if own != Some(&wanted) {
                let own = own.map_or_else(
                    || "a cgroup that is not visible here".to_owned(),
                    |own| format!("`{}`", own.display()),
                );
                let message = format!(
                    "systemd put the container's first process into {own}, not into `{}`",
                    wanted.display()
                );
                return Err(Error::new(Kind::System, message).at(CGROUPS_PATH_POINTER));
            }
        }
        Ok(())
    }
}

impl Group {
    /// The group relative to the mount of its hierarchy.
    fn relative_path(&self) -> PathBuf {
        self.base.join(self.names.iter().collect::<PathBuf>())
    }
}

/// The properties for limits that are changed, some for cgroup v1 and some for cgroup v2.
pub(crate) fn changed_properties(limits: &[Limit], layout: &Layout, systemd: u32) -> Vec<Property> {
    let of = |version: Version| {
        let those: Vec<Limit> = limits
            .iter()
            .filter(|limit| layout.version(limit.controller) == Some(version))
            .cloned()
            .collect();
        property::from_limits(&those, version, systemd)
    };
    [of(Version::V1), of(Version::V2)].concat()
}

/// Rules about devices as systemd writes them to version 1, where it overwrites other rules. `None` if they deny a
/// device that another rule allows, which cannot be expressed there.
///
/// On cgroup v2 each has its own program, and both must allow.
fn device_allow_properties(rules: &[Rule]) -> Vec<Property> {
    let majors = std::fs::read_to_string("/proc/devices").unwrap_or_default();
    let (all, rest) = rules.split_first().map_or((None, rules), |(first, rest)| {
        if first.matches_all() { (Some(first.allow), rest) } else { (None, rules) }
    });
    if all == Some(true) || rest.iter().any(|rule| !rule.allow) {
        return vec![];
    }
    let allow =
        rest.iter().flat_map(|rule| device_names(rule, &majors).into_iter().map(|name| (name, access(rule))));
    vec![
        ("DevicePolicy".to_owned(), Value::Text("strict".to_owned())),
        ("DeviceAllow".to_owned(), Value::Pairs(allow.collect())),
    ]
}

/// systemd.resource-control(5), `DeviceAllow=`: a node by its number, or a kind of nodes by the name of its driver.
fn device_names(rule: &Rule, majors: &str) -> Vec<String> {
    let kinds: &[DeviceKind] = match rule.kind {
        Some(DeviceKind::Character) => &[DeviceKind::Character],
        Some(DeviceKind::Block) => &[DeviceKind::Block],
        None => &[DeviceKind::Character, DeviceKind::Block],
    };
    let of = |kind: &DeviceKind| {
        let (word, directory) =
            if *kind == DeviceKind::Character { ("char", "char") } else { ("block", "block") };
        match (rule.major, rule.minor) {
            (Some(major), Some(minor)) => Some(format!("/dev/{directory}/{major}:{minor}")),
            (Some(major), None) => driver(*kind, major, majors).map(|name| format!("{word}-{name}")),
            (None, None) => Some(format!("{word}-*")),
            (None, Some(_)) => None,
        }
    };
    kinds.iter().filter_map(of).collect()
}

/// The name of a major number in /proc/devices (proc(5)).
fn driver(kind: DeviceKind, major: u32, majors: &str) -> Option<String> {
    let heading = if kind == DeviceKind::Character { "Character devices:" } else { "Block devices:" };
    let lines =
        majors.lines().skip_while(|line| *line != heading).skip(1).take_while(|line| !line.is_empty());
    let mut pairs = lines.filter_map(|line| line.trim().split_once(' '));
    pairs.find(|(number, _)| number.parse() == Ok(major)).map(|(_, name)| name.to_owned())
}

fn access(rule: &Rule) -> String {
    [(READ, 'r'), (WRITE, 'w'), (devices::MKNOD, 'm')]
        .into_iter()
        .filter(|(bit, _)| rule.access & bit != 0)
        .map(|(_, letter)| letter)
        .collect()
}

#[cfg(test)]
mod tests;
