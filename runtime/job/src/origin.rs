//! The origin and the host of a run: the content of `origin.json`, which the supervisor writes once, when the job has
//! its resources. It holds no secret's value. Reports read it.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use jobc_schema::plan::JobPlan;
use serde::{Deserialize, Serialize};

use crate::admission::capacity::Capacity;
use crate::directory::{Directory, replace};
use crate::submission::Submission;
use jobc_gpu::device_names::short_name;
use jobc_gpu::lease::GpuLease;
use jobc_schema::digest::Digest;
use jobc_sys::accounts;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::write_atomic::Durability;

/// The origin and the host of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Origin {
    /// The version of jobc.
    pub version: String,
    /// The arguments of the command that submitted the job; empty if unknown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The working directory of that command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<PathBuf>,
    /// The user who ran it, by name; by number where no name is known.
    pub user: String,
    /// The digest of the job file's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_file: Option<Digest>,
    /// The images by the plan's names for them: the digest of the manifest that was run, where it is known.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub images: IndexMap<String, Image>,
    /// The host.
    pub host: Host,
}

/// An image of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// As the plan names it.
    pub reference: String,
    /// The digest of its manifest; absent for a directory or the host's own files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
}

/// The host that a job runs on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Its operating system as it calls itself (os-release(5)): `Debian GNU/Linux 12 (bookworm)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The kernel's name and release, `Linux 6.12.8`.
    pub kernel: String,
    /// The architecture, `x86_64`.
    pub architecture: String,
    /// The processors' model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processor: Option<String>,
    /// Thousandths of a CPU that jobs may have.
    pub cpu_millis: u64,
    /// Bytes of memory that jobs may have.
    pub memory_bytes: u64,
    /// The version of NVIDIA's driver; absent for a job without GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_driver: Option<String>,
    /// The GPUs that the job has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<Gpu>,
}

/// A GPU of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    /// Its name in tasks' records and samples: a UUID.
    pub name: String,
    /// Its number, `3`, or `0:1` for a MIG instance.
    pub number: String,
    /// As the driver calls it, `NVIDIA H200`.
    pub model: String,
    /// Its memory in bytes, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

impl Origin {
    /// The origin of a job that was just admitted.
    pub fn of(
        plan: &JobPlan,
        submission: &Submission,
        capacity: &Capacity,
        leased: &GpuLease,
        directory: &Directory,
    ) -> Self {
        let job_file = std::fs::read(directory.job_file()).ok();
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: submission.command.clone(),
            working_directory: submission.working_directory.clone(),
            user: user_name(),
            job_file: job_file.map(|text| Digest::of(&text)),
            images: images(plan, submission),
            host: Host::of(capacity, leased),
        }
    }

    /// Reads a job's origin; `None` if it is missing or unreadable.
    pub fn read(directory: &Directory) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(directory.origin_file()).ok()?).ok()
    }

    /// Writes it.
    pub fn write(&self, directory: &Directory) -> Result<()> {
        let text = serde_json::to_vec(self).map_err(|error| Error::new(Kind::State, error.to_string()))?;
        replace(&directory.origin_file(), &text, Durability::Rename)
    }
}

/// The images that roles use, each once.
fn images(plan: &JobPlan, submission: &Submission) -> IndexMap<String, Image> {
    let mut images = IndexMap::new();
    for role in &plan.roles {
        let Some(image) = plan.image_of(role) else { continue };
        let manifest = submission.images.as_ref().and_then(|images| images.roles.get(&role.name));
        images.entry(role.image.clone()).or_insert_with(|| Image {
            reference: image.reference.clone(),
            digest: manifest.map(|manifest| manifest.digest.clone()),
        });
    }
    images
}

