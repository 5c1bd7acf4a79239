//! New limits for an existing container, and its usage.

use serde_json::{Map, Value, json};

use super::{Container, cgroup, read_record};
use crate::cgroup::{Layout, changed_properties};
use crate::config::Config;
use crate::oci_state::Status;
use crate::state::Id;
use crate::state::store::Store;
use crate::systemd::Systemd;
use jobc_sys::error::{Error, Kind, Location, Result};

/// The parts of `linux.resources` that can be changed.
const RESOURCE_SECTIONS: [&str; 8] =
    ["memory", "cpu", "pids", "blockIO", "hugepageLimits", "network", "rdma", "unified"];

impl Container {
    /// Merges `change` into the container's `linux.resources`, and applies the resulting limits to its groups.
    ///
    /// Values that are missing in `change`, empty or 0 stay as they are; -1 removes a limit. The container's copy of
    /// config.json has the new limits afterwards. An empty change does nothing.
    ///
    /// # Errors
    ///
    /// A container that has ended; limits that cannot be enforced, as at creation. The limits are then unchanged.
    pub fn update(&mut self, change: &Value) -> Result<()> {
        self.change_limits(change).map_err(|error| {
            let mut error = error;
            if let Some(Location::Config(pointer)) = error.at {
                error.at = Some(Location::Field(pointer));
            }
            // The advice for the author of config.json does not apply here.
            if error.kind == Kind::Unenforceable {
                error.hints = vec!["the limits are unchanged".to_owned()];
            }
            error
        })
    }

    fn change_limits(&mut self, change: &Value) -> Result<()> {
        match self.status() {
            Status::Created | Status::Running | Status::Paused => {}
            status => return Err(self.wrong_status("running", status)),
        }
        let mut config = self.resources_text()?;
        let old = config.pointer("/linux/resources").cloned().unwrap_or_else(|| json!({}));
        let mut change = without_empty_values(change);
        // Without a memory limit there is no limit of memory and swap together.
        if change.pointer("/memory/limit") == Some(&json!(-1)) && change.pointer("/memory/swap").is_none() {
            change["memory"]["swap"] = json!(-1);
        }
        let sections = sections(&change, &old)?;
        if sections.is_empty() {
            return Ok(());
        }
        let mut new = if old.is_object() { old } else { json!({}) };
        for section in &sections {
            merge(&mut new[*section], &change[*section]);
        }
        if !config["linux"].is_object() {
            config["linux"] = json!({});
        }
        config["linux"]["resources"] = new;
        let text = config.to_string();
        let config = Config::read(text.as_bytes())?;
        config.refuse()?;
        let resources =
            config.spec.linux().as_ref().and_then(|linux| linux.resources().clone()).unwrap_or_default();
        let mut groups = cgroup(&self.record);
        if groups.is_none() {
            let message = "the container has no cgroup, so limits cannot be enforced";
            return Err(Error::new(Kind::State, message).help("`jobc doctor` shows why"));
        }
        let layout = Layout::detect()?;
        let unit = self.record.unit.as_ref();
        let mut systemd = unit.map(|unit| Systemd::connect(unit.user)).transpose()?;
        groups.update(&layout, &resources, &sections, |limits| match (&mut systemd, unit) {
            (Some(systemd), Some(unit)) => {
                let properties = changed_properties(limits, &layout, systemd.version());
                systemd.set_properties(unit, &properties)
            }
            _ => Ok(()),
        })?;
        self.record.cgroup = Some(groups.record().clone());
        self.entry.write(&self.record)?;
        self.entry.replace_file("config.json", text.as_bytes())
    }

    fn resources_text(&self) -> Result<Value> {
        let path = self.entry.path().join("config.json");
        let read = std::fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok());
        read.ok_or_else(|| Error::new(Kind::State, format!("`{}` cannot be read", path.display())))
    }
}

/// The usage of a container so far, as JSON in the format of runc's `events`.
pub fn stats(store: &Store, id: &Id) -> Result<Value> {
    Ok(cgroup(&read_record(store, id)?).stats())
}

/// How many processes of a container the kernel has killed as its memory was at its limit.
pub fn oom_kills(store: &Store, id: &Id) -> Result<u64> {
    Ok(cgroup(&read_record(store, id)?).usage().oom_kills.unwrap_or_default())
}

