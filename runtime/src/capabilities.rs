//! Capabilities of the container's process: what config.json names, as the kernel's bit sets.
use crate::error::Result;
/// Stand-in.
#[derive(Debug, Clone, Default)]
pub struct Sets {
    /// b
    pub bounding: u64,
    /// e
    pub effective: u64,
    /// p
    pub permitted: u64,
    /// i
    pub inheritable: u64,
    /// a
    pub ambient: u64,
}
impl Sets {
    /// Stand-in.
    pub fn of(_c: &oci_spec::runtime::LinuxCapabilities) -> Result<Self> {
        Ok(Self::default())
    }
}
/// Stand-in.
pub fn known() -> u64 {
    (1 << 41) - 1
}
