//! Rewords findings about an imported job in the terms of the original file.
//!
//! Later passes name jobc's fields. If OpenPAI has an equivalent field, it is named instead; otherwise the finding
//! says that the field needs a job file. Suggested edits of jobc's fields are dropped.

use super::Format;
use crate::diagnostic::{Code, Diagnostic, Location, Sink, codes};

/// jobc's names with those of protocol v2 and v1; an empty one means there is none.
const FIELD_NAMES: &[(&str, &str, &str)] = &[
    ("shm", "shmMB", "shmMB"),
    ("memory", "memoryMB", "memoryMB"),
    ("cpu", "cpu", "cpuNumber"),
    ("gpu", "gpu", "gpuNumber"),
    ("run", "commands", "command"),
    ("setup", "commands", "command"),
    ("instances", "instances", "taskNumber"),
    ("resources", "resourcePerInstance", ""),
    ("params", "parameters", ""),
    ("gang", "gangAllocation", ""),
    ("gang: none", "gangAllocation: false", ""),
    ("gang: required", "gangAllocation: true", ""),
    ("retry", "jobRetryCount", "retryCount"),
    ("scope: job", "jobRetryCount", "retryCount"),
    ("retry: {scope: job}", "jobRetryCount", "retryCount"),
    ("min_failed", "minFailedInstances", "minFailedTaskCount"),
    ("min_succeeded", "minSucceededInstances", "minSucceededTaskCount"),
    ("auto", "", "beginAt: 0"),
    ("resources.cpu", "resourcePerInstance.cpu", "cpuNumber"),
    ("resources.memory", "resourcePerInstance.memoryMB", "memoryMB"),
    ("resources.gpu", "resourcePerInstance.gpu", "gpuNumber"),
    ("resources.shm", "extraContainerOptions.shmMB", "shmMB"),
    ("resources.rdma", "extraContainerOptions.infiniband", ""),
    ("resources.ports", "resourcePerInstance.ports", "portList"),
    ("resources.gpu.model", "", "gpuType"),
    ("rdma: 1", "infiniband: true", ""),
    ("data.data.source", "", "dataDir"),
    ("data.code.source", "", "codeDir"),
    ("outputs.output.source", "", "outputDir"),
];

/// Fields of job files without an equivalent in OpenPAI.
const JOBC_FIELDS: &[&str] = &[
    "apt",
    "data",
    "disk",
    "distributed",
    "env",
    "files",
    "framework",
    "grace_period",
    "hugepages",
    "init",
    "labels",
    "launch",
    "model",
    "needs",
    "network",
    "outputs",
    "pids",
    "profile",
    "publish",
    "ready",
    "security",
    "share",
    "stop_signal",
    "timeout",
    "ulimits",
    "user",
    "vendor",
    "workdir",
    "writable",
];

/// Rewords the findings of passes after the import; doing so twice changes nothing.
pub fn in_its_words(format: Format, sink: &mut Sink) {
    if !format.is_openpai() {
        return sink.for_each(as_text);
    }
    sink.for_each(|found| {
        if !["J00", "J05"].iter().any(|pass| found.code.as_str().starts_with(pass)) {
            reword(format, found);
        }
    });
}

/// Keeps the words of a finding about a job of another format, and drops edits, which are ones of a job file.
fn as_text(found: &mut Diagnostic) {
    const NOTE: &str = "the fields are those of the job file that `jobc import` writes";
    if found.code.as_str().starts_with("J063") || found.code.as_str() < "J0100" {
        return;
    }
    found.fixes.clear();
    if !found.notes.is_empty() && !found.notes.iter().any(|note| note == NOTE) {
        found.notes.push(NOTE.to_owned());
    }
}

