//! Devices: processes in the group may open only the devices on the list, regardless of existing nodes.

use serde_json::{Value, json};

use super::make;

/// Opens each device in a group with those rules; returns the letters of refused accesses, in the order of the list.
fn check(name: &str, rules: &Value, opened: &[(&str, &str)]) -> Option<Vec<String>> {
    let trial = make(name, &json!({"devices": rules}))?;
    let mut refused = vec![];
    for (how, device) in opened {
        let script = match *how {
            "r" => format!("exec 3<{device}"),
            "w" => format!("exec 3>{device}"),
            "rw" => format!("exec 3<>{device}"),
            "m" => format!("f=/tmp/jobc-node-$$; mknod $f {device} && rm $f"),
            _ => unreachable!("an access of a test"),
        };
        let (code, output) = trial.run(&script);
        if code != 0 {
            let because = if output.contains("not permitted") { "" } else { output.as_str() };
            refused.push(format!("{how} {device}{because}"));
        }
    }
    Some(refused)
}

#[test]
fn only_the_usual_devices_are_open_to_a_container() {
    let tried =
        [("rw", "/dev/null"), ("r", "/dev/urandom"), ("r", "/dev/kmsg"), ("m", "c 1 11"), ("m", "b 7 99")];
    for (name, rules) in [("none", json!([])), ("deny", json!([{"allow": false, "access": "rwm"}]))] {
        let Some(refused) = check(name, &rules, &tried) else { return };
        assert_eq!(refused, ["r /dev/kmsg"]);
    }
}

#[test]
fn what_the_list_adds_is_open_for_just_that_access() {
    let rules = json!([
        {"allow": false, "access": "rwm"},
        {"allow": true, "type": "c", "major": 1, "minor": 11, "access": "r"},
    ]);
    let tried = [("r", "/dev/kmsg"), ("w", "/dev/kmsg"), ("rw", "/dev/kmsg")];
    let Some(refused) = check("kmsg", &rules, &tried) else { return };
    assert_eq!(refused, ["w /dev/kmsg", "rw /dev/kmsg"]);
}

#[test]
fn everything_is_open_where_the_list_says_so_but_for_what_comes_after() {
    let tried = [("r", "/dev/kmsg"), ("w", "/dev/kmsg"), ("rw", "/dev/full")];
    let all = json!({"allow": true, "access": "rwm"});
    let Some(refused) = check("all", &json!([all]), &tried) else { return };
    assert_eq!(refused, Vec::<String>::new());
    let without = json!({"allow": false, "type": "c", "major": 1, "minor": 11, "access": "w"});
    assert_eq!(check("but", &json!([all, without]), &tried), Some(vec!["w /dev/kmsg".to_owned()]));
}
