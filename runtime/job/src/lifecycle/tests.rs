//! The course of simulated jobs, with a simulated clock: inputs and actions.

mod endings;
mod gangs;
mod left_over;
mod order;
mod pauses;
mod properties;
mod readiness;
mod resumes;
mod retries;
mod scale;
mod serving;
mod thresholds;

use jobc_schema::plan::{GangPlan, JobPlan};
use jobc_schema::role::{NeedState, RetryScope};
use serde_json::{Map, Value, json};

use super::*;
use jobc_container::process::Exit;

/// A plan from its roles: what is not written is as the compiler would have it.
///
/// `elastic` is the fewest instances of the rendezvous of `members`. A need is `{role: state}` or `{role: [state, min]}`; `completion`, `retry`, `ready` and `launch` are the plan's own,
/// without what has a default.
pub(super) fn plan(written: &Value) -> JobPlan {
    let mut roles = Vec::new();
    for (name, role) in written["roles"].as_object().expect("roles") {
        let instances = |name: &str| written["roles"][name]["instances"].as_u64().unwrap_or(1);
        let mut planned = json!({
            "name": name, "instances": 1, "image": "main", "command": {"image": {}}, "resources": {},
            "completion": {"min_failed": 1}, "retry": {"max": 0, "scope": "task"}, "grace_period_seconds": 30,
            "security": {"read_only_root": false, "privileged": false},
        });
        for (key, value) in role.as_object().expect("a role") {
            planned[key] = match key.as_str() {
                "needs" => value
                    .as_object()
                    .expect("needs")
                    .iter()
                    .map(|(role, need)| {
                        let (state, min) = match need {
                            Value::Array(need) => (need[0].clone(), need[1].clone()),
                            state => (state.clone(), json!(instances(role))),
                        };
                        json!({"role": role, "state": state, "min": min})
                    })
                    .collect(),
                "retry" => over(&json!({"scope": "task"}), value),
                "ready" => {
                    let usual = json!({"probe": {"port": "http"}, "delay_seconds": 0, "every_seconds": 5,
                        "try_timeout_seconds": 5, "timeout_seconds": 600, "keep": false});
                    over(&usual, value)
                }
                _ => value.clone(),
            };
        }
        roles.push(planned);
    }
    let mut job = json!({
        "name": "demo", "target": {"name": "local", "settings": {"backends": ["oci"]}}, "images": {}, "roles": roles,
        "stages": [], "gang": "auto", "network": "host",
        "totals": {"instances": 0, "cpu_millis": 0, "memory_bytes": 0, "gpus": 0, "gpu_slices": 0},
    });
    for (key, value) in written.as_object().expect("a job").iter().filter(|(key, _)| *key != "roles") {
        job[key] = match key.as_str() {
            "members" | "elastic" => continue,
            _ => value.clone(),
        };
    }
    if let Some(members) = written["members"].as_array() {
        let members: Vec<_> =
            members.iter().map(|role| json!({"role": role, "part": "worker", "processes": 1})).collect();
        job["distributed"] =
            json!({"framework": "mpi", "members": members, "instances": 1, "world_size": 1, "port": 1});
    }
    if let Some(min) = written.get("elastic") {
        job["distributed"]["elastic"] =
            json!({"min": min, "max": 9, "max_restarts": 0, "backend": "c10d", "id": "demo"});
    }
    serde_json::from_value(job).expect("a plan")
}

/// An object with another put over it.
fn over(usual: &Value, written: &Value) -> Value {
    let mut all: Map<String, Value> = usual.as_object().cloned().expect("an object");
    all.extend(written.as_object().cloned().expect("an object"));
    Value::Object(all)
}

/// Sends a sequence of inputs to a job, and shows the actions for each line, and the final state.
///
/// A line is a time in seconds and what happened: `prepared`, `created TASK`, `started TASK`, `ready TASK`, `not-ready
/// TASK why`, `not-started TASK code why`, `ended TASK code [note]` with a minus for a signal, `stop [grace]`, `interrupt`, `kill`,
/// `pause`, `resume`, `suspend`, `readmitted`, `budget why`, `broken why`, `tick`. `ROLE-*` is all of a role's tasks, one after another. Ticks that the job
/// asks for come by themselves.
fn check(written: &Value, story: &str) -> String {
    let mut job = Lifecycle::new(&plan(written));
    let mut text = format!("{written}\n");
    for line in story.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (time, what) = line.split_once(' ').expect("a time and what happened");
        let now = Duration::from_secs_f64(time.parse().expect("seconds"));
        while let Some(tick) = job.next_tick().filter(|tick| *tick <= now) {
            let actions = job.step(tick, Input::Tick);
            text += &output(&job, tick, "tick", &actions);
        }
        for input in inputs(&job, what) {
            let shown = show(&job, &input);
            let actions = job.step(now, input);
            text += &output(&job, now, &shown, &actions);
        }
    }
    let states: Vec<String> =
        job.tasks().iter().map(|task| format!("{} {}", task.id, task.state.as_str())).collect();
    text += &format!("= {}: {}\n", job.state().as_str(), states.join(", "));
    if let Some(tick) = job.next_tick() {
        text += &format!("= wants a tick at {}s\n", tick.as_secs_f64());
    }
    text
}

