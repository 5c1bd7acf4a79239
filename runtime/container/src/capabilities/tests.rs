use serde_json::{Value, json};

use super::*;

fn sets(json: Value) -> Result<CapabilitySets> {
    CapabilitySets::of(&serde_json::from_value(json).expect("capabilities"))
}

const CHOWN: u64 = 1;
const KILL: u64 = 1 << 5;
const SYS_ADMIN: u64 = 1 << 21;

#[test]
fn each_set_has_its_own_bits() {
    let given = sets(json!({
        "bounding": ["CAP_CHOWN", "CAP_KILL", "CAP_SYS_ADMIN"],
        "permitted": ["CAP_CHOWN", "CAP_KILL"],
        "effective": ["CAP_CHOWN"],
        "inheritable": ["CAP_KILL", "CAP_SYS_ADMIN"],
        "ambient": ["CAP_KILL"],
    }));
    let expected = CapabilitySets {
        bounding: CHOWN | KILL | SYS_ADMIN,
        permitted: CHOWN | KILL,
        effective: CHOWN,
        inheritable: KILL | SYS_ADMIN,
        ambient: KILL,
    };
    assert_eq!(given, Ok(expected));
    assert_eq!(sets(json!({})), Ok(CapabilitySets::default()));
}

#[test]
fn sets_that_contradict_each_other_are_refused_at_their_place() {
    for (json, expected) in [
        (
            json!({"effective": ["CAP_KILL", "CAP_CHOWN"]}),
            "config.json: /process/capabilities/effective: `CAP_CHOWN`, `CAP_KILL` cannot be effective without being permitted",
        ),
        (
            json!({"inheritable": ["CAP_KILL"], "permitted": ["CAP_KILL"]}),
            "config.json: /process/capabilities/inheritable: `CAP_KILL` cannot be inheritable without being bounding",
        ),
    ] {
        assert_eq!(sets(json).expect_err("refused").to_string(), expected);
    }
}

#[test]
fn an_ambient_capability_without_its_inheritable_twin_is_idle() {
    let both = json!(["CAP_KILL"]);
    let idle = sets(json!({"bounding": both, "permitted": both, "ambient": both})).expect("sets");
    assert_eq!(idle.ineffective_ambient(), KILL);
    let real = sets(json!({"bounding": both, "permitted": both, "inheritable": both, "ambient": both}));
    assert_eq!(real.expect("sets").ineffective_ambient(), 0);
}

#[test]
fn what_cannot_be_given_is_left_out_and_reported() {
    let all = json!(["CAP_CHOWN", "CAP_SYS_ADMIN"]);
    let given = sets(json!({"bounding": all, "permitted": all, "effective": all})).expect("sets");
    let held = CHOWN | KILL;
    let less =
        CapabilitySets { bounding: CHOWN, permitted: CHOWN, effective: CHOWN, ..CapabilitySets::default() };
    assert_eq!(given.limit_to(held), less);
    assert_eq!(given.missing_from(held), ["CAP_SYS_ADMIN"]);
    assert_eq!(given.missing_from(u64::MAX), [""; 0]);
}

#[test]
fn names_numbers_and_order_agree() {
    assert!(TABLE.iter().zip(0..).all(|((_, number, _), place)| *number == place));
    for &(capability, expected, name) in TABLE {
        assert_eq!(serde_json::to_value(capability).expect("text"), json!(name));
        assert_eq!(number(capability), expected);
    }
    assert_eq!(names(u64::MAX).len(), 41);
    assert_eq!(names(SYS_ADMIN | CHOWN), ["CAP_CHOWN", "CAP_SYS_ADMIN"]);
}

#[test]
fn the_kernel_of_this_host_knows_a_run_of_them() {
    let known = kernel_capabilities().expect("/proc");
    assert!(known.trailing_ones() > 30 && known.leading_zeros() + known.trailing_ones() == 64, "{known:#x}");
}
