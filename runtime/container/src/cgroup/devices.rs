//! The devices that a container may open and create: the list of config.json, and those that every container has.
//!
//! The last rule that matches a device and an access decides; without a match access is denied (OCI runtime
//! specification, config-linux.md "Allowed Device list"). Version 1 keeps rules in a file, version 2 runs a program.

pub(super) mod program;
mod v1;

use std::fmt;

use oci_spec::runtime::{LinuxDeviceCgroup, LinuxDeviceType};

use jobc_sys::error::{Error, Kind, Result};
pub(super) use v1::writes;

/// The place of the list in config.json.
pub(super) const DEVICES_POINTER: &str = "/linux/resources/devices";

/// A rule about devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Whether the access is given or taken.
    pub allow: bool,
    /// Character or block devices; nothing for both.
    pub kind: Option<DeviceKind>,
    /// The major number; nothing for all.
    pub major: Option<u32>,
    /// The minor number; nothing for all.
    pub minor: Option<u32>,
    /// The accesses that it covers: [`MKNOD`], [`READ`] and [`WRITE`].
    pub access: u32,
}

/// The two kinds of devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// Character devices.
    Character,
    /// Block devices.
    Block,
}

/// Making a node (mknod(2)); the number is the kernel's `BPF_DEVCG_ACC_MKNOD`.
pub(super) const MKNOD: u32 = 1;
/// Opening for reading.
pub(super) const READ: u32 = 2;
/// Opening for writing.
pub(super) const WRITE: u32 = 4;
/// All accesses.
pub(super) const ALL: u32 = MKNOD | READ | WRITE;

/// Everything is allowed.
pub(super) const ALLOW_ALL: Rule = Rule { allow: true, kind: None, major: None, minor: None, access: ALL };

/// What every container may do: make any node, and use those that every Linux has, as other runtimes allow it.
const DEFAULT_RULES: [Rule; 11] = [
    default_rule(DeviceKind::Character, None, None, MKNOD),
    default_rule(DeviceKind::Block, None, None, MKNOD),
    default_rule(DeviceKind::Character, Some(1), Some(3), ALL),
    default_rule(DeviceKind::Character, Some(1), Some(5), ALL),
    default_rule(DeviceKind::Character, Some(1), Some(7), ALL),
    default_rule(DeviceKind::Character, Some(1), Some(8), ALL),
    default_rule(DeviceKind::Character, Some(1), Some(9), ALL),
    default_rule(DeviceKind::Character, Some(5), Some(0), ALL),
    default_rule(DeviceKind::Character, Some(5), Some(1), ALL),
    default_rule(DeviceKind::Character, Some(5), Some(2), ALL),
    default_rule(DeviceKind::Character, Some(136), None, ALL),
];

const fn default_rule(kind: DeviceKind, major: Option<u32>, minor: Option<u32>, access: u32) -> Rule {
    Rule { allow: true, kind: Some(kind), major, minor, access }
}

/// The rules of a container: those of config.json, then [`DEFAULT_RULES`], with nothing before a rule about all devices.
///
/// # Errors
///
/// A rule that no device has: a FIFO, a negative number, an access that is not of `rwm`.
pub(super) fn rules(written: &[LinuxDeviceCgroup]) -> Result<Vec<Rule>> {
    let mut rules = vec![];
    for (index, rule) in written.iter().enumerate() {
        let rule = Rule::of(rule, &format!("{DEVICES_POINTER}/{index}"))?;
        if rule.matches_all() {
            rules.clear();
            if !rule.allow {
                continue;
            }
        }
        rules.push(rule);
    }
    let opened = rules.first().is_some_and(Rule::matches_all);
    if !opened {
        for rule in DEFAULT_RULES {
            if !rules.contains(&rule) || rules.iter().any(|one| !one.allow) {
                rules.push(rule);
            }
        }
    }
    Ok(rules)
}

