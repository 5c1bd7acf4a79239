//! The GPUs of a single bundle, without a lease: those named on the command line, or those of the step it runs in.

use jobc_schema::gpu::{DriverCapability, Vendor};
use oci_spec::runtime::Spec;
use serde::de::IntoDeserializer as _;
use serde::de::value::{Error as ValueError, StrDeserializer};

use jobc_container::bundle::Bundle;
use jobc_container::root::Root;
use jobc_gpu::inject::{InjectionMethod, InjectionRequest, Injector, is_host_root, value, visible_by_author};
use jobc_gpu::nvml::Freshness;
use jobc_gpu::step::{self, StepVariables};
use jobc_gpu::{DeviceId, Host, Inventory, device_names};
use jobc_sys::error::{Error, Kind, Result};

/// The annotation with the numbers of a bundle's GPUs.
pub(super) const GPUS_ANNOTATION: &str = "dev.jobc.gpus";

/// The GPUs of a bundle.
#[derive(Debug)]
pub struct Devices {
    injector: Injector,
    ids: Vec<DeviceId>,
    injection: InjectionMethod,
    capabilities: Vec<DriverCapability>,
    in_step: bool,
}

impl Devices {
    /// Those named on the command line, for a bundle: `0`, `0:1`, `GPU-…`, `MIG-…`.
    ///
    /// # Errors
    ///
    /// A name that matches no device, or the wrong number of devices.
    pub fn of(bundle: &Bundle, words: &[String], way: InjectionMethod) -> Result<Self> {
        Self::on(Host::here(), bundle, words, way)
    }

    /// Devices of the step, scope or pod of this process, as many as the bundle requests; `None` if it requests none.
    ///
    /// # Errors
    ///
    /// There are fewer than the bundle requests.
    pub fn of_step(bundle: &Bundle, way: InjectionMethod) -> Result<Option<Self>> {
        // To look at the host takes longer than to see that the bundle has no GPUs.
        match bundle.annotation(GPUS_ANNOTATION) {
            Some(_) => Self::of_step_on(Host::here(), bundle, &StepVariables::here(), way),
            None => Ok(None),
        }
    }

    pub(super) fn of_step_on(
        machine: Host,
        bundle: &Bundle,
        variables: &StepVariables,
        way: InjectionMethod,
    ) -> Result<Option<Self>> {
        let Some(numbers) = bundle.annotation(GPUS_ANNOTATION) else { return Ok(None) };
        let inventory = Inventory::discover_with(&machine, Freshness::Facts);
        let count = numbers.split(',').count();
        let ids = step::take(&inventory, vendor(bundle, &inventory), variables, count)?;
        Ok(Some(Self {
            injector: Injector::new(machine, inventory),
            ids,
            injection: way,
            capabilities: capabilities(bundle),
            in_step: true,
        }))
    }

    pub(super) fn on(machine: Host, bundle: &Bundle, words: &[String], way: InjectionMethod) -> Result<Self> {
        let inventory = Inventory::discover_with(&machine, Freshness::Facts);
        let ids = device_names::parse_devices(words, vendor(bundle, &inventory), &inventory)?;
        let wanted = bundle.annotation(GPUS_ANNOTATION).map(|numbers| numbers.split(',').count());
        if let Some(wanted) = wanted.filter(|wanted| *wanted != ids.len()) {
            let message = format!("the bundle asks for {wanted} GPUs, and `--devices` names {}", ids.len());
            return Err(Error::new(Kind::Config, message)
                .at(format!("/annotations/{}", jobc_schema::pointer::escape(GPUS_ANNOTATION)))
                .help(format!("name {wanted}")));
        }
        Ok(Self {
            injector: Injector::new(machine, inventory),
            ids,
            injection: way,
            capabilities: capabilities(bundle),
            in_step: false,
        })
    }

    /// Whether they are those of a step, which its batch system keeps for it.
    pub(super) fn are_of_step(&self) -> bool {
        self.in_step
    }

    /// Their names on the host.
    pub fn names(&self) -> Vec<String> {
        self.ids.iter().map(|id| self.injector.inventory().name(*id)).collect()
    }

    /// Adds them to the configuration of the bundle's container; returns notes for the user.
    pub(super) fn inject_into(&self, bundle: &Bundle, spec: &mut Spec, root: &Root) -> Result<Vec<String>> {
        let visible = visible_by_author(bundle);
        let wants = InjectionRequest {
            capabilities: &self.capabilities,
            injection: self.injection,
            host_root: is_host_root(root),
            visible: visible.as_deref(),
        };
        let mut notes = self.injector.inject(spec, &self.ids, &wants)?.notes;
        let is_slice = |key: &String| key.starts_with("dev.jobc.gpu.share.");
        let shares = bundle.config.spec.annotations().iter().flatten().any(|(key, _)| is_slice(key));
        if shares && self.ids.iter().any(|id| id.mig.is_none()) {
            notes.push(
                "the GPU slice is not enforced for a single bundle; `jobc run` of the job file enforces it"
                    .to_owned(),
            );
        }
        Ok(notes)
    }
}

/// The vendor of a bundle's GPUs; if it names none, that of the host's first.
fn vendor(bundle: &Bundle, inventory: &Inventory) -> Vendor {
    let named = bundle.annotation("dev.jobc.gpu.vendor").and_then(parse_word);
    named.or_else(|| inventory.gpus.first().map(|gpu| gpu.vendor)).unwrap_or(Vendor::Nvidia)
}

fn capabilities(bundle: &Bundle) -> Vec<DriverCapability> {
    let words = value(&bundle.config.spec, "NVIDIA_DRIVER_CAPABILITIES").unwrap_or_default();
    words.split(',').filter_map(parse_word).collect()
}

/// A word of the job language as its value.
fn parse_word<'de, T: serde::Deserialize<'de>>(word: &'de str) -> Option<T> {
    let deserializer: StrDeserializer<'de, ValueError> = word.trim().into_deserializer();
    T::deserialize(deserializer).ok()
}
