//! `linux`: namespaces, ids, devices, paths, cgroup.

use std::collections::HashSet;
use std::path::{Component, Path};

use oci_spec::runtime::{Linux, LinuxDevice, LinuxDeviceType, LinuxNamespaceType, Spec};

use super::findings::Findings;
use super::network_devices;
use super::process::has_own_namespace;
use crate::classes;
use crate::config::memory_policy::MemoryPolicy;
use crate::config::mount_options::Propagation;
use crate::config::namespace_ownership::check_own_namespace;
use crate::config::{scheduling, sysctl};
use crate::namespaces::Namespace;
use jobc_schema::pointer;
use jobc_sys::id_map::{self, IdMaps};

pub(super) fn check(spec: &Spec, findings: &mut Findings) {
    if !has_own_namespace(spec, LinuxNamespaceType::Mount) {
        let message = "the container shares the host's mounts, so its root would become the host's";
        findings.error("/linux/namespaces", message, "write `{\"type\": \"mount\"}` there");
    }
    let Some(linux) = spec.linux() else { return };
    namespaces(linux, findings);
    check_id_mappings(spec, linux, findings);
    time(spec, linux, findings);
    if let Err(errors) = sysctl::from_config(linux) {
        findings.0.extend(errors);
    }
    let mut paths = HashSet::new();
    for (index, device) in linux.devices().iter().flatten().enumerate() {
        let place = format!("/linux/devices/{index}");
        if !paths.insert(device.path()) {
            let message = format!("duplicate `{}`", device.path().display());
            findings.error(format!("{place}/path"), message, "keep one of the two");
        }
        check_device(device, &place, findings);
    }
    rules(linux, findings);
    check_limits(linux, findings);
    propagation(linux, findings);
    for (place, list) in [("maskedPaths", linux.masked_paths()), ("readonlyPaths", linux.readonly_paths())] {
        for (index, path) in list.iter().flatten().enumerate() {
            findings.check_container_path(format!("/linux/{place}/{index}"), Path::new(path));
            findings.check_text(format!("/linux/{place}/{index}"), path);
        }
    }
    if let Some(path) = linux.cgroups_path() {
        findings.check_text("/linux/cgroupsPath", &path.to_string_lossy());
        if path.components().any(|component| component == Component::ParentDir) {
            let message = format!("`{}` leaves the cgroup directory", path.display());
            findings.error("/linux/cgroupsPath", message, "write it without `..`");
        }
    }
    if let Some(personality) = linux.personality() {
        findings.push_result(scheduling::personality(personality));
    }
    if let Some(policy) = linux.memory_policy() {
        findings.push_result(MemoryPolicy::of(policy));
    }
    findings.0.extend(network_devices::check(linux));
    findings.0.extend(classes::check(linux));
}

fn namespaces(linux: &Linux, findings: &mut Findings) {
    let mut seen = HashSet::new();
    for (index, namespace) in linux.namespaces().iter().flatten().enumerate() {
        let (kind, place) = (namespace.typ(), format!("/linux/namespaces/{index}"));
        if !seen.insert(kind) {
            let message = format!("duplicate {} namespace", Namespace::of(kind));
            findings.error(&place, message, "keep one of the two");
        }
        let Some(path) = namespace.path().as_deref().filter(|path| !path.as_os_str().is_empty()) else {
            continue;
        };
        findings.check_text(format!("{place}/path"), &path.to_string_lossy());
        if !path.is_absolute() {
            let message = format!("`{}` is not an absolute path", path.display());
            findings.error(format!("{place}/path"), message, "write a path such as `/proc/PID/ns/net`");
        }
        if kind == LinuxNamespaceType::Mount {
            // The container's root becomes that of every process there.
            if let Err(reason) = check_own_namespace(Some(linux), kind) {
                let message = format!("the container's root would become the host's: {reason}");
                findings.error(format!("{place}/path"), message, "remove the path: it gets a new namespace");
            }
        }
    }
}

fn check_id_mappings(spec: &Spec, linux: &Linux, findings: &mut Findings) {
    let user =
        linux.namespaces().iter().flatten().find(|namespace| namespace.typ() == LinuxNamespaceType::User);
    let new = user.is_some_and(|user| user.path().as_ref().is_none_or(|path| path.as_os_str().is_empty()));
    let maps = match IdMaps::read(linux) {
        Ok(maps) => maps,
        Err(error) => return findings.0.push(error),
    };
    match (&maps, new) {
        (None, true) => findings.0.push(id_map::missing_maps("/linux/uidMappings")),
        (Some(_), _) if user.is_none() => {
            let message = "ids are mapped, but the container has no user namespace";
            findings.error(
                "/linux/uidMappings",
                message,
                "write `{\"type\": \"user\"}` in `linux.namespaces`",
            );
        }
        (Some(maps), true) => {
            let Some(process) = spec.process() else { return };
            let user = process.user();
            let mut mapped = vec![
                ("uid".to_owned(), &maps.users, user.uid()),
                ("gid".to_owned(), &maps.groups, user.gid()),
            ];
            for (index, id) in user.additional_gids().iter().flatten().enumerate() {
                mapped.push((format!("additionalGids/{index}"), &maps.groups, *id));
            }
            for (field, map, id) in mapped {
                if map.outside(id).is_none() {
                    let message = format!("{id} is not mapped in the container's user namespace");
                    findings.error(format!("/process/user/{field}"), message, "map it, or use another id");
                }
            }
        }
        _ => {}
    }
}

