//! The Container Device Interface: files in which vendors describe what a container needs for a device.
//!
//! The types follow the specification 1.1.0 (SPEC.md of container-device-interface) field by field. [`registry`] reads the
//! files of a host, [`edit`] applies their edits to a container's configuration, [`generate`] writes a file. OCI
//! runtimes do not read these files: the caller of a runtime must apply them before.

pub mod check;
pub mod edit;
pub mod generate;
pub mod registry;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::yaml;

/// A file: the devices of one vendor and class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Spec {
    /// The version of the specification that the file needs, `0.5.0`.
    pub cdi_version: String,
    /// Vendor and class, `nvidia.com/gpu`.
    pub kind: String,
    /// Notes, which nothing here reads.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// A device that a container can be given.
    pub devices: Vec<Device>,
    /// The edits of a container with any of these devices.
    #[serde(default, skip_serializing_if = "Edits::is_empty")]
    pub container_edits: Edits,
}

/// A device of a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Device {
    /// Its name in the file, `0` or `GPU-…`.
    pub name: String,
    /// Notes, which nothing here reads.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// The edits of a container with this device.
    pub container_edits: Edits,
}

/// Changes to a container's configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Edits {
    /// Variables, `NAME=value`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Device nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub device_nodes: Vec<Node>,
    /// Network devices that are moved in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub net_devices: Vec<NetDevice>,
    /// Mounts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<Mount>,
    /// Hooks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<Hook>,
    /// Classes of cache and memory bandwidth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intel_rdt: Option<IntelRdt>,
    /// Further groups of the program.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub additional_gids: Vec<u32>,
}

/// A device node. What is absent is that of the host's own node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Node {
    /// Where the container has it.
    pub path: PathBuf,
    /// Its path on the host; default: the same path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_path: Option<PathBuf>,
    /// `b`, `c`, `u` or `p`, as mknod(1) has them.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The major number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub major: Option<i64>,
    /// The minor number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minor: Option<i64>,
    /// The permission bits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_mode: Option<u32>,
    /// Access for the container: letters of `rwm`, or `none`; default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<String>,
    /// Its owner; default: the program's user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// Its group; default: the program's group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gid: Option<u32>,
}

/// A network device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NetDevice {
    /// Its name on the host.
    pub host_interface_name: String,
    /// Its name in the container.
    pub name: String,
}

/// A mount.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Mount {
    /// What is mounted: a path of the host where it is bound.
    pub host_path: PathBuf,
    /// Where.
    pub container_path: PathBuf,
    /// The file system type; default: a bind mount.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Options, as of mount(8).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

/// A hook of the OCI runtime specification.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Hook {
    /// Its stage, `createContainer`.
    pub hook_name: String,
    /// The program.
    pub path: PathBuf,
    /// Its arguments, its name among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Its environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Seconds until it is killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u32>,
}

/// Classes of cache and memory bandwidth, as resctrl has them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct IntelRdt {
    /// The class.
    #[serde(rename = "closID", skip_serializing_if = "Option::is_none")]
    pub clos_id: Option<String>,
    /// Parts of the cache.
    #[serde(rename = "l3CacheSchema", skip_serializing_if = "Option::is_none")]
    pub l3_cache_schema: Option<String>,
    /// Parts of the bandwidth.
    #[serde(rename = "memBwSchema", skip_serializing_if = "Option::is_none")]
    pub mem_bw_schema: Option<String>,
    /// All of it in lines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub schemata: Vec<String>,
    /// Whether its use is counted.
    #[serde(rename = "enableMonitoring", skip_serializing_if = "Option::is_none")]
    pub enable_monitoring: Option<bool>,
    /// The same, until 0.8.
    #[serde(rename = "enableCMT", skip_serializing_if = "Option::is_none")]
    pub enable_cmt: Option<bool>,
    /// The same of bandwidth, until 0.8.
    #[serde(rename = "enableMBM", skip_serializing_if = "Option::is_none")]
    pub enable_mbm: Option<bool>,
}

impl Edits {
    /// Whether they change nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds others behind these.
    pub fn extend(&mut self, other: &Self) {
        self.env.extend_from_slice(&other.env);
        self.device_nodes.extend_from_slice(&other.device_nodes);
        self.net_devices.extend_from_slice(&other.net_devices);
        self.mounts.extend_from_slice(&other.mounts);
        self.hooks.extend_from_slice(&other.hooks);
        if other.intel_rdt.is_some() {
            self.intel_rdt.clone_from(&other.intel_rdt);
        }
        self.additional_gids.extend_from_slice(&other.additional_gids);
    }
}

impl Spec {
    /// The programs of all hooks, each once.
    pub fn hook_programs(&self) -> Vec<&Path> {
        let edits = std::iter::once(&self.container_edits)
            .chain(self.devices.iter().map(|device| &device.container_edits));
        let mut programs: Vec<&Path> =
            edits.flat_map(|edits| &edits.hooks).map(|hook| hook.path.as_path()).collect();
        programs.sort();
        programs.dedup();
        programs
    }

    /// Reads a file's text: JSON where its name ends so, else YAML.
    ///
    /// # Errors
    ///
    /// A violation of the specification, at its path in the file.
    pub fn read(path: &Path, text: &str) -> Result<Self> {
        let shown = path.display();
        let wrong =
            |what: String| Error::new(Kind::Config, format!("`{shown}` is not a valid CDI file: {what}"));
        let value: serde_json::Value = if path.extension().is_some_and(|end| end == "json") {
            serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?
        } else {
            yaml::read(text).map_err(wrong)?
        };
        let spec: Self = serde_path_to_error::deserialize(value)
            .map_err(|error| wrong(format!("{}: {}", error.path(), error.inner())))?;
        check::check(&spec).map_err(wrong)?;
        Ok(spec)
    }
}

#[cfg(test)]
pub(crate) mod tests;
