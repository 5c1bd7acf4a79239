use std::fs;
use std::path::Path;

use jobc_schema::gpu::DriverCapability;
use serde_json::{Value, json};

use super::*;
use crate::cdi::tests::fake;

/// A configuration as `jobc build` writes it, of a container in a user namespace, so that root is not required.
fn config(env: &[&str]) -> Spec {
    serde_json::from_value(json!({
        "ociVersion": "1.0.2",
        "root": {"path": "rootfs"},
        "process": {"cwd": "/", "args": ["x"], "user": {"uid": 0, "gid": 0}, "env": env},
        "linux": {"namespaces": [{"type": "user"}], "resources": {"devices": [{"allow": false, "access": "rwm"}]}}
    }))
    .unwrap()
}

fn nvidia(gpu: u32, mig: Option<u32>) -> DeviceId {
    DeviceId { vendor: Vendor::Nvidia, gpu, mig }
}

/// The device nodes and the variables of a configuration.
fn shown(spec: &Spec) -> String {
    let value = serde_json::to_value(spec).unwrap();
    let mounts = value["mounts"].as_array().cloned().unwrap_or_default();
    let nodes: Vec<&str> = mounts
        .iter()
        .filter_map(|mount| mount["destination"].as_str())
        .filter(|path| path.starts_with("/dev/"))
        .collect();
    let stages: Vec<&String> =
        value["hooks"].as_object().into_iter().flat_map(|hooks| hooks.keys()).collect();
    format!("{} {:?} {:?}", nodes.join(" "), stages, value["process"]["env"])
}

fn injected(name: &str, devices: &[DeviceId], wants: InjectionRequest<'_>) -> String {
    let (_directory, machine, inventory) = fake(name);
    let mut spec = config(&["NVIDIA_VISIBLE_DEVICES=0"]);
    match inject(&mut spec, &machine, &inventory, devices, &wants) {
        Ok(injected) => format!("{} {} {:?}", injected.method, shown(&spec), injected.notes),
        Err(error) => error.message(),
    }
}

