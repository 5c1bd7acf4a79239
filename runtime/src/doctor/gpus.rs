//! GPUs: what the kernel shows of them, and what is installed to bring them into containers.

use super::{Check, Found, Machine, Need};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "gpu.cards",
        purpose: "knowing whether the machine has GPUs, with or without a driver",
        need: Need::Nobody(""),
        look: cards,
    },
    Check { name: "gpu.nvidia", purpose: "NVIDIA GPUs in containers", need: Need::Nobody(""), look: nvidia },
    Check {
        name: "gpu.nvidia-toolkit",
        purpose: "the driver's own files in containers (NVIDIA Container Toolkit)",
        need: Need::Nobody(""),
        look: toolkit,
    },
    Check { name: "gpu.amd", purpose: "AMD GPUs in containers", need: Need::Nobody(""), look: amd },
    Check {
        name: "gpu.dri",
        purpose: "GPUs of Intel and others in containers",
        need: Need::Nobody(""),
        look: dri,
    },
    Check {
        name: "gpu.cdi",
        purpose: "devices described by their vendors (Container Device Interface)",
        need: Need::Nobody(""),
        look: cdi,
    },
];

/// PCI vendors that make GPUs, and the name by which they are known.
const VENDORS: [(&str, &str); 3] = [("0x10de", "NVIDIA"), ("0x1002", "AMD"), ("0x8086", "Intel")];

/// How many GPUs of each vendor the PCI bus has, and how many of them have a driver.
fn on_the_bus(machine: &dyn Machine) -> Vec<(&'static str, usize, usize)> {
    let folder = "/sys/bus/pci/devices";
    let devices = machine.names(folder);
    let field =
        |device: &str, name: &str| machine.read(&format!("{folder}/{device}/{name}")).unwrap_or_default();
    let mut counts = VENDORS.map(|(_, name)| (name, 0, 0));
    for device in devices {
        // Class 03 is a display controller; 0x1200 is a processing accelerator (pci.ids).
        let class = field(&device, "class");
        if !class.starts_with("0x03") && !class.starts_with("0x1200") {
            continue;
        }
        let vendor = field(&device, "vendor");
        let Some(at) = VENDORS.iter().position(|(id, _)| *id == vendor.trim()) else { continue };
        counts[at].1 += 1;
        counts[at].2 += usize::from(machine.entry(&format!("{folder}/{device}/driver")).is_some());
    }
    counts.into_iter().filter(|(_, all, _)| *all > 0).collect()
}

fn cards(machine: &dyn Machine) -> Found {
    let counts = on_the_bus(machine);
    let words: Vec<String> = counts.iter().map(|(name, all, _)| format!("{all} of {name}")).collect();
    let without: Vec<&str> =
        counts.iter().filter(|(_, all, driven)| driven < all).map(|(name, _, _)| *name).collect();
    match (words.is_empty(), without.is_empty()) {
        (true, _) => Found::missing("none on the PCI bus"),
        (_, true) => Found::ok(words.join(", ")),
        _ => Found::limited(format!("{}, some without a driver", words.join(", ")))
            .fix(format!("install the driver of {}", without.join(" and "))),
    }
}

/// How many whole GPUs tasks could be given: NVIDIA's by their nodes, AMD's by their drivers.
pub fn usable() -> u64 {
    let machine = super::ThisMachine::new([]);
    let nvidia = numbered(&machine, "/dev", "nvidia");
    let amd =
        on_the_bus(&machine).iter().filter(|(name, ..)| *name == "AMD").map(|(_, _, driven)| *driven).sum();
    let amd = if machine.entry("/dev/kfd").is_some() { amd } else { 0 };
    (nvidia + amd) as u64
}

fn has(machine: &dyn Machine, vendor: &str) -> bool {
    on_the_bus(machine).iter().any(|(name, _, _)| *name == vendor)
}

/// Nodes of /dev whose name is a word and a number.
fn numbered(machine: &dyn Machine, folder: &str, word: &str) -> usize {
    let is_one = |name: &String| {
        name.strip_prefix(word)
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
    };
    machine.names(folder).iter().filter(|name| is_one(name)).count()
}

fn nvidia(machine: &dyn Machine) -> Found {
    let nodes = numbered(machine, "/dev", "nvidia");
    let version = machine.read("/proc/driver/nvidia/version").unwrap_or_default();
    let driver = driver_version(&version);
    match (nodes, driver) {
        (0, None) if has(machine, "NVIDIA") => Found::missing("a card, but no driver")
            .fix("install NVIDIA's driver (package nvidia-driver, or their own)"),
        (0, None) => Found::missing("none"),
        (0, Some(driver)) => Found::limited(format!("driver {driver}, no nodes /dev/nvidia0 …"))
            .fix("nvidia-modprobe -c 0 -u, or start nvidia-persistenced"),
        (nodes, driver) => {
            let driver =
                driver.map_or_else(|| "an unknown driver".to_owned(), |driver| format!("driver {driver}"));
            let uvm = machine.entry("/dev/nvidia-uvm").is_some();
            let words = format!("{nodes} with {driver}");
            if uvm {
                Found::ok(words)
            } else {
                Found::limited(format!("{words}, without /dev/nvidia-uvm, which CUDA needs"))
                    .fix("nvidia-modprobe -c 0 -u")
            }
        }
    }
}

