//! The questions to NVML, in the process that has loaded it.
//!
//! Values that a card or a driver does not report are left out; only what is required for any report is an error.
//! `nvml-wrapper` has most of the functions; it lacks the numbers of MIG instances and the older version of the memory
//! query.
#![allow(unsafe_code)]

use std::path::Path;

use nvml_wrapper::enum_wrappers::device::{
    Brand, Clock, ComputeMode, EccCounter, MemoryError, TemperatureSensor,
};
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::{PciInfo, ProcessInfo};
use nvml_wrapper::{Device, Nvml};

use crate::health::Watched;
use crate::report::{Card, CardState, Mig, MigDevice, NvmlReport, Process, UsageSample};

/// The maximum number of NVLinks to query per card; the library ends the list earlier.
const MAX_LINKS: u32 = 36;

/// Loads the first of these files that is NVML.
pub(crate) fn load(files: &[impl AsRef<Path>]) -> Result<Nvml, String> {
    let mut why = None;
    for file in files {
        match Nvml::builder().lib_path(file.as_ref().as_os_str()).init() {
            Ok(nvml) => return Ok(nvml),
            Err(error) => _ = why.get_or_insert(error),
        }
    }
    Err(match why {
        Some(NvmlError::LibloadingError(error)) => error.to_string(),
        Some(error) => error.to_string(),
        None => "libnvidia-ml.so.1 not found".to_owned(),
    })
}

/// Loads the library and makes all queries.
pub(crate) fn query(files: &[impl AsRef<Path>]) -> Result<NvmlReport, String> {
    let nvml = load(files)?;
    let failed = |error: NvmlError| error.to_string();
    let cuda = nvml.sys_cuda_driver_version().ok();
    let mut report = NvmlReport {
        driver: nvml.sys_driver_version().ok(),
        // 12040 is 12.4.
        cuda: cuda.map(|number| format!("{}.{}", number / 1000, number % 1000 / 10)),
        ..NvmlReport::default()
    };
    for index in 0..nvml.device_count().map_err(failed)? {
        let device = match nvml.device_by_index(index) {
            Ok(device) => device,
            Err(error) => {
                report.notes.push(format!("NVML reports nothing about card {index}: {error}"));
                continue;
            }
        };
        report.cards.push(card(&nvml, &device, index));
    }
    Ok(report)
}

fn card(nvml: &Nvml, device: &Device<'_>, index: u32) -> Card {
    let memory = memory(nvml, device);
    Card {
        index,
        uuid: device.uuid().ok(),
        name: device.name().unwrap_or_else(|_| "NVIDIA GPU".to_owned()),
        brand: device.brand().ok().map(|brand| brand_name(brand).to_owned()),
        pci: device.pci_info().ok().map(|info| pci_address(&info)),
        minor: device.minor_number().ok(),
        memory_bytes: memory.map(|(all, _)| all),
        memory_used: memory.map(|(_, used)| used),
        compute_capability: device.cuda_compute_capability().ok().and_then(|capability| {
            Some((u32::try_from(capability.major).ok()?, u32::try_from(capability.minor).ok()?))
        }),
        mig: device.mig_mode().ok().map(|mode| Mig {
            enabled: mode.current == 1,
            devices: mig_instances(nvml, device, mode.current == 1),
        }),
        processes: processes(device),
        links: links(device),
        state: state(device),
    }
}

fn state(device: &Device<'_>) -> CardState {
    let clock = |clock| device.clock_info(clock).ok();
    CardState {
        temperature: device.temperature(TemperatureSensor::Gpu).ok(),
        fan_percent: device.fan_speed(0).ok(),
        power_milliwatts: device.power_usage().ok(),
        power_limit_milliwatts: device.enforced_power_limit().ok(),
        graphics_clock_mhz: clock(Clock::Graphics),
        memory_clock_mhz: clock(Clock::Memory),
        ecc: device.is_ecc_enabled().ok().map(|state| state.currently_enabled),
        ecc_uncorrected_errors: device.total_ecc_errors(MemoryError::Uncorrected, EccCounter::Volatile).ok(),
        compute_mode: device.compute_mode().ok().map(|mode| compute_mode(mode).to_owned()),
        persistence: device.is_in_persistent_mode().ok(),
    }
}

/// A compute mode as nvidia-smi writes it.
fn compute_mode(mode: ComputeMode) -> &'static str {
    match mode {
        ComputeMode::Default => "Default",
        ComputeMode::ExclusiveThread => "Exclusive_Thread",
        ComputeMode::Prohibited => "Prohibited",
        ComputeMode::ExclusiveProcess => "Exclusive_Process",
    }
}

/// As the kernel writes it; a card is a device's function 0.
fn pci_address(info: &PciInfo) -> String {
    format!("{:04x}:{:02x}:{:02x}.0", info.domain, info.bus, info.device)
}

/// Bytes in all and in use.
fn memory(nvml: &Nvml, device: &Device<'_>) -> Option<(u64, u64)> {
    if let Ok(memory) = device.memory_info() {
        return Some((memory.total, memory.used));
    }
    // Drivers before 510 only have the first form.
    let ask = nvml.lib().nvmlDeviceGetMemoryInfo.as_ref().ok()?;
    // SAFETY: the handle is of this library, and the structure is plain numbers that the call fills in.
    unsafe {
        let mut memory = std::mem::zeroed();
        (ask(device.handle(), &raw mut memory) == 0).then_some((memory.total, memory.used))
    }
}