fn reword(format: Format, found: &mut Diagnostic) {
    found.fixes.retain_mut(|fix| keep(format, found.code, &mut fix.edits, &mut fix.message));
    found.message = in_words(format, &found.message);
    if let Some(notes) = own_advice(format, found.code) {
        found.notes = notes.iter().map(|note| (*note).to_owned()).collect();
        return;
    }
    for note in &mut found.notes {
        if format == Format::V1 {
            *note = note.replace(" under `resources`", "");
        }
        if found.code == codes::UNUSED_SECRET {
            *note = note.replace("`env`", "`run`");
        }
        *note = in_words(format, note);
    }
    let field = {
        let mut heads = found.notes.iter().flat_map(|note| spans(note)).map(head);
        heads.find(|head| JOBC_FIELDS.contains(head)).map(str::to_owned)
    };
    if let Some(field) = field {
        let note =
            format!("`{field}` is a field of job files, which `jobc import` writes; OpenPAI has none for it");
        if !found.notes.contains(&note) {
            found.notes.push(note);
        }
    }
}

/// Whether an edit applies to OpenPAI's file: to a part of a command, or to a value that both formats write alike.
fn keep(format: Format, code: Code, edits: &mut [crate::diagnostic::Edit], message: &mut String) -> bool {
    let alike = [codes::UNKNOWN_MODEL, codes::IMAGE_REFERENCE].contains(&code);
    edits.iter_mut().all(|edit| match edit.place {
        Location::Path { .. }
            if code == codes::HOST_PORT_SHARED && format == Format::V1 && edit.text == "auto" =>
        {
            "0".clone_into(&mut edit.text);
            "write `0`".clone_into(message);
            true
        }
        Location::Path { .. } => alike,
        // A key of jobc.
        Location::Entry { .. } | Location::Moved { .. } | Location::Shaped { .. } => false,
        Location::Inside { .. } | Location::Words { .. } | Location::Span(_) => true,
    })
}

/// Replaces advice that does not apply to a job of OpenPAI.
fn own_advice(format: Format, code: Code) -> Option<&'static [&'static str]> {
    Some(match code {
        codes::LAUNCHER_ALONE => &[
            "write `torchrun --nnodes=$PAI_TASK_ROLE_TASK_COUNT_<role> --node_rank=$PAI_TASK_INDEX --master_addr=$PAI_HOST_IP_<role>_0 --master_port=$PAI_PORT_LIST_<role>_0_http`",
            "for separate runs, write `torchrun --standalone`",
        ],
        codes::SUDO => {
            &["install what is needed in the image, or leave `sudo` out: tasks of OpenPAI run as root"]
        }
        codes::LITTLE_MEMORY => &["write for example `memoryMB: 512`; it counts MiB and has no unit"],
        codes::MANY_CPUS if format == Format::V2 => &["write the number of CPUs, such as `cpu: 4`"],
        codes::MANY_CPUS => &["write the number of CPUs, such as `cpuNumber: 4`"],
        codes::JOB_NEVER_ENDS if format == Format::V2 => &[
            "write `minSucceededInstances`, the number of its instances, in `completion` of the task role that ends the job",
        ],
        codes::JOB_NEVER_ENDS => {
            &["write `minSucceededTaskCount`, the number of its tasks, on the task role that ends the job"]
        }
        _ => return None,
    })
}

/// Replaces the names between backticks in a sentence; what follows `role` is a user-defined name.
fn in_words(format: Format, text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (number, part) in text.split('`').enumerate() {
        let is_name = ["role ", "image ", "port "].iter().any(|before| out.ends_with(before));
        if number > 0 {
            out.push('`');
        }
        match word(format, part).filter(|_| number % 2 == 1 && !is_name) {
            Some(word) => out.push_str(&word),
            None => out.push_str(part),
        }
    }
    out
}

