//! The options of a script, each as a field, a setting of the target, a note or a refusal.

use crate::source::Span;

use super::super::amounts::{amount, duration};
use super::super::draft::Draft;
use super::super::nodes::string;
use super::super::options::Becomes;
use super::directives::Directive;
use super::layout::{Amount, ROLE, Request};
use super::values::{array, gpus, memory, time};

/// What the options say, where several of them make one field.
#[derive(Debug, Default)]
pub(super) struct Settings {
    /// Nodes, tasks, CPUs, memory and GPUs.
    pub(super) request: Request,
    /// `--job-name`.
    pub(super) name: Option<(String, Span)>,
    /// The numbers of `--array`, how many run at once, and its place.
    pub(super) array: Option<(Vec<u64>, Option<u64>, Span)>,
    /// `--export`: the variables to pass; `None` for all.
    pub(super) export: Option<(Vec<String>, Span)>,
    /// Options of pyxis.
    pub(super) container: Vec<(&'static str, String, Span)>,
}

impl Settings {
    /// Takes an option.
    pub(super) fn take(&mut self, directive: &Directive, draft: &mut Draft<'_>) {
        let Directive { option, value, span } = directive;
        let span = *span;
        match option.becomes {
            Becomes::Field(_) => self.field(option.long, value, span, draft),
            Becomes::Target("exclusive") if value.is_empty() => {
                draft.target(&["slurm", "exclusive"], span, flag(span));
            }
            Becomes::Extra if option.long == "mail-type" => {
                let before =
                    draft.setting(&["slurm", "extra", "mail-type"]).and_then(crate::document::Node::as_str);
                let all = before.map_or(value.clone(), |before| format!("{before},{value}"));
                draft.target(&["slurm", "extra", "mail-type"], span, string(span, all));
            }
            Becomes::Target("exclusive") => {
                draft.need_of_target(&["slurm", "exclusive"], span, flag(span));
                draft.changed(
                    span,
                    format!(
                        "`--exclusive={value}` becomes whole nodes: `slurm: {{exclusive: true}}` of a target"
                    ),
                    "",
                );
            }
            Becomes::Extra => {
                let value = if value.is_empty() { flag(span) } else { string(span, value) };
                draft.target(&["slurm", "extra", option.long], span, value);
            }
            Becomes::Target(key) => draft.target(&["slurm", key], span, string(span, value)),
            Becomes::Note(why) => draft.note(span, why),
            Becomes::Refusal(what, instead) => draft.refuse(span, what, instead),
        }
    }

    fn field(&mut self, name: &'static str, value: &str, span: Span, draft: &mut Draft<'_>) {
        let wrong = |draft: &mut Draft<'_>, what: &str| {
            draft.invalid(span, format!("`{value}` is not {what}"), "");
        };
        let count =
            || value.split('-').next().and_then(|text| text.parse::<u32>().ok()).filter(|number| *number > 0);
        let path = |field: &str| format!("roles.{ROLE}.resources.{field}");
        match name {
            "nodes" | "ntasks" | "ntasks-per-node" | "cpus-per-task" | "cpus-per-gpu" => {
                let Some(number) = count() else { return wrong(draft, "a number above 0") };
                if let Some((_, most)) = value.split_once('-').filter(|(least, most)| least != most) {
                    draft.changed(
                        span,
                        format!("`--{name}={value}` is a range: the job has {number}"),
                        format!("the other end is {most}"),
                    );
                } else {
                    let field = if name.starts_with("cpus") {
                        path("cpu")
                    } else {
                        format!("roles.{ROLE}.instances")
                    };
                    draft.account.field(span, field);
                }
                let given = Some((u64::from(number), span));
                match name {
                    "nodes" => self.request.nodes = given,
                    "ntasks" => self.request.tasks = given,
                    "ntasks-per-node" => self.request.tasks_per_node = given,
                    "cpus-per-task" => self.request.cpus_per_task = given,
                    _ => self.request.cpus_per_gpu = given,
                }
            }
            "mem" | "mem-per-cpu" | "mem-per-gpu" => {
                let Some(kib) = memory(value) else {
                    return wrong(draft, "an amount of memory such as `16G`");
                };
                if kib == 0 {
                    return draft.note(
                        span,
                        "all memory of a node: a job file without `memory` leaves it to the target",
                    );
                }
                draft.account.field(span, path("memory"));
                let given: Amount = Some((kib, span));
                match name {
                    "mem" => self.request.memory = given,
                    "mem-per-cpu" => self.request.memory_per_cpu = given,
                    _ => self.request.memory_per_gpu = given,
                }
            }
            "gres" => self.gres(value, span, draft),
            "gpus" | "gpus-per-node" | "gpus-per-task" => match gpus(value) {
                Some(found) => self.gpus(name, found, span, draft),
                None if value.contains(',') => several_models(span, draft),
                None => wrong(draft, "a number of GPUs such as `4` or `a100:4`"),
            },
            "time" => match time(value) {
                Some(seconds @ 1..) => draft.field(&["timeout"], span, string(span, duration(seconds))),
                Some(0) => draft.note(span, "a job file without `timeout` has no limit"),
                None => wrong(draft, "a time such as `30`, `2:00:00` or `1-12:00:00`"),
            },
            "array" => match array(value) {
                Ok((numbers, parallel)) => {
                    draft.account.field(span, "matrix");
                    self.array = Some((numbers, parallel, span));
                }
                Err(why) => draft.invalid(span, format!("`{value}` {why}"), ""),
            },
            "chdir" if value == "." => draft.note(span, "a job starts in the directory of its file"),
            "chdir" => draft.field(&["roles", ROLE, "workdir"], span, string(span, value)),
            "export" => self.export(value, span, draft),
            "job-name" => self.name = Some((value.to_owned(), span)),
            "tmp" => match memory(value) {
                Some(kib) if kib > 0 => {
                    draft.field(&["roles", ROLE, "resources", "disk"], span, string(span, amount(kib)));
                }
                Some(_) => draft.note(span, "no limit"),
                None => wrong(draft, "an amount of disk such as `100G`"),
            },
            "signal" => signal(value, span, draft),
            "dependency" if value == "singleton" => draft.changed(
                span,
                "jobs of one name may run at the same time",
                "submit one after the other ended: `jobc wait` waits for it",
            ),
            "dependency" => draft.refuse(
                span,
                "the job waits for another job",
                "write the other job's command as a role of the same job file, and `needs` in this one",
            ),
            _ => self.container.push((name, value.to_owned(), span)),
        }
    }

