//! What a command asks of NVML after another one, on simulated hosts with a program that counts its calls.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt as _;

use jobc_fake_gpus::{Nodes, model};
use tempfile::TempDir;

use super::*;
use crate::host::NvmlProgram;
use crate::inventory::Inventory;

const PROCESS: &str = r#"[{"pid":7,"name":null,"memory_bytes":1024}]"#;

/// A host with one card, which a process uses.
struct Case {
    tree: TempDir,
    machine: Host,
}

fn case(mig: &str) -> Case {
    let tree = tempfile::tempdir().unwrap();
    jobc_fake_gpus::write_host(&model::named("h200").unwrap(), tree.path(), Nodes::Files).unwrap();
    let card = format!(
        r#"{{"index":0,"uuid":"GPU-1","name":"NVIDIA H200","pci":"0000:04:00.0","minor":0,"memory_bytes":4096,"memory_used":1024,"mig":{mig},"processes":{PROCESS},"links":[],"state":{{"temperature":34}}}}"#
    );
    let report = format!(r#"{{"driver":"570.124.06","cuda":"12.8","cards":[{card}],"notes":[]}}"#);
    let calls = tree.path().join("calls");
    let script = format!("echo call >>{}; cat <<'END'\n{report}\nEND\n", calls.display());
    let mut machine = Host::at(tree.path());
    machine.nvml.programs = vec![NvmlProgram::new("/bin/sh").arg("-c").arg(script)];
    machine.recent = Some(tree.path().join("state/gpus.json"));
    Case { tree, machine }
}

impl Case {
    /// The inventory, and whether NVML was asked for it.
    fn take(&self, freshness: Freshness) -> (Inventory, bool) {
        let calls =
            || std::fs::read_to_string(self.tree.path().join("calls")).map_or(0, |text| text.lines().count());
        let before = calls();
        let inventory = Inventory::discover_with(&self.machine, freshness);
        (inventory, calls() > before)
    }

    fn file(&self) -> &Path {
        self.machine.recent.as_deref().unwrap()
    }

    /// Makes the report older.
    fn age(&self, by: Duration) {
        let mut report: Value = serde_json::from_slice(&std::fs::read(self.file()).unwrap()).unwrap();
        let asked_at = report["asked_at"].as_u64().unwrap();
        report["asked_at"] = (asked_at - u64::try_from(by.as_nanos()).unwrap()).into();
        std::fs::write(self.file(), report.to_string()).unwrap();
    }
}

#[test]
fn a_start_asks_once() {
    let case = case("null");
    let (compiled, asked) = case.take(Freshness::Facts);
    assert!(asked && compiled.asked_at.is_some());
    assert_eq!(case.file().metadata().unwrap().mode() & 0o7777, 0o600);
    // Its supervisor gets all that the command was told.
    let (inventory, asked) = case.take(Freshness::of_command(compiled.asked_at));
    assert!(!asked && inventory.asked_at.is_none());
    assert_eq!((&inventory.gpus, &inventory.driver), (&compiled.gpus, &compiled.driver));
    assert_eq!(inventory.gpus[0].processes.len(), 1);
    // Not if it waited, or for another command, or if nothing was asked.
    assert!(case.take(Freshness::AskedAt(1)).1);
    assert!(case.take(Freshness::of_command(None)).1);
    let asked_at = case.take(Freshness::Now).0.asked_at.unwrap();
    case.age(Duration::from_secs(3));
    assert!(case.take(Freshness::AskedAt(asked_at - 3_000_000_000)).1);
}

#[test]
fn the_next_start_gets_what_cannot_have_changed() {
    let case = case("null");
    case.take(Freshness::Now);
    let (inventory, asked) = case.take(Freshness::Facts);
    let gpu = &inventory.gpus[0];
    assert!(!asked);
    assert_eq!((gpu.name.as_str(), gpu.uuid.as_deref()), ("NVIDIA H200", Some("GPU-1")));
    assert_eq!((gpu.minor, gpu.memory_bytes), (Some(0), Some(4096)));
    // Who uses the card, and how warm it is, is not known.
    assert!(gpu.processes.is_empty() && gpu.memory_used.is_none() && gpu.state == CardState::default());
    case.age(Duration::from_secs(11));
    assert!(case.take(Freshness::Facts).1);
    assert!(!case.take(Freshness::Facts).1);
    // A driver was loaded, a card was added or its node removed.
    for (file, text) in [
        ("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.1.1  Tue\n"),
        ("proc/driver/nvidia/gpus/0000:04:00.0/information", "Model: \t NVIDIA H100\nDevice Minor: \t 0\n"),
    ] {
        std::fs::write(case.tree.path().join(file), text).unwrap();
        assert!(case.take(Freshness::Facts).1, "{file}");
        assert!(!case.take(Freshness::Facts).1, "{file}");
    }
    std::fs::remove_file(case.tree.path().join("dev/nvidia0")).unwrap();
    assert!(case.take(Freshness::Facts).1);
}

#[test]
fn partitioned_cards_are_asked_each_time() {
    let case = case(r#"{"enabled":true,"devices":[]}"#);
    let (compiled, _) = case.take(Freshness::Facts);
    assert!(case.take(Freshness::Facts).1);
    let (compiled, asked) = (case.take(Freshness::Facts).0.asked_at, compiled.asked_at);
    assert!(compiled > asked && !case.take(Freshness::of_command(compiled)).1);
}

#[test]
fn a_file_that_another_user_could_have_written_or_read_is_not_used() {
    let case = case("null");
    let is_asked_with = |mode| {
        case.take(Freshness::Now);
        set_permissions(case.file(), Permissions::from_mode(mode)).unwrap();
        case.take(Freshness::Facts).1
    };
    assert!(!is_asked_with(0o600));
    for mode in [0o644, 0o660, 0o602, 0o4600, 0o700] {
        assert!(is_asked_with(mode), "{mode:o}");
    }
    let other = case.tree.path().join("other");
    std::fs::rename(case.file(), &other).unwrap();
    std::os::unix::fs::symlink(&other, case.file()).unwrap();
    assert!(case.take(Freshness::Facts).1);
    assert!(!case.take(Freshness::Facts).1);
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(case.file(), Some(12345), None).unwrap();
        assert!(case.take(Freshness::Facts).1);
    }
    for text in ["", "{", "{}", "null"] {
        case.take(Freshness::Now);
        std::fs::write(case.file(), text).unwrap();
        assert!(case.take(Freshness::Facts).1, "{text}");
    }
}
