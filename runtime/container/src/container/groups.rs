//! A container's cgroups, from the plan to their removal.

use std::path::Path;

use linux_raw_sys::general::CAP_SYS_ADMIN;
use oci_spec::runtime::{Linux, LinuxNamespaceType, LinuxResources, Spec};

use super::cgroup;
use crate::cgroup::{
    ALLOW_UNENFORCED_HELP, Cgroup, CgroupRecord, CgroupRequest, InheritedLimits, Layout, Plan,
    SUPERVISOR_GROUP, ScopeGroup, SubGroups, UnenforcedLimit, UnitGroup,
};
use crate::namespaces::Namespace;
use crate::options::Options;
use crate::prepare::CgroupView;
use crate::scope::{self, Scope, ScopeOwner};
use crate::start::CgroupFds;
use crate::state::Record;
use crate::systemd::{self, Property, Systemd, Unit, annotation};
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::host::Host;
use jobc_sys::id_map::IdMaps;

/// The groups that a container will get; none exists yet.
#[derive(Debug)]
pub(super) struct CgroupSetup {
    layout: Layout,
    plan: Plan,
    systemd_unit: Option<SystemdUnit>,
    /// The scope that is wanted around this process for the groups, or was made: its unit's name.
    scope: Option<String>,
}

/// Whether the plan is carried out immediately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// A scope that is wanted is made, and this process goes into it.
    Apply,
    /// Nothing is changed.
    DryRun,
}

/// The unit that systemd is to make, and the connection to ask for it.
#[derive(Debug)]
struct SystemdUnit {
    systemd: Systemd,
    unit: Unit,
    group: UnitGroup,
    annotation_properties: Vec<Property>,
}

impl SystemdUnit {
    /// Checks that there is a systemd to ask, and where it would put the unit.
    fn of(spec: &Spec, wants: &CgroupConfig<'_>, options: &Options) -> Result<Self> {
        let unit = Unit::of(wants.path, &options.id, systemd::uses_user_manager())?;
        let named = annotation::from_annotations(spec)?;
        let systemd = Systemd::connect(unit.user)?;
        let group = UnitGroup::of(&unit, systemd.group().to_owned());
        Ok(Self { systemd, unit, group, annotation_properties: named })
    }
}

/// The parts of config.json that matter for cgroups.
struct CgroupConfig<'a> {
    path: Option<&'a str>,
    resources: Option<&'a LinuxResources>,
    user_namespace: bool,
    owner: Option<(u32, u32)>,
    /// Whether the container sees its groups as the root of their hierarchies.
    own_namespace: bool,
}

impl<'a> CgroupConfig<'a> {
    fn of(spec: &'a Spec, machine: &Host) -> Result<Self> {
        let linux = spec.linux().as_ref();
        let new = |kind| {
            let mut namespaces = linux.and_then(|linux| linux.namespaces().as_ref()).into_iter().flatten();
            namespaces.any(|namespace| Namespace::of(namespace.typ()) == kind)
        };
        let user = new(Namespace::User);
        let maps = if user { linux.map(IdMaps::read).transpose()?.flatten() } else { None };
        // A container that sees its group as a writable root may also create groups in it.
        let writable = linux.is_some() && shows_writable_groups(spec) && new(Namespace::Cgroup);
        let owner = maps.filter(|_| writable).and_then(|maps| {
            let (uid, gid) = maps.first();
            Some((maps.users.outside(uid)?, maps.groups.outside(gid)?))
        });
        Ok(Self {
            path: path(linux)?,
            resources: linux.and_then(|linux| linux.resources().as_ref()),
            user_namespace: user || machine.in_user_namespace,
            owner,
            own_namespace: linux
                .and_then(|linux| linux.namespaces().as_ref())
                .into_iter()
                .flatten()
                .any(|namespace| namespace.typ() == LinuxNamespaceType::Cgroup && namespace.path().is_none()),
        })
    }

