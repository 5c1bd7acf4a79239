//! `jobc run` with every kind of root, as root and as unprivileged users: what is visible, and what is left behind.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};

use crate::directory::{Directory, Run, binary, command};

/// A user of the host who starts containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct User {
    uid: u32,
    /// Whether /etc/subuid and /etc/subgid grant further ids.
    ranged: bool,
}

/// All kinds of users: root, one without further ids, one with some. Missing ones are skipped by name.
fn users() -> Vec<User> {
    let own = rustix::process::geteuid().as_raw();
    if own != 0 {
        jobc_test_skip::skip("root");
        return vec![User { uid: own, ranged: ranges().contains(&own) }];
    }
    let mut users = vec![User { uid: 0, ranged: true }];
    let unshare =
        command("unshare").args(["--user", "--map-root-user", "true"]).uid(65534).gid(65534).status();
    if !unshare.is_ok_and(|status| status.success()) {
        jobc_test_skip::skip("user namespaces of unprivileged users");
        return users;
    }
    users.push(User { uid: 65534, ranged: false });
    match ranges().first() {
        Some(&uid) => users.push(User { uid, ranged: true }),
        None => jobc_test_skip::skip("a user with ids in /etc/subuid and /etc/subgid, and newuidmap"),
    }
    users
}

/// The users that both files grant ids to.
fn ranges() -> Vec<u32> {
    let granted = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let (users, groups) = (granted("/etc/subuid"), granted("/etc/subgid"));
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let accounts = passwd.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let line = format!("{}:", fields[0]);
        let both = [&users, &groups].iter().all(|file| file.lines().any(|entry| entry.starts_with(&line)));
        fields.get(2)?.parse().ok().filter(|uid| both && *uid != 0)
    });
    let helpers = ["newuidmap", "newgidmap"].iter().all(|name| Path::new("/usr/bin").join(name).exists());
    accounts.filter(|_| helpers).collect()
}

/// A bundle that runs a line of sh, and a place for the user's containers.
struct Bundle {
    directory: Directory,
    user: User,
    id: String,
}

impl Bundle {
    fn new(user: User, name: &str, line: &str) -> Self {
        let directory = Directory::new();
        let capabilities = r#"["CAP_CHOWN", "CAP_FOWNER", "CAP_DAC_OVERRIDE"]"#;
        let line = line.replace('\\', "\\\\").replace('"', "\\\"");
        directory.write(
            "config.json",
            &format!(
                r#"{{
  "ociVersion": "1.1.0",
  "root": {{"path": "rootfs"}},
  "process": {{
    "cwd": "/", "user": {{"uid": 0, "gid": 0}}, "args": ["/bin/sh", "-c", "{line}"],
    "env": ["PATH=/usr/bin:/bin"], "noNewPrivileges": true,
    "capabilities": {{"bounding": {capabilities}, "effective": {capabilities}, "permitted": {capabilities}}}
  }},
  "mounts": [{{"destination": "/proc", "type": "proc"}}],
  "linux": {{"namespaces": [{{"type": "mount"}}, {{"type": "pid"}}, {{"type": "ipc"}}, {{"type": "uts"}}]}}
}}"#
            ),
        );
        fs::create_dir(directory.path().join("state")).unwrap();
        fs::set_permissions(directory.path().join("state"), fs::Permissions::from_mode(0o700)).unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        if rustix::process::geteuid().is_root() {
            chown(directory.path().join("state"), Some(user.uid), Some(user.uid)).unwrap();
            // Other users may be unable to enter the build directory.
            fs::copy(binary(), directory.path().join("jobc")).unwrap();
        }
        Self { directory, user, id: format!("{name}-{}-{}", std::process::id(), user.uid) }
    }

    /// Runs it; sees that nothing is left of the container.
    fn run(&self, options: &[&str]) -> Run {
        let copy = self.directory.path().join("jobc");
        let mut command = self.directory.command(if copy.exists() { copy.as_str() } else { binary() });
        if rustix::process::geteuid().is_root() && self.user.uid != 0 {
            command.uid(self.user.uid).gid(self.user.uid);
        }
        command.env("XDG_RUNTIME_DIR", self.directory.path().join("state")).env("HOME", "/");
        command.args(["run", "--allow-unenforced", "--id", &self.id]).args(options).arg(".");
        let run = Run::of(&mut command);
        let below =
            if self.user.uid == 0 { "/run/jobc".into() } else { self.directory.path().join("state/jobc") };
        assert!(!below.join("containers").join(&self.id).exists(), "the container is gone: {}", run.err);
        run
    }

    /// Creates an archive of a static shell, its tools, and the files of a script.
    fn archive(&self, script: &str) -> bool {
        let Some(busybox) = busybox() else {
            jobc_test_skip::skip("busybox-static");
            return false;
        };
        let line = format!(
            "mkdir -p tree/bin tree/etc && cd tree && cp {} bin/busybox && \
             for tool in sh ls cat chown mkdir touch; do ln -s busybox bin/$tool; done && {script} && \
             tar -czf ../rootfs.tar.gz .",
            busybox.display()
        );
        self.directory
            .bash(&format!("umask 022; {line}; code=$?; cd ..; chmod -R u+w tree; rm -r tree; exit $code"))
            .exits(0);
        true
    }
}

fn busybox() -> Option<PathBuf> {
    let path =
        ["/bin/busybox", "/usr/bin/busybox"].map(PathBuf::from).into_iter().find(|path| path.exists())?;
    let bytes = fs::read(&path).ok()?;
    // A program without an interpreter has no segment that names one.
    (!bytes.windows(7).any(|window| window == b"/ld-lin")).then_some(path)
}

