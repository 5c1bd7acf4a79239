//! Groups of units: where they are expected, and the properties that systemd gets.

use serde_json::{Value as Json, json};

use super::*;
use crate::cgroup::{Controller, Hierarchy, UnifiedHierarchy, UnitGroup};
use crate::systemd::Unit;

/// The groups of a container's unit and the properties that systemd 252 gets for them.
fn check(layout: &Layout, base: &str, resources: &Json) -> String {
    let resources = serde_json::from_value(resources.clone()).expect("resources");
    let unit = Unit::of(Some("a-b.slice:jobc:demo"), "demo", false).expect("a unit");
    let group = UnitGroup::of(&unit, base.into());
    let request =
        CgroupRequest { unit: Some(&group), resources: Some(&resources), ..CgroupRequest::default() };
    let plan = Plan::of(layout, &request).expect("a plan");
    assert!(plan.groups.iter().all(|group| group.made_by_systemd));
    let mut lines = plan.describe();
    lines.retain(|line| line.starts_with("make"));
    lines.extend(plan.properties(252).into_iter().map(|(name, value)| format!("{name} {value:?}")));
    lines.join("\n")
}

fn limits() -> Json {
    json!({"memory": {"limit": 8192, "swap": 8192}, "pids": {"limit": 5}, "devices": [{"allow": false, "access": "rwm"}]})
}

#[test]
fn on_version_2_the_unit_is_below_its_systemd() {
    let controllers = vec![Controller::Memory, Controller::Pids];
    let unified = Some(UnifiedHierarchy {
        mount: "/cg".into(),
        controllers: controllers.into(),
        own_group: Some("elsewhere".into()),
        writable: true,
    });
    let layout = Layout { hierarchies: vec![], unified };
    insta::assert_snapshot!(check(&layout, "", &limits()), @"
    make the cgroup `/cg/a.slice/a-b.slice/jobc-demo.scope`
    MemoryMax Uint64(8192)
    MemorySwapMax Uint64(0)
    TasksMax Uint64(5)
    ");
    insta::assert_snapshot!(check(&layout, "user.slice/user@7.service", &json!({})), @"make the cgroup `/cg/user.slice/user@7.service/a.slice/a-b.slice/jobc-demo.scope`");
}

#[test]
fn on_version_1_it_is_in_every_hierarchy_and_systemd_knows_the_devices() {
    let hierarchy = |name: &str, controllers: &[Controller]| Hierarchy {
        mount: format!("/cg/{name}").into(),
        name: name.to_owned(),
        controllers: controllers.to_vec(),
        own_group: None,
        writable: true,
    };
    let hierarchies = vec![
        hierarchy("name=systemd", &[]),
        hierarchy("memory", &[Controller::Memory]),
        hierarchy("pids", &[Controller::Pids]),
        hierarchy("devices", &[Controller::Devices]),
    ];
    let output = check(&Layout { hierarchies, unified: None }, "", &limits());
    let (output, allowed) = output.split_once("\nDevicePolicy").expect("a policy");
    insta::assert_snapshot!(output, @"
    make the cgroup `/cg/name=systemd/a.slice/a-b.slice/jobc-demo.scope`
    make the cgroup `/cg/memory/a.slice/a-b.slice/jobc-demo.scope`
    make the cgroup `/cg/pids/a.slice/a-b.slice/jobc-demo.scope`
    make the cgroup `/cg/devices/a.slice/a-b.slice/jobc-demo.scope`
    MemoryLimit Uint64(8192)
    TasksMax Uint64(5)
    ");
    assert!(allowed.contains("\"strict\"") && allowed.contains("(\"/dev/char/1:3\", \"rwm\")"), "{allowed}");
}

#[test]
fn devices_by_number_and_by_driver() {
    let majors = "Character devices:\n  1 mem\n136 pts\n\nBlock devices:\n  8 sd\n";
    let rule = |kind, major, minor| Rule { allow: true, kind, major, minor, access: READ | WRITE };
    let of = |kind, major, minor| device_names(&rule(kind, major, minor), majors).join(" ");
    let (character, block) = (Some(DeviceKind::Character), Some(DeviceKind::Block));
    assert_eq!(of(character, Some(1), Some(3)), "/dev/char/1:3");
    assert_eq!(of(character, Some(136), None), "char-pts");
    assert_eq!(of(block, Some(8), None), "block-sd");
    assert_eq!(of(character, Some(8), None), "", "a driver of the other kind");
    assert_eq!(of(None, None, None), "char-* block-*");
    assert_eq!(of(block, None, Some(3)), "");
    assert_eq!(access(&rule(None, None, None)), "rw");
    // Rules that deny devices, and a rule that allows all, cannot be expressed.
    let taken = Rule { allow: false, ..rule(character, Some(1), Some(3)) };
    assert!(device_allow_properties(&[devices::ALLOW_ALL]).is_empty());
    assert!(device_allow_properties(&[rule(character, Some(1), None), taken]).is_empty());
}
