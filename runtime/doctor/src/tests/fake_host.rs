//! A simulated host, described in lines of text.

use rustix::fs::Access;

use super::super::host::{Entry, Refusal, RunAs, User};
use super::super::*;
use jobc_container::cgroup::Controller;
use jobc_gpu as gpu;
use jobc_gpu::Inventory;
use jobc_sys::syscall::available::Syscall;

/// A host described by a text; everything it does not name is missing, and every test it does not refuse succeeds.
///
/// ```text
/// user 1000 ada                    `-` for one without a name
/// /etc/os-release = ID=debian\nVERSION_ID=12
/// write /dev/fuse                  may be read and written; `read`, `there`, `set-uid` are the other rights
/// program runc = /usr/sbin/runc: runc version 1.1.5
/// refuse net = operation not permitted (EPERM)        a step of this user's tries; `refuse nobody:net` of others'
/// refuse job:doctor-run = it failed                    a job of the doctor's, by its name
/// scope memory pids                what a scope of this user's systemd would have; without the line there is none
/// lack clone3
/// hang /proc/swaps                 a file that is never read to its end
/// variable HOME = /home/ada
/// ```
pub(super) struct FakeHost(Vec<String>);

impl FakeHost {
    pub(super) fn new(text: &str) -> Self {
        Self(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect())
    }

    /// The values of all lines that begin with a word.
    fn all<'a>(&'a self, word: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter_map(move |line| line.strip_prefix(word)?.strip_prefix(' '))
    }

    /// The text after the equals sign in the line of a word and a name.
    fn value<'a>(&'a self, word: &'a str, name: &str) -> Option<&'a str> {
        self.all(word).find_map(|rest| rest.split_once(" = ").filter(|(key, _)| *key == name)).map(|(_, v)| v)
    }
}

impl Host for FakeHost {
    fn user(&self) -> User {
        let user = self.all("user").next().expect("every host has a user");
        let (uid, name) = user.split_once(' ').expect("a number and a name");
        let uid = uid.parse().unwrap();
        User { uid, gid: uid, name: Some(name.to_owned()).filter(|name| name != "-") }
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.value("variable", name).map(str::to_owned)
    }

    fn read(&self, path: &str) -> Option<String> {
        if self.all("hang").any(|hanging| hanging == path) {
            std::thread::sleep(Duration::from_secs(30));
        }
        let files = self.0.iter().filter_map(|line| line.split_once(" = "));
        files
            .into_iter()
            .find(|(name, _)| *name == path)
            .map(|(_, text)| text.replace("\\n", "\n").replace("\\t", "\t"))
    }

    fn names(&self, directory: &str) -> Vec<String> {
        let paths = self.0.iter().map(|line| line.split(" = ").next().unwrap().rsplit(' ').next().unwrap());
        let below =
            paths.filter_map(|path| path.strip_prefix(directory)?.strip_prefix('/')?.split('/').next());
        let mut names: Vec<String> = below.map(str::to_owned).collect();
        names.sort();
        names.dedup();
        names
    }

    fn entry(&self, path: &str) -> Option<Entry> {
        let is = |word: &str| self.all(word).any(|rest| rest == path);
        let access = match () {
            () if is("write") => Access::READ_OK | Access::WRITE_OK,
            () if is("read") || is("set-uid") || self.read(path).is_some() => Access::READ_OK,
            () if is("there") => Access::empty(),
            () => return None,
        };
        Some(Entry { is_directory: true, access, elevates_privileges: is("set-uid") })
    }

    fn driver_host(&self) -> Box<dyn Host> {
        Box::new(Self(self.0.clone()))
    }

    /// The content of the files in the description.
    fn gpus(&self) -> Inventory {
        let tree = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = tree.path().join(path.trim_start_matches('/'));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("/proc/devices", "");
        for path in ["write", "read", "there"].iter().flat_map(|word| self.all(word)) {
            write(path, "");
        }
        for (path, _) in self
            .0
            .iter()
            .filter_map(|line| line.split_once(" = "))
            .filter(|(path, _)| path.starts_with("/proc/driver") || path.starts_with("/sys"))
        {
            write(path, &self.read(path).unwrap());
        }
        let mut machine = gpu::Host::at(tree.path());
        machine.nvml.library = Some("".into());
        Inventory::discover(&machine)
    }

    fn program(&self, name: &str) -> Option<String> {
        Some(self.value("program", name)?.split(':').next().unwrap().to_owned())
    }

    fn run_program(&self, program: &str, _: &[&str]) -> Result<String, String> {
        let says = self
            .all("program")
            .find_map(|rest| rest.split_once(" = ")?.1.strip_prefix(program)?.strip_prefix(": "));
        says.map(str::to_owned).ok_or_else(|| "timed out after 3 s".to_owned())
    }

    fn probe(&self, steps: &str, as_whom: RunAs) -> Result<String, String> {
        for step in steps.split(',') {
            let name = if as_whom == RunAs::Nobody { format!("nobody:{step}") } else { step.to_owned() };
            if let Some(why) = self.value("refuse", &name) {
                return Err(format!("{step}: {}", why.replace("\\n", "\n")));
            }
        }
        if steps.starts_with("limits=") {
            return Ok("v2 /sys/fs/cgroup/jobc/doctor\n".to_owned());
        }
        let place = steps.strip_prefix("place=");
        let facts =
            place.map(|path| self.value("place", path).unwrap_or("/ true 68719476736").replace(' ', "\n"));
        Ok(facts.unwrap_or_default())
    }

    fn scope(&self) -> Result<Vec<Controller>, Refusal> {
        let list =
            self.all("scope").next().map(|list| list.split(' ').filter_map(Controller::from_name).collect());
        list.ok_or_else(|| Refusal {
            why: "cannot reach this user's systemd".to_owned(),
            fix: Some("log in by ssh".to_owned()),
        })
    }

    fn needs_user_namespace(&self) -> bool {
        let administrator = super::super::capabilities::effective(self).is_none_or(|set| set & 1 << 21 != 0);
        !self.user().is_root() || !administrator
    }

    fn run_job(&self, job: &str) -> Result<(), Refusal> {
        let name = job.lines().find_map(|line| line.strip_prefix("name: ")).expect("a name");
        match self.value("refuse", &format!("job:{name}")) {
            Some(why) => Err(Refusal { why: why.to_owned(), fix: Some("change this".to_owned()) }),
            None => Ok(()),
        }
    }

    fn has_syscall(&self, call: Syscall) -> bool {
        let name = Syscall::TABLE.iter().find(|row| row.0 == call).unwrap().1;
        !self.all("lack").any(|lacking| lacking == name)
    }
}
