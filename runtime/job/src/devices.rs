//! Device nodes besides GPUs that a bundle asks for by path: this host knows their numbers.

use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use jobc_gpu::cdi::{Edits, Node, edit};
use jobc_schema::pointer::escape;
use jobc_sys::error::{Error, Kind, Result, describe_io};
use oci_spec::runtime::Spec;

/// The annotation with the paths, separated by commas.
const ANNOTATION: &str = "dev.jobc.nodes";
/// The annotation with the number of RDMA devices.
const RDMA: &str = "dev.jobc.rdma";
/// The nodes of RDMA devices: `uverbsN` for each, and `rdma_cm`.
const INFINIBAND: &str = "/dev/infiniband";

/// Gives a container the devices of its annotations; a directory stands for the nodes in it. RDMA devices are not leased:
/// a task gets all of the host's.
///
/// The configuration must have its user namespace already, in which nodes are bound and not made.
///
/// # Errors
///
/// A path that does not exist or is not a device; fewer RDMA devices than requested.
pub(crate) fn add(spec: &mut Spec) -> Result<Vec<String>> {
    let annotation = |name: &str| spec.annotations().as_ref().and_then(|all| all.get(name));
    let mut paths = vec![];
    for path in annotation(ANNOTATION).iter().flat_map(|paths| paths.split(',')) {
        let found = nodes_at(Path::new(path)).map_err(|io| {
            error(ANNOTATION, format!("cannot use the device `{path}`: {}", describe_io(&io)))
        })?;
        if found.is_empty() {
            return Err(error(ANNOTATION, format!("`{path}` is not a device, and has none in it")));
        }
        paths.extend(found);
    }
    if let Some(wanted) = annotation(RDMA).and_then(|count| count.parse::<usize>().ok()) {
        paths.extend(rdma(wanted)?.into_iter().filter(|path| !paths.contains(path)).collect::<Vec<_>>());
    }
    let device_nodes = paths.into_iter().map(|path| Node { path, ..Node::default() }).collect();
    edit::apply(&Edits { device_nodes, ..Edits::default() }, spec)
}

fn error(annotation: &str, why: String) -> Error {
    let field = if annotation == RDMA { "rdma" } else { "devices" };
    Error::new(Kind::Config, why)
        .at(format!("/annotations/{}", escape(annotation)))
        .help(format!("load the driver, or leave it out of `resources.{field}`"))
}

/// The nodes of the host's RDMA devices.
fn rdma(wanted: usize) -> Result<Vec<PathBuf>> {
    let begins = |path: &PathBuf, begin: &str| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(begin))
    };
    let mut found = nodes_at(Path::new(INFINIBAND)).unwrap_or_default();
    found.retain(|path| begins(path, "uverbs") || begins(path, "rdma_cm"));
    let there = found.iter().filter(|path| begins(path, "uverbs")).count();
    if there < wanted {
        return Err(error(
            RDMA,
            format!("the host has {there} RDMA devices, and the task requests {wanted}"),
        ));
    }
    Ok(found)
}

/// The device at a path, or those in the directory there.
fn nodes_at(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    let kind = fs::metadata(path)?.file_type();
    if !kind.is_dir() {
        let is_device = kind.is_char_device() || kind.is_block_device();
        return Ok(if is_device { vec![path.to_owned()] } else { vec![] });
    }
    let mut found = vec![];
    for entry in fs::read_dir(path)? {
        let inside = entry?.path();
        if !fs::metadata(&inside)?.is_dir() {
            found.extend(nodes_at(&inside)?);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_stands_for_the_devices_in_it() {
        assert_eq!(nodes_at(Path::new("/dev/null")).unwrap(), [PathBuf::from("/dev/null")]);
        assert!(nodes_at(Path::new("/dev")).unwrap().contains(&PathBuf::from("/dev/null")));
        assert!(nodes_at(Path::new("/proc/self/status")).unwrap().is_empty());
        nodes_at(Path::new("/dev/not-there")).unwrap_err();
    }

    #[test]
    fn a_missing_device_is_an_error_with_its_place() {
        let mut spec = Spec::default();
        assert!(add(&mut spec).unwrap().is_empty());
        let annotations = [(ANNOTATION.to_owned(), "/dev/null,/dev/not-there".to_owned())];
        spec.set_annotations(Some(annotations.into()));
        let error = add(&mut spec).unwrap_err();
        assert!(error.to_string().contains("/dev/not-there"), "{error}");
    }
}
