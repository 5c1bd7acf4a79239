//! Admission: the resources of a job are counted before anything of it starts.
//!
//! A job's [claim](claim) is its peak use of resources, the host's [capacity] the total. The jobs of all users write
//! their claims into one [ledger](ledger), a directory of files that their supervisors lock, so that a claim ends at
//! the moment its supervisor does. A job that fits is admitted. A job that never fits is refused. A job that does not
//! fit now is refused too, or waits until those before it have ended. Claims bind only jobs: what other programs use is
//! not counted.

pub mod capacity;
pub mod claim;
mod devices;
pub mod estimate;
mod gpus;
pub mod job_queue;
pub mod ledger;
pub mod limits;
mod order;
pub mod overview;
pub mod past_use;
pub mod ports;
pub mod queue;
mod resources;
pub mod rules;

use std::time::Duration;

use jobc_schema::plan::JobPlan;

use crate::record::Claim;
use crate::submission::Submission;
use capacity::Capacity;
use devices::DeviceLocks;
use gpus::Shortage;
use jobc_gpu::demand::Demands;
use jobc_gpu::enforcement::SliceEnforcer;
use jobc_gpu::inject::Injector;
use jobc_gpu::lease::GpuLease;
use jobc_gpu::placement::{self, DeviceUsage, FreeDevices};
use jobc_gpu::sharing::SharingSupport;
use jobc_gpu::tasks::TaskGpus;
use jobc_gpu::{Host, Inventory};
use jobc_place::time::Time;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::id::JobId;
pub use ledger::PastUse;
use ledger::turns::Turns;
use ledger::{Decision, Entry, EntryState, Ledger};
use order::Order;
use resources::Resource;
use rules::{Exceeded, Rules};

/// A job's entry in the ledger. Dropping it gives back what the job has.
#[derive(Debug)]
pub struct Admission {
    ledger: Ledger,
    rules: Rules,
    entry: Entry,
    /// The GPUs of the host, where it has more of them than it asked for.
    grown: Option<Inventory>,
}

/// The answer to a job's request for resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdmissionOutcome {
    /// It has its share.
    Admitted,
    /// It has not, and waits.
    Queued {
        /// How many wait before it, and one.
        place: usize,
        /// The missing resources, as text.
        waits_for: String,
    },
}

impl Admission {
    /// Writes a job into the ledger. From now on no other job gets its ports; it holds no other resources yet.
    ///
    /// # Errors
    ///
    /// A port that another job has.
    pub fn enter(ledger: Ledger, rules: Rules, id: &JobId, claim: &Claim, past: PastUse) -> Result<Self> {
        let (entry, others) = ledger.enter(id, claim, past)?;
        for other in &others {
            if let Some(port) = other.claim.ports.iter().find(|port| claim.ports.contains(port)) {
                return Err(Error::new(Kind::State, format!("port {port} belongs to {}", other.owner()))
                    .help("run the job again to get another port, or wait until that job has ended"));
            }
        }
        Ok(Self { ledger, rules, entry, grown: None })
    }

    /// Writes the entry anew if it was removed by another; nothing if it is there.
    pub fn restore(&mut self) -> Option<Result<()>> {
        self.ledger.restore(&mut self.entry)
    }

    /// The resources that the job claims.
    pub fn claim(&self) -> &Claim {
        &self.entry.claim
    }