#[test]
fn the_nodes_of_a_card_and_no_other() {
    if !jobc_test_skip::is_root() {
        return;
    }
    let all = [
        injected("h200", &[nvidia(0, None)], InjectionRequest::default()),
        injected("v100", &[nvidia(3, None), nvidia(5, None)], InjectionRequest::default()),
        injected("a100", &[nvidia(2, Some(1)), nvidia(2, Some(3))], InjectionRequest::default()),
        injected("a100", &[nvidia(2, Some(9))], InjectionRequest::default()),
        injected("v100", &[nvidia(8, None)], InjectionRequest::default()),
        injected("v100", &[], InjectionRequest::default()),
        injected(
            "v100",
            &[nvidia(0, None)],
            InjectionRequest { injection: InjectionMethod::None, ..InjectionRequest::default() },
        ),
        injected(
            "v100",
            &[nvidia(0, None)],
            InjectionRequest { injection: InjectionMethod::Cdi, ..InjectionRequest::default() },
        ),
        injected(
            "v100",
            &[nvidia(0, None)],
            InjectionRequest { injection: InjectionMethod::Hook, ..InjectionRequest::default() },
        ),
        injected(
            "v100",
            &[nvidia(0, None)],
            InjectionRequest { visible: Some("all"), ..InjectionRequest::default() },
        ),
        injected("amd", &[DeviceId { vendor: Vendor::Amd, gpu: 1, mig: None }], InjectionRequest::default()),
        injected(
            "intel",
            &[DeviceId { vendor: Vendor::Intel, gpu: 0, mig: None }],
            InjectionRequest::default(),
        ),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

/// A task's mounts by driver capability.
#[test]
fn files_of_the_driver_by_capability() {
    use DriverCapability::{Compute, Graphics, Utility, Video};

    if !jobc_test_skip::is_root() {
        return;
    }
    let (directory, machine, inventory) = fake("h200");
    let mounts = |capabilities: &[DriverCapability], machine_root| {
        let mut spec = config(&[]);
        let wants = InjectionRequest { capabilities, host_root: machine_root, ..InjectionRequest::default() };
        Injector::new(machine.clone(), inventory.clone())
            .inject(&mut spec, &[nvidia(0, None)], &wants)
            .unwrap();
        let value = serde_json::to_value(&spec).unwrap();
        let mounts = value["mounts"].as_array().unwrap().clone();
        let paths = mounts
            .iter()
            .filter_map(|mount| mount["destination"].as_str())
            .filter(|path| !path.starts_with("/dev"));
        paths
            .map(|path| Path::new(path).file_name().unwrap().to_string_lossy().into_owned())
            .collect::<Vec<_>>()
    };
    insta::assert_snapshot!(format!(
        "utility: {}\ncompute: {}\nvideo: {}\ngraphics: {}",
        mounts(&[Utility], false).join(" "),
        mounts(&[Compute], false).join(" "),
        mounts(&[Video], false).join(" "),
        mounts(&[Graphics], false).join(" "),
    ));
    // The driver without devices has the files of `compute` and `utility`, and no nodes.
    let mut spec = config(&["NVIDIA_VISIBLE_DEVICES=none"]);
    let wants = InjectionRequest { visible: Some("none"), ..InjectionRequest::default() };
    Injector::new(machine.clone(), inventory.clone()).inject(&mut spec, &[], &wants).unwrap();
    let value = serde_json::to_value(&spec).unwrap();
    let mounts_of_driver = value["mounts"].as_array().unwrap();
    let names = |mount: &Value| mount["destination"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    let found: Vec<String> = mounts_of_driver.iter().map(names).collect();
    assert_eq!(found, mounts(&[Compute, Utility], false));
    assert!(!mounts_of_driver.iter().any(|mount| mount["destination"].as_str().unwrap().starts_with("/dev")));
    assert_eq!(value["linux"]["devices"], Value::Null);
    assert!(shown(&spec).contains("NVIDIA_VISIBLE_DEVICES=none"), "{}", shown(&spec));
    // In a user namespace nothing can be added to the host's own root, where the driver lies elsewhere.
    assert!(mounts(&[Utility], true).is_empty());
    drop(directory);
}

/// A CDI file of the host takes precedence if it describes exactly the device, and is skipped if it is from an earlier
/// boot.
#[test]
fn cdi_files_of_the_host_come_first() {
    if !jobc_test_skip::is_root() {
        return;
    }
    let (directory, machine, inventory) = fake("v100");
    let place = directory.path().join("etc/cdi");
    fs::create_dir_all(&place).unwrap();
    let write = |nodes: &[&str], env: &str, hook: &str| {
        let nodes: Vec<Value> = nodes
            .iter()
            .map(
                |node| json!({"path": node, "hostPath": directory.path().join(node.trim_start_matches('/'))}),
            )
            .collect();
        let spec = json!({
            "cdiVersion": "0.5.0", "kind": "nvidia.com/gpu",
            "devices": [{"name": "1", "containerEdits": {"deviceNodes": nodes}}],
            "containerEdits": {"env": [env], "hooks": [{"hookName": "createContainer", "path": hook}]}
        });
        fs::write(place.join("nvidia.json"), spec.to_string()).unwrap();
    };
    let way = |injection: InjectionMethod| {
        let mut spec = config(&[]);
        let wants = InjectionRequest { injection, ..InjectionRequest::default() };
        match inject(&mut spec, &machine, &inventory, &[nvidia(1, None)], &wants) {
            Ok(injected) => format!("{} {} {:?}", injected.method, shown(&spec), injected.notes),
            Err(error) => error.message(),
        }
        .replace(directory.path().to_str().unwrap(), "ROOT")
    };
    write(&["/dev/nvidia1", "/dev/nvidiactl"], "FROM=file", "/bin/true");
    let mut all =
        vec![way(InjectionMethod::Auto), way(InjectionMethod::Cdi), way(InjectionMethod::Generated)];
    write(&["/dev/nvidia2"], "FROM=file", "/bin/true");
    all.extend([way(InjectionMethod::Auto), way(InjectionMethod::Cdi)]);
    write(&["/dev/nvidia1", "/dev/gone"], "FROM=file", "/bin/true");
    all.extend([way(InjectionMethod::Auto), way(InjectionMethod::Cdi)]);
    insta::assert_snapshot!(all.join("\n"));
    // A container with such a hook would not start.
    write(&["/dev/nvidia1", "/dev/nvidiactl"], "FROM=file", "/gone/nvidia-cdi-hook");
    let absent = "`ROOT/etc/cdi/nvidia.json` runs the hook `/gone/nvidia-cdi-hook`, which is not installed";
    let fallback = way(InjectionMethod::Auto);
    assert!(fallback.starts_with("generated ") && fallback.contains(absent), "{fallback}");
    assert_eq!(way(InjectionMethod::Cdi), absent);
}

/// NVIDIA's hook reads the variables, so what the author wrote must not name other cards than were leased.
#[test]
fn the_hook_gives_what_was_leased() {
    if !jobc_test_skip::is_root() {
        return;
    }
    let (directory, machine, inventory) = fake("v100");
    let program = directory.path().join("usr/bin/nvidia-container-runtime-hook");
    fs::write(&program, "").unwrap();
    let add = |visible: Option<&str>, devices: &[DeviceId]| {
        let mut spec = config(&["NVIDIA_VISIBLE_DEVICES=0"]);
        let wants =
            InjectionRequest { injection: InjectionMethod::Hook, visible, ..InjectionRequest::default() };
        match inject(&mut spec, &machine, &inventory, devices, &wants) {
            Ok(injected) => format!("{} {}", injected.method, shown(&spec)),
            Err(error) => error.message(),
        }
    };
    let all = [
        add(None, &[nvidia(1, None), nvidia(2, None)]),
        add(Some("all"), &[nvidia(1, None)]),
        add(None, &[DeviceId { vendor: Vendor::Amd, gpu: 0, mig: None }]),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

/// The requests of NVIDIA's variables besides the cards.
#[test]
fn nodes_requested_by_a_variable() {
    if !jobc_test_skip::is_root() {
        return;
    }
    let (directory, machine, inventory) = fake("h200");
    let make = |name: &str| {
        let path = directory.path().join("dev").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o666);
        let null = rustix::fs::makedev(1, 3);
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::CharacterDevice, mode, null)
            .unwrap();
    };
    let channels = ["nvidia-caps-imex-channels/channel0", "nvidia-caps-imex-channels/channel7"];
    for name in ["gdrdrv", "nvidia-fs0", "nvidia-nvswitchctl", "nvidia-nvswitch0", "infiniband/uverbs0"]
        .iter()
        .chain(&channels)
    {
        make(name);
    }
    let with = |env: &[&str]| {
        let mut spec = config(env);
        inject(&mut spec, &machine, &inventory, &[nvidia(0, None)], &InjectionRequest::default()).unwrap();
        shown(&spec)
            .split(" [")
            .next()
            .unwrap()
            .replace("/dev/nvidiactl /dev/nvidia-uvm /dev/nvidia-uvm-tools /dev/nvidia-modeset ", "")
    };
    insta::assert_snapshot!(
        [
            with(&[]),
            with(&["NVIDIA_GDRCOPY=enabled", "NVIDIA_GDS=disabled"]),
            with(&["NVIDIA_GDS=enabled", "NVIDIA_NVSWITCH=enabled", "NVIDIA_MOFED=enabled"]),
            with(&["NVIDIA_IMEX_CHANNELS=7,9"]),
        ]
        .join("\n")
    );
}

/// As clusters mount it into containers: the driver below /usr/local/nvidia, of which neither the loader nor `PATH`
/// knows.
#[test]
fn a_driver_that_a_cluster_mounted() {
    let (_directory, machine, inventory) = fake("h200");
    let moved = |from: &str, to: &str| {
        let to = machine.path(to);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::rename(machine.path(from), to).unwrap();
    };
    moved("/usr/lib/x86_64-linux-gnu", "/usr/local/nvidia/lib64");
    moved("/usr/bin", "/usr/local/nvidia/bin");
    moved("/usr/share/glvnd", "/usr/local/nvidia/share/glvnd");
    // An administrator's wrapper of a program of the driver is not the program.
    fs::create_dir(machine.path("/usr/bin")).unwrap();
    fs::write(machine.path("/usr/local/nvidia/bin/nvidia-smi"), "\x7fELF").unwrap();
    fs::write(machine.path("/usr/bin/nvidia-smi"), "#!/bin/sh\nexec /usr/local/nvidia/bin/nvidia-smi\n")
        .unwrap();
    let mut spec = config(&["PATH=/bin", "LD_LIBRARY_PATH=/opt/lib"]);
    let capabilities = &[DriverCapability::Compute, DriverCapability::Utility, DriverCapability::Graphics];
    let wants = InjectionRequest {
        capabilities,
        injection: InjectionMethod::Generated,
        ..InjectionRequest::default()
    };
    inject(&mut spec, &machine, &inventory, &[nvidia(0, None)], &wants).unwrap();
    let value = serde_json::to_value(&spec).unwrap();
    let source = |destination: &str| {
        let mounts = value["mounts"].as_array().unwrap();
        let mount = mounts.iter().find(|mount| mount["destination"] == destination);
        mount.map(|mount| Path::new(mount["source"].as_str().unwrap()).to_owned())
    };
    let release = &inventory.driver.as_ref().unwrap().version;
    let library = format!("/usr/local/nvidia/lib64/libcuda.so.{release}");
    assert_eq!(source(&library), Some(machine.path(&library)));
    for (place, from) in [
        ("/usr/bin/nvidia-smi", "/usr/local/nvidia/bin/nvidia-smi"),
        (
            "/usr/share/glvnd/egl_vendor.d/10_nvidia.json",
            "/usr/local/nvidia/share/glvnd/egl_vendor.d/10_nvidia.json",
        ),
    ] {
        assert_eq!(source(place), Some(machine.path(from)), "{place}");
    }
    let output = value["hooks"]["createContainer"][0]["args"].as_array().unwrap();
    assert!(output.iter().any(|word| word == "/usr/local/nvidia/lib64/libcuda.so.1"), "{output:?}");

    // The host's own files have it already, and variables give its path.
    let files = DriverFiles::of(&machine, &inventory);
    let env = |env: &[&str]| {
        let mut spec = config(env);
        environment::add_driver_paths(&mut spec, &files);
        serde_json::to_value(&spec).unwrap()["process"]["env"].clone()
    };
    assert_eq!(
        env(&["PATH=/bin", "LD_LIBRARY_PATH=/opt/lib"]),
        json!(["PATH=/bin:/usr/local/nvidia/bin", "LD_LIBRARY_PATH=/opt/lib:/usr/local/nvidia/lib64"])
    );
    assert_eq!(env(&[]), json!(["LD_LIBRARY_PATH=/usr/local/nvidia/lib64"]));
    let again = ["PATH=/usr/local/nvidia/bin", "LD_LIBRARY_PATH=/usr/local/nvidia/lib64"];
    assert_eq!(env(&again), json!(again));
}

#[test]
fn a_driver_in_the_default_place_needs_no_variables() {
    let (_directory, machine, inventory) = fake("h200");
    let files = DriverFiles::of(&machine, &inventory);
    let (libraries, programs) = files.unsearched_directories();
    assert!(libraries.is_empty() && programs.is_empty(), "{libraries:?} {programs:?}");
}
