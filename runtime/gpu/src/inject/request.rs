//! The request for an injection, and its report.

use std::fmt;
use std::str::FromStr;

use jobc_schema::gpu::DriverCapability;
use jobc_schema::target::GpuInjection;
use serde::{Deserialize, Serialize};

use jobc_sys::error::{Error, Kind, Result};

/// How devices come into a container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InjectionMethod {
    /// The first of the others that can.
    #[default]
    Auto,
    /// CDI files of the host.
    Cdi,
    /// The files of the driver that this program finds.
    Generated,
    /// NVIDIA's hook.
    Hook,
    /// No injection: the caller that starts the container does it.
    None,
}

impl InjectionMethod {
    /// All, in documentation order.
    pub const ALL: [Self; 5] = [Self::Auto, Self::Cdi, Self::Generated, Self::Hook, Self::None];

    /// The way that a target's `oci.gpu_injection` chooses for a run on this host.
    ///
    /// `none` in the target means that bundles contain no injection, so the caller that runs them must do it.
    pub fn from_target(chosen: GpuInjection) -> Self {
        match chosen {
            GpuInjection::None => Self::Auto,
            GpuInjection::Hook => Self::Hook,
            GpuInjection::Cdi => Self::Cdi,
        }
    }

    /// Its word on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Cdi => "cdi",
            Self::Generated => "generated",
            Self::Hook => "hook",
            Self::None => "none",
        }
    }
}

impl fmt::Display for InjectionMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for InjectionMethod {
    type Err = Error;

    fn from_str(word: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|way| way.as_str() == word).ok_or_else(|| {
            Error::new(Kind::Config, format!("unknown GPU injection mode `{word}`"))
                .help("write `auto`, `cdi`, `generated`, `hook` or `none`")
        })
    }
}

/// The request of a task for its devices.
#[derive(Clone, Copy, Debug, Default)]
pub struct InjectionRequest<'a> {
    /// The driver capabilities it uses; `compute` and `utility` if it names none.
    pub capabilities: &'a [DriverCapability],
    /// How the devices are injected.
    pub injection: InjectionMethod,
    /// Whether its root is this host's own files, which have the driver's among them.
    pub host_root: bool,
    /// The value of `NVIDIA_VISIBLE_DEVICES` that the job's author wrote, if there is one.
    pub visible: Option<&'a str>,
}

/// The result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InjectionReport {
    /// The method by which devices were added; `none` without devices.
    pub method: InjectionMethod,
    /// Notes for the user, a line each.
    pub notes: Vec<String>,
}
