use std::fs;
use std::path::{Path, PathBuf};

use jobc_fake_gpus::{Nodes, model, write_host};
use jobc_schema::gpu::{DriverCapability, Vendor};
use oci_spec::runtime::Spec as Config;
use serde_json::{Value, json};

use super::generate::{DriverFiles, Source};
use super::registry::{self, CdiRegistry};
use super::*;
use crate::host::Host;
use crate::inventory::Inventory;

fn read(text: &str) -> std::result::Result<Spec, String> {
    Spec::read(Path::new("x.yaml"), text).map_err(|error| error.message())
}

/// As the documentation of the container toolkit shows such files.
const NVIDIA: &str = "\
cdiVersion: 0.5.0
kind: nvidia.com/gpu
devices:
  - name: \"0\"
    containerEdits:
      deviceNodes:
        - path: /dev/nvidia0
  - name: all
    containerEdits:
      deviceNodes:
        - path: /dev/nvidia0
          fileMode: 0666
          permissions: rw
containerEdits:
  env:
    - NVIDIA_VISIBLE_DEVICES=void
  deviceNodes:
    - path: /dev/nvidiactl
  mounts:
    - hostPath: /usr/bin/nvidia-smi
      containerPath: /usr/bin/nvidia-smi
      options: [ro, nosuid, nodev, bind]
  hooks:
    - hookName: createContainer
      path: /usr/bin/nvidia-cdi-hook
      args: [nvidia-cdi-hook, update-ldcache, --directory, /usr/lib64]
      env: [NVIDIA_CTK_DEBUG=false]
";

#[test]
fn a_file_is_read_as_yaml_and_as_json() {
    let spec = read(NVIDIA).unwrap();
    assert_eq!(spec.devices[0].name, "0");
    assert_eq!(spec.devices[1].container_edits.device_nodes[0].file_mode, Some(0o666));
    assert_eq!(spec.container_edits.hooks[0].args[1], "update-ldcache");
    let json = serde_json::to_string(&spec).unwrap();
    assert_eq!(Spec::read(Path::new("x.json"), &json).unwrap(), spec);
    assert_eq!(check::minimum_version(&spec), "0.5.0");
}

#[test]
fn what_is_wrong_with_a_file_is_reported_at_its_place() {
    let with = |from: &str, to: &str| read(&NVIDIA.replacen(from, to, 1)).expect_err("refused");
    let all = [
        with("0.5.0", "0.4.0"),
        with("0.5.0", "2.0.0"),
        with("nvidia.com/gpu", "nvidia"),
        with("nvidia.com/gpu", "nvidia.com/1gpu"),
        with("name: all", "name: \"0\""),
        with("name: all", "name: -all"),
        with("permissions: rw", "permissions: rwx"),
        with("createContainer", "create"),
        with("NVIDIA_VISIBLE_DEVICES=void", "NVIDIA_VISIBLE_DEVICES"),
        with("fileMode", "filemode"),
        with(
            "  - name: \"0\"\n    containerEdits:\n      deviceNodes:\n        - path: /dev/nvidia0\n",
            "  - name: \"0\"\n    containerEdits: {}\n",
        ),
        with("    - path: /dev/nvidiactl", "    - path: /dev/nvidiactl\n      path: /dev/x"),
        with("    - path: /dev/nvidiactl", "    - &a path: /dev/nvidiactl\n    - *a"),
        with("cdiVersion: 0.5.0\n", "cdiVersion: 0.5.0\ncontainerEdits: [\n"),
        read("").expect_err("refused"),
        read(&format!("a: {}", "[".repeat(100_000))).expect_err("refused"),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn the_lowest_version_that_has_what_is_used() {
    let with = |edits: Value| {
        let spec = json!({"cdiVersion": "1.1.0", "kind": "a/b", "devices": [{"name": "x", "containerEdits": edits}]});
        check::minimum_version(&serde_json::from_value(spec).unwrap()).to_owned()
    };
    assert_eq!(with(json!({"env": ["A=B"]})), "0.3.0");
    assert_eq!(with(json!({"mounts": [{"hostPath": "/a", "containerPath": "/a", "type": "bind"}]})), "0.4.0");
    assert_eq!(with(json!({"deviceNodes": [{"path": "/a", "hostPath": "/b"}]})), "0.5.0");
    assert_eq!(with(json!({"additionalGids": [1]})), "0.7.0");
    assert_eq!(with(json!({"intelRdt": {"closID": "x"}})), "0.7.0");
    assert_eq!(with(json!({"intelRdt": {"schemata": ["L3:0=f"]}})), "1.1.0");
    assert_eq!(with(json!({"netDevices": [{"hostInterfaceName": "eth1", "name": "eth0"}]})), "1.1.0");
}

/// A file in a later directory comes before one in an earlier; of two in one directory neither is taken.
#[test]
fn later_directories_come_first_and_equals_are_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let directories = ["etc", "run"].map(|name| directory.path().join(name));
    let write = |directory: &Path, name: &str, device: &str, node: &str| {
        fs::create_dir_all(directory).unwrap();
        let edits = json!({"deviceNodes": [{"path": node}]});
        let spec = json!({"cdiVersion": "0.5.0", "kind": "v.com/gpu", "devices": [{"name": device, "containerEdits": edits}]});
        fs::write(directory.join(name), spec.to_string()).unwrap();
    };
    write(&directories[0], "a.json", "0", "/dev/static0");
    write(&directories[0], "b.json", "1", "/dev/static1");
    write(&directories[0], "c.json", "1", "/dev/other1");
    write(&directories[0], "d.json", "2", "/dev/static2");
    write(&directories[0], "e.json", "2", "/dev/other2");
    write(&directories[1], "a.json", "0", "/dev/dynamic0");
    write(&directories[1], "b.json", "2", "/dev/dynamic2");
    fs::write(directories[1].join("broken.yaml"), "kind: [").unwrap();
    fs::write(directories[1].join("not.txt"), "kind: [").unwrap();
    let found = CdiRegistry::read_directories(&directories);
    let node = |name: &str| {
        let described = found.device(name)?;
        Some(described.device.container_edits.device_nodes[0].path.display().to_string())
    };
    assert_eq!(node("v.com/gpu=0").as_deref(), Some("/dev/dynamic0"));
    assert_eq!(node("v.com/gpu=1"), None);
    assert_eq!(node("v.com/gpu=2").as_deref(), Some("/dev/dynamic2"));
    assert_eq!(found.names().collect::<Vec<_>>(), ["v.com/gpu=0", "v.com/gpu=2"]);
    assert_eq!(found.errors.len(), 3, "{:?}", found.errors);
}

#[test]
fn common_edits_are_taken_once() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("nvidia.yaml"), NVIDIA).unwrap();
    let found = CdiRegistry::read_directories(&[directory.path().to_owned()]);
    let both = ["nvidia.com/gpu=0", "nvidia.com/gpu=all"].map(|name| found.device(name).unwrap());
    let edits = registry::merge_edits(&both);
    assert_eq!(edits.hooks.len(), 1);
    assert_eq!(edits.device_nodes.len(), 3);
}

