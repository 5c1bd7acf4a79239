//! Slurm's variables in a script, and what stands for each here.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::layout::Layout;
use super::scan::Class;

/// What stands for a variable.
pub(super) enum Value {
    /// Another variable.
    Name(String),
    /// A text: a number, an expression of jobc, or a command in `$( )`.
    Text(String),
    /// The variable, which a line at the top sets.
    Set(&'static str),
    /// Nothing.
    Absent,
}

/// The facts that the values are made of.
pub(super) struct Facts {
    /// The role.
    pub(super) role: String,
    /// The shape of the job.
    pub(super) layout: Layout,
    /// The CPUs of a task, if they are requested.
    pub(super) cpus: Option<u64>,
    /// The memory of a node in MiB, if it is requested.
    pub(super) memory_mib: Option<u64>,
    /// The numbers of an array.
    pub(super) array: Option<Vec<u64>>,
    /// Whether `distributed` sets `JOBC_RANK`.
    pub(super) ranked: bool,
    /// The roles of a heterogeneous job, by component.
    pub(super) components: Vec<(String, Layout)>,
}

/// A number of the job that is the same in every task: the name of the job has letters.
const JOB_NUMBER: &str = "$(printf %s \"$JOBC_JOB\" | cksum | tr -dc 0-9)";

/// Marks of a line that computes with the number of a job.
const ARITHMETIC: [&str; 6] = ["$((", "expr ", "tail -c", "cut -c", ": -", "%"];

impl Facts {
    /// What stands for a variable of Slurm in a line.
    pub(super) fn value(&self, name: &str, line: &str) -> Value {
        if let Some((name, group)) = name.split_once("_HET_GROUP_") {
            return self.of_component(name, group);
        }
        let layout = &self.layout;
        let number = |number: u64| Value::Text(number.to_string());
        let rank = || Value::Name((if self.ranked { "JOBC_RANK" } else { "JOBC_INDEX" }).to_owned());
        let many = layout.instances > 1;
        match name {
            "SLURM_PROCID" | "SLURM_TASK_PID" if many => rank(),
            "SLURM_NODEID" if layout.nodes == layout.instances && many => {
                Value::Name("JOBC_INDEX".to_owned())
            }
            "SLURM_NODEID" if many => Value::Text(format!("$((JOBC_INDEX / {}))", layout.tasks_per_node)),
            "SLURM_NODEID" | "SLURM_PROCID" | "SLURM_LOCALID" | "SLURM_GTIDS" => Value::Text("0".to_owned()),
            "SLURM_NTASKS" | "SLURM_NPROCS" | "SLURM_STEP_NUM_TASKS" if many => {
                Value::Name("JOBC_INSTANCES".to_owned())
            }
            "SLURM_NTASKS" | "SLURM_NPROCS" | "SLURM_STEP_NUM_TASKS" => number(layout.tasks),
            "SLURM_NNODES" | "SLURM_JOB_NUM_NODES" | "SLURM_STEP_NUM_NODES"
                if many && layout.nodes == layout.instances =>
            {
                Value::Name("JOBC_INSTANCES".to_owned())
            }
            "SLURM_NNODES" | "SLURM_JOB_NUM_NODES" | "SLURM_STEP_NUM_NODES" => number(layout.nodes),
            "SLURM_NTASKS_PER_NODE" | "SLURM_TASKS_PER_NODE" | "SLURM_STEP_TASKS_PER_NODE" => {
                number(layout.tasks_per_node)
            }
            "SLURM_CPUS_PER_TASK" => self.cpus.map_or(Value::Text("$(nproc)".to_owned()), number),
            "SLURM_CPUS_ON_NODE" | "SLURM_JOB_CPUS_PER_NODE" => Value::Text("$(nproc)".to_owned()),
            "SLURM_GPUS_ON_NODE" | "SLURM_GPUS_PER_NODE" | "SLURM_GPUS_PER_TASK" => {
                number(layout.gpus.unwrap_or(0))
            }
            "SLURM_GPUS" => number(layout.gpus.unwrap_or(0).saturating_mul(layout.instances)),
            "SLURM_MEM_PER_NODE" => self.memory_mib.map_or(Value::Absent, number),
            "SLURM_JOB_NAME" => Value::Name("JOBC_JOB".to_owned()),
            "SLURM_JOBID" | "SLURM_JOB_ID" | "SLURM_ARRAY_JOB_ID" => {
                if ARITHMETIC.iter().any(|mark| line.contains(mark)) {
                    Value::Text(JOB_NUMBER.to_owned())
                } else {
                    Value::Name("JOBC_JOB".to_owned())
                }
            }
            "SLURM_JOB_NODELIST" | "SLURM_NODELIST" | "SLURM_STEP_NODELIST" => Value::Name(self.hosts("")),
            "SLURM_NODENAME" | "SLURMD_NODENAME" | "SLURM_TOPOLOGY_ADDR" => {
                Value::Text("$(hostname)".to_owned())
            }
            "SLURM_LAUNCH_NODE_IPADDR" | "SLURM_SRUN_COMM_HOST" => {
                Value::Text(format!("${{{}%%,*}}", self.hosts("")))
            }
            "SLURM_HET_SIZE" if !self.components.is_empty() => Value::Text(self.components.len().to_string()),
            "SLURM_JOB_USER" => Value::Name("USER".to_owned()),
            "SLURM_SUBMIT_DIR" => Value::Set("SLURM_SUBMIT_DIR=$PWD"),
            "SLURM_TMPDIR" => Value::Set("SLURM_TMPDIR=${TMPDIR:-/tmp}"),
            _ => self.of_array(name).unwrap_or(Value::Absent),
        }
    }

