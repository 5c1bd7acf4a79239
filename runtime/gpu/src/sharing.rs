//! Chooses how slices of cards are enforced on this host: as strict as the job requests, with the installed software.
//!
//! | isolation | served by, the first that there is |
//! |---|---|
//! | `hard` | a MIG instance |
//! | `soft` | MPS, HAMi-core, a MIG instance |
//! | `none` | the card's time slices, a MIG instance |
//!
//! With `time`, no mechanism is needed: the supervisors of the jobs take turns.

use std::path::{Path, PathBuf};

use jobc_schema::gpu::{Isolation, Vendor};
use jobc_schema::plan::SharePlan;
use jobc_schema::target::GpuShare;

use super::host::Host;
use super::inventory::Inventory;
use super::lease::Sharing;
use super::paths;
use jobc_sys::error::{Error, Kind, Result};

/// The library of HAMi-core, instead of [`HAMI_LIBRARY`].
pub const HAMI_VARIABLE: &str = "JOBC_HAMI_LIBRARY";

/// Where HAMi-core puts its library.
pub const HAMI_LIBRARY: &str = "/usr/local/vgpu/libvgpu.so";

/// The program that starts MPS servers.
const MPS_CONTROL: &str = "nvidia-cuda-mps-control";

/// The available methods to share cards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharingSupport {
    /// The program that starts MPS servers.
    pub mps: Option<PathBuf>,
    /// HAMi-core's library.
    pub hami: Option<PathBuf>,
    /// Some cards are cut up.
    pub has_mig: bool,
    /// Some cards are not.
    pub has_whole_cards: bool,
}

/// The method to share cards that the user of a job chose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharingChoice {
    /// By this [default: chosen from job and host].
    pub by: Option<GpuShare>,
    /// Also by mechanisms that enforce less than the job requests.
    pub allow_unenforced: bool,
}

impl SharingSupport {
    /// Checks what is installed.
    pub fn of(machine: &Host, inventory: &Inventory) -> Self {
        let programs =
            paths::PROGRAM_DIRECTORIES.map(|directory| machine.path(Path::new(directory).join(MPS_CONTROL)));
        let named = std::env::var_os(HAMI_VARIABLE).map(PathBuf::from).filter(|path| path.is_absolute());
        let hami = named.unwrap_or_else(|| machine.path(HAMI_LIBRARY));
        let devices = inventory.devices();
        Self {
            mps: programs.into_iter().find(|path| path.is_file()),
            hami: Some(hami).filter(|path| path.is_file()),
            has_mig: devices.iter().any(|device| device.mig.is_some()),
            has_whole_cards: devices.iter().any(|device| device.mig.is_none()),
        }
    }
}

/// The method for a role's slices, and notes for the user.
///
/// # Errors
///
/// No available mechanism enforces them as strictly as requested, or the chosen one is missing.
pub(super) fn choose(
    role: &str,
    vendor: Vendor,
    share: &SharePlan,
    choice: SharingChoice,
    means: &SharingSupport,
) -> Result<(Sharing, Option<String>)> {
    if share.time {
        let note = format!(
            "`{role}` takes turns with other jobs on its GPUs: it is frozen in theirs, and keeps its GPU memory, which is counted but not limited"
        );
        return Ok((Sharing::Time, Some(note)));
    }
    let by = preferred(vendor, share, choice, means)
        .ok_or_else(|| no_sharing_error(role, vendor, share, means))?;
    let why_not = match by {
        Sharing::Mps if means.mps.is_none() => Some("`nvidia-cuda-mps-control` is not installed".to_owned()),
        Sharing::Hami if means.hami.is_none() => {
            Some(format!("`{HAMI_LIBRARY}` does not exist on this host"))
        }
        Sharing::Mps | Sharing::Hami if vendor != Vendor::Nvidia => {
            Some(format!("`--gpu-share {}` is for NVIDIA cards", by.as_str()))
        }
        _ => None,
    };
    if let Some(why) = why_not {
        return Err(sharing_error(role, &why).help(format!(
            "install it (`{HAMI_VARIABLE}` names another library), or leave `--gpu-share {}` out",
            by.as_str()
        )));
    }
    if !by.enforcer().satisfies(share.isolation) && !choice.allow_unenforced {
        let gives = if by.enforcer().satisfies(Isolation::Soft) { "soft" } else { "none" };
        let why = format!(
            "it asks for {} isolation, and {} gives {gives}",
            isolation_name(share.isolation),
            sharing_name(by)
        );
        return Err(
            sharing_error(role, &why).help("leave `--gpu-share` out, or run with `--allow-unenforced`")
        );
    }
    let note = (by == Sharing::None).then(|| {
        format!("the GPU slices of `{role}` are not enforced: their memory is counted but not limited, and programs take turns")
    });
    Ok((by, note))
}

