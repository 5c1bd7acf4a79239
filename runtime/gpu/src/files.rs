//! Other files of NVIDIA's driver on a host: programs, sockets of its daemons, firmware, and the files by which OpenCL,
//! Vulkan, EGL and X find it (container-toolkit, `internal/discover`; libnvidia-container, `src/nvc_info.c`).

use std::path::{Path, PathBuf};

use jobc_schema::gpu::DriverCapability;

use super::host::Host;
use super::paths;
use DriverCapability::{Compute, Display, Graphics, Utility};
use jobc_sys::program_path;

/// A file or directory that is bound into containers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverFile {
    /// Its path, from the driver's root on.
    pub path: PathBuf,
    /// Its path in containers: the same path, unless programs do not search there.
    pub container_path: PathBuf,
    /// The feature of the driver that it serves.
    pub capability: DriverCapability,
    /// Whether it is a daemon's socket, or a directory of such, which programs write to.
    pub is_socket: bool,
}

const PROGRAMS: [(&str, DriverCapability); 8] = [
    ("nvidia-smi", Utility),
    ("nvidia-debugdump", Utility),
    ("nvidia-persistenced", Utility),
    ("nv-fabricmanager", Utility),
    ("nvidia-imex", Utility),
    ("nvidia-imex-ctl", Utility),
    ("nvidia-cuda-mps-control", Compute),
    ("nvidia-cuda-mps-server", Compute),
];

/// Sockets by the directory of what a boot makes: the daemons' own, and MPS's default.
const SOCKETS: [(&str, DriverCapability); 3] = [
    ("/run/nvidia-persistenced/socket", Utility),
    ("/run/nvidia-fabricmanager/socket", Utility),
    ("/tmp/nvidia-mps", Compute),
];

/// Files with their own names.
const FILES: [(&str, DriverCapability); 15] = [
    ("/etc/OpenCL/vendors/nvidia.icd", Compute),
    ("/etc/vulkan/icd.d/nvidia_icd.json", Graphics),
    ("/etc/vulkan/icd.d/nvidia_layers.json", Graphics),
    ("/etc/vulkan/implicit_layer.d/nvidia_layers.json", Graphics),
    ("/usr/share/vulkan/icd.d/nvidia_icd.json", Graphics),
    ("/usr/share/vulkan/icd.d/nvidia_icd.x86_64.json", Graphics),
    ("/usr/share/vulkan/implicit_layer.d/nvidia_layers.json", Graphics),
    ("/usr/share/glvnd/egl_vendor.d/10_nvidia.json", Graphics),
    ("/usr/share/egl/egl_external_platform.d/10_nvidia_wayland.json", Graphics),
    ("/usr/share/egl/egl_external_platform.d/15_nvidia_gbm.json", Graphics),
    ("/usr/share/egl/egl_external_platform.d/20_nvidia_xcb.json", Graphics),
    ("/usr/share/egl/egl_external_platform.d/20_nvidia_xlib.json", Graphics),
    ("/usr/share/nvidia/nvoptix.bin", Graphics),
    ("/usr/share/X11/xorg.conf.d/10-nvidia.conf", Display),
    ("/usr/share/X11/xorg.conf.d/nvidia-drm-outputclass.conf", Display),
];

/// Where X has the driver's modules.
const X_MODULES: [&str; 3] = [
    "/usr/lib/xorg/modules/drivers/nvidia_drv.so",
    "/usr/lib64/xorg/modules/drivers/nvidia_drv.so",
    "/usr/lib/x86_64-linux-gnu/nvidia/xorg/nvidia_drv.so",
];
const GLX_MODULES: [&str; 3] = [
    "/usr/lib/xorg/modules/extensions/libglxserver_nvidia.so",
    "/usr/lib64/xorg/modules/extensions/libglxserver_nvidia.so",
    "/usr/lib/x86_64-linux-gnu/nvidia/xorg/libglxserver_nvidia.so",
];

/// Finds the files of a release, `550.54.15`.
pub fn of(machine: &Host, release: &str) -> Vec<DriverFile> {
    let mut found = Vec::new();
    let mut add_at = |path: &Path, place: &Path, serves, is_socket| {
        let there = machine.has(path) && !found.iter().any(|file: &DriverFile| file.container_path == place);
        if there {
            found.push(DriverFile {
                path: path.to_owned(),
                container_path: place.to_owned(),
                capability: serves,
                is_socket,
            });
        }
        there
    };
    // After the usual directories, those in the `PATH` of the user who starts jobs.
    let search_path = if machine.is_own() { program_path::directories() } else { vec![] };
    let directories: Vec<PathBuf> =
        paths::PROGRAM_DIRECTORIES.iter().map(PathBuf::from).chain(search_path).collect();
    for (name, serves) in PROGRAMS {
        let mut places: Vec<(PathBuf, bool)> = directories
            .iter()
            .map(|directory| (directory.clone(), is_script(machine, &directory.join(name))))
            .collect();
        places.sort_by_key(|(_, is_script)| *is_script);
        places.iter().any(|(directory, _)| {
            let usual = if paths::is_on_default_path(directory) {
                directory.as_path()
            } else {
                Path::new("/usr/bin")
            };
            add_at(&directory.join(name), &usual.join(name), serves, false)
        });
    }
    let mut add = |path: &Path, serves, is_socket| {
        let mounted = path.strip_prefix("/usr").map(|rest| Path::new(paths::MOUNTED_DRIVER).join(rest));
        add_at(path, path, serves, is_socket)
            || mounted.is_ok_and(|mounted| add_at(&mounted, path, serves, is_socket))
    };
    for (path, serves) in SOCKETS {
        add(Path::new(path), serves, true);
    }
    for (path, serves) in FILES {
        add(Path::new(path), serves, false);
    }
    for name in ["rc", "key-documentation"] {
        let name = format!("/usr/share/nvidia/nvidia-application-profiles-{release}-{name}");
        add(Path::new(&name), Graphics, false);
    }
    X_MODULES.iter().any(|path| add(Path::new(path), Display, false));
    for module in GLX_MODULES {
        add(Path::new(&format!("{module}.{release}")), Display, false);
    }
    for directory in ["/lib/firmware", "/usr/lib/firmware"] {
        let directory = format!("{directory}/nvidia/{release}");
        let names = machine.names(&directory);
        let mut any = false;
        for name in
            names.iter().filter(|name| name.strip_suffix(".bin").is_some_and(|name| name.starts_with("gsp")))
        {
            any |= add(&Path::new(&directory).join(name), Utility, false);
        }
        if any {
            break;
        }
    }
    found
}

/// Whether a program is a script. One in the usual directories may start the driver's own by a path that containers do
/// not have.
fn is_script(machine: &Host, program: &Path) -> bool {
    let mut start = [0; 2];
    let file = std::fs::File::open(machine.path(program));
    file.and_then(|mut file| std::io::Read::read_exact(&mut file, &mut start)).is_ok() && start == *b"#!"
}