/// A change without the empty values: callers write 0 and empty strings for values that they do not set.
fn without_empty_values(change: &Value) -> Value {
    let nothing = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(object) => object.is_empty(),
        Value::Bool(true) => false,
    };
    match change {
        Value::Object(object) => {
            let fields = object.iter().map(|(key, value)| (key.clone(), without_empty_values(value)));
            // 0 ends `idle`, and callers write it only on purpose.
            let meant = |key: &str, value: &Value| key == "idle" && value.is_number() || !nothing(value);
            Value::Object(fields.filter(|(key, value)| meant(key, value)).collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

/// The sections of a change, each known; rules about devices may be repeated and not be changed.
fn sections(change: &Value, old: &Value) -> Result<Vec<&'static str>> {
    let Some(fields) = change.as_object() else {
        return Err(Error::new(Kind::Config, "the resources are not a JSON object")
            .at("/linux/resources")
            .help("write `{\"memory\": {\"limit\": 67108864}}`, for example"));
    };
    let mut sections = vec![];
    for (key, value) in fields {
        let at = format!("/linux/resources/{key}");
        match RESOURCE_SECTIONS.iter().find(|section| *section == key) {
            Some(section) if value.is_object() || (*section == "hugepageLimits" && value.is_array()) => {
                sections.push(*section);
            }
            Some(section) => {
                let wanted = if *section == "hugepageLimits" { "a list" } else { "an object" };
                return Err(Error::new(Kind::Config, format!("`{value}` is not {wanted}")).at(at));
            }
            None if key == "devices" && *value == old["devices"] => {}
            None if key == "devices" => {
                return Err(Error::new(
                    Kind::Unsupported,
                    "device rules of an existing container cannot be changed",
                )
                .at(at)
                .help("create the container again"));
            }
            None => {
                return Err(Error::new(Kind::Config, format!("unknown resource `{key}`"))
                    .at(at)
                    .help(format!("known resources: `{}`", RESOURCE_SECTIONS.join("`, `"))));
            }
        }
    }
    Ok(sections)
}

/// Lays a change over what there is, object by object.
fn merge(base: &mut Value, change: &Value) {
    match (base, change) {
        (Value::Object(base), Value::Object(change)) => {
            for (key, value) in change {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, change) => *base = change.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unset_settings_stay() {
        let mut old = json!({"memory": {"limit": 100, "swap": 200}, "cpu": {"shares": 5, "cpus": "0"}});
        let change = json!({
            "memory": {"limit": 300, "swap": 0, "swappiness": null, "disableOOMKiller": false},
            "cpu": {"shares": 0, "cpus": "", "quota": -1, "idle": 0},
            "pids": {"limit": 0}, "blockIO": {}, "hugepageLimits": [], "devices": null
        });
        let change = without_empty_values(&change);
        assert_eq!(change, json!({"memory": {"limit": 300}, "cpu": {"quota": -1, "idle": 0}}));
        let mut known = sections(&change, &old).expect("known");
        known.sort_unstable();
        assert_eq!(known, ["cpu", "memory"]);
        merge(&mut old, &change);
        assert_eq!(
            old,
            json!({"memory": {"limit": 300, "swap": 200}, "cpu": {"shares": 5, "cpus": "0", "quota": -1, "idle": 0}})
        );
    }

    #[test]
    fn devices_stay_and_strangers_are_refused() {
        let rules = json!([{"allow": false, "access": "rwm"}]);
        let old = json!({"devices": rules});
        let check = |change: Value| match sections(&change, &old) {
            Ok(sections) => sections.join(" "),
            Err(error) => error.to_string(),
        };
        assert_eq!(check(json!({"devices": rules, "pids": {"limit": 3}})), "pids");
        assert_eq!(
            check(json!({"devices": []})),
            "config.json: /linux/resources/devices: device rules of an existing container cannot be changed"
        );
        assert_eq!(check(json!({"disk": {}})), "config.json: /linux/resources/disk: unknown resource `disk`");
        assert_eq!(check(json!(7)), "config.json: /linux/resources: the resources are not a JSON object");
    }
}
