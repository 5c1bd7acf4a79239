//! The image of a script: that of pyxis, else the files of the host.

use crate::source::Span;

use super::super::container;
use super::super::draft::Draft;
use super::super::nodes::{entry, map, sequence, string};
use super::layout::ROLE;
use super::scan::Class;
use super::settings::Settings;
use super::steps::Step;

/// Writes `image`, and the mounts and the working directory of pyxis.
pub(super) fn write(
    settings: &Settings,
    steps: &[Step],
    (body, classes): (&str, &[Class]),
    first: Span,
    draft: &mut Draft<'_>,
) {
    let of_steps = steps.iter().flat_map(|step| &step.options);
    let of_steps = of_steps.map(|option| (option.name, option.value.text(), option.span));
    let of_steps = of_steps.filter(|(name, ..)| {
        ["container-image", "container-mounts", "container-workdir", "image"].contains(name)
    });
    let options: Vec<(&str, String, Span)> = settings.container.iter().cloned().chain(of_steps).collect();
    let mut image: Option<String> = None;
    for (name, value, span) in &options {
        let span = *span;
        match *name {
            "container-image" | "image" => {
                let reference = reference(value, body, span, draft);
                if image.as_ref().is_none_or(|image| *image == reference) {
                    draft.field(&["image"], span, string(span, &reference));
                    image = Some(reference);
                } else {
                    draft.refuse(
                        span,
                        "the steps have different images",
                        "write a role for each in a job file, with its own `image`",
                    );
                }
            }
            "container-mounts" => mounts(value, body, span, draft),
            "container-workdir" => {
                let path = resolved(value, body, span, draft, 0);
                if path.contains("$PWD") {
                    container::param(draft, "PWD", None, span);
                }
                draft.field(&["roles", ROLE, "workdir"], span, string(span, path.replace("$PWD", HERE)));
            }
            _ => {}
        }
    }
    // As with `sbatch`, the job starts in the directory of the caller, with the caller's variables: those that the
    // script names, since a job passes variables by name.
    let used = super::variables::of_caller(body, classes);
    let passed = match &settings.export {
        Some((passed, _)) if passed.iter().any(|name| name == "*") => used,
        Some((passed, _)) => passed.clone(),
        None => used,
    };
    if let Some((name, _, span)) =
        options.iter().find(|(name, ..)| ["container-image", "image"].contains(name))
    {
        if *name == "container-image" {
            draft.need_of_target(&["slurm", "container"], *span, string(*span, "pyxis"));
        }
        for name in
            passed.iter().filter(|name| !OF_IMAGE.contains(&name.as_str()) && !has_default(body, name))
        {
            let of_caller = if container::is_secret(name) {
                container::secret(draft, name, first)
            } else {
                container::param(draft, name, None, first)
            };
            draft.set(&["env", name], first, string(first, of_caller));
        }
        return;
    }
    draft.note(first, "the job gets the variables that the script names: `image.host.env`");
    let (key, flag) = (first, crate::document::Value::Bool(true));
    let mut host = vec![entry("cwd", key, crate::document::Node { span: key, value: flag })];
    if !passed.is_empty() {
        let names = passed.iter().map(|name| string(key, name)).collect();
        host.push(entry("env", key, sequence(key, names)));
    }
    draft.set(&["image"], first, map(key, vec![entry("host", key, map(key, host))]));
    draft.need_of_target(&["slurm", "container"], first, string(first, "none"));
}

/// The reference of `[USER@][REGISTRY#]IMAGE`. That of a file is a parameter, unless the name of the file has it.
fn reference(value: &str, body: &str, span: Span, draft: &mut Draft<'_>) -> String {
    let value = resolved(value, body, span, draft, 0);
    let value = value.strip_prefix("docker://").or_else(|| value.strip_prefix("docker:")).unwrap_or(&value);
    let path = camino::Utf8Path::new(value);
    if path.extension() != Some("sqsh") && !value.starts_with(['/', '.']) {
        return value.replacen('#', "/", 1);
    }
    // `enroot import docker://nvcr.io#nvidia/pytorch:24.07-py3` writes `nvidia+pytorch+24.07-py3.sqsh`.
    if let Some((name, tag)) = path.file_stem().and_then(|stem| stem.rsplit_once('+')) {
        let reference = format!("{}:{tag}", name.replace('+', "/"));
        draft.changed(
            span,
            format!("the file of enroot becomes the image that its name has, `{reference}`"),
            "write the registry before it, unless it is Docker Hub",
        );
        return reference;
    }
    draft.changed(
        span,
        format!("`{value}` is a file of one cluster: the image is a parameter"),
        "set it to what the file was made of: `--set IMAGE=nvcr.io/nvidia/pytorch:24.07-py3`, or the variable `IMAGE`",
    );
    container::param(draft, "IMAGE", None, span)
}

/// Variables that an image has, or a launcher sets.
const OF_IMAGE: [&str; 14] = [
    "CONDA_PREFIX",
    "CUDA_HOME",
    "CUDA_VISIBLE_DEVICES",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "LOCAL_RANK",
    "MASTER_ADDR",
    "MASTER_PORT",
    "NODE_RANK",
    "NVIDIA_VISIBLE_DEVICES",
    "PYTHONPATH",
    "RANK",
    "TMPDIR",
    "WORLD_SIZE",
];

/// Whether a script has a value for a variable that is not set.
fn has_default(body: &str, name: &str) -> bool {
    [":-", ":=", "-", "=", ":+", "+"].iter().any(|operator| body.contains(&format!("${{{name}{operator}")))
}