    fn of_array(&self, name: &str) -> Option<Value> {
        let numbers = self.array.as_ref()?;
        Some(Value::Text(match name {
            "SLURM_ARRAY_TASK_ID" => "${{ matrix.task }}".to_owned(),
            "SLURM_ARRAY_TASK_COUNT" => numbers.len().to_string(),
            "SLURM_ARRAY_TASK_MIN" => numbers.first()?.to_string(),
            "SLURM_ARRAY_TASK_MAX" => numbers.last()?.to_string(),
            _ => return None,
        }))
    }

    /// What stands for a variable of a component of a heterogeneous job.
    fn of_component(&self, name: &str, group: &str) -> Value {
        let found = group.parse::<usize>().ok().and_then(|group| self.components.get(group));
        let Some((role, layout)) = found else { return Value::Absent };
        match name {
            "SLURM_JOB_NODELIST" | "SLURM_NODELIST" => Value::Name(hosts(role)),
            "SLURM_JOB_NUM_NODES" | "SLURM_NNODES" => Value::Text(layout.nodes.to_string()),
            "SLURM_NTASKS" | "SLURM_NPROCS" => Value::Text(layout.tasks.to_string()),
            "SLURM_NTASKS_PER_NODE" | "SLURM_TASKS_PER_NODE" => {
                Value::Text(layout.tasks_per_node.to_string())
            }
            "SLURM_JOB_ID" | "SLURM_JOBID" => Value::Name("JOBC_JOB".to_owned()),
            _ => Value::Absent,
        }
    }

