//! What lints look at: the job as written, the plan, and each role's command already split.

use jobc_schema::image::{Image, ImageBlock};
use jobc_schema::plan::{EnvPlan, GpuAmount, GpuPlan, ImagePlan, ImageSource, JobPlan, MemberPlan, RolePlan};
use jobc_schema::role::{Needs, Role};
use jobc_schema::{BackendName, Job, Pointer};

use super::command::{self, Command};
use crate::files::Files;
use crate::resolve::variables_by_name;

/// The job as written and as resolved.
pub(crate) struct View<'a> {
    /// As written.
    pub(crate) job: &'a Job,
    /// As resolved for one target.
    pub(crate) plan: &'a JobPlan,
    /// The files beside the job file.
    pub(crate) files: &'a dyn Files,
    /// The roles, in the order of the file.
    pub(crate) roles: Vec<RoleView<'a>>,
}

/// A role as written and as resolved.
pub(crate) struct RoleView<'a> {
    /// As written.
    pub(crate) spec: Option<&'a Role>,
    /// As resolved.
    pub(crate) plan: &'a RolePlan,
    /// Its part in the rendezvous.
    pub(crate) member: Option<&'a MemberPlan>,
    /// The programs its command starts.
    pub(crate) commands: Vec<Command>,
    /// All text of its command.
    pub(crate) text: String,
    /// The variables of jobc that it gets if it names them.
    pub(crate) by_name: Vec<String>,
}

impl<'a> View<'a> {
    /// Collects the facts about each role.
    pub(crate) fn new(job: &'a Job, plan: &'a JobPlan, files: &'a dyn Files) -> Self {
        let members: std::collections::BTreeMap<&str, &MemberPlan> =
            plan.distributed.iter().flat_map(|d| &d.members).map(|m| (m.role.as_str(), m)).collect();
        let roles = plan.roles.iter().map(|role| RoleView {
            spec: job.roles.get(&role.name),
            plan: role,
            member: members.get(role.name.as_str()).copied(),
            commands: command::commands(role),
            text: command::text(role),
            by_name: variables_by_name(plan, role),
        });
        Self { job, plan, files, roles: roles.collect() }
    }

    /// Whether the target writes for that backend.
    pub(crate) fn has_backend(&self, backend: BackendName) -> bool {
        match backend {
            BackendName::Oci => self.plan.target.settings.is_host(),
            _ => self.plan.target.settings.backends.contains(&backend),
        }
    }

    /// The place of a setting of the target in `targets.yaml`.
    pub(crate) fn target_at(&self, keys: &[&str]) -> Pointer {
        Pointer::ROOT.keys(["targets", &self.plan.target.name]).keys(keys.iter().copied())
    }

    /// The block that declares an image, where it is one.
    pub(crate) fn image_block(&self, image: &ImagePlan) -> Option<&'a ImageBlock> {
        let at: Vec<String> = image.declared_at.segments().collect();
        let at: Vec<&str> = at.iter().map(String::as_str).collect();
        let declared = match at[..] {
            ["image"] => self.job.image.as_ref(),
            ["images", name] => self.job.images.get(name),
            ["roles", role, "image"] => self.job.roles.get(role).and_then(|r| r.image.as_ref()),
            _ => None,
        };
        if let Some(Image::Block(block)) = declared { Some(block) } else { None }
    }

    /// The reference of a base image, and its place in the job file.
    pub(crate) fn base(&self, image: &'a ImagePlan) -> Option<(&'a str, Pointer)> {
        let at = &image.declared_at;
        match &image.source {
            ImageSource::Host { .. } | ImageSource::File { .. } => None,
            ImageSource::Reference {} if self.image_block(image).is_some() => {
                Some((&image.reference, at.key("from")))
            }
            ImageSource::Reference {} => Some((&image.reference, at.clone())),
            ImageSource::Build { from, .. } => Some((from, at.key("from"))),
            ImageSource::Dockerfile { base, .. } => base.as_deref().map(|base| (base, at.key("dockerfile"))),
        }
    }
}

