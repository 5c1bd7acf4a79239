//! Where a host's GPUs are searched: its own files, or those of a driver in another root.
//!
//! A driver can be installed in its own container, as NVIDIA's operator for Kubernetes does, with that container's root
//! mounted below /run/nvidia/driver. `JOBC_DRIVER_ROOT` names such a root. If it has the kernel's files too, they
//! replace those of this host: so a simulated tree is a host with GPUs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;

use super::nvml_programs;
pub use super::nvml_programs::NvmlProgram;
use jobc_container::state::store::Store;

/// The root of the driver's files; `/` unless set.
pub const ROOT_VARIABLE: &str = "JOBC_DRIVER_ROOT";

/// The library file of NVML to use instead of the one that is found; empty: NVML is not queried.
pub const NVML_VARIABLE: &str = "JOBC_NVML";

/// How many seconds NVML may take.
pub const NVML_TIMEOUT_VARIABLE: &str = "JOBC_NVML_TIMEOUT";

/// The file of NVML's last report, next to the state of jobs.
const RECENT_FILE: &str = "gpus.json";

/// Default timeout of NVML: without nvidia-persistenced it wakes up every card, one by one, which takes seconds each.
const DEFAULT_NVML_TIMEOUT: Duration = Duration::from_secs(30);

/// Where to look for GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Where libraries, programs and CDI directories are.
    root: PathBuf,
    /// Where /proc, /sys and /dev are.
    kernel: PathBuf,
    /// How NVML is queried.
    pub nvml: NvmlOptions,
    /// Where its last report is kept; `None`: nowhere.
    pub recent: Option<PathBuf>,
}

/// How NVML is queried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NvmlOptions {
    /// Its file: `None` to search for it, an empty path to disable NVML.
    pub library: Option<PathBuf>,
    /// How long it may take.
    pub timeout: Duration,
    /// The programs that query it, each used if those before it fail; none: this process queries it.
    pub programs: Vec<NvmlProgram>,
}

impl Host {
    /// This host, or the one that the environment selects instead.
    pub fn here() -> Self {
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        let root = variable(ROOT_VARIABLE).filter(|root| root.is_absolute()).unwrap_or_else(|| "/".into());
        let seconds = std::env::var(NVML_TIMEOUT_VARIABLE).ok().and_then(|text| text.parse().ok());
        let nvml = NvmlOptions {
            library: variable(NVML_VARIABLE),
            timeout: seconds.map_or(DEFAULT_NVML_TIMEOUT, Duration::from_secs),
            // A third-party library that hangs or crashes must not affect this process.
            programs: nvml_programs::available_programs(),
        };
        let recent = Store::standard().ok().map(|containers| containers.root().with_file_name(RECENT_FILE));
        Self { nvml, recent, ..Self::at(root) }
    }

    /// The host whose files lie below `root`; this process itself queries NVML.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        let kernel = if root.join("proc/devices").exists() { root.clone() } else { "/".into() };
        Self {
            root,
            kernel,
            nvml: NvmlOptions { library: None, timeout: DEFAULT_NVML_TIMEOUT, programs: vec![] },
            recent: None,
        }
    }

    /// The root of the driver's libraries and programs.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether the driver's files are this host's own.
    pub fn is_own(&self) -> bool {
        self.root == Path::new("/")
    }

    /// Whether /proc, /sys and /dev are this host's own.
    pub(crate) fn has_own_kernel(&self) -> bool {
        self.kernel == Path::new("/")
    }

    /// Where a file lies that programs know by this absolute name.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        let name = name.as_ref();
        let is_kernels = ["/proc", "/sys", "/dev"].iter().any(|directory| name.starts_with(directory));
        let root = if is_kernels { &self.kernel } else { &self.root };
        root.join(name.strip_prefix("/").unwrap_or(name))
    }

    /// Whether there is something by that name.
    pub fn has(&self, name: impl AsRef<Path>) -> bool {
        self.path(name).exists()
    }

    /// Whether the device cgroup of this process denies a node.
    ///
    /// access(2) checks the cgroup as open(2) does, without waking up the card. Permission bits give EACCES.
    pub(crate) fn denies(&self, name: impl AsRef<Path>) -> bool {
        accessat(CWD, self.path(name), Access::READ_OK | Access::WRITE_OK, AtFlags::EACCESS)
            == Err(Errno::PERM)
    }

    /// A file's text; `None` if it does not exist or cannot be read.
    pub fn read(&self, name: impl AsRef<Path>) -> Option<String> {
        std::fs::read(self.path(name)).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A file's trimmed text; `None` if it is empty.
    pub(crate) fn read_trimmed(&self, name: impl AsRef<Path>) -> Option<String> {
        self.read(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// A number in a file, decimal, or hexadecimal after `0x`.
    pub(crate) fn read_number(&self, name: impl AsRef<Path>) -> Option<u64> {
        let text = self.read_trimmed(name)?;
        match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        }
    }

    /// The names in a directory, sorted; none if it does not exist.
    pub fn names(&self, directory: impl AsRef<Path>) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.path(directory)) else { return vec![] };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    /// The names in a directory that are a word and a number, by the number: `("gpu3", 3)`.
    pub(crate) fn numbered_names(&self, directory: impl AsRef<Path>, word: &str) -> Vec<(String, u32)> {
        let number = |name: &str| name.strip_prefix(word)?.parse().ok();
        let names = self.names(directory).into_iter();
        let mut found: Vec<(String, u32)> =
            names.filter_map(|name| number(&name).map(|number| (name, number))).collect();
        found.sort_by_key(|(_, number)| *number);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_with_a_kernel_of_its_own_counts_for_all() {
        let tree = tempfile::tempdir().unwrap();
        let only_files = Host::at(tree.path());
        assert_eq!(only_files.path("/dev/nvidia0"), Path::new("/dev/nvidia0"));
        assert_eq!(only_files.path("/usr/lib"), tree.path().join("usr/lib"));
        std::fs::create_dir(tree.path().join("proc")).unwrap();
        std::fs::write(tree.path().join("proc/devices"), "").unwrap();
        assert_eq!(Host::at(tree.path()).path("/dev/nvidia0"), tree.path().join("dev/nvidia0"));
        assert_eq!(Host::at("/").path("/etc/cdi"), Path::new("/etc/cdi"));
    }

    #[test]
    fn numbers_are_as_the_kernel_writes_them() {
        let tree = tempfile::tempdir().unwrap();
        let machine = Host::at(tree.path());
        for (text, number) in [("12\n", Some(12)), ("0x1a\n", Some(26)), ("-1\n", None), ("", None)] {
            std::fs::write(tree.path().join("file"), text).unwrap();
            assert_eq!(machine.read_number("/file"), number, "{text:?}");
        }
        for name in ["gpu10", "gpu2", "gpu", "gpux", "other1"] {
            std::fs::write(tree.path().join(name), "").unwrap();
        }
        assert_eq!(machine.numbered_names("/", "gpu"), [("gpu2".to_owned(), 2), ("gpu10".to_owned(), 10)]);
    }
}