fn time(spec: &Spec, linux: &Linux, findings: &mut Findings) {
    let mut offsets: Vec<_> = linux.time_offsets().iter().flatten().collect();
    offsets.sort_unstable_by_key(|(clock, _)| *clock);
    let own = linux.namespaces().iter().flatten().any(|namespace| {
        namespace.typ() == LinuxNamespaceType::Time
            && namespace.path().as_ref().is_none_or(|path| path.as_os_str().is_empty())
    });
    if !offsets.is_empty() && !own {
        let message = if has_own_namespace(spec, LinuxNamespaceType::Time) {
            "the clocks of an existing time namespace cannot be changed"
        } else {
            "clock offsets need a time namespace"
        };
        findings.error("/linux/timeOffsets", message, "write `{\"type\": \"time\"}` in `linux.namespaces`");
    }
    for (clock, offset) in offsets {
        let place = format!("/linux/timeOffsets/{}", pointer::escape(clock));
        if !matches!(clock.as_str(), "monotonic" | "boottime") {
            let message = format!("the clock `{clock}` cannot have an offset");
            findings.error(&place, message, "use `monotonic` or `boottime`");
        }
        if offset.nanosecs().is_some_and(|nanoseconds| nanoseconds > 999_999_999) {
            findings.error(
                place + "/nanosecs",
                "more than a second",
                "write 0 to 999999999, and whole seconds in `secs`",
            );
        }
    }
}

/// A device number has 12 bits for the major part and 20 for the minor one (`MAJOR`, `MINOR` of linux/kdev_t.h).
fn check_device(device: &LinuxDevice, place: &str, findings: &mut Findings) {
    findings.check_container_path(format!("{place}/path"), device.path());
    findings.check_text(format!("{place}/path"), &device.path().to_string_lossy());
    if device.typ() == LinuxDeviceType::A {
        findings.error(
            format!("{place}/type"),
            "`a` matches all devices and is not a device type",
            "write `c`, `b`, `u` or `p`",
        );
    }
    if device.typ() != LinuxDeviceType::P {
        for (field, number, bits) in [("major", device.major(), 12), ("minor", device.minor(), 20)] {
            if !(0..1 << bits).contains(&number) {
                let help = format!("write a number from 0 to {}", (1 << bits) - 1);
                findings.error(format!("{place}/{field}"), format!("{number} is not a device number"), &help);
            }
        }
    }
    for (field, id) in [("uid", device.uid()), ("gid", device.gid())] {
        if id == Some(u32::MAX) {
            findings.error(
                format!("{place}/{field}"),
                "4294967295 is not a valid id",
                "ids go from 0 to 4294967294",
            );
        }
    }
}

/// Rules of the device controller.
fn rules(linux: &Linux, findings: &mut Findings) {
    let rules = linux.resources().as_ref().and_then(|resources| resources.devices().as_ref());
    for (index, rule) in rules.into_iter().flatten().enumerate() {
        let place = format!("/linux/resources/devices/{index}");
        if let Some(access) =
            rule.access().as_deref().filter(|access| access.chars().any(|letter| !"rwm".contains(letter)))
        {
            let message = format!("invalid access `{access}`");
            findings.error(format!("{place}/access"), message, "write one or more of `r`, `w` and `m`");
        }
        if matches!(rule.typ(), Some(LinuxDeviceType::P | LinuxDeviceType::U)) {
            findings.error(
                format!("{place}/type"),
                "a rule is for `a`, `b` or `c`",
                "write `c` for an unbuffered device",
            );
        }
        for (field, number) in [("major", rule.major()), ("minor", rule.minor())] {
            // -1 is what other runtimes take for "all".
            if number.is_some_and(|number| !(-1..=i64::from(u32::MAX)).contains(&number)) {
                findings.error(format!("{place}/{field}"), "not a device number", "omit it to match all");
            }
        }
    }
}

/// Limits below -1, which means no limit.
fn check_limits(linux: &Linux, findings: &mut Findings) {
    let Some(resources) = linux.resources() else { return };
    let memory = resources.memory().as_ref();
    let requested = [
        ("memory/limit", memory.and_then(oci_spec::runtime::LinuxMemory::limit)),
        ("memory/reservation", memory.and_then(oci_spec::runtime::LinuxMemory::reservation)),
        ("memory/swap", memory.and_then(oci_spec::runtime::LinuxMemory::swap)),
        ("cpu/quota", resources.cpu().as_ref().and_then(oci_spec::runtime::LinuxCpu::quota)),
        ("pids/limit", resources.pids().as_ref().map(oci_spec::runtime::LinuxPids::limit)),
    ];
    for (place, amount) in requested {
        if let Some(amount) = amount.filter(|amount| *amount < -1) {
            let message = format!("invalid limit `{amount}`");
            findings.error(
                format!("/linux/resources/{place}"),
                message,
                "write a number from 0 on, or -1 for no limit",
            );
        }
    }
}

fn propagation(linux: &Linux, findings: &mut Findings) {
    let Some(word) = linux.rootfs_propagation().as_deref().filter(|word| !word.is_empty()) else { return };
    let place = "/linux/rootfsPropagation";
    match Propagation::of(word).map(|propagation| propagation.flag) {
        Some(_) => {}
        None => findings.error(
            place,
            format!("unknown propagation `{word}`"),
            "write `private`, `slave`, `shared` or `unbindable`",
        ),
    }
}