#[test]
fn the_hosts_files_are_seen_and_never_changed() {
    for user in users() {
        let name = format!("jobc-test-{}-{}", std::process::id(), user.uid);
        let line =
            format!("echo seen > /usr/{name}; cat /usr/{name}; echo /etc/os-release; id -u; echo $HOME");
        let run = Bundle::new(user, "host", &line).run(&["--root", "host"]).exits(0);
        assert_eq!(run.out, "seen\n/etc/os-release\n0\n/root\n", "{user:?}");
        assert!(!Path::new("/usr").join(&name).exists(), "{user:?}");
    }
}

#[test]
fn an_archive_is_unpacked_for_one_container_and_removed_with_it() {
    for user in users() {
        let other = if user.ranged { "5" } else { "0" };
        let line = format!(
            "cat /etc/word; echo $HOME; ls -d /closed; mkdir -p /made/in && touch /made/in/file && \
             chown -R {other} /made; echo made"
        );
        let bundle = Bundle::new(user, "archive", &line);
        let script = "echo word > etc/word; echo root:x:0:0::/its/home:/bin/sh > etc/passwd; mkdir -p closed/in; chmod 500 closed";
        if !bundle.archive(script) {
            return;
        }
        let run = bundle.run(&[]).exits(0);
        assert_eq!(run.out, "word\n/its/home\n/closed\nmade\n", "{user:?}");
    }
}

#[test]
fn an_archive_with_its_root_in_a_directory_is_that_root() {
    for user in users() {
        let bundle = Bundle::new(user, "top", "cat /etc/word");
        if !bundle.archive("echo word > etc/word") {
            return;
        }
        let pack = "mkdir rootfs.d && cd rootfs.d && mkdir rootfs && tar -C rootfs -xzf ../rootfs.tar.gz && \
                    tar -czf ../rootfs.tar.gz rootfs && tar -cf ../other.tar rootfs && chmod -R a+rX .";
        bundle.directory.bash(&format!("umask 022; {pack}")).exits(0);
        let note = "is in its directory `rootfs`, which is used as the root file system";
        // The directory belongs to root.
        let all = [&[][..], &["--root", "other.tar"], &["--root", "rootfs.d"]];
        for options in &all[..if user.uid == 0 { 3 } else { 2 }] {
            let run = bundle.run(options).exits(0);
            assert_eq!(run.out, "word\n", "{user:?} {options:?}");
            run.says(note);
        }
    }
}

#[test]
fn an_import_reads_stdin() {
    let directory = Directory::new();
    directory.bash("mkdir -p rootfs/bin && echo > rootfs/bin/sh && tar -czf rootfs.tar.gz rootfs").exits(0);
    let line = "\"$JOBC\" image --image-root images import - --tag base:1 < rootfs.tar.gz";
    let run = directory.bash(line).exits(0);
    assert!(run.out.starts_with("base:1 "), "{}", run.out);
    run.says("all of `-` is in its directory `rootfs`");
    directory.jobc(&["image", "--image-root", "images", "verify"]).exits(0);
    // Nothing of the input is left behind, and the same input is the same image.
    assert_eq!(fs::read_dir(directory.path().join("images/partial")).unwrap().count(), 0);
    let first = directory.jobc(&["image", "--image-root", "images", "ls", "--format", "json"]).exits(0).out;
    directory.bash(line).exits(0);
    let second = directory.jobc(&["image", "--image-root", "images", "ls", "--format", "json"]).exits(0).out;
    assert_eq!(first, second);
    let damaged = "head -c 40 rootfs.tar.gz | \"$JOBC\" image --image-root images import - --tag a:1";
    directory.bash(damaged).exits(2).says("`-` is incomplete or damaged");
}

#[test]
fn an_unusable_root_leaves_nothing_behind() {
    for user in users() {
        let bundle = Bundle::new(user, "absent", "true");
        bundle.run(&[]).exits(125).says("/root/path: the root `rootfs` does not exist");
        bundle.run(&["--root", "/"]).exits(125).says("the host's own root would be writable");
        bundle.directory.write("rootfs.tar", "this is no archive at all");
        bundle.run(&[]).exits(125).says("rootfs.tar` is truncated");
        if bundle.archive("true") {
            fs::remove_file(bundle.directory.path().join("rootfs.tar")).unwrap();
            bundle.directory.bash("truncate -s -100 rootfs.tar.gz").exits(0);
            bundle.run(&[]).exits(125).says("rootfs.tar.gz` is truncated");
        }
    }
}

#[test]
fn a_bundle_is_checked_before_anything_is_made() {
    let user = users()[0];
    let bundle = Bundle::new(user, "checked", "true");
    let text = bundle.directory.read("config.json");
    bundle
        .directory
        .write("config.json", &text.replace("\"/proc\", \"type\"", "\"proc\", \"typ\": \"\", \"type\""));
    bundle.run(&["--root", "host"]).exits(125).says("config.json: /mounts/0/typ: unknown property");
    bundle.directory.write(
        "config.json",
        &text.replace("\"/proc\"", "\"proc\"").replace("\"cwd\": \"/\"", "\"cwd\": \"\""),
    );
    let run = bundle
        .run(&["--root", "host"])
        .exits(125)
        .says("config.json: /process/cwd: `` is not an absolute path");
    run.says("then see also `/mounts/0/destination`");
}