    /// Requests the job's resources; with `queue` it waits behind those that requested theirs before, and requests them
    /// again later.
    ///
    /// Its GPUs are decided in the same step, all or none: [`Claim::leased`] has them then.
    ///
    /// # Errors
    ///
    /// The host is too small at all, or without `queue` too full now.
    pub fn request(
        &mut self,
        plan: &JobPlan,
        demands: &Demands,
        capacity: &Capacity,
        queue: bool,
    ) -> Result<AdmissionOutcome> {
        let claim = &self.entry.claim;
        place_alone(plan, demands, &capacity.gpus)?;
        if let Some(error) = exceeds_capacity(plan, claim, capacity) {
            return Err(error);
        }
        let Self { ledger, rules, entry, grown } = self;
        let now = Time::now().millis() / 1000;
        let directory = ledger.directory().to_owned();
        ledger.decide_entry(entry, demands, |entry, others| {
            if entry.state == EntryState::Admitted {
                return Decision {
                    state: EntryState::Admitted,
                    leased: None,
                    answer: Ok(AdmissionOutcome::Admitted),
                };
            }
            let order = Order::new(rules, others.iter().chain([entry]), capacity, now);
            let all: Vec<&Entry> = others.iter().collect();
            let others = order.before(others, entry);
            let limit = match order.exceeded(entry) {
                Some(Exceeded::Always(message)) => {
                    let error = Error::new(Kind::Unenforceable, message)
                        .help(format!("ask for less, or have the limit in `{}` raised", rules::FILE));
                    return Decision { state: EntryState::Entered, leased: None, answer: Err(error) };
                }
                Some(Exceeded::Now(short)) => Some(short),
                None => None,
            };
            let rest = shortage(&entry.claim, capacity, &others);
            let is_free = limit.is_none() && rest.is_none();
            let more = is_free
                .then(|| gpus::find_and_lock_more(&directory, &entry.claim, demands, &capacity.gpus, &all));
            let more = more.flatten();
            *grown = more.is_some().then(|| capacity.gpus.clone());
            // The scarcest first: that is the one to report.
            let found = match (limit, more) {
                (Some(short), _) => Err(Shortage::NotFree(short)),
                (None, Some(more)) => Ok(more),
                (None, None) => {
                    gpus::find_and_lock(&directory, &entry.claim, demands, &capacity.gpus, &others)
                }
            };
            let short = match (found, rest) {
                (Ok(leased), None) => {
                    let leased = Some(leased).filter(|(leased, _)| !leased.is_empty());
                    return Decision {
                        state: EntryState::Admitted,
                        leased,
                        answer: Ok(AdmissionOutcome::Admitted),
                    };
                }
                (Err(Shortage::Failed(error)), _) => {
                    return Decision { state: EntryState::Entered, leased: None, answer: Err(error) };
                }
                (Err(Shortage::NotFree(short)), _) | (Ok(_), Some(short)) => short,
            };
            if !queue {
                let error = Error::new(Kind::State, format!("the job {short}"))
                    .help("wait for it with `--queue`, or run fewer instances with `--scale ROLE=N`");
                return Decision { state: EntryState::Entered, leased: None, answer: Err(error) };
            }
            let waiting = others.iter().filter(|other| other.state == EntryState::Waiting).count();
            let answer = Ok(AdmissionOutcome::Queued { place: waiting + 1, waits_for: short });
            Decision { state: EntryState::Waiting, leased: None, answer }
        })
    }

    /// Gives the resources back; the ports stay the job's.
    pub fn give_back(&mut self) -> Result<()> {
        self.grown = None;
        let demands = self.entry.demands.clone();
        self.ledger.decide_entry(&mut self.entry, &demands, |_, _| Decision {
            state: EntryState::Entered,
            leased: Some((GpuLease::default(), DeviceLocks::default())),
            answer: Ok(()),
        })
    }

    /// Whether the job has more GPUs than it asked for.
    pub fn is_grown(&self) -> bool {
        self.grown.is_some()
    }

    /// The job that waits for GPUs which this one has above those that it asked for.
    pub fn wanted_by(&self) -> Option<String> {
        let inventory = self.grown.as_ref()?;
        let entries = self.ledger.entries().ok()?;
        gpus::first_helped(&self.entry, &entries, inventory).map(Entry::owner)
    }

    /// The job's part in the turns on its GPUs, if it shares them by time.
    pub fn turns(&self, id: &JobId) -> Option<Turns> {
        let leased = &self.entry.claim.leased;
        let length = Duration::from_secs(self.rules.turn.unwrap_or(rules::TURN).0);
        let shares = !leased.cards_in_turns().is_empty();
        shares.then(|| Turns::new(self.ledger.clone(), id, leased.clone(), length))
    }

    /// Notes for the user on the GPUs that the job got, one per line.
    pub fn notes(&self, capacity: &Capacity) -> Vec<String> {
        gpus::notes(&self.entry.claim.leased, &capacity.gpus)
    }
}