/// The edits of a file, applied to a configuration.
fn applied(edits: Value, config: Value) -> std::result::Result<(Value, Vec<String>), String> {
    let edits: Edits = serde_json::from_value(edits).unwrap();
    let mut config: Config = serde_json::from_value(config).unwrap();
    let output = edit::apply(&edits, &mut config).map_err(|error| error.message())?;
    Ok((serde_json::to_value(config).unwrap(), output))
}

fn config(user: u32, in_user_namespace: bool) -> Value {
    let namespaces = if in_user_namespace { json!([{"type": "user"}]) } else { json!([]) };
    json!({
        "ociVersion": "1.0.2",
        "root": {"path": "rootfs"},
        "process": {"cwd": "/", "args": ["x"], "user": {"uid": user, "gid": user}, "env": ["A=1"]},
        "mounts": [
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
            {"destination": "/data/deep", "type": "bind", "source": "/tmp", "options": ["rbind"]}
        ],
        "linux": {
            "namespaces": namespaces,
            "gidMappings": [{"containerID": 0, "hostID": 1000, "size": 1}, {"containerID": 1, "hostID": 100_000, "size": 10}],
            "resources": {"devices": [{"allow": false, "access": "rwm"}]}
        }
    })
}

#[test]
fn edits_of_root() {
    if !jobc_test_skip::is_root() {
        return;
    }
    let mut config = config(7, false);
    config["linux"]["gidMappings"] = json!([]);
    let (config, output) = applied(
        json!({
            "env": ["A=2", "B=3"],
            "deviceNodes": [
                {"path": "/dev/card0", "hostPath": "/dev/null"},
                {"path": "/dev/card1", "hostPath": "/dev/zero", "permissions": "r", "uid": 1, "gid": 2, "fileMode": 384},
                {"path": "/dev/later", "type": "c", "major": 240, "minor": 1, "permissions": "none"}
            ],
            "mounts": [{"hostPath": "/usr", "containerPath": "/data", "options": ["ro", "bind"]},
                       {"hostPath": "/etc/passwd", "containerPath": "/x"},
                       {"hostPath": "tmpfs", "containerPath": "/t", "type": "tmpfs", "options": ["size=1m"]}],
            "hooks": [{"hookName": "poststop", "path": "/bin/true", "timeout": 3}],
            "additionalGids": [44, 7]
        }),
        config,
    )
    .unwrap();
    assert_eq!(output, [""; 0]);
    insta::assert_snapshot!(serde_json::to_string_pretty(&config).unwrap());
}

