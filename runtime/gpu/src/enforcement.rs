//! Keeps tasks within their slices of cards while their job runs.
//!
//! A MIG instance enforces itself. With MPS, a server of the driver runs between the tasks and the cards
//! ([`mps`](super::mps)) and refuses what exceeds the limits; with HAMi-core a library in each program does. Both get
//! their limits from variables, which a program could change for itself: they isolate honest programs, not hostile
//! ones.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use oci_spec::runtime::Spec;

use super::bind_mounts::{bind_mount, create_shared_directory};
use super::cdi::edit;
use super::host::Host;
use super::inventory::{DeviceId, Inventory};
use super::lease::{GpuLease, Sharing, Slot};
use super::mps;
use super::sharing::SharingSupport;
use jobc_sys::error::Result;

/// The enforcement of a job's slices. Dropping it ends it.
#[derive(Debug, Default)]
pub struct SliceEnforcer {
    /// MPS servers, by the cards of each.
    servers: BTreeMap<Vec<DeviceId>, mps::Client>,
    /// HAMi-core's library, and the directory where programs on this host wait for each other.
    hami: Option<(PathBuf, PathBuf)>,
}

/// The path of HAMi-core's library in a container: in a directory that can be created without root too.
const HAMI_CONTAINER_PATH: &str = "/tmp/jobc-vgpu/libvgpu.so";

/// Where HAMi-core's programs lock each other out, in a container.
const HAMI_LOCKS: &str = "/tmp/vgpulock";

/// Where a container's programs share what HAMi-core counts.
const HAMI_CACHE: &str = "/tmp/jobc-vgpu.cache";

const MIB: u64 = 1 << 20;

impl SliceEnforcer {
    /// Starts what a job's slices need; `jobs` is the directory of this user's jobs' state. `stopped` set to true ends
    /// the wait for it.
    ///
    /// # Errors
    ///
    /// A server that does not start, with its output.
    pub fn start(
        leased: &GpuLease,
        machine: &Host,
        inventory: &Inventory,
        means: &SharingSupport,
        jobs: &Path,
        stopped: &AtomicBool,
    ) -> Result<Self> {
        let mut served = Self::default();
        for slice in leased.slots.iter().filter_map(|slot| slot.slice.as_ref()) {
            match (slice.by, &means.mps, &means.hami) {
                (Sharing::Mps, Some(program), _) if !served.servers.contains_key(&slice.cards) => {
                    let names = slice.cards.iter().map(|card| inventory.name(*card)).collect();
                    let server = mps::Server { program, host: machine, cards: &slice.cards, names };
                    let client = mps::join(&mps::directory(jobs), &server, stopped)?;
                    served.servers.insert(slice.cards.clone(), client);
                }
                (Sharing::Hami, _, Some(library)) if served.hami.is_none() => {
                    served.hami =
                        Some((library.clone(), create_shared_directory(&jobs.with_file_name("vgpulock"))?));
                }
                _ => {}
            }
        }
        Ok(served)
    }

    /// Gives a task's container what enforces its slices. Returns notes for the user, one per line.
    pub(super) fn configure(&self, spec: &mut Spec, slots: &[Slot]) -> Vec<String> {
        let Some(slice) = slots.iter().find_map(|slot| slot.slice.as_ref()) else { return Vec::new() };
        match slice.by {
            Sharing::Mps => match self.servers.get(&slice.cards) {
                Some(server) => server.configure(spec, slots),
                // A dry run: nothing is started.
                None => {
                    vec!["its slices of GPUs are served by MPS, which runs while the job does".to_owned()]
                }
            },
            Sharing::Hami => {
                if let Some((library, locks)) = &self.hami {
                    load_hami(spec, library, locks, slots);
                }
                Vec::new()
            }
            Sharing::Mig | Sharing::None | Sharing::Time => Vec::new(),
        }
    }
}

