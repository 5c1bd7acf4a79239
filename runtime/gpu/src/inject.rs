//! Gives a container its GPUs: the configuration for exactly the devices that it leased.
//!
//! A container starts without GPUs: its /dev is new, and its device cgroup denies everything that is not allowed. There
//! are three ways to inject devices, in this order if none is chosen: the host's CDI files, what this program finds of
//! the driver itself, and NVIDIA's own hook.

mod environment;
mod extras;
mod job;
mod nvidia_hook;
mod request;

use std::sync::OnceLock;

use jobc_schema::gpu::Vendor;
use oci_spec::runtime::Spec;

use super::cdi::generate::{self, DriverFiles, Source, kind};
use super::cdi::registry::{CdiRegistry, RegisteredDevice};
use super::cdi::{edit, registry};
use super::host::Host;
use super::inventory::{DeviceId, Inventory};
use super::{nodes, requires};
use jobc_sys::error::{Error, Kind, Result};

pub use environment::value;
pub use job::{is_host_root, visible_by_author, without_devices};
pub use request::{InjectionMethod, InjectionReport, InjectionRequest};

/// Data that the tasks of a job share: the host's devices and their files, searched once.
#[derive(Debug)]
pub struct Injector {
    host: Host,
    inventory: Inventory,
    registry: OnceLock<CdiRegistry>,
    files: OnceLock<DriverFiles>,
}

/// Gives one container its devices; an [`Injector`] does it for several.
///
/// # Errors
///
/// As of [`Injector::inject`].
pub fn inject(
    spec: &mut Spec,
    machine: &Host,
    inventory: &Inventory,
    devices: &[DeviceId],
    wants: &InjectionRequest<'_>,
) -> Result<InjectionReport> {
    Injector::new(machine.clone(), inventory.clone()).inject(spec, devices, wants)
}

impl Injector {
    /// Nothing is searched until a container needs it.
    pub fn new(machine: Host, inventory: Inventory) -> Self {
        Self { host: machine, inventory, registry: OnceLock::new(), files: OnceLock::new() }
    }

    /// The host.
    pub(super) fn host(&self) -> &Host {
        &self.host
    }

    /// The host's GPUs.
    pub fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    /// Gives a container exactly these devices, none of them included.
    ///
    /// With no devices and `none` in the author's `NVIDIA_VISIBLE_DEVICES`, it only gets the driver's files, as from
    /// NVIDIA's runtime (container-toolkit, "Environment variables").
    ///
    /// The configuration must be complete except for them: its user namespace and its program's user are read.
    ///
    /// # Errors
    ///
    /// A device that no longer exists, a method that does not support it, a CDI file that does not match the host.
    pub fn inject(
        &self,
        spec: &mut Spec,
        devices: &[DeviceId],
        wants: &InjectionRequest<'_>,
    ) -> Result<InjectionReport> {
        if devices.is_empty() {
            if wants.visible == Some("none") && wants.injection != InjectionMethod::None {
                return self.generate(spec, devices, wants);
            }
            environment::hide_all(spec, wants.visible);
            return Ok(InjectionReport { method: InjectionMethod::None, notes: Vec::new() });
        }
        for device in devices {
            let there = self.inventory.gpu(*device).is_some()
                && (device.mig.is_none() || self.inventory.mig(*device).is_some());
            if !there {
                let name = self.inventory.name(*device);
                let message = format!("the GPU `{name}` no longer exists");
                return Err(Error::new(Kind::System, message).help("see `jobc gpu ls`"));
            }
        }
        let environment = spec.process().as_ref().and_then(|process| process.env().as_deref());
        requires::check(environment.unwrap_or_default(), &self.inventory, devices)?;
        if !matches!(wants.injection, InjectionMethod::None | InjectionMethod::Hook) {
            let capabilities = environment::capabilities(wants.capabilities);
            nodes::create_missing(&self.host, &self.inventory, devices, capabilities)?;
        }
        match wants.injection {
            InjectionMethod::None => {
                environment::name_devices(spec, &self.inventory, devices, wants.visible);
                Ok(InjectionReport { method: InjectionMethod::None, notes: Vec::new() })
            }
            InjectionMethod::Hook => nvidia_hook::add(spec, &self.host, &self.inventory, devices, wants),
            InjectionMethod::Cdi => {
                let described = self.registered_devices(devices)?;
                Self::apply_cdi(spec, &described, wants)
            }
            InjectionMethod::Generated => self.generate(spec, devices, wants),
            InjectionMethod::Auto => self.inject_auto(spec, devices, wants),
        }
    }

    /// The host's CDI files; if they do not fit, the driver files that this program finds.
    fn inject_auto(
        &self,
        spec: &mut Spec,
        devices: &[DeviceId],
        wants: &InjectionRequest<'_>,
    ) -> Result<InjectionReport> {
        // The host's own files have the driver's; what a CDI file would mount over them is the same.
        if wants.host_root || !self.has_files_for(devices) {
            return self.inject_without_cdi(spec, devices, wants);
        }
        let mut attempt = spec.clone();
        let tried =
            self.registered_devices(devices).and_then(|found| Self::apply_cdi(&mut attempt, &found, wants));
        match tried {
            Ok(injected) => {
                *spec = attempt;
                Ok(injected)
            }
            Err(error) => {
                let mut injected = self.inject_without_cdi(spec, devices, wants)?;
                injected.notes.insert(0, format!("the host's CDI files are not used: {}", error.message()));
                Ok(injected)
            }
        }
    }

