//! The CDI files of a host, and which of them describes a device.
//!
//! A file in a later directory takes precedence over one in an earlier directory. If two files of the same directory
//! describe one device, neither is used, because there is no way to choose (SPEC.md, "CDI JSON Specification";
//! `pkg/cdi/cache.go`).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Device, Edits, Spec};
use crate::host::Host;
use jobc_sys::error::Error;

/// Where files lie, least first.
pub const DIRECTORIES: [&str; 2] = ["/etc/cdi", "/var/run/cdi"];

/// The largest file that is read.
const MAX_FILE_SIZE: u64 = 4 << 20;

/// The CDI files of a host.
#[derive(Clone, Debug, Default)]
pub struct CdiRegistry {
    files: Vec<(PathBuf, Spec)>,
    /// By qualified name, `nvidia.com/gpu=0`.
    devices: BTreeMap<String, RegistryEntry>,
    /// Files that cannot be used, and devices that two of them name.
    pub errors: Vec<String>,
}

/// Where a device is described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RegistryEntry {
    /// The file, its device, and the directory.
    Device { file: usize, device: usize, directory: usize },
    /// By several of this directory.
    Conflict { directory: usize },
}

/// A device, and the file that describes it.
#[derive(Clone, Copy, Debug)]
pub struct RegisteredDevice<'a> {
    /// The file.
    pub path: &'a Path,
    /// Its content.
    pub spec: &'a Spec,
    /// Its description of the device.
    pub device: &'a Device,
}

impl CdiRegistry {
    /// Reads the files of a host.
    pub fn of_host(machine: &Host) -> Self {
        Self::read_directories(&DIRECTORIES.map(|directory| machine.path(directory)))
    }

    /// Reads the files in directories, lowest precedence first; a missing directory has no files.
    pub fn read_directories(directories: &[PathBuf]) -> Self {
        let mut found = Self::default();
        for (number, directory) in directories.iter().enumerate() {
            let entries = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
            let mut paths: Vec<PathBuf> = entries.filter(|path| is_file(path)).collect();
            paths.sort();
            for path in paths {
                match read(&path) {
                    Ok(spec) => found.add(path, spec, number),
                    Err(error) => found.errors.push(error.message()),
                }
            }
        }
        found
    }

    fn add(&mut self, path: PathBuf, spec: Spec, directory: usize) {
        let file = self.files.len();
        for (device, described) in spec.devices.iter().enumerate() {
            let name = format!("{}={}", spec.kind, described.name);
            let entry = match self.devices.get(&name) {
                Some(RegistryEntry::Device { file: other, directory: same, .. }) if *same == directory => {
                    let other = self.files[*other].0.display();
                    self.errors.push(format!("both `{other}` and `{}` describe `{name}`", path.display()));
                    RegistryEntry::Conflict { directory }
                }
                Some(RegistryEntry::Conflict { directory: same }) if *same == directory => {
                    RegistryEntry::Conflict { directory }
                }
                _ => RegistryEntry::Device { file, device, directory },
            };
            self.devices.insert(name, entry);
        }
        self.files.push((path, spec));
    }

    /// The description of a device by its qualified name, `nvidia.com/gpu=0`.
    pub fn device(&self, name: &str) -> Option<RegisteredDevice<'_>> {
        let Some(RegistryEntry::Device { file, device, .. }) = self.devices.get(name) else { return None };
        let (path, spec) = self.files.get(*file)?;
        Some(RegisteredDevice { path, spec, device: spec.devices.get(*device)? })
    }

    /// Whether some file describes devices of this kind, `nvidia.com/gpu`.
    pub fn has_kind(&self, kind: &str) -> bool {
        self.files.iter().any(|(_, spec)| spec.kind == kind)
    }

    /// The qualified names that can be used.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.devices
            .iter()
            .filter(|(_, entry)| matches!(entry, RegistryEntry::Device { .. }))
            .map(|(name, _)| &**name)
    }
}

/// The edits of a container with several devices: the files' common edits once each, then those of the devices.
pub fn merge_edits(devices: &[RegisteredDevice<'_>]) -> Edits {
    let mut edits = Edits::default();
    let mut seen: Vec<&Path> = Vec::new();
    for described in devices {
        if !seen.contains(&described.path) {
            seen.push(described.path);
            edits.extend(&described.spec.container_edits);
        }
    }
    for described in devices {
        edits.extend(&described.device.container_edits);
    }
    edits
}

fn is_file(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "json" || end == "yaml") && path.is_file()
}

fn read(path: &Path) -> Result<Spec, Error> {
    use jobc_sys::error::Kind;
    let failed = |error: &std::io::Error| {
        let because = jobc_sys::error::describe_io(error);
        Error::new(Kind::System, format!("cannot read `{}`: {because}", path.display()))
    };
    if fs::metadata(path).map_err(|error| failed(&error))?.len() > MAX_FILE_SIZE {
        return Err(Error::new(Kind::Config, format!("`{}` is larger than 4 MiB", path.display())));
    }
    Spec::read(path, &fs::read_to_string(path).map_err(|error| failed(&error))?)
}
