//! `linux.netDevices`: names, and a namespace to move the devices into.

use std::collections::BTreeSet;

use oci_spec::runtime::{Linux, LinuxNamespaceType};

use crate::config::namespace_ownership::check_own_namespace;
use crate::network_devices::{are_wanted, place_of};
use jobc_sys::error::{Error, Kind};

/// The longest name of a device, without the NUL byte (`IFNAMSIZ`).
const MAX_NAME: usize = 15;

/// The errors of the section.
pub(super) fn check(linux: &Linux) -> Vec<Error> {
    let mut errors = Vec::new();
    if !are_wanted(linux) {
        return errors;
    }
    if let Err(reason) = check_own_namespace(Some(linux), LinuxNamespaceType::Network) {
        let message = format!("network devices cannot be moved: {reason}");
        let help = "write `{\"type\": \"network\"}` in `linux.namespaces`";
        errors.push(Error::new(Kind::Config, message).at("/linux/netDevices").help(help));
    }
    let mut inside = BTreeSet::new();
    let mut devices: Vec<_> = linux.net_devices().iter().flatten().collect();
    devices.sort_unstable_by_key(|(name, _)| *name);
    for (name, device) in devices {
        let place = place_of(name);
        let given = device.name().as_deref().filter(|name| !name.is_empty());
        for (name, place) in
            [Some((name.as_str(), place.clone())), given.map(|name| (name, place.clone() + "/name"))]
                .into_iter()
                .flatten()
        {
            if !is_name(name) {
                let message = format!("`{}` is not a name of a network device", name.escape_debug());
                let help = "write 1 to 15 bytes without `/`, `:` and blanks";
                errors.push(Error::new(Kind::Config, message).at(place).help(help));
            }
        }
        let wanted = given.unwrap_or(name);
        if !wanted.contains('%') && !inside.insert(wanted) {
            let message = format!("two network devices get the name `{wanted}`");
            errors.push(Error::new(Kind::Config, message).at(place).help("give each a `name` of its own"));
        }
    }
    errors
}

/// As `dev_valid_name` of net/core/dev.c, and a template may have one `%d`.
fn is_name(name: &str) -> bool {
    let plain = name.replacen("%d", "", 1);
    (1..=MAX_NAME).contains(&name.len())
        && !matches!(name, "." | "..")
        && !plain.contains(['/', ':', '%', '\0'])
        && !plain.contains(|one: char| one.is_ascii_whitespace() || one == '\x0b')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_and_namespaces_are_checked() {
        let linux = |namespaces, devices| -> Linux {
            serde_json::from_value(json!({"namespaces": namespaces, "netDevices": devices}))
                .expect("a section")
        };
        let own = json!([{"type": "network"}]);
        let good = json!({"eth0": {}, "a-device.1": {"name": "eth1"}, "eth2": {"name": "net%d"}, "eth3": {"name": "net%d"}});
        assert!(check(&linux(own.clone(), good)).is_empty());
        assert!(check(&linux(json!([]), json!({}))).is_empty());
        let wrong = [
            linux(json!([]), json!({"eth0": {}})),
            linux(
                own,
                json!({"eth0": {"name": "sixteen-bytes-xx"}, "eth1": {"name": "a/b"}, "eth2": {"name": "%d%d"}, "a b": {}, "..": {},
                       "eth3": {}, "eth4": {"name": "eth3"}, "": {}}),
            ),
        ];
        let errors: Vec<String> = wrong.iter().flat_map(check).map(|error| error.to_string()).collect();
        insta::assert_snapshot!(errors.join("\n"));
    }
}