impl Host {
    fn of(capacity: &Capacity, leased: &GpuLease) -> Self {
        let kernel = rustix::system::uname();
        let text = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
        let release = |path: &str| std::fs::read_to_string(path).ok();
        let release = release("/etc/os-release").or_else(|| release("/usr/lib/os-release"));
        let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let gpus = leased.slots.iter().map(|slot| {
            let card = capacity.gpus.gpu(slot.device);
            let instance = capacity.gpus.mig(slot.device);
            let slice = slot.slice.as_ref().and_then(|slice| slice.memory_bytes);
            Gpu {
                name: slot.name.clone(),
                number: short_name(slot.device),
                model: card.map(|card| card.name.clone()).unwrap_or_default(),
                memory_bytes: slice
                    .or_else(|| instance.and_then(|instance| instance.memory_bytes))
                    .or_else(|| card.filter(|_| slot.device.mig.is_none())?.memory_bytes),
            }
        });
        Self {
            name: text(kernel.nodename()),
            system: release.as_deref().and_then(pretty_name),
            kernel: format!("{} {}", text(kernel.sysname()), text(kernel.release())),
            architecture: text(kernel.machine()),
            processor: processor_model(&processors),
            cpu_millis: capacity.cpu_millis,
            memory_bytes: capacity.memory_bytes,
            gpu_driver: capacity.gpus.driver.as_ref().map(|driver| driver.version.clone()),
            gpus: gpus.collect(),
        }
    }
}

/// `PRETTY_NAME` of an os-release file, without its quotes (os-release(5)).
fn pretty_name(text: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?.trim();
    let inner = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let inner = inner.or_else(|| value.strip_prefix('\'')?.strip_suffix('\'')).unwrap_or(value);
    let name = inner.replace("\\\"", "\"").replace("\\$", "$").replace("\\\\", "\\");
    (!name.is_empty()).then_some(name)
}

/// The first model that /proc/cpuinfo names; on other architectures than x86 it often names none.
fn processor_model(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    let model = line.split_once(':')?.1.split_whitespace().collect::<Vec<_>>().join(" ");
    (!model.is_empty()).then_some(model)
}

fn user_name() -> String {
    let uid = rustix::process::getuid().as_raw();
    let passwd = accounts::read_file(Path::new("/etc/passwd")).unwrap_or_default();
    accounts::name_of(&passwd, uid).unwrap_or_else(|| uid.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::JobDirectories;

    #[test]
    fn files_of_the_host_are_read() {
        assert_eq!(
            pretty_name("NAME=x\nPRETTY_NAME=\"Debian \\\"12\\\"\"\n").as_deref(),
            Some("Debian \"12\"")
        );
        assert_eq!(pretty_name("PRETTY_NAME='Arch Linux'").as_deref(), Some("Arch Linux"));
        assert_eq!(pretty_name("PRETTY_NAME=\nNAME=x"), None);
        assert_eq!(
            processor_model("processor\t: 0\nmodel name\t: Some  CPU @ 3 GHz\n").as_deref(),
            Some("Some CPU @ 3 GHz")
        );
        assert_eq!(processor_model("processor : 0\n"), None);
        assert!(!user_name().is_empty());
    }

    #[test]
    fn what_is_written_is_read_again() {
        let place = tempfile::tempdir().unwrap();
        let places = JobDirectories { state: place.path().join("s"), records: place.path().join("r") };
        let directory = places.create("a").unwrap();
        assert_eq!(Origin::read(&directory), None);
        let capacity = Capacity { cpu_millis: 2000, memory_bytes: 1 << 30, ..Capacity::default() };
        let origin = Origin {
            command: vec!["jobc".to_owned(), "run".to_owned()],
            host: Host::of(&capacity, &GpuLease::default()),
            ..Origin::default()
        };
        assert!(origin.host.kernel.starts_with("Linux ") && !origin.host.name.is_empty(), "{origin:?}");
        origin.write(&directory).unwrap();
        assert_eq!(Origin::read(&directory), Some(origin));
        std::fs::write(directory.origin_file(), "{\"versi").unwrap();
        assert_eq!(Origin::read(&directory), None);
    }
}
