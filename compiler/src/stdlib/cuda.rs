//! CUDA toolkits and the drivers they need: `stdlib/gpu/cuda.yaml`.

use std::sync::LazyLock;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::{Version, load};

pub(super) static CUDA: LazyLock<Cuda> =
    LazyLock::new(|| load(include_str!(concat!(env!("OUT_DIR"), "/cuda.json"))));

/// CUDA toolkits and the drivers they need, on Linux on x86-64.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cuda {
    /// The content of the file.
    pub schema: String,
    /// Toolkit to the driver it was released with; `None` if no source is known.
    pub cuda_driver_min: IndexMap<String, Option<String>>,
    /// Major version to the oldest driver that runs programs of any of its toolkits.
    pub minor_version_compat_floor: IndexMap<String, String>,
    /// The package that lets an old driver run newer programs.
    pub forward_compat: ForwardCompat,
    /// The sources of the facts.
    pub sources: Vec<String>,
}

/// The package that lets an old driver run newer programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForwardCompat {
    /// Its name, with placeholders for the CUDA version.
    pub package: String,
    /// The directory of its libraries.
    pub path: String,
    /// The supported hardware.
    pub hardware: Vec<String>,
}

/// The whole table.
pub fn table() -> &'static Cuda {
    &CUDA
}

/// The driver that a toolkit was released with, which supports everything in that toolkit.
///
/// `12.4` means its first release; an update missing from the table has the driver of the one before it. `None` for a
/// toolkit newer than the table, or one whose driver is not known.
pub fn driver_for(cuda: &str) -> Option<&'static str> {
    let wanted = Version::parse(cuda)?;
    let minor = wanted.truncate(2);
    let rows = CUDA.cuda_driver_min.iter().filter_map(|(toolkit, driver)| {
        let toolkit = Version::parse(toolkit)?;
        minor.is_prefix_of(&toolkit).then_some((toolkit, driver.as_deref()))
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    let last = rows.iter().rposition(|(toolkit, _)| *toolkit <= wanted).unwrap_or(0);
    rows.get(last).and_then(|(_, driver)| *driver)
}

/// The oldest driver that runs programs of any toolkit of the same major version (minor version compatibility).
///
/// New features of the toolkit, and PTX code that the driver must compile, may fail on it.
pub fn floor_for(cuda: &str) -> Option<&'static str> {
    let major = Version::parse(cuda)?.major().to_string();
    CUDA.minor_version_compat_floor.get(&major).map(String::as_str)
}

/// The minimum driver for the toolkit's programs: that of its major version, else its own driver.
pub fn oldest_driver(cuda: &str) -> Option<&'static str> {
    floor_for(cuda).or_else(|| driver_for(cuda))
}

/// The newest CUDA that a driver supports without compatibility libraries, as `MAJOR.MINOR`: the CUDA version that
/// NVML reports for the driver.
///
/// `None` for a driver older than every row.
pub fn newest(driver: &Version) -> Option<Version> {
    let rows = CUDA.cuda_driver_min.iter().filter_map(|(toolkit, needs)| {
        let needs = Version::parse(needs.as_deref()?)?;
        // `550` names the whole branch, including the toolkit's own driver.
        (needs <= *driver || driver.is_prefix_of(&needs)).then(|| Version::parse(toolkit))?
    });
    rows.max().map(|toolkit| toolkit.truncate(2))
}

/// The package that lets an older driver run programs of a toolkit, such as `cuda-compat-12-4`.
pub fn compat_package(cuda: &Version) -> String {
    let numbers = cuda.truncate(2).to_string();
    let (major, minor) = numbers.split_once('.').unwrap_or((&numbers, "0"));
    CUDA.forward_compat.package.replace("{major}", major).replace("{minor}", minor)
}