fn mig_instances(nvml: &Nvml, device: &Device<'_>, is_cut_up: bool) -> Vec<MigDevice> {
    if !is_cut_up {
        return vec![];
    }
    let (Ok(gi_of), Ok(ci_of)) =
        (&nvml.lib().nvmlDeviceGetGpuInstanceId, &nvml.lib().nvmlDeviceGetComputeInstanceId)
    else {
        return vec![];
    };
    // There may be gaps.
    let instance = |index| {
        let instance = device.mig_device_by_index(index).ok()?;
        let (mut gi, mut ci) = (0, 0);
        // SAFETY: the handle is of this library, and each call writes one number.
        let is_told = unsafe {
            gi_of(instance.handle(), &raw mut gi) == 0 && ci_of(instance.handle(), &raw mut ci) == 0
        };
        Some(MigDevice {
            index,
            uuid: instance.uuid().ok(),
            profile: mig_profile(&instance),
            memory_bytes: memory(nvml, &instance).map(|(all, _)| all),
            gi,
            ci,
            caps: vec![],
        })
        .filter(|_| is_told)
    };
    (0..device.mig_device_count().unwrap_or(0)).filter_map(instance).collect()
}

/// The profile of a MIG instance, from the end of its name; otherwise its shape in the same form.
fn mig_profile(instance: &Device<'_>) -> Option<String> {
    if let Some((_, profile)) = instance.name().ok()?.rsplit_once(" MIG ") {
        return Some(profile.to_owned());
    }
    let shape = instance.attributes().ok()?;
    let (gi, ci) = (shape.gpu_instance_slice_count, shape.compute_instance_slice_count);
    // The next gigabyte: 4864 MiB are the 5 of 1g.5gb.
    let memory = shape.memory_size_mb.div_ceil(1024);
    let parts = if gi == ci { String::new() } else { format!("{ci}c.") };
    Some(format!("{parts}{gi}g.{memory}gb"))
}

/// The processes that compute or draw with a card.
fn processes(device: &Device<'_>) -> Vec<Process> {
    let compute = device.running_compute_processes().or_else(|_| device.running_compute_processes_v2());
    let graphics = device.running_graphics_processes().or_else(|_| device.running_graphics_processes_v2());
    let mut processes: Vec<Process> = vec![];
    for ProcessInfo { pid, used_gpu_memory, .. } in [compute, graphics].into_iter().flatten().flatten() {
        let memory_bytes = match used_gpu_memory {
            UsedGpuMemory::Used(bytes) => Some(bytes),
            UsedGpuMemory::Unavailable => None,
        };
        // A process with both kinds of work is listed twice, one with several MIG instances once for each.
        match processes.iter_mut().find(|process| process.pid == pid) {
            Some(known) => known.memory_bytes = known.memory_bytes.max(memory_bytes),
            None => processes.push(Process { pid, name: None, memory_bytes }),
        }
    }
    processes
}

/// The far ends of a card's NVLinks that work.
fn links(device: &Device<'_>) -> Vec<Option<String>> {
    let mut ends = vec![];
    for link in (0..MAX_LINKS).map(|link| device.link_wrapper_for(link)) {
        match link.is_active() {
            Ok(true) => ends.push(link.remote_pci_info().ok().map(|info| pci_address(&info))),
            Ok(false) => {}
            Err(_) => break,
        }
    }
    ends
}

/// A brand as in `NVIDIA_REQUIRE_…` (libnvidia-container, `src/nvc_info.c`).
fn brand_name(brand: Brand) -> &'static str {
    match brand {
        Brand::Unknown => "unknown",
        Brand::Quadro => "quadro",
        Brand::Tesla => "tesla",
        Brand::NVS => "nvs",
        Brand::GRID => "grid",
        Brand::GeForce => "geforce",
        Brand::Titan => "titan",
        Brand::VApps => "vapps",
        Brand::VPC => "vpc",
        Brand::VCS => "vcs",
        Brand::VWS => "vws",
        Brand::CloudGaming | Brand::VGaming => "cloudgaming",
        Brand::QuadroRTX => "quadrortx",
        Brand::NvidiaRTX => "nvidiartx",
        Brand::Nvidia => "nvidia",
        Brand::GeForceRTX => "geforcertx",
        Brand::TitanRTX => "titanrtx",
    }
}

/// Values that change all the time.
pub(crate) fn usage_sample(nvml: &Nvml, watched: &Watched<'_>) -> UsageSample {
    let mut moment = UsageSample { health: watched.sample(nvml), ..UsageSample::default() };
    for device in (0..nvml.device_count().unwrap_or(0)).filter_map(|index| nvml.device_by_index(index).ok()) {
        let Ok(uuid) = device.uuid() else { continue };
        let busy = device.utilization_rates().ok().and_then(|rates| u8::try_from(rates.gpu).ok());
        let processes = processes(&device).into_iter();
        moment.processes.extend(processes.map(|process| (process.pid, uuid.clone(), process.memory_bytes)));
        // Cards before Volta have no such counter.
        moment.energy.extend(device.total_energy_consumption().ok().map(|energy| (uuid.clone(), energy)));
        moment.busy.push((uuid, busy));
    }
    moment
}