/// Has HAMi-core's library loaded into every program (HAMi-core, README, "Usage").
fn load_hami(spec: &mut Spec, library: &Path, locks: &Path, slots: &[Slot]) {
    edit::add_mount(spec, bind_mount(library, Path::new(HAMI_CONTAINER_PATH), true));
    edit::add_mount(spec, bind_mount(locks, Path::new(HAMI_LOCKS), false));
    let before = variable(spec, "LD_PRELOAD").filter(|value| !value.is_empty());
    let preload = before
        .map_or_else(|| HAMI_CONTAINER_PATH.to_owned(), |other| format!("{HAMI_CONTAINER_PATH}:{other}"));
    edit::set_variable(spec, &format!("LD_PRELOAD={preload}"));
    edit::set_variable(spec, &format!("CUDA_DEVICE_MEMORY_SHARED_CACHE={HAMI_CACHE}"));
    for (number, slice) in slots.iter().filter_map(|slot| slot.slice.as_ref()).enumerate() {
        if let Some(bytes) = slice.memory_bytes {
            let limit = (bytes / MIB).max(1);
            edit::set_variable(spec, &format!("CUDA_DEVICE_MEMORY_LIMIT_{number}={limit}m"));
        }
    }
    if let Some(percent) = slots.iter().find_map(|slot| slot.slice.as_ref()?.cores_percent) {
        edit::set_variable(spec, &format!("CUDA_DEVICE_SM_LIMIT={percent}"));
    }
}

fn variable(spec: &Spec, name: &str) -> Option<String> {
    let env = spec.process().as_ref()?.env().as_ref()?;
    env.iter().rev().find_map(|item| item.strip_prefix(name)?.strip_prefix('=')).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use jobc_schema::gpu::Vendor;

    use super::super::lease::Slice;
    use super::*;

    #[test]
    fn a_task_has_the_library_and_its_limits_card_by_card() {
        let mut spec: Spec = serde_json::from_str(
            r#"{"ociVersion": "1.0.2", "process": {"cwd": "/", "user": {"uid": 0, "gid": 0}, "env": ["LD_PRELOAD=/own.so"]}}"#,
        )
        .unwrap();
        let slot = |gpu: u32, memory: u64| {
            let device = DeviceId { vendor: Vendor::Nvidia, gpu, mig: None };
            let by = Sharing::Hami;
            let (memory_bytes, cores_percent) = (Some(memory), Some(40));
            let slice = Slice { memory_bytes, cores_percent, by, enforced_by: by.enforcer(), cards: vec![] };
            Slot { device, name: gpu.to_string(), slice: Some(slice) }
        };
        let hami = Some(("/machine/libvgpu.so".into(), "/run/locks".into()));
        let served = SliceEnforcer { hami, ..SliceEnforcer::default() };
        assert!(served.configure(&mut spec, &[slot(2, 8 << 30), slot(5, 1)]).is_empty());
        let mounts = spec.mounts().iter().flatten().map(|mount| {
            let source = mount.source().as_ref().unwrap().display().to_string();
            format!(
                "{source} at {}, {}",
                mount.destination().display(),
                mount.options().as_ref().unwrap().join(" ")
            )
        });
        let env = spec.process().as_ref().unwrap().env().clone().unwrap();
        assert_snapshot!(env.into_iter().chain(mounts).collect::<Vec<_>>().join("\n"), @r"
        LD_PRELOAD=/tmp/jobc-vgpu/libvgpu.so:/own.so
        CUDA_DEVICE_MEMORY_SHARED_CACHE=/tmp/jobc-vgpu.cache
        CUDA_DEVICE_MEMORY_LIMIT_0=8192m
        CUDA_DEVICE_MEMORY_LIMIT_1=1m
        CUDA_DEVICE_SM_LIMIT=40
        /machine/libvgpu.so at /tmp/jobc-vgpu/libvgpu.so, rbind rprivate nosuid nodev ro
        /run/locks at /tmp/vgpulock, rbind rprivate nosuid nodev
        ");
    }
}
