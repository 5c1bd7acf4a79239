//! What the NVIDIA driver adds to a container: `stdlib/gpu/nvidia.yaml`.

use std::sync::LazyLock;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::load;

pub(super) static NVIDIA: LazyLock<Nvidia> =
    LazyLock::new(|| load(include_str!(concat!(env!("OUT_DIR"), "/nvidia.json"))));

/// What the NVIDIA driver adds to a container.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nvidia {
    /// The content of the file.
    pub schema: String,
    /// Device nodes.
    pub device_nodes: Vec<DeviceNode>,
    /// Libraries and programs by driver capability.
    pub capabilities: IndexMap<String, DriverFiles>,
    /// The default capabilities of a container.
    pub default_capabilities: Vec<String>,
    /// Links created next to the libraries.
    pub symlinks: IndexMap<String, String>,
    /// The possible values of NVIDIA_VISIBLE_DEVICES.
    pub visible_devices: VisibleDevices,
    /// Variables of the multi-process service, with their defaults or formats.
    pub mps_env: IndexMap<String, String>,
    /// The sources of the facts.
    pub sources: Vec<String>,
}

/// A device node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceNode {
    /// Its path, with placeholders for numbers that the host assigns.
    pub path: String,
    /// The major number, if it is fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub major: Option<u32>,
    /// The name in /proc/devices with its major number, if that is not fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub major_name: Option<String>,
    /// The minor number, or a word for its source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minor: Option<Value>,
    /// The file that lists the minor number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minor_from: Option<String>,
    /// When a container needs it.
    pub when: String,
}

/// Libraries and programs of one driver capability.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriverFiles {
    /// Libraries, without `.so` and version.
    pub libs: Vec<String>,
    /// Programs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bins: Vec<String>,
    /// Sockets and directories.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ipc: Vec<String>,
    /// Capabilities that it implies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub implies: Vec<String>,
}

/// The possible values of NVIDIA_VISIBLE_DEVICES.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VisibleDevices {
    /// Keywords that are a whole value.
    pub keywords: Vec<String>,
    /// Formats of one entry of a list, as regular expressions.
    pub patterns: Vec<String>,
}

/// The whole table.
pub fn table() -> &'static Nvidia {
    &NVIDIA
}
