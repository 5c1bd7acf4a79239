//! A job's GPU request by role, in a form that the jobs of all users share.

use indexmap::IndexMap;
use jobc_schema::gpu::Vendor;
use jobc_schema::plan::order::RoleOrder;
use jobc_schema::plan::{GpuPlan, JobPlan, RolePlan, SharePlan};
use jobc_schema::target::GpuShare;
use serde::{Deserialize, Serialize};

use super::device_names;
use super::inject::InjectionMethod;
use super::inventory::{DeviceId, Inventory};
use super::lease::Sharing;
use super::sharing::{self, SharingChoice, SharingSupport};
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::id::EVERY_ROLE;

/// A job's request, by role.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Demands {
    /// The roles that ask for GPUs, in the order of the plan.
    pub roles: Vec<Demand>,
    /// Notes for the user on how it is served, one per line.
    #[serde(skip)]
    pub notes: Vec<String>,
}

/// A role's request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Demand {
    /// The role; of a role with a matrix whose combinations take turns, its name in the job file.
    pub role: String,
    /// How many of its instances run at once.
    pub seats: u32,
    /// How many devices, or slices, each of them has.
    pub each: u32,
    /// How many each of them has at most, where no other job leases or waits for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grow: Option<u32>,
    /// The vendor of the cards.
    pub vendor: Vendor,
    /// Models that will do; empty: any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// At least these bytes on each card, by its nominal class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// At least this compute capability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_capability: Option<(u32, u32)>,
    /// At least this driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Slices instead of whole devices, and what serves them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<(SharePlan, Sharing)>,
    /// These devices and no others, the first ones first; empty: any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pins: Vec<DeviceId>,
    /// The demands, by their places, that are never there at the same time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apart: Vec<usize>,
}

/// The choices for the GPUs of a run, in addition to its plan.
#[derive(Clone, Copy, Debug)]
pub struct Choices<'a> {
    /// Devices by name, and no others: of every role ([`EVERY_ROLE`]), or by role, the first ones first.
    pub devices: &'a IndexMap<String, Vec<String>>,
    /// How slices of GPUs are enforced [default: chosen from job and host].
    pub share: Option<GpuShare>,
    /// Go on where a slice cannot be kept.
    pub allow_unenforced: bool,
    /// How GPUs are injected into the tasks [default: the target's choice].
    pub injection: Option<InjectionMethod>,
}

impl Demands {
    /// A job's GPU request with the options of the command line: devices by name, and how cards are shared.
    ///
    /// # Errors
    ///
    /// A name that is not a device of this host; a slice that nothing on this host enforces as strictly as required.
    pub fn of(
        plan: &JobPlan,
        choices: Choices<'_>,
        inventory: &Inventory,
        means: &SharingSupport,
    ) -> Result<Self> {
        let wanting: Vec<(usize, &RolePlan, &GpuPlan)> = plan
            .roles
            .iter()
            .enumerate()
            .filter_map(|(place, role)| Some((place, role, gpu_request(role)?)))
            .collect();
        refuse_pins_of_others(choices, &wanting)?;
        let wanting = join_turns(&wanting);
        let order = RoleOrder::of(plan);
        let after: Vec<_> = wanting.iter().map(|&(place, ..)| order.after(place)).collect();
        let mut demands = Self::default();
        for (number, &(place, role, gpu, turns)) in wanting.iter().enumerate() {
            let name = if turns.is_some() { role.declared() } else { &role.name };
            let share = gpu.share.as_ref().map(|share| {
                let choice = SharingChoice { by: choices.share, allow_unenforced: choices.allow_unenforced };
                let (by, note) = sharing::choose(name, gpu.vendor, share, choice, means)?;
                demands.notes.extend(note);
                Ok::<_, Error>((share.clone(), by))
            });
            let words = role.entry_in(choices.devices).or_else(|| choices.devices.get(EVERY_ROLE));
            let at_once = role.parallel.unwrap_or(role.instances).min(role.instances);
            let demand = Demand {
                role: name.to_owned(),
                seats: at_once.saturating_mul(turns.unwrap_or(1)),
                each: gpu.count,
                grow: gpu.grow,
                vendor: gpu.vendor,
                models: gpu.models.clone(),
                memory_bytes: gpu.memory_bytes,
                compute_capability: gpu.compute_capability.as_deref().and_then(version_pair),
                driver: gpu.driver.clone(),
                share: share.transpose()?,
                pins: words
                    .map(|words| device_names::parse_devices(words, gpu.vendor, inventory))
                    .transpose()?
                    .unwrap_or_default(),
                apart: (0..wanting.len())
                    .filter(|&other| {
                        after[number].contains(&wanting[other].0) || after[other].contains(&place)
                    })
                    .collect(),
            };
            demand.refuse_too_few_pins()?;
            demands.roles.push(demand);
        }
        Ok(demands)
    }

    /// The requests with more GPUs than the job asks for, the largest first.
    pub fn grown(&self) -> impl Iterator<Item = Self> {
        let most = self.roles.iter().filter_map(|demand| demand.grow).max().unwrap_or(0);
        (1..=most).rev().map(move |most| self.up_to(most)).take_while(move |grown| grown != self)
    }

