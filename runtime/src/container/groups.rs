//! A container's control groups, from what is decided about them to their removal.

use std::path::Path;

use oci_spec::runtime::{Linux, LinuxResources, Spec};

use super::Options;
use crate::cgroup::{Cgroup, Layout, Plan, Request, Saved, Unenforced};
use crate::error::{Error, Kind, Result};
use crate::id_map::IdMaps;
use crate::machine::Machine;
use crate::namespaces::Namespace;
use crate::prepare::ControlGroups;
use crate::start::Groups;

/// Which groups a container gets; nothing of them is there yet.
#[derive(Debug)]
pub(super) struct Decided {
    layout: Layout,
    plan: Plan,
}

/// What config.json says that bears on control groups.
struct Wants<'a> {
    path: Option<&'a str>,
    resources: Option<&'a LinuxResources>,
    user_namespace: bool,
    owner: Option<(u32, u32)>,
}

impl<'a> Wants<'a> {
    fn of(spec: &'a Spec, machine: &Machine) -> Result<Self> {
        let linux = spec.linux().as_ref();
        let new = |kind| {
            let mut namespaces = linux.and_then(|linux| linux.namespaces().as_ref()).into_iter().flatten();
            namespaces.any(|namespace| Namespace::of(namespace.typ()) == kind)
        };
        let user = new(Namespace::User);
        let maps = if user { linux.map(IdMaps::read).transpose()?.flatten() } else { None };
        // Who has its own groups as the root of a tree it may write to, may also divide them.
        let writable = linux.is_some() && shows_writable_groups(spec) && new(Namespace::Cgroup);
        let owner = maps
            .filter(|_| writable)
            .and_then(|maps| Some((maps.users.outside(0)?, maps.groups.outside(0)?)));
        Ok(Self {
            path: path(linux)?,
            resources: linux.and_then(|linux| linux.resources().as_ref()),
            user_namespace: user || machine.in_user_namespace,
            owner,
        })
    }

    fn request(&self, options: &'a Options) -> Request<'a> {
        Request {
            id: &options.id,
            path: self.path,
            resources: self.resources,
            allow_unenforced: options.allow_unenforced,
            owner: self.owner,
            counts_io: !options.io_uncounted,
            user_namespace: self.user_namespace,
        }
    }
}

fn path(linux: Option<&Linux>) -> Result<Option<&str>> {
    let path =
        linux.and_then(|linux| linux.cgroups_path().as_deref()).filter(|path| !path.as_os_str().is_empty());
    path.map(|path: &Path| {
        path.to_str().ok_or_else(|| {
            Error::new(Kind::Config, "the path of a control group is not UTF-8").at("/linux/cgroupsPath")
        })
    })
    .transpose()
}

fn shows_writable_groups(spec: &Spec) -> bool {
    spec.mounts().iter().flatten().any(|mount| {
        let read_only = mount.options().iter().flatten().any(|option| option == "ro" || option == "rro");
        matches!(mount.typ().as_deref(), Some("cgroup" | "cgroup2")) && !read_only
    })
}

impl Decided {
    /// Decides which groups a container gets. Where it is to have none, every limit is one that nothing enforces.
    pub(super) fn of(spec: &Spec, options: &Options, machine: &Machine) -> Result<Self> {
        let layout = if options.without_cgroup { Layout::default() } else { Layout::detect()? };
        let plan = Plan::of(&layout, &Wants::of(spec, machine)?.request(options))?;
        Ok(Self { layout, plan })
    }

    /// As the steps of a start see them.
    pub(super) fn view(&self) -> ControlGroups<'_> {
        ControlGroups { layout: &self.layout, plan: &self.plan }
    }

    /// What is done, a line a step.
    pub(super) fn describe(&self) -> Vec<String> {
        self.plan.describe()
    }

    /// Makes the groups; returns what of the limits nothing enforces.
    pub(super) fn make(
        self,
        spec: &Spec,
        options: &Options,
        machine: &Machine,
    ) -> Result<(Cgroup, Vec<Unenforced>)> {
        self.plan.carry_out(&Wants::of(spec, machine)?.request(options))
    }
}

/// What of containers' limits nothing would enforce for this user on this machine, with how to change that where there is
/// anything; nothing is made.
///
/// It is what making them would find out, before anything is fetched, built or made for them.
pub(crate) fn unenforceable(specs: &[Spec]) -> Result<(Vec<Unenforced>, Option<String>)> {
    let machine = Machine::look()?;
    let layout = Layout::detect()?;
    let (mut all, mut help) = (Vec::new(), None);
    for spec in specs {
        let wants = Wants::of(spec, &machine)?;
        let mut options = Options { id: "jobc".to_owned(), ..Options::default() };
        let refused = Plan::of(&layout, &wants.request(&options)).err();
        let Some(refused) = refused.filter(|error| error.kind == Kind::Unenforceable) else { continue };
        help = help.or(refused.help);
        options.allow_unenforced = true;
        all.extend(Plan::of(&layout, &wants.request(&options))?.unenforced);
    }
    Ok((all, help))
}

/// What a process enters groups by.
pub(super) fn entrances(cgroup: &mut Cgroup) -> Groups {
    let (born_in, joined) = cgroup.take_entrances();
    Groups { born_in, joined }
}

/// The groups that a record names, with the ways in open for a process beside the container's `first`.
pub(crate) fn reopened(saved: &Saved, first: u32) -> Result<Groups> {
    let mut cgroup = Cgroup::open(saved.clone());
    cgroup.open_entrances(first)?;
    Ok(entrances(&mut cgroup))
}
