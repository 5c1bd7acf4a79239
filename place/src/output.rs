//! What the commands about jobs print with `--format json`, and its schema.

pub mod history;
mod why;

use std::borrow::Cow;
use std::collections::BTreeMap;

use indexmap::IndexMap;
use jobc_schema::Scalar;
use jobc_schema::generate::render;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::event::Event;
use crate::job::{JobDetail, JobSummary};
use crate::logs::Stream;
use crate::metric::MetricNumber;
use crate::queue::QueueRow;
use crate::task::TaskStatus;
use crate::usage::TaskUsage;

use history::HistoryJob;
pub use why::WhyJob;

/// A job.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JobOutput<'a> {
    #[serde(flatten)]
    summary: &'a JobSummary,
    /// What commands take as the job: `train.3`, or `lab/train-8d2xv`.
    id: &'a str,
    /// The same, of a job at a target.
    #[serde(skip_serializing_if = "Option::is_none")]
    handle: Option<&'a str>,
    /// The target; null for this host.
    target: Option<&'a str>,
}

/// A job in a list, as `jobc ps` and `jobc wait` print it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ListedJob<'a> {
    #[serde(flatten)]
    job: JobOutput<'a>,
    /// The number of tasks in each state; of a cluster also how many the job has, as `wanted`.
    tasks: BTreeMap<&'static str, u64>,
}

/// A job in full, as `jobc inspect` prints it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct InspectedJob<'a> {
    #[serde(flatten)]
    job: JobOutput<'a>,
    /// Which attempt of the whole job this is, from 1.
    attempt: u32,
    /// Why it does not run, or ended: one sentence each.
    reasons: &'a [String],
    /// Notes: limits that nothing enforces, roles scaled down.
    notes: &'a [String],
    /// Its tasks.
    tasks: &'a [TaskStatus],
    /// What this place alone knows, such as the record of a job of this host.
    #[serde(flatten)]
    more: Map<String, Value>,
}

/// A combination of a sweep, as `jobc ps SWEEP` prints it, with what [`ListedJob`] has unless the job was removed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SweepJob<'a> {
    #[serde(flatten)]
    job: Option<ListedJob<'a>>,
    /// What commands take as the job.
    id: &'a str,
    /// The number of the combination, from 0.
    number: u32,
    /// The values of the axes.
    values: &'a IndexMap<String, Scalar>,
    /// The state of the job, or `removed`.
    state: &'a str,
    /// The values of the compared metrics, by their headings; null where there is none.
    metrics: IndexMap<&'a str, Option<MetricNumber>>,
}

/// A line of output, as `jobc logs` prints it.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct LogLine<'a> {
    /// When it was written (RFC 3339); empty where that is unknown.
    pub time: Cow<'a, str>,
    /// The job, as commands take it.
    pub job: Cow<'a, str>,
    /// The task.
    pub task: Cow<'a, str>,
    /// The attempt of the task, from 1.
    pub attempt: u32,
    /// Where it comes from.
    pub stream: Stream,
    /// The text, without the end of the line. Bytes that are not UTF-8 are U+FFFD.
    pub text: Cow<'a, str>,
    /// Whether the line ends here; otherwise it continues in the next object.
    pub ends: bool,
}

/// The usage of a task, as `jobc stats` and `jobc top` print it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct UsageLine<'a> {
    /// The job, as commands take it.
    pub job: &'a str,
    /// What was measured.
    #[serde(flatten)]
    pub usage: &'a TaskUsage,
}

impl<'a> JobOutput<'a> {
    fn new(id: &'a str, summary: &'a JobSummary) -> Self {
        let target = id.split_once('/').map(|(target, _)| target);
        Self { summary, id, handle: target.map(|_| id), target }
    }
}

impl<'a> ListedJob<'a> {
    /// A job by the id that commands take.
    pub fn new(id: &'a str, summary: &'a JobSummary) -> Self {
        let counts = summary.tasks;
        let tasks = if summary.states.is_empty() {
            BTreeMap::from([
                ("wanted", counts.wanted),
                ("active", counts.active),
                ("succeeded", counts.succeeded),
                ("failed", counts.failed),
            ])
        } else {
            summary.states.iter().copied().collect()
        };
        Self { job: JobOutput::new(id, summary), tasks }
    }
}

impl<'a> InspectedJob<'a> {
    /// A job by the id that commands take, and what else the place has of it, which comes first.
    pub fn new(id: &'a str, detail: &'a JobDetail, more: Map<String, Value>) -> Self {
        let JobDetail { attempt, reasons, notes, tasks, .. } = detail;
        Self { job: JobOutput::new(id, &detail.summary), attempt: *attempt, reasons, notes, tasks, more }
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        json!(self)
    }
}

impl<'a> SweepJob<'a> {
    /// A combination by the id that commands take.
    pub fn new(
        (id, summary): (&'a str, Option<&'a JobSummary>),
        (number, values): (u32, &'a IndexMap<String, Scalar>),
        state: &'a str,
        metrics: IndexMap<&'a str, Option<MetricNumber>>,
    ) -> Self {
        Self { job: summary.map(|summary| ListedJob::new(id, summary)), id, number, values, state, metrics }
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        json!(self)
    }
}

/// The file with the schema.
pub const SCHEMA_FILE: &str = "output.v1.schema.json";

/// The schema: what each command prints is a definition under its name, of which several are for lines.
pub fn schema() -> String {
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let commands = [
        ("ps", "`jobc ps`: the jobs.", generator.subschema_for::<Vec<ListedJob<'_>>>()),
        ("ps-job", "`jobc ps JOB`: its tasks.", generator.subschema_for::<Vec<TaskStatus>>()),
        ("ps-queue", "`jobc ps --queue`: the jobs of all users.", generator.subschema_for::<Vec<QueueRow>>()),
        ("ps-sweep", "`jobc ps SWEEP`: its jobs.", generator.subschema_for::<Vec<SweepJob<'_>>>()),
        ("history", "`jobc history`: the jobs.", generator.subschema_for::<Vec<HistoryJob<'_>>>()),
        ("inspect", "`jobc inspect`: a job.", generator.subschema_for::<InspectedJob<'_>>()),
        (
            "why",
            "A line of `jobc why JOB`: why a job waits or ended.",
            generator.subschema_for::<WhyJob<'_>>(),
        ),
        ("wait", "A line of `jobc wait`: a job that has ended.", generator.subschema_for::<ListedJob<'_>>()),
        ("logs", "A line of `jobc logs`.", generator.subschema_for::<LogLine<'_>>()),
        ("events", "A line of `jobc events`.", generator.subschema_for::<Event>()),
        ("stats", "A line of `jobc stats`.", generator.subschema_for::<UsageLine<'_>>()),
        ("top", "A line of `jobc top`.", generator.subschema_for::<UsageLine<'_>>()),
    ];
    let refs: Vec<Value> =
        commands.iter().map(|(command, ..)| json!({ "$ref": format!("#/$defs/{command}") })).collect();
    for (command, what, mut schema) in commands {
        schema.insert("description".to_owned(), what.into());
        generator.definitions_mut().insert(command.to_owned(), schema.to_value());
    }
    let definitions = generator.take_definitions(true);
    let root = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Output",
        "description": "What commands about jobs print with `--format json`. A definition has the name of the command.",
        "anyOf": refs,
        "$defs": definitions,
    });
    render(Schema::try_from(root).expect("an object"), SCHEMA_FILE)
}
