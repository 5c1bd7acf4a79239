//! GPUs: what the kernel shows of them, and what is installed to use them in containers.

use std::path::Path;

use jobc_schema::gpu::Vendor;

use super::check::{Check, CheckResult, Need};
use super::host::Host;
use jobc_gpu::Inventory;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "gpu.cards",
        purpose: "detecting the host's GPUs, with or without a driver",
        need: Need::Optional(""),
        run: cards,
    },
    Check { name: "gpu.nvidia", purpose: "NVIDIA GPUs in containers", need: Need::Optional(""), run: nvidia },
    Check {
        name: "gpu.nvidia-toolkit",
        purpose: "injecting the driver's files with NVIDIA's own tools; `jobc run` does not need them",
        need: Need::Optional(""),
        run: toolkit,
    },
    Check { name: "gpu.amd", purpose: "AMD GPUs in containers", need: Need::Optional(""), run: amd },
    Check {
        name: "gpu.dri",
        purpose: "GPUs of Intel and others in containers",
        need: Need::Optional(""),
        run: dri,
    },
    Check {
        name: "gpu.cdi",
        purpose: "device descriptions by vendors (Container Device Interface)",
        need: Need::Optional(""),
        run: cdi,
    },
];

/// PCI vendors that make GPUs, and the name by which they are known.
const VENDORS: [(&str, &str); 3] = [("0x10de", "NVIDIA"), ("0x1002", "AMD"), ("0x8086", "Intel")];

/// How many GPUs of each vendor the PCI bus has, and how many of them have a driver.
fn pci_gpus(machine: &dyn Host) -> Vec<(&'static str, usize, usize)> {
    let directory = "/sys/bus/pci/devices";
    let devices = machine.names(directory);
    let field =
        |device: &str, name: &str| machine.read(&format!("{directory}/{device}/{name}")).unwrap_or_default();
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
        counts[at].2 += usize::from(machine.entry(&format!("{directory}/{device}/driver")).is_some());
    }
    counts.into_iter().filter(|(_, all, _)| *all > 0).collect()
}

fn cards(machine: &dyn Host) -> CheckResult {
    let counts = pci_gpus(&*machine.driver_host());
    let words: Vec<String> = counts.iter().map(|(name, all, _)| format!("{all} of {name}")).collect();
    let without: Vec<&str> =
        counts.iter().filter(|(_, all, driven)| driven < all).map(|(name, _, _)| *name).collect();
    match (words.is_empty(), without.is_empty()) {
        (true, _) => CheckResult::missing("none on the PCI bus"),
        (_, true) => CheckResult::ok(words.join(", ")),
        _ => CheckResult::limited(format!("{}, some without a driver", words.join(", ")))
            .fix(format!("install the driver of {}", without.join(" and "))),
    }
}

/// How many whole GPUs tasks could be given: NVIDIA's by their nodes, AMD's by their drivers.
pub fn count_usable() -> u64 {
    let machine = super::host::LocalHost::here();
    let nvidia = count_nodes(&machine, "/dev", "nvidia");
    let amd =
        pci_gpus(&machine).iter().filter(|(name, ..)| *name == "AMD").map(|(_, _, driven)| *driven).sum();
    let amd = if machine.entry("/dev/kfd").is_some() { amd } else { 0 };
    (nvidia + amd) as u64
}

fn has(machine: &dyn Host, vendor: &str) -> bool {
    pci_gpus(machine).iter().any(|(name, _, _)| *name == vendor)
}

/// Nodes of /dev whose name is a word and a number.
fn count_nodes(machine: &dyn Host, directory: &str, word: &str) -> usize {
    let is_one = |name: &String| {
        name.strip_prefix(word)
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
    };
    machine.names(directory).iter().filter(|name| is_one(name)).count()
}

fn nvidia(machine: &dyn Host) -> CheckResult {
    let inventory = machine.gpus();
    let machine = &*machine.driver_host();
    let Some(driver) = &inventory.driver else {
        return if has(machine, "NVIDIA") {
            CheckResult::missing("a card, but no driver")
                .fix("install NVIDIA's driver (package nvidia-driver, or their own)")
        } else {
            CheckResult::missing("none")
        };
    };
    let cuda = driver.cuda.as_ref().map(|cuda| format!(", CUDA {cuda}")).unwrap_or_default();
    let by = inventory.asked_by.as_ref().map(|by| format!(", queried through `{}`", by.display()));
    let words = format!(
        "{} with driver {}{cuda}{}",
        cards_of(&inventory, Vendor::Nvidia),
        driver.version,
        by.unwrap_or_default()
    );
    if let Some(note) = inventory.notes.first() {
        return CheckResult::limited(words).fix(note.clone());
    }
    if machine.entry("/dev/nvidia-uvm").is_none() {
        return CheckResult::limited(format!("{words}, without /dev/nvidia-uvm, which CUDA needs"))
            .fix("nvidia-modprobe -c 0 -u");
    }
    CheckResult::ok(words)
}