    fn request(&self, options: &'a Options) -> CgroupRequest<'a> {
        CgroupRequest {
            id: &options.id,
            path: self.path,
            unit: None,
            scope: None,
            resources: self.resources,
            allow_unenforced: options.allow_unenforced,
            owner: self.owner,
            every_hierarchy: options.every_hierarchy || !self.own_namespace,
            counts_io: !options.skip_io_accounting,
            user_namespace: self.user_namespace,
        }
    }
}

/// Rejects a bundle without a user namespace if the user may not create other namespaces; this is reported first.
fn refuse_without_rights(spec: &Spec, machine: &Host) -> Result<()> {
    let namespaces = spec.linux().as_ref().and_then(|linux| linux.namespaces().as_ref());
    let user = namespaces.into_iter().flatten().any(|namespace| namespace.typ() == LinuxNamespaceType::User);
    if user || machine.permitted & 1 << CAP_SYS_ADMIN != 0 {
        return Ok(());
    }
    let message = "without CAP_SYS_ADMIN a container needs a user namespace, and the bundle has none";
    Err(Error::new(Kind::Config, message).at("/linux/namespaces").help(
        "write `{\"type\": \"user\"}` there and `uidMappings` and `gidMappings` in `linux`, or start the bundle with `jobc run`, which adds them",
    ))
}

fn path(linux: Option<&Linux>) -> Result<Option<&str>> {
    let path =
        linux.and_then(|linux| linux.cgroups_path().as_deref()).filter(|path| !path.as_os_str().is_empty());
    path.map(|path: &Path| {
        path.to_str()
            .ok_or_else(|| Error::new(Kind::Config, "the cgroup path is not UTF-8").at("/linux/cgroupsPath"))
    })
    .transpose()
}

fn shows_writable_groups(spec: &Spec) -> bool {
    spec.mounts().iter().flatten().any(|mount| {
        let read_only = mount.options().iter().flatten().any(|option| option == "ro" || option == "rro");
        matches!(mount.typ().as_deref(), Some("cgroup" | "cgroup2")) && !read_only
    })
}

impl CgroupSetup {
    /// Decides which groups a container gets. If it gets none, no limit is enforced.
    pub(super) fn of(spec: &Spec, options: &Options, machine: &Host, mode: Mode) -> Result<Self> {
        let layout = if options.without_cgroup { Layout::default() } else { Layout::detect()? };
        let wants = CgroupConfig::of(spec, machine)?;
        refuse_without_rights(spec, machine)?;
        let by_systemd =
            if options.systemd_cgroup { Some(SystemdUnit::of(spec, &wants, options)?) } else { None };
        let unit = by_systemd.as_ref().map(|by_systemd| &by_systemd.group);
        let request = CgroupRequest { unit, ..wants.request(options) };
        if options.inherit_cgroup {
            let plan = Plan::inherited(&layout, &request)?;
            return Ok(Self { layout, plan, systemd_unit: None, scope: None });
        }
        let plan = Plan::of(&layout, &request);
        let lacks_group = || match &plan {
            Ok(plan) => plan.lacks_group,
            Err(error) => {
                error.kind == Kind::Unenforceable && Plan::would_use_delegated_group(&layout, &request)
            }
        };
        let (layout, plan, scope) = match &options.scope {
            Some(holder) if scope::is_applicable(&layout) && lacks_group() => {
                match plan_in_scope(holder, &layout, &request, mode) {
                    Ok((changed, plan, name)) => {
                        // A job's is made before, around its supervisor.
                        let around_this = matches!(holder, ScopeOwner::Container(_)).then_some(name);
                        (changed.unwrap_or(layout), plan, around_this)
                    }
                    Err(why) => {
                        let plan =
                            or_inherited(plan.map_err(|error| with_reason(error, why)), &layout, &request);
                        (layout, plan?, None)
                    }
                }
            }
            _ => {
                let plan = or_inherited(plan, &layout, &request);
                (layout, plan?, None)
            }
        };
        Ok(Self { layout, plan, systemd_unit: by_systemd, scope })
    }

    /// The unit of the scope around this process that was made for the groups.
    pub(super) fn scope(&self) -> Option<&str> {
        self.scope.as_deref()
    }

