//! The metrics of the job file: numbers in tasks' output and files.

use std::time::{Duration, Instant};

use super::Supervisor;
use super::message::FileNumber;
use super::spawner::SpawnerRequest;
use crate::lifecycle::TaskNumber;
use jobc_place::metric::{MetricNumber, MetricValue};
use jobc_place::time::Time;
use jobc_schema::plan::MetricSource;

/// How often the files of running tasks are read, and how long one task's reading may take of that.
const READ_INTERVAL: Duration = Duration::from_secs(5);
const READ_TIME: Duration = Duration::from_millis(10);

impl Supervisor {
    /// A task reported a number.
    pub(super) fn note_number(&mut self, task: TaskNumber, attempt: u32, name: &str, number: f64) {
        let known = &self.lifecycle.tasks()[task];
        let role = &self.context.plan.roles[known.role];
        let better = role.metrics.get(name).and_then(|metric| metric.better);
        self.journal.metric(MetricValue {
            name: name.to_owned(),
            value: MetricNumber(number),
            better,
            task: known.id.clone(),
            attempt,
            time: Time::now(),
            first: None,
        });
    }

    /// The metrics in a task's files were read. If the task succeeded, a missing metric is a note.
    pub(super) fn note_numbers(
        &mut self,
        task: TaskNumber,
        attempt: u32,
        numbers: Vec<FileNumber>,
        ended_well: bool,
    ) {
        for (name, number) in numbers {
            match number {
                Ok(number) => {
                    let id = &self.lifecycle.tasks()[task].id;
                    let same = |value: &&MetricValue| {
                        value.name == name && value.task == *id && value.attempt == attempt
                    };
                    let known = self.journal.record.metrics.iter().find(same);
                    // The time of a value is that of its change.
                    if known.is_none_or(|known| known.value.0.to_bits() != number.to_bits()) {
                        self.note_number(task, attempt, &name, number);
                    }
                }
                Err(why) if ended_well => {
                    let id = &self.lifecycle.tasks()[task].id;
                    self.journal.note(format!("{id}: no value of the metric `{name}`: {why}"));
                }
                Err(_) => {}
            }
        }
    }

    /// When the files of running tasks are to be read again.
    pub(super) fn next_reading(&self) -> Option<Instant> {
        self.next_reading.filter(|_| !self.attempts.is_empty())
    }

    /// Has the files of running tasks read, if it is time.
    pub(super) fn read_files(&mut self) {
        if self.next_reading().is_none_or(|due| due > Instant::now()) {
            return;
        }
        let mut count = 0;
        for (&task, attempt) in &self.attempts {
            let known = &self.lifecycle.tasks()[task];
            if reads_files(&self.context.plan.roles[known.role]) {
                let (id, attempt) = (known.id.clone(), attempt.number);
                self.spawner.submit(SpawnerRequest::ReadNumbers { task, id, attempt });
                count += 1;
            }
        }
        self.next_reading = Some(Instant::now() + READ_INTERVAL.max(READ_TIME * count));
    }

    /// When the files are read first; `None` if no role has metrics in files.
    pub(super) fn first_reading(plan: &jobc_schema::plan::JobPlan) -> Option<Instant> {
        plan.roles.iter().any(reads_files).then(|| Instant::now() + READ_INTERVAL)
    }
}

fn reads_files(role: &jobc_schema::plan::RolePlan) -> bool {
    role.metrics.values().any(|metric| matches!(metric.source, MetricSource::File { .. }))
}
