//! Gives a container its GPUs: the configuration for exactly the devices that it leased.
//!
//! A container starts without GPUs: its /dev is new, and its device cgroup denies everything that is not allowed. There
//! are three ways to inject devices, in this order if none is chosen: the host's CDI files, what this program finds of
//! the driver itself, and NVIDIA's own hook.

mod environment;
mod extras;
mod job;
mod legacy;
mod wants;

use std::sync::OnceLock;

use jobc_schema::gpu::Vendor;
use oci_spec::runtime::Spec;

use super::cdi::found::{Described, Found};
use super::cdi::generate::{self, DriverFiles, Source, kind};
use super::cdi::{edit, found};
use super::inventory::{DeviceId, Inventory};
use super::machine::Machine;
use super::{nodes, requires};
use jobc_sys::error::{Error, Kind, Result};

pub use environment::value;
pub use job::{hide_all, is_machine_root, visible_by_author};
pub use wants::{Injected, Wants, Way};

/// What the tasks of a job share: the host's devices, and what was found of files for them, once.
#[derive(Debug)]
pub struct Injector {
    machine: Machine,
    inventory: Inventory,
    found: OnceLock<Found>,
    files: OnceLock<DriverFiles>,
}

/// Gives one container its devices; an [`Injector`] does it for several.
///
/// # Errors
///
/// As of [`Injector::inject`].
pub fn inject(
    spec: &mut Spec,
    machine: &Machine,
    inventory: &Inventory,
    devices: &[DeviceId],
    wants: &Wants<'_>,
) -> Result<Injected> {
    Injector::new(machine.clone(), inventory.clone()).inject(spec, devices, wants)
}

impl Injector {
    /// Nothing is searched until a container needs it.
    pub fn new(machine: Machine, inventory: Inventory) -> Self {
        Self { machine, inventory, found: OnceLock::new(), files: OnceLock::new() }
    }

    /// The host's GPUs.
    pub fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    /// Gives a container exactly these devices, none of them included.
    ///
    /// The configuration must be complete except for them: its user namespace and its program's user are read.
    ///
    /// # Errors
    ///
    /// A device that does not exist any more, a way that does not serve it, a CDI file that does not fit the host.
    pub fn inject(&self, spec: &mut Spec, devices: &[DeviceId], wants: &Wants<'_>) -> Result<Injected> {
        if devices.is_empty() {
            environment::hide_all(spec, wants.visible);
            return Ok(Injected { way: Way::None, said: Vec::new() });
        }
        for device in devices {
            let there = self.inventory.gpu(*device).is_some()
                && (device.mig.is_none() || self.inventory.mig(*device).is_some());
            if !there {
                let name = self.inventory.name(*device);
                let message = format!("the GPU `{name}` no longer exists");
                return Err(Error::new(Kind::Machine, message).help("see `jobc gpu ls`"));
            }
        }
        let environment = spec.process().as_ref().and_then(|process| process.env().as_deref());
        requires::check(environment.unwrap_or_default(), &self.inventory, devices)?;
        if !matches!(wants.injection, Way::None | Way::Hook) {
            let capabilities = environment::capabilities(wants.capabilities);
            nodes::complete(&self.machine, &self.inventory, devices, capabilities)?;
        }
        match wants.injection {
            Way::None => {
                environment::name_devices(spec, &self.inventory, devices, wants.visible);
                Ok(Injected { way: Way::None, said: Vec::new() })
            }
            Way::Hook => legacy::add(spec, &self.machine, &self.inventory, devices, wants),
            Way::Cdi => {
                let described = self.described(devices)?;
                Self::apply_found(spec, &described, wants)
            }
            Way::Generated => self.generate(spec, devices, wants),
            Way::Auto => self.choose(spec, devices, wants),
        }
    }

    /// The host's CDI files; if they do not fit, the driver files that this program finds.
    fn choose(&self, spec: &mut Spec, devices: &[DeviceId], wants: &Wants<'_>) -> Result<Injected> {
        // The host's own files have the driver's; what a CDI file would mount over them is the same.
        if wants.machine_root || !self.has_files_for(devices) {
            return self.make(spec, devices, wants);
        }
        let mut attempt = spec.clone();
        let tried = self.described(devices).and_then(|found| Self::apply_found(&mut attempt, &found, wants));
        match tried {
            Ok(injected) => {
                *spec = attempt;
                Ok(injected)
            }
            Err(error) => {
                let mut injected = self.make(spec, devices, wants)?;
                injected.said.insert(0, format!("the host's CDI files are not used: {}", error.message));
                Ok(injected)
            }
        }
    }

    /// The driver files that are found; if the libraries are missing, NVIDIA's hook may know where they are.
    fn make(&self, spec: &mut Spec, devices: &[DeviceId], wants: &Wants<'_>) -> Result<Injected> {
        let is_nvidia = devices.iter().all(|device| device.vendor == Vendor::Nvidia);
        let by_hook = is_nvidia
            && !self.has_driver_in_root(wants)
            && !self.files().has_cuda()
            && legacy::find(&self.machine).is_some();
        if by_hook {
            return legacy::add(spec, &self.machine, &self.inventory, devices, wants);
        }
        self.generate(spec, devices, wants)
    }

