use serde_json::{Value, json};

use super::*;
use crate::child::report::Report;
use jobc_sys::syscall::record::RecordingKernel;

fn process(fields: &Value) -> Process {
    let mut process = json!({"cwd": "/", "user": {"uid": 0, "gid": 0}});
    process.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
    serde_json::from_value(process).expect("a process")
}

/// The fields of a process, and what is written for them with every module and with none.
fn check(fields: &Value) -> String {
    let process = process(fields);
    let output = |kept: bool| match Label::of(&process, |_| kept) {
        Ok(None) => "nothing".to_owned(),
        Ok(Some(label)) => format!("{:?} to {:?}", label.text, label.file),
        Err(error) => format!("{error}\n          {}", error.advice().unwrap_or_default()),
    };
    format!("{fields}\n    with:    {}\n    without: {}\n", output(true), output(false))
}

#[test]
fn what_is_written_for_the_fields_of_a_process() {
    let cases = [
        json!({}),
        json!({"apparmorProfile": "", "selinuxLabel": ""}),
        json!({"apparmorProfile": "containers-default-0.50.1"}),
        json!({"apparmorProfile": "unconfined"}),
        json!({"selinuxLabel": "system_u:system_r:container_t:s0:c1,c2"}),
        json!({"apparmorProfile": "a\0b"}),
    ];
    insta::assert_snapshot!(cases.iter().map(check).collect::<String>());
    let long = process(&json!({"selinuxLabel": "x".repeat(MAX_ATTRIBUTE_LEN)}));
    let error = Label::of(&long, |_| true).expect_err("too long");
    assert_eq!(error.pointer(), Some("/process/selinuxLabel"));
}

#[test]
fn mounts_that_take_a_label_get_it() {
    let label = c"system_u:object_r:container_file_t:s0:c1,c2".to_owned();
    let added = |kind: &CStr, given: &[&CStr]| {
        let mut parameters: Vec<_> = given.iter().map(|key| ((*key).to_owned(), None)).collect();
        add(Some(&label), kind, &mut parameters);
        parameters.get(given.len()).map(|(key, value)| {
            assert_eq!(value.as_ref(), Some(&label));
            key.clone()
        })
    };
    assert_eq!(added(c"tmpfs", &[c"size"]), Some(c"context".to_owned()));
    assert_eq!(added(c"mqueue", &[]), Some(c"rootcontext".to_owned()));
    for (kind, given) in
        [(c"proc", [].as_slice()), (c"sysfs", &[]), (c"cgroup2", &[]), (c"tmpfs", &[c"fscontext"])]
    {
        assert_eq!(added(kind, given), None, "{kind:?}");
    }
    let linux: Linux =
        serde_json::from_value(json!({"mountLabel": label.to_str().expect("text")})).expect("linux");
    assert_eq!(mount_label(Some(&linux)).expect("a label"), Some(label));
    assert_eq!(mount_label(None).expect("nothing is asked for"), None);
}

#[test]
fn the_attributes_are_a_mount_of_their_own_whatever_is_refused() {
    let step = Attributes { at: 9, module: "AppArmor", is_own_mount: true };
    let carry_out = |kernel: &RecordingKernel| step.carry_out(&mut Child::new(kernel, &Report::new(), false));
    let kernel = RecordingKernel::default();
    carry_out(&kernel).expect("carried out");
    insta::assert_snapshot!(kernel.lines().join("\n"));
    for call in 0..5 {
        assert_eq!(
            carry_out(&RecordingKernel::default().failing(call, Errno::IO)),
            Err(Errno::IO),
            "call {call}"
        );
    }
}