    /// The variable with the hosts of the role, or of the component that a text names.
    pub(super) fn hosts(&self, text: &str) -> String {
        let group = text.split("_HET_GROUP_").nth(1).unwrap_or_default();
        let group =
            group.split(|c: char| !c.is_ascii_digit()).next().and_then(|group| group.parse::<usize>().ok());
        let role = group.and_then(|group| self.components.get(group)).map_or(&self.role, |(role, _)| role);
        hosts(role)
    }
}

fn hosts(role: &str) -> String {
    format!("JOBC_HOSTS_{}", role.to_ascii_uppercase().replace('-', "_"))
}

/// Variables that every task has, or that the shell sets.
const OF_SHELL: [&str; 24] = [
    "BASHPID",
    "COLUMNS",
    "EUID",
    "FUNCNAME",
    "GROUPS",
    "HOME",
    "HOSTNAME",
    "IFS",
    "LANG",
    "LINENO",
    "OLDPWD",
    "OPTARG",
    "OPTIND",
    "PATH",
    "PIPESTATUS",
    "PPID",
    "PWD",
    "RANDOM",
    "REPLY",
    "SECONDS",
    "SHELL",
    "TERM",
    "UID",
    "USER",
];

static NAMED: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\$\{?([A-Za-z_]\w*)").expect("a pattern"));

/// The variables of the caller that a script names: those that it uses and does not set, in its order.
pub(super) fn of_caller(body: &str, classes: &[Class]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for captures in NAMED.captures_iter(body) {
        let (Some(whole), Some(name)) = (captures.get(0), captures.get(1)) else { continue };
        let name = name.as_str();
        let is_expanded = matches!(classes[whole.start()], Class::Code | Class::Double);
        let is_known = OF_SHELL.contains(&name)
            || ["SLURM", "JOBC_", "BASH_"].iter().any(|start| name.starts_with(start))
            || names.iter().any(|known| known == name);
        if is_expanded && !is_known && !body[..whole.start()].ends_with('\\') && !is_set(body, name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// Whether a script gives a variable a value: `NAME=`, `for NAME`, `read NAME`, `mapfile NAME`.
fn is_set(body: &str, name: &str) -> bool {
    body.match_indices(name).any(|(at, _)| {
        let (before, after) = (&body[..at], &body[at + name.len()..]);
        let begins = !before.ends_with(|c: char| c.is_ascii_alphanumeric() || "_$-{".contains(c));
        let ends = !after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let line = before.rsplit('\n').next().unwrap_or_default();
        let words = ["for ", "read ", "mapfile ", "readarray ", "select ", "getopts ", "local ", "declare "];
        begins
            && ends
            && (after.starts_with(['=', '['])
                || after.starts_with("+=")
                || words.iter().any(|word| line.contains(word)))
    })
}

/// A variable in a script.
pub(super) struct Use {
    /// The bytes to replace.
    pub(super) range: Range<usize>,
    /// Its name.
    pub(super) name: String,
    /// Whether it is written with `$`, or bare in arithmetic.
    form: Form,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Plain,
    /// `${NAME…}` with what follows the name.
    Braces,
    Bare,
}

static PATTERN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\\?\$(SLURMD?_\w+)|\\?\$\{(SLURMD?_\w+)([^}]*)\}|\$\(\([^)]*\)").expect("a pattern")
});
static BARE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"[\w$]*SLURMD?_\w+").expect("a pattern"));

/// The variables of Slurm in a script, except in comments.
pub(super) fn uses(body: &str, classes: &[Class]) -> Vec<Use> {
    let mut found = Vec::new();
    for captures in PATTERN.captures_iter(body) {
        let Some(whole) = captures.get(0) else { continue };
        if classes[whole.start()] == Class::Comment {
            continue;
        }
        if let Some(name) = captures.get(1) {
            found.push(Use { range: whole.range(), name: name.as_str().to_owned(), form: Form::Plain });
        } else if let Some(name) = captures.get(2) {
            found.push(Use { range: whole.range(), name: name.as_str().to_owned(), form: Form::Braces });
        } else {
            // Arithmetic, where names need no `$`.
            for name in BARE.find_iter(whole.as_str()) {
                let range = whole.start() + name.start()..whole.start() + name.end();
                let form = if name.as_str().starts_with('$') { Form::Plain } else { Form::Bare };
                let text = name.as_str().trim_start_matches('$');
                if text.starts_with("SLURM") {
                    found.push(Use { range, name: text.to_owned(), form });
                }
            }
            for captures in PATTERN.captures_iter(&whole.as_str()[1..]) {
                if let (Some(inner), Some(name)) = (captures.get(0), captures.get(2)) {
                    let at = whole.start() + 1;
                    found.retain(|used| !(at + inner.start()..at + inner.end()).contains(&used.range.start));
                    let range = at + inner.start()..at + inner.end();
                    found.push(Use { range, name: name.as_str().to_owned(), form: Form::Braces });
                }
            }
        }
    }
    found.sort_by_key(|used| used.range.start);
    found
}

impl Use {
    /// Whether the script says what to take if it is absent: `${NAME:-x}`.
    pub(super) fn has_default(&self, body: &str) -> bool {
        self.form == Form::Braces && body[self.range.clone()].contains(['-', '+', '='])
    }

    /// The text to write for it.
    pub(super) fn replacement(&self, body: &str, value: &Value) -> Option<String> {
        let text = &body[self.range.clone()];
        let escape = if text.starts_with('\\') { "\\" } else { "" };
        Some(match (value, self.form) {
            (Value::Name(name), Form::Bare) => name.clone(),
            (Value::Name(name), Form::Plain) => format!("{escape}${name}"),
            (Value::Name(name), Form::Braces) => text.replacen(&self.name, name, 1),
            (Value::Text(value), _) if value.starts_with("${{") || !value.starts_with('$') => value.clone(),
            (Value::Text(value), _) => format!("{escape}{value}"),
            (Value::Set(_) | Value::Absent, _) => return None,
        })
    }
}