    /// As the steps of a start see them.
    pub(super) fn view(&self) -> CgroupView<'_> {
        CgroupView { layout: &self.layout, plan: &self.plan }
    }

    /// The steps, one per line.
    pub(super) fn describe(&self) -> Vec<String> {
        let scope = self.scope.iter().map(|name| {
            format!("have the user's systemd make the scope `{name}` around this process, and move to the cgroup `{SUPERVISOR_GROUP}` in it")
        });
        scope.chain(self.plan.describe()).collect()
    }

    /// Makes the groups; returns what of the limits nothing enforces. Those of a unit are made later, around a process.
    pub(super) fn create(
        &self,
        spec: &Spec,
        options: &Options,
        machine: &Host,
    ) -> Result<(Cgroup, Vec<UnenforcedLimit>)> {
        if self.systemd_unit.is_some() {
            return Ok((Cgroup::default(), vec![]));
        }
        self.plan.carry_out(&CgroupConfig::of(spec, machine)?.request(options))
    }

    /// Has systemd make the unit around a container's first process, and writes the limits to its groups.
    ///
    /// The record names the existing groups, even after an error, so that they can be removed.
    pub(super) fn create_around_process(
        &mut self,
        pid: u32,
        spec: &Spec,
        options: &Options,
        machine: &Host,
        record: &mut Record,
    ) -> Result<Vec<UnenforcedLimit>> {
        let Some(SystemdUnit { systemd, unit, group, annotation_properties: named }) = &mut self.systemd_unit
        else {
            return Ok(vec![]);
        };
        let mut properties = self.plan.properties(systemd.version());
        // Explicit values in the bundle take precedence over those derived from its limits.
        properties.retain(|(name, _)| !named.iter().any(|(other, _)| other == name));
        properties.append(named);
        systemd.start_unit_body(unit, &record.id, pid, &properties)?;
        record.unit = Some(unit.clone());
        let wants = CgroupConfig::of(spec, machine)?;
        let mut cgroup = Cgroup::default();
        let request = CgroupRequest { unit: Some(group), ..wants.request(options) };
        let made = self.plan.carry_out_around(&request, pid, &mut cgroup);
        record.cgroup = Some(cgroup.record().clone());
        made
    }
}

/// Plans groups in a scope around this process, which is made first where it is done really; returns where this process
/// is then, and the unit's name.
fn plan_in_scope(
    holder: &ScopeOwner,
    layout: &Layout,
    request: &CgroupRequest<'_>,
    mode: Mode,
) -> Result<(Option<Layout>, Plan, String)> {
    let scope = Scope::find(holder)?;
    let plan = Plan::of(layout, &CgroupRequest { scope: Some(&scope.group), ..*request })?;
    if mode == Mode::DryRun {
        return Ok((None, plan, scope.name().to_owned()));
    }
    let name = scope.enter()?;
    let layout = Layout::detect()?;
    let plan = Plan::of(&layout, request)?;
    Ok((Some(layout), plan, name))
}

/// A plan, or where limits are refused one whose limits hold for this process anyway.
fn or_inherited(plan: Result<Plan>, layout: &Layout, request: &CgroupRequest<'_>) -> Result<Plan> {
    match plan {
        Err(error) if error.kind == Kind::Unenforceable => Plan::within_inherited(layout, request, error),
        Ok(mut plan) => {
            if let Some(resources) = request.resources.filter(|_| !plan.unenforced.is_empty()) {
                InheritedLimits::read(layout).remove_enforced(resources, &mut plan.unenforced);
            }
            Ok(plan)
        }
        other => other,
    }
}

/// Why limits are not enforced, and why this user's systemd does not help; its advice comes first.
fn with_reason(error: Error, why: Error) -> Error {
    if why.kind == Kind::Unenforceable {
        return why;
    }
    Error {
        what: format!("{}, and {}", error.message(), why.message()),
        hints: why.hints,
        source: None,
        ..error
    }
    .help(ALLOW_UNENFORCED_HELP)
}

