//! Discovery on simulated hosts.

use jobc_fake_gpus::{Nodes, model, nvml};
use tempfile::TempDir;

use super::*;
use crate::host::NvmlProgram;
use crate::inventory::{Gpu, LinkType};

/// The files of a simulated host.
fn tree(name: &str) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    jobc_fake_gpus::write_host(&model::named(name).unwrap(), directory.path(), Nodes::Files).unwrap();
    directory
}

/// The same with a library that answers as NVML does; `answers` come after the host's own and so count in their
/// place.
fn with_nvml(name: &str, answers: &str) -> TempDir {
    let directory = tree(name);
    nvml::build(directory.path()).unwrap();
    let file = directory.path().join(nvml::ANSWERS);
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(file, text + answers).unwrap();
    directory
}

/// A process that replaces the query process of NVML.
fn sh(script: &str) -> NvmlProgram {
    NvmlProgram::new("/bin/sh").arg("-c").arg(script)
}

fn take(tree: &TempDir) -> Inventory {
    Inventory::discover(&Host::at(tree.path()))
}

/// All that was found, a line a fact.
fn described(inventory: &Inventory) -> String {
    let mut out = format!("{:?} {:?}\n", inventory.source, inventory.driver);
    out.extend(inventory.notes.iter().map(|note| format!("note: {note}\n")));
    for gpu in &inventory.gpus {
        let Gpu { vendor, index, name, minor, numa_node, memory_bytes, compute_capability, nodes, .. } = gpu;
        let uuid = gpu.uuid.as_deref().unwrap_or("no UUID");
        let brand = gpu.brand.as_deref().unwrap_or("no brand");
        let pci = gpu.pci.as_deref().unwrap_or("no place");
        out += &format!("{} {index}: {name} ({brand}) {uuid} at {pci}\n", vendor.as_str());
        out += &format!(
            "  minor {minor:?}, node {numa_node:?}, memory {memory_bytes:?}, used {:?}, cc {compute_capability:?}\n",
            gpu.memory_used
        );
        out += &format!("  nodes {nodes:?}\n");
        let ways: Vec<String> = gpu.links.iter().map(|link| format!("{}:{:?}", link.to, link.by)).collect();
        out += &format!("  links {}\n", ways.join(" "));
        out.extend(gpu.processes.iter().map(|process| format!("  {process:?}\n")));
        let Some(mig) = &gpu.mig else { continue };
        out += &format!("  MIG enabled: {}\n", mig.enabled);
        for device in &mig.devices {
            out += &format!(
                "    {}: {:?} {:?} {:?} gi {} ci {} {:?}\n",
                device.index,
                device.profile,
                device.uuid,
                device.memory_bytes,
                device.gi,
                device.ci,
                device.caps
            );
        }
    }
    out
}

#[test]
fn a_host_without_gpus_is_a_normal_one() {
    let found = take(&tree("none"));
    assert_eq!(found, Inventory::default());
    assert_eq!(found.devices(), []);
}

#[test]
fn nvml_tells_all_of_three_generations() {
    for name in ["v100", "a100", "h100", "h200"] {
        insta::assert_snapshot!(format!("nvml_{name}"), described(&take(&with_nvml(name, ""))));
    }
}

#[test]
fn without_nvml_the_drivers_files_have_to_do() {
    for name in ["v100", "a100"] {
        let tree = tree(name);
        let mut machine = Host::at(tree.path());
        machine.nvml.library = Some("".into());
        insta::assert_snapshot!(format!("proc_{name}"), described(&Inventory::discover(&machine)));
    }
}

#[test]
fn all_vendors_cards_are_found() {
    for name in ["amd", "intel", "mixed"] {
        let tree = tree(name);
        let mut machine = Host::at(tree.path());
        machine.nvml.library = Some("".into());
        insta::assert_snapshot!(format!("vendors_{name}"), described(&Inventory::discover(&machine)));
    }
}

#[test]
fn what_a_card_does_not_tell_is_left_out() {
    let silent = "gpu.0.uuid=!3\ngpu.0.memory=!3\ngpu.0.compute=!15\ngpu.0.brand=!999\ngpu.0.name=!4\n";
    let found = take(&with_nvml("h200", silent));
    let gpu = &found.gpus[0];
    assert_eq!((gpu.uuid.as_deref(), gpu.memory_bytes, gpu.compute_capability), (None, None, None));
    assert_eq!((gpu.brand.as_deref(), gpu.name.as_str(), gpu.minor), (None, "NVIDIA GPU", Some(0)));
    assert_eq!(found.source, Source::Nvml);
}

#[test]
fn a_card_that_fell_off_the_bus_is_named_and_left_out() {
    let found = take(&with_nvml("v100", "gpu.3.handle=!15\n"));
    let indexes: Vec<u32> = found.gpus.iter().map(|gpu| gpu.index).collect();
    assert_eq!(indexes, [0, 1, 2, 4, 5, 6, 7], "the others keep their numbers");
    assert!(found.notes.iter().any(|note| note.contains("card 3")), "{:?}", found.notes);
}

#[test]
fn a_driver_that_does_not_answer_is_reported_and_replaced_by_its_files() {
    for (answer, words) in
        [("init=!9", "driver is not loaded"), ("init=!18", "mismatch"), ("count=!4", "permission")]
    {
        let found = take(&with_nvml("a100", &format!("{answer}\n")));
        assert_eq!((found.source, found.gpus.len()), (Source::Proc, 4), "{answer}");
        let note = found.notes.join("\n").to_lowercase();
        assert!(note.contains(words), "{answer}: {note}");
    }
}

