//! The script of `jobc doctor --fix`.

use super::*;

/// The script of `jobc doctor --fix` on a host.
fn setup(differs: &str) -> String {
    report(differs).setup()
}

#[test]
fn a_host_is_set_up_by_a_script() {
    let script = setup(
        "user 1500 ada
        there /run/systemd/system
        /proc/sys/kernel/apparmor_restrict_unprivileged_userns = 1
        refuse user = operation not permitted (EPERM)
        refuse user,mount = mount: operation not permitted (EPERM)
        refuse limits=memory+pids+cpu+cpuset = the cgroup `/own` does not have the controllers `cpuset`",
    );
    let commands: Vec<&str> = script.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(commands.iter().all(|line| !line.contains("as root") && !line.contains("then")), "{script}");
    assert!(commands.iter().any(|line| line.starts_with("usermod --add-subuids 100000-165535")), "{script}");
    assert!(
        commands.iter().any(|line| line.contains("apparmor_restrict_unprivileged_userns = 0")),
        "{script}"
    );
    assert!(
        commands.iter().any(|line| line.ends_with("delegate.conf && systemctl daemon-reload")),
        "{script}"
    );
    assert_eq!(commands.len(), commands.iter().collect::<std::collections::BTreeSet<_>>().len(), "{script}");
    assert!(script.starts_with("# sets this host up for ada"), "{script}");
    assert!(script.contains("\n# then log in again\n"), "{script}");
}

#[test]
fn a_host_that_has_all_needs_no_command() {
    let script = setup(ROOT);
    assert_eq!(script.lines().filter(|line| !line.starts_with('#')).count(), 0, "{script}");
    assert!(script.starts_with("# no command of root's is missing for root"), "{script}");
}

#[test]
fn root_runs_no_other_command_that_a_process_of_the_user_prints() {
    use setup::is_setup_command;
    let host = FakeHost::new(&format!("user 1500 ada\n{DEFAULT_HOST}"));
    for (command, is_known) in [
        ("usermod --add-subuids 100000-165535 --add-subgids 100000-165535 ada", true),
        ("chmod u+s /usr/bin/newuidmap", true),
        ("modprobe overlay", true),
        ("usermod --add-subuids 0-165535 --add-subgids 0-165535 ada", false),
        ("usermod --add-subuids 100000-165535 --add-subgids 100000-165535 eve", false),
        ("chmod u+s /usr/bin/python3", false),
        ("modprobe overlay; cp /bin/sh /tmp/sh", false),
        ("", false),
    ] {
        assert_eq!(is_setup_command(&host, command, "ada"), is_known, "{command}");
    }
}