    fn gpus(
        &mut self,
        name: &str,
        (number, model): (u64, Option<String>),
        span: Span,
        draft: &mut Draft<'_>,
    ) {
        draft.account.field(span, format!("roles.{ROLE}.resources.gpu"));
        let given = Some((number.min(1 << 20), span));
        match name {
            "gpus" => self.request.gpus = given,
            "gpus-per-task" => self.request.gpus_per_task = given,
            _ => self.request.gpus_per_node = given,
        }
        self.request.model = model.or(self.request.model.take());
    }

    fn gres(&mut self, value: &str, span: Span, draft: &mut Draft<'_>) {
        let (mut cards, mut others) = (vec![], vec![]);
        for part in value.split(',') {
            match part.strip_prefix("gpu").or_else(|| part.strip_prefix("gres:gpu")) {
                Some("") => cards.push((1, None)),
                Some(rest) if rest.starts_with([':', '=']) => match gpus(&rest[1..]) {
                    Some(found) => cards.push(found),
                    None => {
                        return draft.invalid(
                            span,
                            format!("`{part}` is not a number of GPUs such as `gpu:a100:4`"),
                            "",
                        );
                    }
                },
                _ => others.push(part),
            }
        }
        if cards.len() > 1 {
            return several_models(span, draft);
        }
        if let Some(found) = cards.pop() {
            self.gpus("gpus-per-node", found, span, draft);
        }
        if !others.is_empty() && value != "none" {
            let what = others.join(", ");
            draft.refuse(
                span,
                format!("`{what}` is a resource of one cluster"),
                "leave it out, or ask the cluster for a feature: `--constraint`",
            );
        } else if value == "none" {
            draft.note(span, "no generic resources");
        }
    }

    fn export(&mut self, value: &str, span: Span, draft: &mut Draft<'_>) {
        let mut passed = Vec::new();
        for part in value.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                Some((name, text)) => draft.field(&["env", name], span, string(span, text)),
                None if part.eq_ignore_ascii_case("all") => passed.push("*".to_owned()),
                None if part.eq_ignore_ascii_case("none") || part.eq_ignore_ascii_case("nil") => {
                    draft.note(span, "the default: a job inherits no variables");
                }
                None => passed.push(part.to_owned()),
            }
        }
        if !passed.is_empty() {
            draft.account.field(span, "image.host.env");
        }
        self.export = Some((passed, span));
    }
}

fn flag(span: Span) -> crate::document::Node {
    crate::document::Node { span, value: crate::document::Value::Bool(true) }
}

fn several_models(span: Span, draft: &mut Draft<'_>) {
    draft.refuse(span, "an instance has GPUs of several models", "write a role for each model in a job file");
}

/// `[R:][B:]SIGNAL[@SECONDS]`.
fn signal(value: &str, span: Span, draft: &mut Draft<'_>) {
    let (name, seconds) = value.split_once('@').unwrap_or((value, "60"));
    let name = name.rsplit(':').next().unwrap_or_default();
    let Some(full) = jobc_schema::signal::full_name(name) else {
        return draft.invalid(span, format!("unknown signal `{name}`"), "");
    };
    let Ok(seconds) = seconds.parse::<u32>() else {
        return draft.invalid(span, format!("`{seconds}` is not a number of seconds"), "");
    };
    if full != "SIGTERM" {
        draft.set(&["roles", ROLE, "stop_signal"], span, string(span, full));
    }
    draft.set(&["grace_period"], span, string(span, duration(u64::from(seconds))));
    draft.changed(
        span,
        format!(
            "outside Slurm the signal is sent at the time limit, and the job is killed {seconds} s later"
        ),
        "",
    );
}