fn preferred(
    vendor: Vendor,
    share: &SharePlan,
    choice: SharingChoice,
    means: &SharingSupport,
) -> Option<Sharing> {
    if share.profile.is_some() {
        return Some(Sharing::Mig);
    }
    let nvidia = vendor == Vendor::Nvidia;
    let soft = || match means {
        _ if !nvidia || !means.has_whole_cards => None,
        SharingSupport { mps: Some(_), .. } => Some(Sharing::Mps),
        SharingSupport { hami: Some(_), .. } => Some(Sharing::Hami),
        _ => None,
    };
    let mig = || (nvidia && means.has_mig).then_some(Sharing::Mig);
    match (choice.by, share.isolation) {
        (Some(GpuShare::Mps), _) => Some(Sharing::Mps),
        (Some(GpuShare::Hami), _) => Some(Sharing::Hami),
        (Some(GpuShare::None), _) => Some(Sharing::None),
        (None, Isolation::Hard) => mig().or_else(|| choice.allow_unenforced.then(soft)?),
        (None, Isolation::Soft) => soft().or_else(mig),
        (None, Isolation::None) => (means.has_whole_cards || !nvidia).then_some(Sharing::None).or_else(mig),
    }
    .or_else(|| choice.allow_unenforced.then_some(Sharing::None))
}

fn no_sharing_error(role: &str, vendor: Vendor, share: &SharePlan, means: &SharingSupport) -> Error {
    let wanted = isolation_name(share.isolation);
    match share.isolation {
        Isolation::Hard if vendor == Vendor::Nvidia => {
            sharing_error(role, "it asks for hard isolation, and no card of this host is partitioned into MIG instances")
                .help("an administrator can partition cards (`nvidia-smi -mig 1`, `nvidia-smi mig -cgi …`); `isolation: soft` does not need them")
        }
        _ if vendor == Vendor::Nvidia && !means.has_whole_cards && !means.has_mig => {
            sharing_error(role, "this host has no NVIDIA GPU").help("run the job without GPUs with `--no-gpu`")
        }
        _ if vendor == Vendor::Nvidia => sharing_error(
            role,
            "it asks for soft isolation, and this host has neither `nvidia-cuda-mps-control` nor HAMi-core's library",
        )
        .help(format!(
            "install one of them (`{HAMI_VARIABLE}` names HAMi-core's), write `isolation: none`, or run with `--allow-unenforced`"
        )),
        _ => sharing_error(role, &format!("it asks for {wanted} isolation, and nothing enforces slices of such cards here"))
            .help("write `isolation: none`, or run with `--allow-unenforced`"),
    }
}

fn sharing_error(role: &str, why: &str) -> Error {
    Error::new(Kind::Unenforceable, format!("`{role}` cannot have slices of GPUs: {why}"))
}

fn isolation_name(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::None => "no",
        Isolation::Soft => "soft",
        Isolation::Hard => "hard",
    }
}