/// The cards of a vendor, by name: `2 Tesla T4, 1 NVIDIA A100 in 7 MIG instances`.
fn cards_of(inventory: &Inventory, vendor: Vendor) -> String {
    let mut kinds: Vec<(&str, bool, usize, usize)> = vec![];
    for gpu in inventory.gpus.iter().filter(|gpu| gpu.vendor == vendor) {
        let cut = gpu.mig.as_ref().filter(|mig| mig.enabled);
        let parts = cut.map_or(0, |mig| mig.devices.len());
        match kinds.iter_mut().find(|(name, is_cut, ..)| *name == gpu.name && *is_cut == cut.is_some()) {
            Some((.., count, all)) => (*count, *all) = (*count + 1, *all + parts),
            None => kinds.push((&gpu.name, cut.is_some(), 1, parts)),
        }
    }
    let word = |(name, is_cut, count, parts): &(&str, bool, usize, usize)| {
        let cut = if *is_cut { format!(" in {parts} MIG instances") } else { String::new() };
        format!("{count} {name}{cut}")
    };
    if kinds.is_empty() { "none".to_owned() } else { kinds.iter().map(word).collect::<Vec<_>>().join(", ") }
}

fn toolkit(machine: &dyn Host) -> CheckResult {
    let names = [
        "nvidia-ctk",
        "nvidia-cdi-hook",
        "nvidia-container-runtime",
        "nvidia-container-runtime-hook",
        "nvidia-container-cli",
    ];
    let there: Vec<&str> = names.into_iter().filter(|name| machine.program(name).is_some()).collect();
    if there.is_empty() {
        let found = CheckResult::missing("not installed");
        let wanted = has(&*machine.driver_host(), "NVIDIA");
        return if wanted {
            found.fix("install nvidia-container-toolkit from NVIDIA's package repository")
        } else {
            found
        };
    }
    let version =
        machine.program("nvidia-ctk").and_then(|path| machine.run_program(&path, &["--version"]).ok());
    let words = there.join(", ");
    CheckResult::ok(version.map_or(words.clone(), |version| format!("{version}; {words}")))
}

fn amd(machine: &dyn Host) -> CheckResult {
    let inventory = machine.gpus();
    let files = &*machine.driver_host();
    let Some(entry) = files.entry("/dev/kfd") else {
        return if has(files, "AMD") {
            CheckResult::limited("a card, but no /dev/kfd")
                .fix("install amdgpu-dkms, or a kernel with amdgpu and HSA_AMD")
        } else {
            CheckResult::missing("none")
        };
    };
    let words = format!("{} through /dev/kfd", cards_of(&inventory, Vendor::Amd));
    if entry.may_open() {
        return CheckResult::ok(words);
    }
    let name = machine.user().name.unwrap_or_else(|| machine.user().uid.to_string());
    CheckResult::limited(format!("{words}, which this user cannot open"))
        .fix(format!("usermod -aG render,video {name}"))
}

fn dri(machine: &dyn Host) -> CheckResult {
    let machine = &*machine.driver_host();
    let nodes = count_nodes(machine, "/dev/dri", "renderD");
    if nodes == 0 {
        return CheckResult::missing("no /dev/dri/renderD…");
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
        return CheckResult::ok(format!("render nodes: {nodes}"));
    }
    let name = machine.user().name.unwrap_or_else(|| machine.user().uid.to_string());
    CheckResult::limited(format!("render nodes: {nodes}, of which this user can open {usable}"))
        .fix(format!("usermod -aG render,video {name}"))
}

fn cdi(machine: &dyn Host) -> CheckResult {
    let machine = &*machine.driver_host();
    let (mut kinds, mut absent) = (vec![], vec![]);
    for directory in ["/etc/cdi", "/var/run/cdi"] {
        for name in machine.names(directory) {
            let is_one = [".json", ".yaml"].iter().any(|end| name.ends_with(end));
            if is_one && let Some(text) = machine.read(&format!("{directory}/{name}")) {
                let path = format!("{directory}/{name}");
                kinds.push(format!("{} ({path})", kind(&text).as_deref().unwrap_or("no kind")));
                let spec = jobc_gpu::cdi::Spec::read(Path::new(&path), &text).unwrap_or_default();
                let hooks = spec.hook_programs();
                let hooks = hooks.iter().filter_map(|hook| hook.to_str());
                absent.extend(
                    hooks
                        .filter(|hook| machine.entry(hook).is_none())
                        .map(|hook| format!("{path} runs {hook}, which is not installed")),
                );
            }
        }
    }
    if !absent.is_empty() {
        return CheckResult::limited(format!("{}; {}", kinds.join(", "), absent.join(", "))).fix(
            "install the program again (of NVIDIA: nvidia-container-toolkit), or remove the file; `jobc run` adds the driver's files without it",
        );
    }
    if !kinds.is_empty() {
        return CheckResult::ok(kinds.join(", "));
    }
    let found = CheckResult::missing("no files in /etc/cdi, /var/run/cdi");
    if count_nodes(machine, "/dev", "nvidia") > 0 {
        return found.fix(
            "jobc gpu cdi --output /etc/cdi/nvidia.yaml, or nvidia-ctk cdi generate; `jobc run` needs none",
        );
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
