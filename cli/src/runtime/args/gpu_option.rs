//! `--gpus` as `docker run` spells it: a number, `all`, or a record of `device=`, `count=` and `capabilities=`.
//!
//! Source: docker/cli `opts/gpus.go`. Docker reads the value as a line of CSV, so that a list of devices is in quotes of
//! its own, which shells make hard to write: `'"device=1,2"'`. Here the quotes are optional, since a word without `=`
//! continues the list before it.

use std::str::FromStr;

use jobc_schema::gpu::DriverCapability;
use serde_json::{Value, json};

/// GPUs as the value of `--gpus` requests them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GpuOption {
    /// The number of GPUs; `None` for all of the host.
    pub count: Option<u32>,
    /// Numbers, UUIDs or MIG instances, as `--devices` of `jobc run` takes them; empty for any.
    pub devices: Vec<String>,
    /// Parts of the driver; empty for the default.
    pub capabilities: Vec<DriverCapability>,
}

const CAPABILITIES: [DriverCapability; 8] = [
    DriverCapability::Compute,
    DriverCapability::Utility,
    DriverCapability::Video,
    DriverCapability::Graphics,
    DriverCapability::Display,
    DriverCapability::Compat32,
    DriverCapability::Ngx,
    DriverCapability::All,
];

impl GpuOption {
    /// The value of `resources.gpu` in a job file. The devices are not in it: they are for `--devices`.
    pub(crate) fn request(&self) -> Value {
        match self.count {
            None => json!("all"),
            Some(count) if self.capabilities.is_empty() => json!(count),
            Some(count) => {
                let names: Vec<&str> = self.capabilities.iter().map(|one| one.as_str()).collect();
                json!({ "count": count, "capabilities": names })
            }
        }
    }
}

impl FromStr for GpuOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.matches('"').count() % 2 == 1 {
            return Err("a `\"` is missing; write `device=0,1` without quotes".to_owned());
        }
        let plain = text.replace('"', "");
        let mut count: Option<Option<u32>> = None;
        let mut devices: Vec<String> = Vec::new();
        let mut capabilities = Vec::new();
        let mut key = "count";
        for word in plain.split(',').map(str::trim) {
            let value = match word.split_once('=') {
                Some((name, value)) => {
                    key = name.trim();
                    value.trim()
                }
                None => word,
            };
            match key {
                "count" if count.is_some() => {
                    return Err(format!("`{word}` is a second number of GPUs; devices follow `device=`"));
                }
                "count" => count = Some(parse_count(value)?),
                "device" => devices.push(parse_device(value)?),
                "capabilities" => capabilities.extend(parse_capability(value)?),
                "driver" if value == "nvidia" => {}
                "driver" => return Err(format!("unknown driver `{value}`; a job file names other vendors")),
                _ => {
                    return Err(format!(
                        "unknown field `{key}`; the fields are `device`, `count` and `capabilities`"
                    ));
                }
            }
        }
        match (count, &devices[..]) {
            (Some(_), [_, ..]) => Err("write a number of GPUs or their names, not both".to_owned()),
            (Some(None), []) if !capabilities.is_empty() => {
                Err("`capabilities` needs a number or `device=`, as in `2,capabilities=utility`".to_owned())
            }
            // As in Docker, a record without a number requests one.
            (None, []) => Ok(Self { count: Some(1), devices, capabilities }),
            (Some(count), []) => Ok(Self { count, devices, capabilities }),
            (None, names) => {
                let count = u32::try_from(names.len()).map_err(|_| "too many devices".to_owned())?;
                Ok(Self { count: Some(count), devices, capabilities })
            }
        }
    }
}

/// A number; `None` for all, which Docker also writes as -1.
fn parse_count(text: &str) -> Result<Option<u32>, String> {
    match text {
        "all" | "-1" => Ok(None),
        _ => text.parse().map(Some).map_err(|_| {
            format!("`{text}` is not a number; write a number, `all` or `device=0,1`; a job file requests models by `resources.gpu`")
        }),
    }
}

fn parse_device(name: &str) -> Result<String, String> {
    match name {
        "" => Err("`device=` names no GPU; write a number or UUID, as in `device=0,1`".to_owned()),
        "all" => Err("write `all` for all GPUs, without `device=`".to_owned()),
        name => Ok(name.to_owned()),
    }
}

/// A capability of the driver; none for the words by which Docker selects the driver itself.
fn parse_capability(name: &str) -> Result<Option<DriverCapability>, String> {
    if matches!(name, "gpu" | "nvidia") {
        return Ok(None);
    }
    let known = CAPABILITIES.into_iter().find(|one| one.as_str() == name);
    known.map(Some).ok_or_else(|| {
        let names: Vec<&str> = CAPABILITIES.iter().map(|one| one.as_str()).collect();
        format!("unknown driver capability `{name}`; they are {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, request: impl Into<Value>, devices: &[&str]) {
        let option: GpuOption = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(option.request(), request.into(), "{text}");
        assert_eq!(option.devices, devices, "{text}");
    }

    #[test]
    fn docker_forms_are_parsed() {
        check("2", json!(2), &[]);
        check("0", json!(0), &[]);
        check("all", json!("all"), &[]);
        check("count=all", json!("all"), &[]);
        check("-1", json!("all"), &[]);
        check("count=3", json!(3), &[]);
        check("device=1,2", json!(2), &["1", "2"]);
        check("\"device=1,2\"", json!(2), &["1", "2"]);
        check("device=GPU-3a1b2c3d", json!(1), &["GPU-3a1b2c3d"]);
        check("device=0:1,MIG-5c7d", json!(2), &["0:1", "MIG-5c7d"]);
        check("driver=nvidia,count=1", json!(1), &[]);
        check("capabilities=utility", json!({"count": 1, "capabilities": ["utility"]}), &[]);
        check("1,capabilities=gpu", json!(1), &[]);
        let utility = json!({"count": 2, "capabilities": ["compute", "utility"]});
        check("\"device=0,1\",\"capabilities=compute,utility\"", utility.clone(), &["0", "1"]);
        check("2,capabilities=compute,utility", utility, &[]);
    }

    #[test]
    fn invalid_values_are_reported() {
        let check = |text: &str, part: &str| {
            let error = text.parse::<GpuOption>().expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        };
        check("1,2", "`2` is a second number");
        check("A100", "`A100` is not a number");
        check("", "`` is not a number");
        check("2,device=0", "not both");
        check("device=", "names no GPU");
        check("device=all", "write `all`");
        check("\"device=0", "is missing");
        check("model=A100", "unknown field `model`");
        check("1,capabilities=cuda", "unknown driver capability `cuda`");
        check("all,capabilities=utility", "needs a number");
        check("driver=amd,count=1", "unknown driver `amd`");
    }
}
