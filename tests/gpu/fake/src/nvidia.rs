//! The files of NVIDIA's driver.

use std::io;

use crate::model::{FakeHost, Nvidia};
use crate::tree::Tree;
use crate::{nvml, pci};

/// The minors of nvidia-caps: a card has 15 GPU instances of a node and 8 compute instances each; 1 and 2 are for all.
fn cap(gpu: usize, gi: u32, ci: Option<u32>) -> u32 {
    3 + u32::try_from(gpu).unwrap_or(0) * 135 + gi * 9 + ci.map_or(0, |ci| ci + 1)
}

pub(crate) fn write(tree: &Tree, machine: &FakeHost) -> io::Result<()> {
    if machine.nvidia.is_empty() {
        return Ok(());
    }
    let driver = machine.driver;
    tree.file(
        "proc/driver/nvidia/version",
        &format!(
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {driver}  Tue Mar  5 22:23:56 UTC 2024\n\
             GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n"
        ),
    )?;
    tree.file("proc/driver/nvidia/params", "ResmanDebugLevel: 4294967295\nModifyDeviceFiles: 1\nDeviceFileUID: 0\nDeviceFileGID: 0\nDeviceFileMode: 438\n")?;
    tree.file("proc/driver/nvidia/registry", "Binary: \"\"\n")?;
    for (name, major, minor) in [
        ("nvidiactl", 195, 255),
        ("nvidia-modeset", 195, 254),
        ("nvidia-uvm", 507, 0),
        ("nvidia-uvm-tools", 507, 1),
        ("nvidia-caps/nvidia-cap1", 235, 1),
        ("nvidia-caps/nvidia-cap2", 235, 2),
    ] {
        tree.node(&format!("dev/{name}"), major, minor)?;
    }
    let access = |minor: u32| format!("DeviceFileMinor: {minor}\nDeviceFileMode: 292\nDeviceFileModify: 1\n");
    tree.file("proc/driver/nvidia/capabilities/mig/config", &access(1))?;
    tree.file("proc/driver/nvidia/capabilities/mig/monitor", &access(2))?;
    let mut minors = "config 1\nmonitor 2\n".to_owned();
    for (number, gpu) in machine.nvidia.iter().enumerate() {
        let minor = u32::try_from(number).unwrap_or(0);
        pci::device(tree, &gpu.card, "0x10de", "0x030200", "nvidia", Some(minor))?;
        tree.node(&format!("dev/nvidia{number}"), 195, minor)?;
        information(tree, number, gpu)?;
        for gi in 0..15 {
            minors += &format!("gpu{number}/gi{gi}/access {}\n", cap(number, gi, None));
            for ci in 0..8 {
                minors += &format!("gpu{number}/gi{gi}/ci{ci}/access {}\n", cap(number, gi, Some(ci)));
            }
        }
        for (_, _, gi) in &gpu.instances {
            let directory = format!("proc/driver/nvidia/capabilities/gpu{number}/mig/gi{gi}");
            for (file, minor) in
                [("access", cap(number, *gi, None)), ("ci0/access", cap(number, *gi, Some(0)))]
            {
                tree.file(&format!("{directory}/{file}"), &access(minor))?;
                tree.node(&format!("dev/nvidia-caps/nvidia-cap{minor}"), 235, minor)?;
            }
        }
    }
    tree.file("proc/driver/nvidia-caps/mig-minors", &minors)?;
    files(tree, driver)?;
    tree.file(nvml::ANSWERS, &nvml::answers(machine))
}

/// What the driver tells of a card.
fn information(tree: &Tree, number: usize, gpu: &Nvidia) -> io::Result<()> {
    let directory = format!("proc/driver/nvidia/gpus/{}", gpu.card.pci());
    let text = format!(
        "Model: \t\t {}\nIRQ:   \t\t {}\nGPU UUID: \t {}\nVideo BIOS: \t 96.00.61.00.01\nBus Type: \t PCIe\n\
         DMA Size: \t 52 bits\nDMA Mask: \t 0xfffffffffffff\nBus Location: \t {}\nDevice Minor: \t {number}\n\
         GPU Excluded:\t No\n",
        gpu.card.name,
        100 + number,
        Nvidia::uuid(number),
        gpu.card.pci(),
    );
    tree.file(&format!("{directory}/information"), &text)?;
    tree.file(&format!("{directory}/registry"), "Binary: \"\"\n")
}

/// Where the driver's libraries are.
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

/// The driver's libraries, programs, sockets and firmware; the libraries are only files with their names.
fn files(tree: &Tree, driver: &str) -> io::Result<()> {
    let libraries = [
        "libcuda",
        "libcudadebugger",
        "libnvidia-ml",
        "libnvidia-cfg",
        "libnvidia-opencl",
        "libnvidia-gpucomp",
        "libnvidia-ptxjitcompiler",
        "libnvidia-allocator",
        "libnvidia-nvvm",
        "libnvidia-encode",
        "libnvidia-opticalflow",
        "libnvcuvid",
        "libnvidia-eglcore",
        "libnvidia-glcore",
        "libnvidia-tls",
        "libnvidia-glsi",
        "libnvidia-rtcore",
        "libnvoptix",
        "libGLX_nvidia",
        "libEGL_nvidia",
        "libnvidia-ngx",
    ];
    for name in libraries {
        tree.file(&format!("{LIBRARIES}/{name}.so.{driver}"), name)?;
        let version = match name {
            "libGLX_nvidia" | "libEGL_nvidia" => "0",
            "libnvidia-nvvm" => "4",
            _ => "1",
        };
        tree.link(&format!("{LIBRARIES}/{name}.so.{version}"), &format!("{name}.so.{driver}"))?;
    }
    tree.link(&format!("{LIBRARIES}/libcuda.so"), "libcuda.so.1")?;
    for name in [
        "nvidia-smi",
        "nvidia-debugdump",
        "nvidia-persistenced",
        "nvidia-cuda-mps-control",
        "nvidia-cuda-mps-server",
    ] {
        tree.program(&format!("usr/bin/{name}"))?;
    }
    tree.file("run/nvidia-persistenced/socket", "")?;
    for name in ["gsp_ga10x.bin", "gsp_tu10x.bin"] {
        tree.file(&format!("lib/firmware/nvidia/{driver}/{name}"), "firmware")?;
    }
    tree.file("etc/vulkan/icd.d/nvidia_icd.json", "{}\n")?;
    tree.file("usr/share/glvnd/egl_vendor.d/10_nvidia.json", "{}\n")
}