/// The release in the text of /proc/driver/nvidia/version: `NVRM version: … Kernel Module  550.54.15  …`.
fn driver_version(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with("NVRM version:"))?;
    let is_release = |word: &&str| {
        let mut parts = word.split('.');
        parts.clone().count() >= 2
            && parts.all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
    };
    line.split_whitespace().find(is_release).map(str::to_owned)
}

fn toolkit(machine: &dyn Machine) -> Found {
    let names = [
        "nvidia-ctk",
        "nvidia-cdi-hook",
        "nvidia-container-runtime",
        "nvidia-container-runtime-hook",
        "nvidia-container-cli",
    ];
    let there: Vec<&str> = names.into_iter().filter(|name| machine.program(name).is_some()).collect();
    if there.is_empty() {
        let found = Found::missing("not installed");
        let wanted = numbered(machine, "/dev", "nvidia") > 0 || has(machine, "NVIDIA");
        return if wanted {
            found.fix("install nvidia-container-toolkit from NVIDIA's package repository")
        } else {
            found
        };
    }
    let version = machine.program("nvidia-ctk").and_then(|path| machine.ask(&path, &["--version"]).ok());
    let words = there.join(", ");
    Found::ok(version.map_or(words.clone(), |version| format!("{version}; {words}")))
}

fn amd(machine: &dyn Machine) -> Found {
    let Some(entry) = machine.entry("/dev/kfd") else {
        return if has(machine, "AMD") {
            Found::limited("a card, but no /dev/kfd")
                .fix("install amdgpu-dkms, or a kernel with amdgpu and HSA_AMD")
        } else {
            Found::missing("none")
        };
    };
    // A node of the topology with no SIMD units is a processor.
    let folder = "/sys/class/kfd/kfd/topology/nodes";
    let nodes = machine.names(folder);
    let is_gpu = |node: &&String| {
        let properties = machine.read(&format!("{folder}/{node}/properties")).unwrap_or_default();
        properties
            .lines()
            .any(|line| line.strip_prefix("simd_count ").is_some_and(|count| count.trim() != "0"))
    };
    let words = format!("{} through /dev/kfd", nodes.iter().filter(is_gpu).count());
    if entry.may_open() {
        return Found::ok(words);
    }
    let name = machine.user().name.unwrap_or_else(|| machine.user().uid.to_string());
    Found::limited(format!("{words}, which this user may not open"))
        .fix(format!("usermod -aG render,video {name}"))
}

fn dri(machine: &dyn Machine) -> Found {
    let nodes = numbered(machine, "/dev/dri", "renderD");
    if nodes == 0 {
        return Found::missing("no /dev/dri/renderD…");
    }
    let may =
        |name: &String| machine.entry(&format!("/dev/dri/{name}")).is_some_and(|entry| entry.may_write());
    let usable = machine
        .names("/dev/dri")
        .iter()
        .filter(|name| name.starts_with("renderD"))
        .filter(|name| may(name))
        .count();
    if usable == nodes {
        return Found::ok(format!("render nodes: {nodes}"));
    }
    let name = machine.user().name.unwrap_or_else(|| machine.user().uid.to_string());
    Found::limited(format!("render nodes: {nodes}, of which this user may open {usable}"))
        .fix(format!("usermod -aG render,video {name}"))
}

fn cdi(machine: &dyn Machine) -> Found {
    let mut kinds = vec![];
    for folder in ["/etc/cdi", "/var/run/cdi"] {
        for name in machine.names(folder) {
            let is_one = [".json", ".yaml"].iter().any(|end| name.ends_with(end));
            if is_one && let Some(text) = machine.read(&format!("{folder}/{name}")) {
                kinds.push(format!("{} ({folder}/{name})", kind(&text).as_deref().unwrap_or("no kind")));
            }
        }
    }
    if !kinds.is_empty() {
        return Found::ok(kinds.join(", "));
    }
    let found = Found::missing("no files in /etc/cdi, /var/run/cdi");
    if numbered(machine, "/dev", "nvidia") > 0 {
        return found.fix("nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml");
    }
    if machine.entry("/dev/kfd").is_some() {
        return found.fix("amd-ctk cdi generate --output=/etc/cdi/amd.json");
    }
    found
}

/// The value of the key `kind` at the top of a CDI file: JSON, or YAML as generators write it.
fn kind(text: &str) -> Option<String> {
    if let Ok(json) = serde_json::from_str::<serde_json::Value>(text) {
        return json.get("kind")?.as_str().map(str::to_owned);
    }
    let value = text.lines().find_map(|line| line.strip_prefix("kind:"))?.trim().trim_matches(['"', '\'']);
    (!value.is_empty()).then(|| value.to_owned())
}
