//! Cgroups of the running kernel: what is written is read back, and limits are tried.
//!
//! The cases hold for every arrangement of cgroups. They run on this host, and `other_layouts.rs` runs them again under
//! separate kernels with version 2, version 1, and both. Without the right to create groups they are skipped.
#![forbid(unsafe_code)]

mod delegated;
mod devices;
mod lifecycle;
mod limits;
mod other_layouts;
mod update;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use jobc_container::cgroup::{Cgroup, CgroupRequest, Layout, UnenforcedLimit, UnifiedHierarchy};
use jobc_sys::error::{Error, Result};
use oci_spec::runtime::LinuxResources;
use serde_json::Value;

/// A test's own group, which is removed with its processes.
struct TestGroup {
    cgroup: Cgroup,
    unenforced: Vec<UnenforcedLimit>,
    layout: Layout,
}

/// The layout here, or nothing where this process may not make groups with limits.
fn layout() -> Option<Layout> {
    let layout = Layout::detect().expect("the layout is read");
    let v1 = layout.hierarchies.iter().map(|hierarchy| &hierarchy.mount);
    let mut mounts = v1.chain(layout.unified.iter().map(|unified| &unified.mount)).peekable();
    let writable = |mount: &PathBuf| rustix::fs::access(mount, rustix::fs::Access::WRITE_OK).is_ok();
    let given = mounts.peek().is_some() && mounts.all(writable);
    // The root of a container's own namespace looks like the root of the tree, and holds the container's processes.
    let passes_on = |unified: &UnifiedHierarchy| !unified.mount.join("cgroup.type").exists();
    if rustix::process::geteuid().is_root() && given && layout.unified.iter().all(passes_on) {
        return Some(layout);
    }
    jobc_test_skip::skip("root and writable cgroups");
    None
}

/// The path of a group that no other test, and no other run, has.
fn path(name: &str) -> String {
    format!("/jobc-test-{}-{name}/main-0", std::process::id())
}

fn resources(json: &Value) -> LinuxResources {
    serde_json::from_value(json.clone()).expect("resources of the specification")
}

/// Makes a group with limits; nothing where the test must be skipped.
fn try_make(name: &str, json: &Value, allow_unenforced: bool) -> Option<Result<TestGroup>> {
    let layout = layout()?;
    let (resources, path) = (resources(json), path(name));
    let request = CgroupRequest {
        id: name,
        path: Some(&path),
        resources: Some(&resources),
        allow_unenforced,
        ..CgroupRequest::default()
    };
    Some(Cgroup::create(&layout, &request).map(|(cgroup, unenforced)| TestGroup {
        cgroup,
        unenforced,
        layout,
    }))
}

fn make(name: &str, json: &Value) -> Option<TestGroup> {
    let trial = try_make(name, json, false)?.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(trial.unenforced, []);
    Some(trial)
}

fn refusal(name: &str, json: &Value) -> Option<Error> {
    Some(try_make(name, json, false)?.err().expect("this cannot be enforced"))
}

impl TestGroup {
    /// The content of the first of the files that is in one of the groups.
    fn read(&self, files: &[&str]) -> String {
        self.find(files).unwrap_or_else(|| panic!("none of {files:?} is in {:?}", self.cgroup.record()))
    }

    fn find(&self, files: &[&str]) -> Option<String> {
        let directories: Vec<&Path> = self.cgroup.directories().collect();
        files
            .iter()
            .flat_map(|file| directories.iter().map(move |directory| directory.join(file)))
            .find_map(|path| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned()))
    }

    /// Starts a shell script that is in the group from its first line.
    fn start(&self, script: &str) -> Child {
        let mut child = Command::new("sh")
            .args(["-c", &format!("read -r _\n{script}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a shell starts");
        for directory in self.cgroup.directories() {
            std::fs::write(directory.join("cgroup.procs"), child.id().to_string())
                .expect("the shell is moved");
        }
        child.stdin.take().expect("it is piped").write_all(b"go\n").expect("the shell waits");
        child
    }

    /// Runs a shell script in the group: its exit code, or minus the signal, and its output.
    fn run(&self, script: &str) -> (i32, String) {
        let done = self.start(script).wait_with_output().expect("the shell ends");
        let code = done.status.code().unwrap_or_else(|| {
            -std::os::unix::process::ExitStatusExt::signal(&done.status)
                .expect("it ended by a code or a signal")
        });
        let text =
            String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
        (code, text.trim().to_owned())
    }
}

impl Drop for TestGroup {
    fn drop(&mut self) {
        let done = self.cgroup.kill().and_then(|()| self.cgroup.remove());
        // A group that was created instead of an earlier one did not create its parent directory.
        for directory in self.cgroup.directories() {
            let _ = directory.parent().map(std::fs::remove_dir);
        }
        if !std::thread::panicking() {
            done.unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(self.cgroup.directories().filter(|directory| directory.exists()).count(), 0);
        }
    }
}