/// The directory of the caller.
const HERE: &str = "${{ params.PWD }}";

/// A text in which variables have the values that the script gives them; others are parameters that take the variable of
/// the caller.
fn resolved(text: &str, body: &str, span: Span, draft: &mut Draft<'_>, depth: usize) -> String {
    let Some(at) = text.find('$') else { return text.to_owned() };
    let rest = &text[at + 1..];
    let length =
        |text: &str| text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    let (name, default, used) = match rest.strip_prefix('{').and_then(in_braces) {
        Some(inner) => {
            let (name, operator) = inner.split_at(length(inner));
            let default = operator.strip_prefix(":-").or_else(|| operator.strip_prefix(":="));
            (name, default.map(str::to_owned), inner.len() + 2)
        }
        None => (&rest[..length(rest)], None, length(rest)),
    };
    let after = rest.get(used..).unwrap_or_default();
    if ["PWD", "SLURM_SUBMIT_DIR"].contains(&name) {
        return format!("{}$PWD{}", &text[..at], resolved(after, body, span, draft, depth + 1));
    }
    if name.is_empty() || depth > 8 {
        return format!("{}${}", &text[..at], rest);
    }
    let given = ["=", ":=", ":-"].into_iter().find_map(|operator| {
        if operator == "=" {
            return super::steps::assigned(body, name)
                .map(|value| word(&value.replacen("$(pwd)", "$PWD", 1)));
        }
        let start = format!("${{{name}{operator}");
        let (_, value) = body.split_once(&start)?;
        in_braces(value).map(|value| value.replacen("$(pwd)", "$PWD", 1))
    });
    let given = default.or(given).filter(|given| !given.contains(&format!("${name}")));
    let value = match given.filter(|value| !value.contains(['`', '('])) {
        Some(value) if name != "HOME" => resolved(&value, body, span, draft, depth + 1),
        _ => {
            let own = format!("${{{name}:");
            let default = super::steps::assigned(body, name).map(word);
            let default = default.and_then(|value| {
                let rest = value.strip_prefix(&own)?.trim_start_matches(['-', '=']).trim_end_matches('}');
                (!rest.contains('$')).then(|| rest.to_owned())
            });
            container::param(draft, name, default.as_deref(), span)
        }
    };
    format!("{}{value}{}", &text[..at], resolved(after, body, span, draft, depth + 1))
}

/// The first word of what a script assigns.
fn word(text: &str) -> String {
    text.split(['"', '\'', '\n', ' ', '\t', ';']).next().unwrap_or_default().to_owned()
}

/// The text up to the bracket that closes the one before it.
fn in_braces(text: &str) -> Option<&str> {
    let mut depth = 0;
    let end = text.char_indices().find(|(_, c)| {
        depth += i32::from(*c == '{') - i32::from(*c == '}');
        depth < 0
    });
    end.map(|(at, _)| &text[..at])
}

/// `SOURCE:MOUNT[:FLAGS]` and `PATH`, separated by commas.
fn mounts(value: &str, body: &str, span: Span, draft: &mut Draft<'_>) {
    let value = resolved(value, body, span, draft, 0);
    for (number, part) in value.split(',').enumerate() {
        let parts: Vec<&str> = part.split(':').collect();
        let (source, mount, flags) = match parts[..] {
            [path] => (path, path, ""),
            [source, mount] => (source, mount, ""),
            [source, mount, flags] => (source, mount, flags),
            _ => return draft.invalid(span, format!("`{part}` is not SOURCE:MOUNT"), ""),
        };
        if source == "tmpfs" {
            memory(mount, flags, number, span, draft);
            continue;
        }
        let source = super::super::paths::source(source).replace("$PWD", HERE);
        let mount = mount.replace("$PWD", HERE);
        if source.contains(HERE) || mount.contains(HERE) {
            container::param(draft, "PWD", None, span);
        }
        if source.replace("${{", "").contains(['$', '`']) || mount.replace("${{", "").contains(['$', '`']) {
            draft.refuse(span, format!("`{part}` is computed by the shell"), "write the path");
            continue;
        }
        let name = format!("v{}", number + 1);
        draft.set(&["data", &name, "source"], span, string(span, source));
        draft.set(&["data", &name, "mount"], span, string(span, mount));
        if !flags.split('+').any(|flag| flag == "ro") {
            let flag = crate::document::Node { span, value: crate::document::Value::Bool(true) };
            draft.set(&["data", &name, "writable"], span, flag);
        }
        draft.account.field(span, format!("data.{name}"));
    }
}

/// `tmpfs:MOUNT:size=BYTES+…`: memory, which at /dev/shm is that of the role.
fn memory(mount: &str, flags: &str, number: usize, span: Span, draft: &mut Draft<'_>) {
    let size = flags.split('+').find_map(|flag| flag.strip_prefix("size="));
    let Some(size) = size.and_then(container::bytes).map(container::size) else {
        return draft.changed(
            span,
            format!("the memory at `{mount}` has no size"),
            "write one: `tmpfs:/dev/shm:size=8g`",
        );
    };
    if mount == "/dev/shm" {
        return draft.field(&["roles", ROLE, "resources", "shm"], span, string(span, size));
    }
    let name = format!("v{}", number + 1);
    draft.set(&["data", &name, "source"], span, string(span, format!("memory:{size}")));
    draft.set(&["data", &name, "mount"], span, string(span, mount));
    let flag = crate::document::Node { span, value: crate::document::Value::Bool(true) };
    draft.set(&["data", &name, "writable"], span, flag);
    draft.account.field(span, format!("data.{name}"));
}