fn inputs(job: &Lifecycle, what: &str) -> Vec<Input> {
    let mut words = what.splitn(2, ' ');
    let (verb, rest) = (words.next().expect("a word"), words.next().unwrap_or_default());
    let (name, rest) = match verb {
        "stop" | "interrupt" | "kill" | "broken" | "budget" => ("", rest),
        _ => rest.split_once(' ').unwrap_or((rest, "")),
    };
    let matches = |id: &str| name.strip_suffix('*').map_or(id == name, |role| id.starts_with(role));
    let tasks = (0..job.tasks().len()).filter(|task| matches(&job.tasks()[*task].id.to_string()));
    let tasks: Vec<TaskNumber> = tasks.collect();
    assert!(name.is_empty() || !tasks.is_empty(), "no task `{name}`");
    let (code, note) = rest.split_once(' ').unwrap_or((rest, ""));
    let each = |make: &dyn Fn(TaskNumber) -> Input| tasks.iter().copied().map(make).collect();
    match verb {
        "prepared" => vec![Input::Prepared],
        "created" => each(&Input::Created),
        "started" => each(&Input::Started),
        "ready" => each(&Input::Ready),
        "not-ready" => each(&|task| Input::NotReady { task, why: rest.to_owned() }),
        "not-started" => each(&|task| Input::NotStarted {
            task,
            code: code.parse().expect("a code"),
            why: note.to_owned(),
        }),
        "stalled" => each(&|task| Input::Stalled { task, why: note.to_owned(), is_final: code == "final" }),
        "ended" => each(&|task| {
            let code: i32 = code.parse().expect("a code");
            let exit = u8::try_from(code).map_or(Exit::Signal(-code), Exit::Code);
            let note = Some(note.to_owned()).filter(|note| !note.is_empty());
            let lines = note.iter().filter(|note| note.starts_with("jobc: ")).cloned().collect();
            Input::Ended { task, exit, note, seen: AttemptFacts { lines, ..AttemptFacts::default() } }
        }),
        "stop" => {
            let grace = rest.parse().ok().map(Duration::from_secs);
            vec![Input::Stop { grace, why: "stopped by jobc stop".to_owned() }]
        }
        "interrupt" => vec![Input::Interrupt { why: "interrupted".to_owned() }],
        "kill" => vec![Input::Kill { why: "killed by jobc kill".to_owned() }],
        "pause" => vec![Input::Paused],
        "resume" => vec![Input::Resumed],
        "suspend" => vec![Input::Suspend],
        "readmitted" => vec![Input::Readmitted],
        "budget" => vec![Input::OverBudget { why: rest.to_owned() }],
        "broken" => vec![Input::Broken { why: rest.to_owned() }],
        "tick" => vec![Input::Tick],
        _ => panic!("`{verb}` never happens"),
    }
}

fn show(job: &Lifecycle, input: &Input) -> String {
    let id = |task: &TaskNumber| job.tasks()[*task].id.to_string();
    match input {
        Input::Created(task) => format!("created {}", id(task)),
        Input::Started(task) => format!("started {}", id(task)),
        Input::Ready(task) => format!("ready {}", id(task)),
        Input::NotReady { task, why } => format!("not ready {}: {why}", id(task)),
        Input::NotStarted { task, code, why } => format!("not started {}: {code}, {why}", id(task)),
        Input::Stalled { task, why, .. } => format!("stalled {}: {why}", id(task)),
        Input::Ended { task, exit, note, .. } => {
            let note = note.as_ref().map(|note| format!(", {note}")).unwrap_or_default();
            format!("ended {}: {exit:?}{note}", id(task))
        }
        Input::Stop { grace, .. } => format!("stop {grace:?}"),
        Input::Interrupt { .. } => "interrupt".to_owned(),
        Input::Kill { .. } => "kill".to_owned(),
        Input::Broken { why } => format!("broken: {why}"),
        Input::OverBudget { why } => format!("over budget: {why}"),
        Input::Prepared
        | Input::Paused
        | Input::Resumed
        | Input::Suspend
        | Input::Readmitted
        | Input::Tick => format!("{input:?}").to_lowercase(),
    }
}

fn output(job: &Lifecycle, now: Duration, what: &str, actions: &[Action]) -> String {
    let id = |task: &TaskNumber| job.tasks()[*task].id.to_string();
    let mut text = format!("{:>5}s {what}\n", now.as_secs_f64());
    for action in actions {
        let line = match action {
            Action::Create { task, attempt, memory_bytes } => {
                let memory = memory_bytes.map(|bytes| format!(" with {bytes} bytes")).unwrap_or_default();
                format!("create {} attempt {attempt}{memory}", id(task))
            }
            Action::Start(task) => format!("start {}", id(task)),
            Action::Watch(task) => format!("watch {}", id(task)),
            Action::Signal(task, EndSignal::Interrupt) => format!("INT {}", id(task)),
            Action::Signal(task, EndSignal::Stop) => format!("TERM {}", id(task)),
            Action::Signal(task, EndSignal::Kill) => format!("KILL {}", id(task)),
            Action::Retried { scope, task, attempt, backoff, why } => {
                format!(
                    "retry {scope:?} for {}: attempt {attempt} in {}s: {why}",
                    id(task),
                    backoff.as_secs()
                )
            }
            Action::Suspended => "suspended".to_owned(),
            Action::Stopping { why } => format!("stopping: {why}"),
            Action::End(state, end) => {
                let task = end.task.as_ref().map(|task| format!(", by {task}")).unwrap_or_default();
                format!("END {}, exit {}{task}: {}", state.as_str(), end.exit_code, end.explanation)
            }
        };
        text += &format!("           -> {line}\n");
    }
    text
}
