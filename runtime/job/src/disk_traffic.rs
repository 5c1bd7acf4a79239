//! Limits of disk traffic that a bundle states for paths: this host knows their devices.
//!
//! A path is a block device, or stands for the device of its file system, as in systemd.resource-control(5). The kernel
//! limits whole disks only (`blkg_conf_open_bdev` in block/blk-cgroup.c), so a partition stands for its disk.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};

use jobc_schema::pointer::escape;
use jobc_sys::error::{Error, Kind, Result, describe_io};
use oci_spec::runtime::{LinuxBlockIo, LinuxThrottleDeviceBuilder, Spec};
use rustix::fs::{major, minor};

/// The annotations with limits: `dev.jobc.io.PATH`, as `rbps=1000000 wiops=100`.
const PREFIX: &str = "dev.jobc.io.";

/// Adds the limits of the annotations to `linux.resources.blockIO`.
///
/// # Errors
///
/// A path that does not exist, or whose file system is on no single disk; two limits for one disk.
pub(crate) fn resolve(spec: &mut Spec) -> Result<()> {
    let all = spec.annotations().iter().flatten();
    let mut limits: Vec<(String, String)> =
        all.filter_map(|(key, rates)| Some((key.strip_prefix(PREFIX)?.to_owned(), rates.clone()))).collect();
    if limits.is_empty() {
        return Ok(());
    }
    limits.sort();
    let mut linux = spec.linux().clone().unwrap_or_default();
    let mut resources = linux.resources().clone().unwrap_or_default();
    let mut io = resources.block_io().clone().unwrap_or_default();
    for (path, rates) in limits {
        let number = device(&path)?;
        for rate in rates.split(' ') {
            push(&mut io, number, rate, &path)?;
        }
    }
    resources.set_block_io(Some(io));
    linux.set_resources(Some(resources));
    spec.set_linux(Some(linux));
    Ok(())
}

fn error(path: &str, why: impl Into<String>) -> Error {
    Error::new(Kind::Config, why).at(format!("/annotations/{}", escape(&format!("{PREFIX}{path}"))))
}

/// Adds one limit, `rbps=1000000`.
fn push(io: &mut LinuxBlockIo, (major, minor): (i64, i64), rate: &str, path: &str) -> Result<()> {
    let parsed = rate.split_once('=').and_then(|(key, rate)| Some((key, rate.parse::<u64>().ok()?)));
    let Some((key, rate)) = parsed else {
        return Err(
            error(path, format!("invalid limit of disk traffic `{rate}`")).help("build the job again")
        );
    };
    let list = match key {
        "rbps" => io.throttle_read_bps_device(),
        "wbps" => io.throttle_write_bps_device(),
        "riops" => io.throttle_read_iops_device(),
        "wiops" => io.throttle_write_iops_device(),
        _ => return Err(error(path, format!("unknown limit of disk traffic `{key}`"))),
    };
    let mut list = list.clone().unwrap_or_default();
    if list.iter().any(|other| (other.major(), other.minor()) == (major, minor)) {
        return Err(error(path, format!("another limit is for the same disk, {major}:{minor}"))
            .help("limit each disk once"));
    }
    let device = LinuxThrottleDeviceBuilder::default().major(major).minor(minor).rate(rate);
    list.push(device.build().expect("every field has a default"));
    match key {
        "rbps" => io.set_throttle_read_bps_device(Some(list)),
        "wbps" => io.set_throttle_write_bps_device(Some(list)),
        "riops" => io.set_throttle_read_iops_device(Some(list)),
        _ => io.set_throttle_write_iops_device(Some(list)),
    };
    Ok(())
}

/// The number of the disk that a path is, or is on.
fn device(path: &str) -> Result<(i64, i64)> {
    let metadata = fs::metadata(path).map_err(|io| {
        error(path, format!("cannot limit the disk traffic of `{path}`: {}", describe_io(&io)))
    })?;
    let is_device = metadata.file_type().is_block_device();
    let number = if is_device { metadata.rdev() } else { metadata.dev() };
    // A file system in memory, of several disks, or of the network.
    if !is_device && major(number) == 0 {
        return Err(error(path, format!("the file system of `{path}` is not on a single disk"))
            .help("name the device, such as `/dev/nvme0n1`"));
    }
    Ok(whole_disk(&format!("{}:{}", major(number), minor(number)))
        .unwrap_or((i64::from(major(number)), i64::from(minor(number)))))
}

/// The number of the disk of a partition; nothing for other devices.
fn whole_disk(number: &str) -> Option<(i64, i64)> {
    let directory = fs::canonicalize(format!("/sys/dev/block/{number}")).ok()?;
    directory.join("partition").exists().then_some(())?;
    let text = fs::read_to_string(directory.parent()?.join("dev")).ok()?;
    let (major, minor) = text.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(annotations: &[(&str, &str)]) -> Spec {
        let mut spec = Spec::default();
        let all = annotations.iter().map(|(key, value)| (format!("{PREFIX}{key}"), (*value).to_owned()));
        spec.set_annotations(Some(all.collect()));
        spec
    }

    #[track_caller]
    fn check(annotations: &[(&str, &str)], expected: &str) {
        let error = resolve(&mut spec(annotations)).expect_err("it is refused").to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn what_is_no_disk_is_refused() {
        check(&[("/absent", "rbps=1")], "cannot limit the disk traffic of `/absent`: no such file");
        check(&[("/proc", "rbps=1")], "the file system of `/proc` is not on a single disk");
    }

    #[test]
    fn a_path_stands_for_the_disk_of_its_file_system() {
        let directory = env!("CARGO_MANIFEST_DIR");
        if major(fs::metadata(directory).unwrap().dev()) == 0 {
            return; // The checkout is in memory or on an overlay.
        }
        let mut one = spec(&[(directory, "rbps=1000000 wiops=100")]);
        resolve(&mut one).unwrap();
        let io = one.linux().as_ref().unwrap().resources().as_ref().unwrap().block_io().clone().unwrap();
        let [read] = &io.throttle_read_bps_device().clone().unwrap()[..] else { panic!("{io:?}") };
        assert_eq!(read.rate(), 1_000_000);
        assert_eq!(io.throttle_write_iops_device().as_ref().unwrap()[0].rate(), 100);
        assert!(io.throttle_write_bps_device().is_none());
        let disk = format!("/sys/dev/block/{}:{}", read.major(), read.minor());
        assert!(!std::path::Path::new(&disk).join("partition").exists(), "{disk}");
        let parent = std::path::Path::new(directory).parent().unwrap().to_str().unwrap();
        check(&[(directory, "rbps=1"), (parent, "rbps=2")], "another limit is for the same disk");
    }
}