#[test]
fn each_user_of_a_card_is_listed_once() {
    let own = std::process::id();
    let answers = format!("gpu.0.processes={own}:1048576:1:0 {own}:4096:2:0 1\ngpu.0.graphics={own}:8192\n");
    let found = take(&with_nvml("h200", &answers));
    let used: Vec<_> =
        found.gpus[0].processes.iter().map(|process| (process.pid, process.memory_bytes)).collect();
    assert_eq!(used, [(own, Some(1 << 20)), (1, None)]);
    assert!(found.gpus[0].processes[0].name.is_none(), "the tree has no /proc/{own}");
}

#[test]
fn an_older_driver_is_queried_in_older_words() {
    let found = take(&with_nvml("h200", "gpu.0.memory_2=!13\n"));
    assert_eq!(found.gpus[0].memory_bytes, Some(143_771 << 20));
}

#[test]
fn links_to_switches_reach_every_card_that_has_some() {
    let found = take(&with_nvml("h100", "gpu.7.link.17=!3\n"));
    let way = |from: usize, to| found.gpus[from].links.iter().find(|link| link.to == to).unwrap().by;
    assert_eq!(
        (way(0, 1), way(0, 7), way(7, 0)),
        (LinkType::Nvlink(18), LinkType::Nvlink(17), LinkType::Nvlink(17))
    );
}

#[test]
fn a_container_with_some_of_the_cards_has_those_alone() {
    let tree = tree("v100");
    for minor in [0, 1, 2, 4, 5, 6, 7] {
        std::fs::remove_file(tree.path().join(format!("dev/nvidia{minor}"))).unwrap();
    }
    let found = take(&tree);
    let [gpu] = &found.gpus[..] else { panic!("{found:?}") };
    assert_eq!((gpu.index, gpu.minor, found.notes.len()), (0, Some(3), 8), "{:?}", found.notes);
    std::fs::remove_file(tree.path().join("dev/nvidiactl")).unwrap();
    let found = take(&tree);
    assert!(found.gpus.is_empty() && found.notes[0].contains("nvidia-modprobe"), "{:?}", found.notes);
}

#[test]
fn slow_or_failing_queries_are_abandoned() {
    let tree = tree("v100");
    let mut machine = Host::at(tree.path());
    for (script, words) in [
        ("sleep 60", "timed out after 0.2 s"),
        ("echo it is broken; exit 3", "(it is broken)"),
        ("echo it cannot run; exit 1", "it cannot run"),
        ("kill -ABRT $$", "signal: 6"),
        ("echo nonsense", "cannot be read"),
    ] {
        machine.nvml.programs = vec![sh(script)];
        machine.nvml.timeout =
            std::time::Duration::from_millis(if script.starts_with("sleep") { 200 } else { 20_000 });
        let found = Inventory::discover(&machine);
        assert_eq!((found.source, found.gpus.len()), (Source::Proc, 8));
        assert!(found.notes[0].contains(words), "{:?}", found.notes);
    }
}

#[test]
fn one_that_cannot_run_leaves_it_to_the_next() {
    let tree = tree("v100");
    let mut machine = Host::at(tree.path());
    let answer = r#"echo '{"driver":"1.2","cuda":null,"cards":[],"notes":[]}'"#;
    let lost = [
        "exec /not/there",
        "echo 'version `GLIBC_2.99 not found'; exit 1",
        "echo '{\"of\":\"an older one\"}'",
    ];
    for script in lost {
        machine.nvml.programs = vec![sh(script), sh(answer)];
        let found = Inventory::discover(&machine);
        assert_eq!(found.driver.unwrap().version, "1.2", "{script}: {:?}", found.notes);
        assert_eq!(found.asked_by.as_deref(), Some(std::path::Path::new("/bin/sh")));
    }
    // An error or a hang of NVML itself is the same through every program.
    for script in ["echo it is refused; exit 3", "sleep 60"] {
        machine.nvml.programs = vec![sh(script), sh(answer)];
        machine.nvml.timeout = std::time::Duration::from_millis(300);
        assert_eq!(Inventory::discover(&machine).source, Source::Proc, "{script}");
    }
}

/// After boot the nodes do not exist yet; NVML has them created for root.
#[test]
fn nodes_that_come_with_the_first_question_are_there() {
    let tree = tree("v100");
    let dev = tree.path().join("dev");
    let nodes: Vec<_> = ["nvidiactl", "nvidia0"].iter().map(|name| dev.join(name)).collect();
    for number in 1..8 {
        let card =
            std::fs::read_dir(tree.path().join("proc/driver/nvidia/gpus")).unwrap().next().unwrap().unwrap();
        std::fs::remove_dir_all(card.path()).unwrap();
        std::fs::remove_file(dev.join(format!("nvidia{number}"))).unwrap();
    }
    let card = tree.path().join("proc/driver/nvidia/gpus");
    let card = std::fs::read_dir(card).unwrap().next().unwrap().unwrap().path().join("information");
    let text = std::fs::read_to_string(&card).unwrap();
    let lines =
        text.lines().map(|line| if line.starts_with("Device Minor") { "Device Minor: \t 0" } else { line });
    std::fs::write(&card, lines.collect::<Vec<_>>().join("\n")).unwrap();
    for node in &nodes {
        std::fs::remove_file(node).unwrap();
    }
    let mut machine = Host::at(tree.path());
    assert!(!Inventory::discover(&machine).notes.is_empty());
    let answer = r#"{"driver":"1.2","cuda":null,"cards":[],"notes":[]}"#;
    machine.nvml.programs =
        vec![sh(&format!("touch {} {}; echo '{answer}'", nodes[0].display(), nodes[1].display()))];
    assert_eq!(Inventory::discover(&machine).notes, Vec::<String>::new());
}