#[test]
fn in_a_user_namespace_nodes_are_bound() {
    let (config, output) = applied(
        json!({
            "deviceNodes": [{"path": "/dev/card0", "hostPath": "/dev/null"},
                            {"path": "/dev/card1", "hostPath": "/dev/zero", "permissions": "r"}],
            "additionalGids": [100_003, 44]
        }),
        config(0, true),
    )
    .unwrap();
    assert_eq!(config["linux"]["devices"], Value::Null);
    assert_eq!(
        config["mounts"][2],
        json!({"destination": "/dev/card0", "type": "bind", "source": "/dev/null", "options": ["bind", "nosuid", "noexec"]})
    );
    assert_eq!(config["process"]["user"]["additionalGids"], json!([4]));
    insta::assert_snapshot!(output.join("\n"), @r"
    `/dev/card1` should allow only the access `r`, which is not enforced in a user namespace
    group 44 of the host, which owns the devices, is not mapped in the container: access may be denied
    ");
}

#[test]
fn what_cannot_be_carried_out_is_refused() {
    let refused = |edits: Value| applied(edits, config(0, true)).expect_err("refused");
    let all = [
        refused(json!({"intelRdt": {"closID": "x"}})),
        refused(json!({"netDevices": [{"hostInterfaceName": "eth1", "name": "eth0"}]})),
        refused(json!({"deviceNodes": [{"path": "/dev/is-not-there"}]})),
        refused(json!({"deviceNodes": [{"path": "/dev/file", "hostPath": "/etc/passwd"}]})),
        refused(json!({"mounts": [{"hostPath": "/is/not/there", "containerPath": "/x"}]})),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

/// A simulated host, with what a description of it holds of the directory taken out.
pub(crate) fn fake(name: &str) -> (tempfile::TempDir, Host, Inventory) {
    let directory = tempfile::tempdir().unwrap();
    write_host(&model::named(name).unwrap(), directory.path(), Nodes::Null).unwrap();
    let mut machine = Host::at(directory.path());
    machine.nvml.library = Some(PathBuf::new());
    let inventory = Inventory::discover(&machine);
    (directory, machine, inventory)
}

fn generated(name: &str, vendor: Vendor) -> Option<Spec> {
    let (directory, machine, inventory) = fake(name);
    let capabilities = &[DriverCapability::All];
    let files = DriverFiles::of(&machine, &inventory);
    let source = Source { host: &machine, inventory: &inventory, files: Some(&files), capabilities };
    let spec = source.spec(vendor).unwrap();
    if spec.devices.is_empty() {
        jobc_test_skip::skip("the right to make device nodes");
        return None;
    }
    let text = serde_json::to_string(&spec).unwrap();
    let own = std::env::current_exe().unwrap();
    let text =
        text.replace(directory.path().to_str().unwrap(), "ROOT").replace(own.to_str().unwrap(), "JOBC");
    Some(Spec::read(Path::new("x.json"), &text).unwrap())
}

#[test]
fn a_description_of_a_host_with_one_card() {
    let Some(spec) = generated("h200", Vendor::Nvidia) else { return };
    let Edits { env, device_nodes, mounts, hooks, .. } = &spec.container_edits;
    let nodes: String =
        device_nodes.iter().map(|node| format!("{} {:?}\n", node.path.display(), node.host_path)).collect();
    let mounts = mounts.iter().map(|mount| {
        assert_eq!(mount.host_path, Path::new("ROOT").join(mount.container_path.strip_prefix("/").unwrap()));
        format!("{} {}\n", mount.container_path.display(), mount.options.join(","))
    });
    let hooks = hooks.iter().map(|hook| {
        format!(
            "{} {}\n{}\n",
            hook.hook_name,
            hook.path.display(),
            hook.args.join("\n").replace("\n/", " /").replace("\nlib", " lib")
        )
    });
    insta::assert_snapshot!(format!(
        "{} {}\n{}{env:?}\n{nodes}{}{}",
        spec.cdi_version,
        spec.kind,
        devices(&spec),
        mounts.collect::<String>(),
        hooks.collect::<String>()
    ));
}

/// Cards with MIG instances appear only as their instances, each with the nodes that open it.
#[test]
fn a_description_of_a_host_with_cards_that_are_cut_up() {
    let Some(spec) = generated("a100", Vendor::Nvidia) else { return };
    insta::assert_snapshot!(devices(&spec));
}

#[test]
fn a_description_of_a_host_with_eight_cards() {
    let Some(spec) = generated("v100", Vendor::Nvidia) else { return };
    insta::assert_snapshot!(devices(&spec));
}

#[test]
fn a_description_of_cards_of_others() {
    let Some(amd) = generated("amd", Vendor::Amd) else { return };
    let Some(intel) = generated("intel", Vendor::Intel) else { return };
    let common = |spec: &Spec| {
        spec.container_edits.device_nodes.iter().map(|node| node.path.clone()).collect::<Vec<_>>()
    };
    insta::assert_snapshot!(format!(
        "{}{:?}\n{}{:?}",
        devices(&amd),
        common(&amd),
        devices(&intel),
        common(&intel)
    ));
}

fn devices(spec: &Spec) -> String {
    let nodes = |device: &Device| {
        let nodes = device.container_edits.device_nodes.iter();
        nodes.map(|node| node.path.display().to_string()).collect::<Vec<_>>().join(" ")
    };
    spec.devices.iter().map(|device| format!("{}: {}\n", device.name, nodes(device))).collect()
}
