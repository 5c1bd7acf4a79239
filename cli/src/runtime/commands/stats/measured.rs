//! The jobs whose usage is measured: those that are named, or all that run on this host.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jobc_place::Place;
use jobc_place::job::JobSummary;
use jobc_place::usage::TaskUsage;

use super::super::found::{self, Places};
use super::super::jobs::Result;
use crate::runtime::args::watch::StatsArgs;

/// How often the end of jobs is looked for.
const END_INTERVAL: Duration = Duration::from_millis(200);

/// The jobs to measure.
pub(crate) struct MeasuredJobs {
    /// Those that were named, with their places.
    named: Vec<(Arc<dyn Place>, String, String)>,
    /// This host, where all running jobs are measured.
    all: Option<Arc<dyn Place>>,
}

/// A job, and the current usage of its tasks.
pub(crate) struct MeasuredJob {
    /// What a user calls it.
    pub id: String,
    pub summary: JobSummary,
    pub tasks: Vec<TaskUsage>,
}

impl MeasuredJobs {
    pub(crate) fn open(args: &StatsArgs) -> Result<Self> {
        if args.jobs.is_empty() {
            return Ok(Self { named: vec![], all: Some(Places::default().open(None)?) });
        }
        let mut named = vec![];
        for one in found::find(&args.jobs)? {
            // Of a sweep, ended jobs would only be in the way.
            let jobs = one.members.jobs().iter().filter(|job| !one.is_sweep() || !job.state.is_final());
            named.extend(jobs.map(|job| (Arc::clone(&one.place), job.name.clone(), one.id_of(job))));
        }
        Ok(Self { named, all: None })
    }

    /// Each job with the current usage of its tasks.
    pub(crate) fn measure(&mut self) -> Result<Vec<MeasuredJob>> {
        let measure = |place: &dyn Place, summary: JobSummary, id: String| {
            let has_tasks = !summary.state.is_final() && !summary.state.is_waiting();
            let tasks = if has_tasks { place.usage(&summary.name)? } else { vec![] };
            Ok(MeasuredJob { id, summary, tasks })
        };
        if let Some(place) = &self.all {
            let running = place.list()?.into_iter().filter(|job| !job.state.is_final());
            let mut running: Vec<JobSummary> = running.collect();
            running.sort_by(|a, b| a.name.cmp(&b.name));
            let with_id = |job: JobSummary| {
                let id = job.name.clone();
                measure(&**place, job, id)
            };
            return running.into_iter().map(with_id).collect();
        }
        let of_named = |(place, name, id): &(Arc<dyn Place>, String, String)| {
            measure(&**place, place.find(name)?, id.clone())
        };
        self.named.iter().map(of_named).collect()
    }

    /// Whether no job runs, and none was named.
    pub(crate) fn is_idle(&self, jobs: &[MeasuredJob]) -> bool {
        self.all.is_some() && jobs.is_empty()
    }

    /// How long until the next measurement.
    pub(crate) fn interval(&self) -> Duration {
        let places = self.named.iter().map(|(place, ..)| place).chain(&self.all);
        places.map(|place| place.usage_interval()).max().unwrap_or_default()
    }

    /// Waits for the next measurement, but not beyond the end of the jobs; whether all of them have ended.
    pub(crate) fn wait(&self, jobs: &[MeasuredJob]) -> Result<bool> {
        let interval = self.interval();
        let until = Instant::now() + interval;
        // A place that measures seldom is asked seldom.
        let step = if interval > Duration::from_secs(1) { interval } else { END_INTERVAL };
        loop {
            if self.have_ended(jobs)? {
                return Ok(true);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            std::thread::sleep(left.min(step));
        }
    }

    fn have_ended(&self, jobs: &[MeasuredJob]) -> Result<bool> {
        if let Some(place) = &self.all {
            let all = place.list()?;
            return Ok(all.iter().all(|job| job.state.is_final()));
        }
        for ((place, name, _), job) in self.named.iter().zip(jobs) {
            if !job.summary.state.is_final() && !place.find(name)?.state.is_final() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
