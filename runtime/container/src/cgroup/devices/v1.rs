//! The rules as version 1 keeps them: all devices denied but some, or all allowed but some.
//!
//! The kernel keeps one list of exceptions (security/device_cgroup.c): it cannot express a rule about many devices with
//! one taken out. Type `a` always means every device, so a rule about both types is written twice.

use super::{ALL, DEVICES_POINTER, DeviceKind, Rule};
use jobc_sys::error::{Error, Kind, Result};

/// The writes to `devices.deny` and `devices.allow`, in order: the file's name and one line.
///
/// # Errors
///
/// A list that takes some devices out of a rule about more devices.
pub(crate) fn writes(rules: &[Rule]) -> Result<Vec<(&'static str, String)>> {
    let mut all_allowed = false;
    let mut exceptions: Vec<Rule> = vec![];
    for rule in rules.iter().flat_map(by_kind) {
        if rule.matches_all() {
            all_allowed = rule.allow;
            exceptions.clear();
        } else if rule.allow == all_allowed {
            exclude(&mut exceptions, &rule)?;
        } else if let Some(same) = exceptions.iter_mut().find(|one| one.same_devices(&rule)) {
            same.access |= rule.access;
        } else {
            exceptions.push(rule);
        }
    }
    let (first, other) =
        if all_allowed { ("devices.allow", "devices.deny") } else { ("devices.deny", "devices.allow") };
    let mut writes = vec![(first, "a".to_owned())];
    writes.extend(exceptions.iter().map(|rule| (other, rule.to_string())));
    Ok(writes)
}

/// The rule once for character and once for block devices, unless it is about one of them or about everything.
fn by_kind(rule: &Rule) -> Vec<Rule> {
    if rule.kind.is_some() || rule.matches_all() {
        return vec![*rule];
    }
    [DeviceKind::Character, DeviceKind::Block].map(|kind| Rule { kind: Some(kind), ..*rule }).into()
}

/// Takes what `rule` speaks of out of the exceptions.
fn exclude(exceptions: &mut Vec<Rule>, rule: &Rule) -> Result<()> {
    for exception in exceptions.iter_mut() {
        if exception.access & rule.access == 0 {
            continue;
        }
        if rule.covers(exception) {
            exception.access &= ALL & !rule.access;
        } else if rule.overlaps(exception) {
            let message = format!("cgroup v1 cannot exclude `{rule}` from `{exception}`");
            return Err(Error::new(Kind::Unenforceable, message)
                .at(DEVICES_POINTER)
                .help("list the devices one by one, or run on a host with cgroup v2"));
        }
    }
    exceptions.retain(|exception| exception.access != 0);
    Ok(())
}