/// OpenPAI's name for one of ours.
fn word(format: Format, ours: &str) -> Option<String> {
    let of = |v2: &str, v1: &str| {
        let theirs = if format == Format::V2 { v2 } else { v1 };
        (!theirs.is_empty()).then(|| theirs.to_owned())
    };
    if let Some((_, v2, v1)) = FIELD_NAMES.iter().find(|(known, ..)| *known == ours) {
        return of(v2, v1);
    }
    if let Some(name) = ours.strip_prefix("${{ ").and_then(|rest| rest.strip_suffix(" }}")) {
        let (kind, name) = name.split_once('.')?;
        return match kind {
            "params" => Some(format!("<% $parameters.{name} %>")),
            "secrets" => Some(format!("<% $secrets.{name} %>")),
            "ports" => Some(format!("$PAI_CONTAINER_HOST_{}_PORT_LIST", name.replace('-', "_"))),
            _ => None,
        };
    }
    let (field, value) = ours.split_once(": ")?;
    match field {
        "shm" | "memory" => {
            let count = mebibytes(value)?;
            let shm = format!("extraContainerOptions: {{shmMB: {count}}}");
            Some(match (field, format) {
                ("shm", Format::V2) => shm,
                ("shm", Format::V1) => format!("shmMB: {count}"),
                _ => format!("memoryMB: {count}"),
            })
        }
        "cpu" | "gpu" if value.bytes().all(|b| b.is_ascii_digit()) => {
            of(ours, &format!("{field}Number: {value}"))
        }
        _ => None,
    }
}

/// Converts `8GiB` to a number of MiB.
fn mebibytes(value: &str) -> Option<u64> {
    let (number, unit) = value.split_at(value.find(|c: char| !c.is_ascii_digit())?);
    let number: u64 = number.parse().ok()?;
    match unit {
        "MiB" => Some(number),
        "GiB" => number.checked_mul(1024),
        _ => None,
    }
}

/// The texts between backticks in a sentence.
fn spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The field that a snippet of a job file begins with.
fn head(span: &str) -> &str {
    span.split([':', '.', ' ']).next().unwrap_or(span)
}

#[cfg(test)]
mod tests {
    use super::{Format, in_words, reword};
    use crate::diagnostic::{Diagnostic, Location, Safety, codes};
    use jobc_schema::Pointer;

    #[test]
    fn fields_have_openpai_names() {
        for (ours, v2, v1) in [
            ("write `shm: 8GiB`", "write `extraContainerOptions: {shmMB: 8192}`", "write `shmMB: 8192`"),
            ("write `memory: 512MiB`", "write `memoryMB: 512`", "write `memoryMB: 512`"),
            ("write `cpu: 4`", "write `cpu: 4`", "write `cpuNumber: 4`"),
            ("use `${{ params.a }}`", "use `<% $parameters.a %>`", "use `<% $parameters.a %>`"),
            ("backend `x` cannot express `data.data.source`", "", "backend `x` cannot express `dataDir`"),
            // User-defined names are not fields.
            ("`run` of role `run`", "`commands` of role `run`", "`command` of role `run`"),
            ("no backticks", "no backticks", "no backticks"),
        ] {
            for (format, theirs) in [(Format::V2, v2), (Format::V1, v1)] {
                let theirs = if theirs.is_empty() { ours } else { theirs };
                assert_eq!(in_words(format, ours), theirs, "{format:?}");
                assert_eq!(in_words(format, theirs), theirs, "{format:?}: twice");
            }
        }
    }

    #[test]
    fn fields_that_openpai_lacks_need_a_job_file_and_their_edits_are_dropped() {
        let place = || Location::value(&Pointer::ROOT.key("roles"));
        let mut found = Diagnostic::warning(codes::IMAGE_REQUIRES, "m").note("write `user: root`").fix(
            "write it",
            place(),
            "user: root",
            Safety::Safe,
        );
        for _ in 0..2 {
            reword(Format::V2, &mut found);
            let note = "`user` is a field of job files, which `jobc import` writes; OpenPAI has none for it";
            assert_eq!(found.notes, ["write `user: root`", note]);
            assert!(found.fixes.is_empty());
        }
    }
}