/// How containers' limits are enforced for this user on this host.
#[derive(Debug, Default)]
pub struct LimitEnforcement {
    /// Limits that would not be enforced.
    pub unenforced: Vec<UnenforcedLimit>,
    /// How to change that, where there is anything.
    pub hints: Vec<String>,
    /// Whether limits need a scope of this user's systemd.
    pub needs_scope: bool,
    /// Whether no group is available for it.
    pub lacks_group: bool,
    /// The part of [`Self::unenforced`] that no group of this process enforces either.
    not_inherited: Vec<UnenforcedLimit>,
}

impl LimitEnforcement {
    fn of(specs: &[Spec], layout: &Layout, machine: &Host, scope: Option<&ScopeGroup>) -> Result<Self> {
        let mut kept = Self::default();
        for spec in specs {
            let wants = CgroupConfig::of(spec, machine)?;
            let mut options = Options { id: "jobc".to_owned(), ..Options::default() };
            let refused = Plan::of(layout, &CgroupRequest { scope, ..wants.request(&options) }).err();
            let Some(refused) = refused.filter(|error| error.kind == Kind::Unenforceable) else { continue };
            if kept.hints.is_empty() {
                kept.hints = refused.hints;
            }
            options.allow_unenforced = true;
            let plan = Plan::of(layout, &CgroupRequest { scope, ..wants.request(&options) })?;
            kept.lacks_group |= plan.lacks_group;
            let mut left = plan.unenforced.clone();
            if let Some(resources) = wants.resources {
                InheritedLimits::read(layout).remove_enforced(resources, &mut left);
            }
            kept.unenforced.extend(plan.unenforced);
            kept.not_inherited.extend(left);
        }
        Ok(kept)
    }

    /// Without the limits that hold for this process anyway.
    fn within_inherited(self) -> Self {
        Self { unenforced: self.not_inherited.clone(), ..self }
    }
}

/// Checks the limits of containers as their creation would, before anything is fetched, built or created for them;
/// nothing is made.
///
/// The user's systemd is used where only it can enforce them.
pub fn check_enforcement(specs: &[Spec]) -> Result<LimitEnforcement> {
    let machine = Host::read()?;
    let layout = Layout::detect()?;
    let mut here = LimitEnforcement::of(specs, &layout, &machine, None)?;
    if !here.lacks_group || !scope::is_applicable(&layout) {
        return Ok(here.within_inherited());
    }
    match Scope::find(&ScopeOwner::Container("jobc".to_owned())) {
        Ok(scope) => {
            let there = LimitEnforcement::of(specs, &layout, &machine, Some(&scope.group))?;
            let needs_scope = there.unenforced.len() < here.unenforced.len();
            Ok(LimitEnforcement { needs_scope, ..there }.within_inherited())
        }
        Err(why) => {
            for lost in &mut here.not_inherited {
                lost.reason = format!("{}, and {}", lost.reason, why.message());
            }
            here.hints = why.hints;
            Ok(here.within_inherited())
        }
    }
}

/// The file descriptors by which a process enters groups.
pub(super) fn take_entry_fds(cgroup: &mut Cgroup) -> CgroupFds {
    let (born_in, joined) = cgroup.take_entry_fds();
    CgroupFds { clone_into: born_in, tasks_files: joined }
}

/// Whether an additional process can enter a container's groups only through systemd: they are in a unit, and this user
/// may not move a process out of this process's group.
pub(crate) fn needs_systemd(record: &Record) -> bool {
    let cgroup = cgroup(record);
    // By its name only; if it matches, systemd decides whether it is a unit.
    let is_unit = |name: &std::ffi::OsStr| {
        Path::new(name).extension().is_some_and(|kind| kind == "scope" || kind == "service")
    };
    let in_unit = || {
        !rustix::process::geteuid().is_root()
            && cgroup.directories().any(|directory| directory.iter().any(is_unit))
    };
    let of_a_user = || record.unit.as_ref().map_or_else(in_unit, |unit| unit.user);
    of_a_user() && Layout::detect().is_ok_and(|layout| !cgroup.can_join(&layout))
}