fn sharing_name(by: Sharing) -> &'static str {
    match by {
        Sharing::Mig => "MIG",
        Sharing::Mps => "MPS",
        Sharing::Hami => "HAMi-core",
        Sharing::None | Sharing::Time => "time-slicing",
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    fn check(isolation: Isolation, by: Option<GpuShare>, or_nothing: bool, means: &SharingSupport) -> String {
        let share = SharePlan { memory_bytes: Some(1 << 33), isolation, ..SharePlan::default() };
        match choose("a", Vendor::Nvidia, &share, SharingChoice { by, allow_unenforced: or_nothing }, means) {
            Ok((by, note)) => format!(
                "{} by {}{}",
                by.as_str(),
                by.enforcer().words(),
                if note.is_some() { ", with a note" } else { "" }
            ),
            Err(error) => format!("{error}; {}", error.advice().as_deref().unwrap_or_default()),
        }
    }

    #[test]
    fn slices_are_served_as_strictly_as_requested() {
        use Isolation::{Hard, None as No, Soft};
        let some = || Some(PathBuf::from("/there"));
        let bare = SharingSupport { has_whole_cards: true, ..SharingSupport::default() };
        let (mps, hami) =
            (SharingSupport { mps: some(), ..bare.clone() }, SharingSupport { hami: some(), ..bare.clone() });
        let (both, cut) = (
            SharingSupport { hami: some(), ..mps.clone() },
            SharingSupport { has_mig: true, ..SharingSupport::default() },
        );
        let mut out = String::new();
        for (name, means) in [("bare", &bare), ("mps", &mps), ("hami", &hami), ("both", &both), ("cut", &cut)]
        {
            for isolation in [No, Soft, Hard] {
                out += &format!(
                    "{name}, {}: {}\n",
                    isolation_name(isolation),
                    check(isolation, None, false, means)
                );
            }
        }
        for (isolation, by, or_nothing) in [
            (Soft, GpuShare::Hami, false),
            (Soft, GpuShare::None, false),
            (Soft, GpuShare::None, true),
            (No, GpuShare::Mps, false),
            (Hard, GpuShare::Mps, false),
        ] {
            let word = isolation_name(isolation);
            out += &format!(
                "mps, {word}, {by:?} {or_nothing}: {}\n",
                check(isolation, Some(by), or_nothing, &mps)
            );
        }
        out += &format!("bare, hard, anything: {}\n", check(Hard, None, true, &bare));
        assert_snapshot!(out, @r"
        bare, no: none by nothing, with a note
        bare, soft: `a` cannot have slices of GPUs: it asks for soft isolation, and this host has neither `nvidia-cuda-mps-control` nor HAMi-core's library; install one of them (`JOBC_HAMI_LIBRARY` names HAMi-core's), write `isolation: none`, or run with `--allow-unenforced`
        bare, hard: `a` cannot have slices of GPUs: it asks for hard isolation, and no card of this host is partitioned into MIG instances; an administrator can partition cards (`nvidia-smi -mig 1`, `nvidia-smi mig -cgi …`); `isolation: soft` does not need them
        mps, no: none by nothing, with a note
        mps, soft: mps by the driver
        mps, hard: `a` cannot have slices of GPUs: it asks for hard isolation, and no card of this host is partitioned into MIG instances; an administrator can partition cards (`nvidia-smi -mig 1`, `nvidia-smi mig -cgi …`); `isolation: soft` does not need them
        hami, no: none by nothing, with a note
        hami, soft: hami by a library
        hami, hard: `a` cannot have slices of GPUs: it asks for hard isolation, and no card of this host is partitioned into MIG instances; an administrator can partition cards (`nvidia-smi -mig 1`, `nvidia-smi mig -cgi …`); `isolation: soft` does not need them
        both, no: none by nothing, with a note
        both, soft: mps by the driver
        both, hard: `a` cannot have slices of GPUs: it asks for hard isolation, and no card of this host is partitioned into MIG instances; an administrator can partition cards (`nvidia-smi -mig 1`, `nvidia-smi mig -cgi …`); `isolation: soft` does not need them
        cut, no: mig by the hardware
        cut, soft: mig by the hardware
        cut, hard: mig by the hardware
        mps, soft, Hami false: `a` cannot have slices of GPUs: `/usr/local/vgpu/libvgpu.so` does not exist on this host; install it (`JOBC_HAMI_LIBRARY` names another library), or leave `--gpu-share hami` out
        mps, soft, None false: `a` cannot have slices of GPUs: it asks for soft isolation, and time-slicing gives none; leave `--gpu-share` out, or run with `--allow-unenforced`
        mps, soft, None true: none by nothing, with a note
        mps, no, Mps false: mps by the driver
        mps, hard, Mps false: `a` cannot have slices of GPUs: it asks for hard isolation, and MPS gives soft; leave `--gpu-share` out, or run with `--allow-unenforced`
        bare, hard, anything: none by nothing, with a note
        ");
    }
}
