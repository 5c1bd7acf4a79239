use super::*;

#[test]
fn refused_features_are_skipped() {
    let without = |refused: &[&str]| {
        let run = |steps: &str| {
            let step = steps.split(',').find(|step| refused.contains(step));
            step.map_or(Ok(()), |step| Err(format!("{step}: operation not permitted (EPERM)")))
        };
        Restrictions::probe(&run)
    };
    assert_eq!(without(&[]), Ok(Restrictions::default()));
    let proc = Restrictions { no_proc: true, ..Restrictions::default() };
    assert_eq!(without(&["proc"]), Ok(proc));
    let both = Restrictions { no_proc: true, no_sysfs: true, no_host_name: true };
    assert_eq!(without(&["proc", "sysfs", "host-name"]), Ok(both));
    assert!(without(&["tmpfs"]).is_err());
}

#[test]
fn a_refusal_names_the_engine_and_its_options() {
    let text = |engine, why: &str| {
        let error = refusal(engine, why);
        format!("{}\n  {}\n", error.message(), error.advice().unwrap_or_default())
    };
    let cases = [
        text(Some(Engine::Docker), "user: operation not permitted (EPERM)"),
        text(Some(Engine::Podman), "tmpfs: permission denied (EACCES)"),
        text(Some(Engine::Kubernetes), "user: no space left on device (ENOSPC)"),
        text(Some(Engine::DevContainer), "pid: operation not permitted (EPERM)"),
        text(None, "user: operation not permitted (EPERM)"),
        text(Some(Engine::Podman), "user: /proc/self/uid_map: operation not permitted (EPERM)"),
    ];
    insta::assert_snapshot!(cases.concat());
}

#[test]
fn masks_are_mounts_below_proc() {
    let line = |place: &str| format!("103 2978 0:46 / {place} ro,nosuid - proc proc rw\n");
    assert!(!has_masks(&(line("/proc") + &line("/sys/firmware") + &line("/proc/sys/fs/binfmt_misc"))));
    assert!(has_masks(&(line("/proc") + &line("/proc/keys"))));
    assert!(!has_masks(""));
}