    fn up_to(&self, most: u32) -> Self {
        let grown = |demand: &Demand| {
            let each = demand.grow.map_or(demand.each, |grow| demand.each.max(grow.min(most)));
            Demand { each, ..demand.clone() }
        };
        Self { roles: self.roles.iter().map(grown).collect(), notes: self.notes.clone() }
    }

    /// Whether the job requests no GPU.
    pub fn is_empty(&self) -> bool {
        self.roles.is_empty()
    }

    /// Whether a plan requests any.
    pub fn requests_gpus(plan: &JobPlan) -> bool {
        plan.roles.iter().any(|role| gpu_request(role).is_some())
    }
}

impl Demand {
    /// Devices, or slices, that the role has at once.
    pub fn total(&self) -> u64 {
        u64::from(self.seats) * u64::from(self.each)
    }

    /// Whether any device of the host will do.
    pub(super) fn accepts_any_device(&self) -> bool {
        self.models.is_empty()
            && self.memory_bytes.is_none()
            && self.compute_capability.is_none()
            && self.driver.is_none()
            && self.share.is_none()
            && self.pins.is_empty()
    }

    /// Whether several tasks have the same card at once, each with a limit or none.
    pub fn soft_share(&self) -> Option<(&SharePlan, Sharing)> {
        self.share.as_ref().filter(|(_, by)| *by != Sharing::Mig).map(|(share, by)| (share, *by))
    }

    fn refuse_too_few_pins(&self) -> Result<()> {
        let needed = if self.soft_share().is_some() { u64::from(self.cards()) } else { self.total() };
        if self.pins.is_empty() || self.pins.len() as u64 >= needed {
            return Ok(());
        }
        let (role, named) = (&self.role, self.pins.len());
        Err(Error::new(Kind::Config, format!("`{role}` needs {needed} GPUs, but {named} are named for it"))
            .help("name as many as all its instances need, or fewer instances with `--scale ROLE=N`"))
    }

    /// How many cards a task with slices has.
    pub(super) fn cards(&self) -> u32 {
        if self.share.as_ref().is_some_and(|(share, _)| share.same_card) { 1 } else { self.each }
    }
}

/// A role that requests GPUs: its place in the plan, and how many combinations of its matrix run at once if they take
/// turns on the same GPUs.
type WantingRole<'a> = (usize, &'a RolePlan, &'a GpuPlan, Option<u32>);

/// Merges the combinations of a role with a limit on concurrency into one, if all request the same.
fn join_turns<'a>(wanting: &[(usize, &'a RolePlan, &'a GpuPlan)]) -> Vec<WantingRole<'a>> {
    let turns = |role: &RolePlan| role.matrix.as_ref().and_then(|matrix| matrix.max_parallel);
    // The logical numbers of GPUs differ in any case.
    let same = |a: (&RolePlan, &GpuPlan), b: (&RolePlan, &GpuPlan)| {
        let gpu = GpuPlan { first: a.1.first, ..b.1.clone() };
        *a.1 == gpu && (a.0.instances, a.0.parallel) == (b.0.instances, b.0.parallel)
    };
    let mut joined = Vec::with_capacity(wanting.len());
    for of_role in wanting.chunk_by(|(_, a, _), (_, b, _)| a.declared() == b.declared()) {
        let (place, first, gpu) = of_role[0];
        let count = u32::try_from(of_role.len()).unwrap_or(u32::MAX);
        match turns(first)
            .filter(|_| of_role.iter().all(|(_, role, other)| same((first, gpu), (role, other))))
        {
            Some(max) => joined.push((place, first, gpu, Some(max.clamp(1, count)))),
            None => joined.extend(of_role.iter().map(|&(place, role, gpu)| (place, role, gpu, None))),
        }
    }
    joined
}

/// A role's request, if it has one.
fn gpu_request(role: &RolePlan) -> Option<&GpuPlan> {
    role.gpus().filter(|_| role.instances > 0)
}

fn refuse_pins_of_others(choices: Choices<'_>, wanting: &[(usize, &RolePlan, &GpuPlan)]) -> Result<()> {
    let asks = |name: &str| {
        name == EVERY_ROLE || wanting.iter().any(|(_, role, _)| role.name == name || role.declared() == name)
    };
    let strange = choices.devices.keys().find(|name| !asks(name));
    let nobody = wanting.is_empty() && !choices.devices.is_empty();
    match strange {
        Some(name) if name != EVERY_ROLE => {
            Err(Error::new(Kind::Config, format!("GPUs are named for `{name}`, which requests none"))
                .help("set `resources.gpu` of that role in the job file"))
        }
        _ if nobody => Err(Error::new(Kind::Config, "`--devices` names GPUs, but no role requests one")
            .help("set `resources.gpu` of the role that should get them in the job file")),
        _ => Ok(()),
    }
}

/// `8.0` is eight and nothing.
fn version_pair(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