/// Has systemd move process `pid` to a container's group, where its `first` process is.
///
/// The user's systemd is called for its own units. A group below its cgroup that is in no unit, such as a group that
/// was delegated in another way, belongs for the host's systemd to the service `user@.service`, and the host's is
/// called.
pub(crate) fn attach_by_systemd(record: &Record, first: u32, pid: u32) -> Result<()> {
    if let Some(unit) = &record.unit {
        return Systemd::connect(unit.user)?.attach(unit, "", pid);
    }
    let group = cgroup(record).entry_group(first)?.unwrap_or_default();
    let of_user = |systemd: Systemd| {
        let unit = Unit::containing(group.strip_prefix(systemd.group()).ok()?, true)?;
        Some((systemd, unit))
    };
    let of_machine = || {
        let unit = Unit::containing(&group, false).ok_or_else(|| {
            let message =
                "the container's cgroup is not in a systemd unit, and this user may not move processes there";
            Error::new(Kind::System, message)
        })?;
        Ok::<_, Error>((Systemd::connect(false)?, unit))
    };
    let (mut systemd, (unit, below)) =
        Systemd::connect(true).ok().and_then(of_user).map_or_else(of_machine, Ok)?;
    systemd.attach(&unit, &below, pid)
}

/// Removes the empty cgroups of a container whose creation was killed before they were recorded.
///
/// Only the container's own groups: their parents may belong to others. A start removes an empty group at its path as
/// well.
pub(super) fn remove_unrecorded(id: &str, spec: &Spec) -> Result<()> {
    let options =
        Options { id: id.to_owned(), allow_unenforced: true, every_hierarchy: true, ..Options::default() };
    let (machine, layout) = (Host::read()?, Layout::detect()?);
    Plan::of(&layout, &CgroupConfig::of(spec, &machine)?.request(&options))?.remove_empty();
    Ok(())
}

/// Stops the unit of a container whose processes have ended, if it still exists.
pub(super) fn stop_unit(record: &Record) -> Result<()> {
    let Some(unit) = &record.unit else { return Ok(()) };
    let mut systemd = Systemd::connect(unit.user)?;
    // Another container may have a unit of that name by now; its group is another.
    let stopped = if cgroup(record).exists() { systemd.stop(unit) } else { Ok(()) };
    systemd.reset_failed(unit);
    stopped
}

/// The groups that a record names, or those `below` them, opened for an additional process next to the container's
/// `first`.
pub(crate) fn reopen(saved: &CgroupRecord, first: u32, below: &SubGroups) -> Result<CgroupFds> {
    let mut cgroup = Cgroup::open(saved.clone());
    cgroup.open_entry_fds(first, below)?;
    Ok(take_entry_fds(&mut cgroup))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn without_rights_the_user_namespace_is_reported_first() {
        let check = |held: u64, namespaces: Value| {
            let spec = json!({"ociVersion": "1.1.0", "linux": {"namespaces": namespaces, "resources": {}}});
            let spec: Spec = serde_json::from_value(spec).expect("a configuration");
            let machine = Host {
                permitted: held,
                bounding: 0,
                ignored_signals: 0,
                in_user_namespace: false,
                only_ids: None,
            };
            refuse_without_rights(&spec, &machine).map_err(|error| error.to_string())
        };
        let (none, all) = (0, u64::MAX);
        let (mount, user) = (json!([{"type": "mount"}]), json!([{"type": "mount"}, {"type": "user"}]));
        assert_eq!(check(all, mount.clone()), Ok(()));
        assert_eq!(check(none, user), Ok(()));
        let refused = "config.json: /linux/namespaces: without CAP_SYS_ADMIN a container needs a user namespace, and the bundle has none";
        assert_eq!(check(none, mount.clone()), Err(refused.to_owned()));
        assert_eq!(check(!(1 << CAP_SYS_ADMIN), mount), Err(refused.to_owned()));
    }
}
