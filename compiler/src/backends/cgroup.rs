//! Backend `cgroup`: the limits of each task as files of cgroup v2, files of cgroup v1, and systemd properties.
//!
//! `<role>-<i>/v2/<file>`, `<role>-<i>/v1/<controller>/<file>` and a drop-in below `<role>-<i>/systemd/`. The numbers
//! are those of the bundle, from `backend::limits`; docs/reference/cgroup.md has the table of fields and files.

mod systemd;
#[cfg(test)]
mod tests;
mod v1;
mod v2;

use camino::Utf8PathBuf;
use jobc_schema::plan::{JobPlan, RolePlan};
use jobc_schema::{BackendName, Pointer};

use crate::backend::limits::{HugePageLimit, Limits, check_settings};
use crate::backend::tasks::{Task, tasks};
use crate::backend::{Backend, Capability, Content, Context, File, FilePart, Origin, PartSource, Support};
use crate::diagnostic::Sink;

/// Writes the limits of each task in the formats of the kernel and systemd.
#[derive(Debug)]
pub struct CgroupBackend;

impl Backend for CgroupBackend {
    fn name(&self) -> BackendName {
        BackendName::Cgroup
    }

    fn about(&self) -> &'static str {
        "cgroup v2 and v1 files and systemd properties, one set a task"
    }

    /// Cgroups only express limits; the executor of the tasks handles the rest of a job.
    fn support(&self, capability: Capability, _job: &JobPlan) -> Support {
        use Capability as C;
        match capability {
            C::NoCpu | C::NoMemory | C::Pids | C::Hugepages | C::DiskIo | C::RoleMatrix => Support::Full,
            _ => Support::Plan,
        }
    }

    fn lower(&self, job: &JobPlan, context: &Context<'_>, sink: &mut Sink) -> Vec<File> {
        checked(job, context, sink).into_iter().flat_map(|task| task_files(job, task)).collect()
    }

    fn check(&self, job: &JobPlan, context: &Context<'_>, sink: &mut Sink) {
        checked(job, context, sink);
    }
}

/// The tasks that files are written for; none where something is wrong.
fn checked<'a>(job: &'a JobPlan, context: &Context<'_>, sink: &mut Sink) -> Vec<Task<'a>> {
    let before = sink.error_count();
    check_settings(job, sink);
    let tasks = tasks(job, context, sink);
    if sink.error_count() > before { vec![] } else { tasks }
}

fn task_files(job: &JobPlan, task: Task<'_>) -> Vec<File> {
    let limits = Limits::of(job, task.role);
    let directory = Utf8PathBuf::from(task.name());
    let settings = |version: &str, list: Vec<Setting>| {
        let directory = directory.join(version);
        list.into_iter().map(|setting| setting.file(&directory, task.role)).collect::<Vec<_>>()
    };
    let mut files = settings("v2", v2::files(&limits));
    files.extend(settings("v1", v1::files(&limits)));
    let unit = format!("systemd/jobc-{}-{}.scope.d/50-jobc.conf", job.name, task.name());
    let mut drop_in = File::new(directory.join(unit), Content::Text(systemd::drop_in(&limits)));
    drop_in
        .origins
        .push(Origin { part: FilePart::Line(1), from: PartSource::Spec(task.role.at().key("resources")) });
    files.push(drop_in);
    files
}

/// The content of one kernel file, and the setting that requests it.
struct Setting {
    path: String,
    text: String,
    from: SettingOrigin,
}

/// The origin of a setting.
enum SettingOrigin {
    /// A field of the role's resources.
    Resource(Vec<String>),
    /// A field of the target's `cgroup` settings.
    Target(&'static str),
    /// A default for every task.
    Usual,
}

impl Setting {
    fn of(resource: &str, path: &str, value: &impl ToString) -> Self {
        let from = SettingOrigin::Resource(vec![resource.to_owned()]);
        Self { path: path.to_owned(), text: value.to_string(), from }
    }

    fn of_page(page: &HugePageLimit, path: String) -> Self {
        let from = SettingOrigin::Resource(vec!["hugepages".to_owned(), page.written.clone()]);
        Self { path, text: page.bytes.to_string(), from }
    }

    fn of_target(setting: &'static str, path: &str, value: &impl ToString) -> Self {
        Self { path: path.to_owned(), text: value.to_string(), from: SettingOrigin::Target(setting) }
    }

    fn default_setting(path: &str, text: String) -> Self {
        Self { path: path.to_owned(), text, from: SettingOrigin::Usual }
    }

    fn file(self, directory: &Utf8PathBuf, role: &RolePlan) -> File {
        let from = match self.from {
            SettingOrigin::Resource(keys) => {
                PartSource::Spec(role.at().key("resources").keys(keys.iter().map(String::as_str)))
            }
            SettingOrigin::Target(key) => PartSource::Target(Pointer::ROOT.keys(["cgroup", key])),
            SettingOrigin::Usual => PartSource::Default("the devices of every container"),
        };
        let mut file = File::new(directory.join(self.path), Content::Text(self.text + "\n"));
        file.origins.push(Origin { part: FilePart::Line(1), from });
        file
    }
}