impl RoleView<'_> {
    /// Where the job file declares the role.
    pub(crate) fn at(&self) -> Pointer {
        self.plan.at()
    }

    /// The place of the role's command in the job file.
    pub(crate) fn run_at(&self) -> Pointer {
        let args = self.spec.is_some_and(|s| s.run.is_none() && s.args.is_some());
        self.at().key(if args { "args" } else { "run" })
    }

    /// The place where the role needs another: the item of its list, or the key of its map.
    pub(crate) fn need_at(&self, other: &str) -> Pointer {
        let at = self.at().key("needs");
        match self.spec.and_then(|spec| spec.needs.as_ref()) {
            Some(Needs::Names(names)) => at.index(names.iter().position(|name| name == other).unwrap_or(0)),
            _ => at.key(other),
        }
    }

    /// How many whole GPUs or slices each instance has: at least one of a host that is not known yet.
    pub(crate) fn gpus(&self) -> u32 {
        match self.plan.resources.gpu.as_ref().map(GpuPlan::amount) {
            None | Some(GpuAmount::Hidden) => 0,
            Some(GpuAmount::All) => 1,
            Some(GpuAmount::Count(count) | GpuAmount::AllOf(count)) => count,
        }
    }

    /// How many instances are in one rendezvous with those of this role, or else of the role.
    pub(crate) fn peers(&self, view: &View<'_>) -> u32 {
        let members = view.plan.distributed.as_ref().filter(|_| self.member.is_some());
        members.map_or(self.plan.instances, |distributed| distributed.instances)
    }

    /// The place of a variable that the user sets: the role's own entry, else the job's.
    pub(crate) fn env_at(&self, name: &str) -> Pointer {
        let own = self.spec.is_some_and(|spec| spec.env.contains_key(name));
        let at = if own { self.at() } else { Pointer::ROOT };
        at.keys(["env", name])
    }

    /// Whether the command distinguishes the instances by their numbers.
    pub(crate) fn knows_index(&self) -> bool {
        ["JOBC_INDEX", "JOBC_RANK"].iter().any(|name| self.text.contains(name))
    }

    /// Whether the command uses a variable: `$NAME` or `${NAME…}`.
    pub(crate) fn uses(&self, name: &str) -> bool {
        command::variables(&self.text).any(|(used, _)| used == name)
    }

    /// Whether the command, or a variable of the user that may be part of it, holds one of these words.
    pub(crate) fn mentions(&self, words: &[&str]) -> bool {
        let has = |text: &str| words.iter().any(|word| text.contains(word));
        let names = self.plan.env.keys().map(String::as_str);
        let values = self.plan.env.keys().filter_map(|name| self.constant(name));
        has(&self.text) || names.chain(values).any(has)
    }

    /// The text of a variable that the job file sets, where it is the same in every instance.
    pub(crate) fn constant(&self, name: &str) -> Option<&str> {
        let Some(EnvPlan::Text(text)) = self.plan.env.get(name) else { return None };
        text.as_literal()
    }

    /// A word of the command, or the value of the variable that it names; `None` if that is unknown.
    pub(crate) fn value<'w>(&'w self, word: &'w str) -> Option<&'w str> {
        let Some(name) = word.strip_prefix('$') else { return (!word.contains('$')).then_some(word) };
        self.constant(name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name))
    }

    /// The number that a flag of a command has.
    pub(crate) fn number(&self, command: &Command, flags: &[&str]) -> Option<u32> {
        self.value(command.one_of(flags)?.1)?.parse().ok()
    }

    /// Whether a variable is set, or is of jobc and would be if the command named it.
    pub(crate) fn has_variable(&self, name: &str) -> bool {
        self.plan.env.contains_key(name) || self.provides(name)
    }

    /// Whether jobc sets a variable, or would if the command named it.
    pub(crate) fn provides(&self, name: &str) -> bool {
        self.plan.provided_env.contains_key(name) || self.by_name.iter().any(|known| known == name)
    }
}