/// The GPUs that a job would get if it were alone on the host.
///
/// # Errors
///
/// The host lacks what the job requests.
pub fn place_alone(plan: &JobPlan, demands: &Demands, inventory: &Inventory) -> Result<GpuLease> {
    let room =
        FreeDevices { inventory, usage: &DeviceUsage::default(), uid: rustix::process::geteuid().as_raw() };
    let too_much = |misfit| gpus::exceeds_host_error(plan, &claim::of(plan), demands, misfit, inventory);
    placement::place(demands, room).map_err(too_much)
}

/// The GPUs of a job for a dry run: as on this host without other jobs, and nothing is started.
///
/// # Errors
///
/// The host lacks what the job requests.
pub fn dry_run_gpus(plan: &JobPlan, submission: &Submission, inventory: Inventory) -> Result<TaskGpus> {
    let machine = Host::here();
    let means = SharingSupport::of(&machine, &inventory);
    let demands = Demands::of(plan, submission.gpu_choices(), &inventory, &means)?;
    let leased = place_alone(plan, &demands, &inventory)?;
    let injector = Injector::new(machine, inventory);
    Ok(TaskGpus::new(plan, submission.gpu_injection, injector, leased, SliceEnforcer::default()))
}

/// The resources that a claim lacks besides other claims, as text; `None` if it fits.
///
/// Only the requested measures are compared: a job without GPUs does not wait for those with GPUs.
fn shortage(claim: &Claim, capacity: &Capacity, others: &[&Entry]) -> Option<String> {
    for measure in Resource::COUNTED {
        let wanted = measure.of(claim);
        let total = measure.of_host(capacity);
        let taken = others.iter().fold(0, |sum: u64, other| sum.saturating_add(measure.of(&other.claim)));
        let free = total.saturating_sub(taken);
        if wanted > free {
            let mut holders: Vec<&&Entry> =
                others.iter().filter(|other| measure.of(&other.claim) > 0).collect();
            holders.sort_by_key(|other| std::cmp::Reverse(measure.of(&other.claim)));
            let holders = holders.iter().take(3).map(|other| {
                let verb = if other.state == EntryState::Admitted { "has" } else { "waits for" };
                format!("{} {verb} {}", other.owner(), measure.format_amount(measure.of(&other.claim)))
            });
            return Some(format!(
                "needs {}, and {} of {} free: {}",
                measure.format_amount(wanted),
                measure.format_number(free),
                measure.format_total(total),
                holders.collect::<Vec<_>>().join(", ")
            ));
        }
    }
    None
}

/// Why a job never fits on this host: all measures, so that one report is enough. GPUs are not among them.
pub fn exceeds_capacity(plan: &JobPlan, claim: &Claim, capacity: &Capacity) -> Option<Error> {
    let short: Vec<Resource> = Resource::COUNTED
        .into_iter()
        .filter(|measure| measure.of(claim) > measure.of_host(capacity))
        .collect();
    if short.is_empty() {
        return None;
    }
    let each = |word: &dyn Fn(Resource) -> String| {
        short.iter().map(|measure| word(*measure)).collect::<Vec<_>>().join(" and ")
    };
    let message = format!(
        "the job needs {}, this host has {}",
        each(&|measure| measure.format_amount(measure.of(claim))),
        each(&|measure| measure.format_number(measure.of_host(capacity)))
    );
    let max: Vec<(Resource, u64)> =
        short.iter().map(|measure| (*measure, measure.of_host(capacity))).collect();
    let help = match scale_hint(plan, &max) {
        Some(way) => format!("run {way}"),
        None => format!("ask for {}", each(&|measure| measure.fewer().to_owned())),
    };
    Some(Error::new(Kind::Unenforceable, message).help(help))
}

/// How many instances of one role would need no more than that, where taking from that role alone is enough.
fn scale_hint(plan: &JobPlan, max: &[(Resource, u64)]) -> Option<String> {
    let (first, _) = max.first()?;
    let role = plan.roles.iter().max_by_key(|role| first.of(&claim::of_role(role)))?;
    (1..role.instances).rev().find_map(|instances| {
        let mut smaller = plan.clone();
        smaller.roles.iter_mut().find(|other| other.name == role.name)?.instances = instances;
        let claim = claim::of(&smaller);
        let fits = max.iter().all(|(measure, max)| measure.of(&claim) <= *max);
        fits.then(|| format!("fewer instances with `--scale {}={instances}`", role.name))
    })
}

#[cfg(test)]
mod tests;