    /// The driver files that are found; if the libraries are missing, NVIDIA's hook may know where they are.
    fn inject_without_cdi(
        &self,
        spec: &mut Spec,
        devices: &[DeviceId],
        wants: &InjectionRequest<'_>,
    ) -> Result<InjectionReport> {
        let is_nvidia = devices.iter().all(|device| device.vendor == Vendor::Nvidia);
        let by_hook = is_nvidia
            && !self.has_driver_in_root(wants)
            && !self.files().has_cuda()
            && nvidia_hook::find(&self.host).is_some();
        if by_hook {
            return nvidia_hook::add(spec, &self.host, &self.inventory, devices, wants);
        }
        self.generate(spec, devices, wants)
    }

    /// Whether the driver's files are in the container's root already: it is the host's own, and the driver is
    /// there.
    fn has_driver_in_root(&self, wants: &InjectionRequest<'_>) -> bool {
        wants.host_root && self.host.is_own()
    }

    fn registry(&self) -> &CdiRegistry {
        self.registry.get_or_init(|| CdiRegistry::of_host(&self.host))
    }

    fn files(&self) -> &DriverFiles {
        self.files.get_or_init(|| DriverFiles::of(&self.host, &self.inventory))
    }

    fn has_files_for(&self, devices: &[DeviceId]) -> bool {
        devices.iter().filter_map(|device| kind(device.vendor)).any(|kind| self.registry().has_kind(kind))
    }

    /// The host's CDI files on devices.
    fn registered_devices(&self, devices: &[DeviceId]) -> Result<Vec<RegisteredDevice<'_>>> {
        let mut all = Vec::with_capacity(devices.len());
        for device in devices {
            all.push(self.registered_device(*device)?);
        }
        Ok(all)
    }

    /// The description of a device that brings its nodes, by the first of its names that has one.
    ///
    /// Files keep numbers of an earlier boot at times, so a description without the device's own node is not believed.
    fn registered_device(&self, device: DeviceId) -> Result<RegisteredDevice<'_>> {
        let (found, kind) = (self.registry(), kind(device.vendor).unwrap_or_default());
        let nodes = generate::needed_nodes(&self.inventory, device);
        let mut wrong = None;
        for name in cdi_names(&self.inventory, device) {
            let Some(described) = found.device(&format!("{kind}={name}")) else { continue };
            let edits = registry::merge_edits(&[described]);
            if let Some(hook) = edits.hooks.iter().find(|hook| !self.has_program(&hook.path)) {
                let message = format!(
                    "`{}` runs the hook `{}`, which is not installed",
                    described.path.display(),
                    hook.path.display()
                );
                return Err(Error::new(Kind::System, message).help(
                    "install it again, or write the file: `jobc gpu cdi --output /etc/cdi/jobc.yaml`",
                ));
            }
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
        Err(Error::new(Kind::System, message).help(
            "write the file again: `jobc gpu cdi --output /etc/cdi/jobc.yaml`, or the vendor's own tool",
        ))
    }

    /// Whether a hook's program is there. An update of the vendor's tools may have taken it away, and a container with it
    /// would not start.
    fn has_program(&self, path: &std::path::Path) -> bool {
        path.exists() || self.host.path(path).exists()
    }

    fn apply_cdi(
        spec: &mut Spec,
        found: &[RegisteredDevice<'_>],
        wants: &InjectionRequest<'_>,
    ) -> Result<InjectionReport> {
        let notes = edit::apply(&registry::merge_edits(found), spec)?;
        environment::restore(spec, wants.visible);
        Ok(InjectionReport { method: InjectionMethod::Cdi, notes })
    }

    fn generate(
        &self,
        spec: &mut Spec,
        devices: &[DeviceId],
        wants: &InjectionRequest<'_>,
    ) -> Result<InjectionReport> {
        let files_alone = devices.is_empty();
        let is_nvidia = files_alone || devices.iter().any(|device| device.vendor == Vendor::Nvidia);
        let mut notes = Vec::new();
        let mut files = (is_nvidia && !self.has_driver_in_root(wants)).then(|| self.files());
        if files.is_some() && wants.host_root && edit::is_in_user_namespace(spec) {
            // Files cannot be created in directories of a user that is not mapped in the namespace.
            files = None;
            notes.push(format!(
                "the driver's files below `{}` cannot be added to the host's own without root",
                self.host.root().display()
            ));
        }
        if files.is_some_and(|files| !files.has_cuda()) {
            notes.push(format!(
                "no NVIDIA driver libraries were found below `{}`: the container has only those of its image",
                self.host.root().display()
            ));
        }
        let source = Source {
            host: &self.host,
            inventory: &self.inventory,
            files,
            capabilities: environment::capabilities(wants.capabilities),
        };
        let mut edits = if files_alone { source.driver_edits()? } else { source.edits(devices)? };
        extras::add(&mut edits, &self.host, spec);
        notes.extend(edit::apply(&edits, spec)?);
        if is_nvidia && self.has_driver_in_root(wants) {
            environment::add_driver_paths(spec, self.files());
        }
        environment::restore(spec, wants.visible);
        Ok(InjectionReport { method: InjectionMethod::Generated, notes })
    }
}

/// The names that a device can have in a CDI file, the most specific first.
fn cdi_names(inventory: &Inventory, device: DeviceId) -> Vec<String> {
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
