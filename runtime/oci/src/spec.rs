//! `jobc oci spec`: a first config.json, to be edited.
//!
//! Its content is what runc and crun write, so that scripts that edit it work: `sed` and jq(1) over `"sh"`, `"terminal"`
//! and the namespaces.

use std::io::{ErrorKind, Write as _};
use std::path::Path;

use jobc_container::cgroup::Layout;
use jobc_sys::error::{Error, Kind, Result, file_error};
use serde::Serialize as _;
use serde_json::{Value, json};

/// For root, on any host.
const STARTER: &str = include_str!("spec/config.json");

/// Writes config.json into a bundle's directory that has none.
pub(crate) fn write(bundle: &Path, rootless: bool) -> Result<()> {
    let ids = rootless.then(|| (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()));
    let text = text(ids, Layout::detect()?.is_unified())?;
    let path = bundle.join("config.json");
    let file = std::fs::File::options().write(true).create_new(true).open(&path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            Error::new(Kind::State, format!("`{}` exists already", path.display())).help("remove it first")
        }
        _ => file_error("write", &path, &error),
    })
}

/// The text: for a container of the user and group of these numbers, or for root; with a cgroup namespace where the
/// container sees nothing but cgroup v2.
fn text(rootless: Option<(u32, u32)>, is_unified: bool) -> Result<String> {
    let wrong = |error: serde_json::Error| Error::new(Kind::State, error.to_string());
    let mut config: Value = serde_json::from_str(STARTER).map_err(wrong)?;
    let namespaces = config["linux"]["namespaces"].as_array_mut();
    if let Some(namespaces) = namespaces {
        if is_unified {
            namespaces.push(json!({"type": "cgroup"}));
        }
        if rootless.is_some() {
            namespaces.retain(|namespace| namespace["type"] != "network");
            namespaces.push(json!({"type": "user"}));
        }
    }
    if let Some((uid, gid)) = rootless {
        let map = |id: u32| json!([{"containerID": 0, "hostID": id, "size": 1}]);
        config["linux"]["uidMappings"] = map(uid);
        config["linux"]["gidMappings"] = map(gid);
        // Without a delegated cgroup nothing would enforce them.
        if let Some(linux) = config["linux"].as_object_mut() {
            linux.shift_remove("resources");
        }
        for mount in config["mounts"].as_array_mut().into_iter().flatten() {
            if mount["destination"] == "/sys" {
                // A new one belongs to the owner of the network namespace, which is the host's.
                *mount = json!({
                    "destination": "/sys", "type": "none", "source": "/sys",
                    "options": ["rbind", "nosuid", "noexec", "nodev", "ro"]
                });
            }
            if let Some(options) = mount.get_mut("options").and_then(Value::as_array_mut) {
                options.retain(|option| !option.as_str().is_some_and(|option| option.starts_with("gid=")));
            }
        }
    }
    let mut text = Vec::new();
    let format = serde_json::ser::PrettyFormatter::with_indent(b"\t");
    config.serialize(&mut serde_json::Serializer::with_formatter(&mut text, format)).map_err(wrong)?;
    text.push(b'\n');
    String::from_utf8(text).map_err(|error| Error::new(Kind::State, error.to_string()))
}

#[cfg(test)]
mod tests {
    use jobc_container::config::Config;

    use super::*;

    #[test]
    fn what_is_written_is_a_valid_configuration() {
        for (rootless, is_unified) in [(None, false), (None, true), (Some((1000, 100)), true)] {
            let text = text(rootless, is_unified).expect("a text");
            let config = Config::read(text.as_bytes()).expect("a configuration");
            assert_eq!(config.unknown, [""; 0]);
            assert_eq!(config.refuse().map_err(|error| error.to_string()), Ok(()), "{rootless:?}");
            assert!(text.contains("\t\t\"args\": [\n\t\t\t\"sh\"\n\t\t],"), "{text}");
        }
    }

    #[test]
    fn a_cgroup_namespace_hides_what_is_above_cgroup_v2() {
        assert_eq!(text(None, false).expect("a text"), STARTER);
        assert!(text(None, true).expect("a text").contains("\"type\": \"cgroup\"\n\t\t\t}"));
    }

    #[test]
    fn an_unprivileged_user_gets_what_needs_no_rights() {
        let text = text(Some((1000, 100)), false).expect("a text");
        let config: Value = serde_json::from_str(&text).expect("JSON");
        let namespaces: Vec<_> = config["linux"]["namespaces"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|each| &each["type"])
            .collect();
        assert_eq!(namespaces, ["pid", "ipc", "uts", "mount", "user"]);
        assert_eq!(config["linux"]["uidMappings"], json!([{"containerID": 0, "hostID": 1000, "size": 1}]));
        assert_eq!(config["linux"]["gidMappings"][0]["hostID"], 100);
        assert_eq!(config["linux"]["resources"], Value::Null);
        assert_eq!(config["mounts"][5]["options"][0], "rbind");
        assert!(!text.contains("gid="), "{text}");
    }
}