/// Whether a rule takes away something that other rules give, so that a list without it would mean something else.
pub(super) fn has_effective_deny(written: &[LinuxDeviceCgroup]) -> bool {
    let rules: Vec<Rule> = written.iter().filter_map(|rule| Rule::of(rule, DEVICES_POINTER).ok()).collect();
    rules.iter().any(|rule| !rule.allow && !rule.matches_all())
}

impl Rule {
    fn of(rule: &LinuxDeviceCgroup, place: &str) -> Result<Self> {
        let wrong = |field: &str, message: String, help: &str| {
            Err(Error::new(Kind::Config, message).at(format!("{place}/{field}")).help(help))
        };
        let kind = match rule.typ().unwrap_or(LinuxDeviceType::A) {
            LinuxDeviceType::A => None,
            LinuxDeviceType::B => Some(DeviceKind::Block),
            LinuxDeviceType::C | LinuxDeviceType::U => Some(DeviceKind::Character),
            LinuxDeviceType::P => {
                return wrong(
                    "type",
                    "device rules cannot match FIFOs".to_owned(),
                    "remove the rule, or write `c` or `b`",
                );
            }
        };
        let mut numbers = [None, None];
        for (number, (field, written)) in
            numbers.iter_mut().zip([("major", rule.major()), ("minor", rule.minor())])
        {
            // `-1` means all, as other runtimes read it.
            *number = match written.filter(|written| *written != -1) {
                None => None,
                Some(written) => match u32::try_from(written) {
                    Ok(written) if written <= i32::MAX.unsigned_abs() => Some(written),
                    _ => {
                        let message = format!("`{written}` is not a device number");
                        return wrong(field, message, "write a number from 0, or omit it to match all");
                    }
                },
            };
        }
        let mut access = 0;
        let written = rule.access().as_deref().filter(|access| !access.is_empty()).unwrap_or("rwm");
        for letter in written.chars() {
            access |= match letter {
                'r' => READ,
                'w' => WRITE,
                'm' => MKNOD,
                _ => {
                    let message = format!("invalid device access `{written}`");
                    return wrong("access", message, "write letters of `rwm`: read, write, mknod");
                }
            };
        }
        let [major, minor] = numbers;
        Ok(Self { allow: rule.allow(), kind, major, minor, access })
    }

    /// Whether it speaks of every access to every device.
    pub(super) fn matches_all(&self) -> bool {
        self.kind.is_none() && self.major.is_none() && self.minor.is_none() && self.access == ALL
    }

    /// Whether it covers every device of `other`.
    fn covers(&self, other: &Self) -> bool {
        covers(self.kind, other.kind) && covers(self.major, other.major) && covers(self.minor, other.minor)
    }

    /// Whether there are devices that both speak of.
    fn overlaps(&self, other: &Self) -> bool {
        overlaps(self.kind, other.kind)
            && overlaps(self.major, other.major)
            && overlaps(self.minor, other.minor)
    }

    /// Whether both match the same devices.
    fn same_devices(&self, other: &Self) -> bool {
        (self.kind, self.major, self.minor) == (other.kind, other.major, other.minor)
    }
}

fn covers<T: PartialEq + Copy>(wide: Option<T>, narrow: Option<T>) -> bool {
    wide.is_none() || wide == narrow
}

fn overlaps<T: PartialEq + Copy>(one: Option<T>, other: Option<T>) -> bool {
    one.is_none() || other.is_none() || one == other
}

/// As `devices.allow` and `devices.deny` read it: `c 1:3 rwm`.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |number: Option<u32>| number.map_or_else(|| "*".to_owned(), |number| number.to_string());
        let kind = match self.kind {
            None => 'a',
            Some(DeviceKind::Character) => 'c',
            Some(DeviceKind::Block) => 'b',
        };
        write!(f, "{kind} {}:{} ", number(self.major), number(self.minor))?;
        for (bit, letter) in [(READ, "r"), (WRITE, "w"), (MKNOD, "m")] {
            f.write_str(if self.access & bit == 0 { "" } else { letter })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