    /// Whether the driver's files are in the container's root already: it is the host's own, and the driver is
    /// there.
    fn has_driver_in_root(&self, wants: &Wants<'_>) -> bool {
        wants.machine_root && self.machine.is_own()
    }

    fn found(&self) -> &Found {
        self.found.get_or_init(|| Found::on(&self.machine))
    }

    fn files(&self) -> &DriverFiles {
        self.files.get_or_init(|| DriverFiles::of(&self.machine, &self.inventory))
    }

    fn has_files_for(&self, devices: &[DeviceId]) -> bool {
        devices.iter().filter_map(|device| kind(device.vendor)).any(|kind| self.found().has_kind(kind))
    }

    /// The host's CDI files on devices.
    fn described(&self, devices: &[DeviceId]) -> Result<Vec<Described<'_>>> {
        let mut all = Vec::with_capacity(devices.len());
        for device in devices {
            all.push(self.describe(*device)?);
        }
        Ok(all)
    }

    /// The description of a device that brings its nodes, by the first of its names that has one.
    ///
    /// Files keep numbers of an earlier boot at times, so a description without the device's own node is not believed.
    fn describe(&self, device: DeviceId) -> Result<Described<'_>> {
        let (found, kind) = (self.found(), kind(device.vendor).unwrap_or_default());
        let nodes = generate::needed_nodes(&self.inventory, device);
        let mut wrong = None;
        for name in names(&self.inventory, device) {
            let Some(described) = found.device(&format!("{kind}={name}")) else { continue };
            let edits = found::edits(&[described]);
            let brings = |path: &std::path::Path| edits.device_nodes.iter().any(|node| node.path == path);
            match nodes.iter().find(|path| !brings(path)) {
                None => return Ok(described),
                Some(path) => {
                    wrong = Some(format!(
                        "`{}` describes `{kind}={name}` without its node `{}`",
                        described.path.display(),
                        path.display()
                    ));
                }
            }
        }
        let name = self.inventory.name(device);
        let message = wrong.unwrap_or_else(|| {
            let error = found.errors.first().map(|error| format!(": {error}")).unwrap_or_default();
            format!("no CDI file of the host describes the GPU `{name}` as `{kind}`{error}")
        });
        Err(Error::new(Kind::Machine, message).help(
            "write the file again: `jobc gpu cdi --output /etc/cdi/jobc.yaml`, or the vendor's own tool",
        ))
    }

    fn apply_found(spec: &mut Spec, found: &[Described<'_>], wants: &Wants<'_>) -> Result<Injected> {
        let said = edit::apply(&found::edits(found), spec)?;
        environment::restore(spec, wants.visible);
        Ok(Injected { way: Way::Cdi, said })
    }

    fn generate(&self, spec: &mut Spec, devices: &[DeviceId], wants: &Wants<'_>) -> Result<Injected> {
        let is_nvidia = devices.iter().any(|device| device.vendor == Vendor::Nvidia);
        let mut said = Vec::new();
        let mut files = (is_nvidia && !self.has_driver_in_root(wants)).then(|| self.files());
        if files.is_some() && wants.machine_root && edit::is_in_user_namespace(spec) {
            // Nobody makes files in directories of a user that the namespace does not have.
            files = None;
            said.push(format!(
                "the driver's files below `{}` cannot be added to the host's own without root",
                self.machine.root().display()
            ));
        }
        if files.is_some_and(|files| !files.has_cuda()) {
            said.push(format!(
                "no NVIDIA driver libraries were found below `{}`: the container has only those of its image",
                self.machine.root().display()
            ));
        }
        let source = Source {
            machine: &self.machine,
            inventory: &self.inventory,
            files,
            capabilities: environment::capabilities(wants.capabilities),
        };
        let mut edits = source.edits(devices)?;
        extras::add(&mut edits, &self.machine, spec);
        said.extend(edit::apply(&edits, spec)?);
        if is_nvidia && self.has_driver_in_root(wants) {
            environment::tell_of(spec, self.files());
        }
        environment::restore(spec, wants.visible);
        Ok(Injected { way: Way::Generated, said })
    }
}

/// What a device may be called in a CDI file, the surest first.
fn names(inventory: &Inventory, device: DeviceId) -> Vec<String> {
    if let Some(mig) = device.mig {
        let uuid = inventory.mig(device).and_then(|mig| mig.uuid.clone());
        return uuid.into_iter().chain([format!("{}:{mig}", device.gpu)]).collect();
    }
    let mut names = Vec::new();
    if let Some(gpu) = inventory.gpu(device) {
        names.extend(gpu.uuid.clone());
        names.extend(gpu.pci.clone());
        let nodes = gpu.nodes.iter().filter_map(|node| node.file_name()?.to_str());
        names.extend(nodes.filter(|name| name.starts_with("card")).map(str::to_owned));
    }
    names.push(device.gpu.to_string());
    names
}

#[cfg(test)]
mod tests;
