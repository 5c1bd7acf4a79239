//! The image of a script: that of pyxis, else the files of the host.

use crate::source::Span;

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
    let of_steps = of_steps
        .filter(|(name, ..)| ["container-image", "container-mounts", "container-workdir"].contains(name));
    let options: Vec<(&str, String, Span)> = settings.container.iter().cloned().chain(of_steps).collect();
    let mut image: Option<String> = None;
    for (name, value, span) in &options {
        let span = *span;
        match *name {
            "container-image" => match reference(value) {
                Some(reference) if image.as_ref().is_none_or(|image| *image == reference) => {
                    draft.field(&["image"], span, string(span, &reference));
                    image = Some(reference);
                }
                Some(_) => draft.refuse(span, "the steps have different images", "write a role for each in a job file, with its own `image`"),
                None => draft.refuse(
                    span,
                    format!("`{value}` is not the name of an image in a registry"),
                    "write the name that the file was made of, such as `nvcr.io#nvidia/pytorch:24.07-py3`: `image` of a job is one that every target can pull",
                ),
            },
            "container-mounts" => mounts(value, body, span, draft),
            "container-workdir" => draft.field(&["roles", ROLE, "workdir"], span, string(span, value)),
            _ => {}
        }
    }
    if options.iter().any(|(name, ..)| *name == "container-image") {
        return;
    }
    // As with `sbatch`, the job starts in the directory of the caller, with the caller's variables: those that the
    // script names, since a job passes variables by name.
    let used = super::variables::of_caller(body, classes);
    let passed = match &settings.export {
        Some((passed, _)) if passed.iter().any(|name| name == "*") => used,
        Some((passed, _)) => passed.clone(),
        None => used,
    };
    draft.note(
        first,
        "of the caller's variables a job gets those that the script names; `image.host.env` lists them",
    );
    let (key, flag) = (first, crate::document::Value::Bool(true));
    let mut host = vec![entry("cwd", key, crate::document::Node { span: key, value: flag })];
    if !passed.is_empty() {
        let names = passed.iter().map(|name| string(key, name)).collect();
        host.push(entry("env", key, sequence(key, names)));
    }
    draft.set(&["image"], first, map(key, vec![entry("host", key, map(key, host))]));
    draft.need_of_target(&["slurm", "container"], first, string(first, "none"));
}

/// The reference of `[USER@][REGISTRY#]IMAGE`; `None` for the path of a file.
fn reference(value: &str) -> Option<String> {
    let value = value.strip_prefix("docker://").unwrap_or(value);
    if camino::Utf8Path::new(value).extension() == Some("sqsh")
        || value.starts_with(['/', '.', '$'])
        || value.is_empty()
    {
        return None;
    }
    Some(value.replacen('#', "/", 1))
}

/// `SOURCE:MOUNT[:FLAGS]` and `PATH`, separated by commas.
fn mounts(value: &str, body: &str, span: Span, draft: &mut Draft<'_>) {
    for (number, part) in value.split(',').enumerate() {
        let parts: Vec<&str> = part.split(':').collect();
        let (source, mount, flags) = match parts[..] {
            [path] => (path, path, ""),
            [source, mount] => (source, mount, ""),
            [source, mount, flags] => (source, mount, flags),
            _ => return draft.invalid(span, format!("`{part}` is not SOURCE:MOUNT"), ""),
        };
        let mut source = super::super::paths::source(source);
        // A variable of the caller.
        let (variable, rest) = source.split_at(source.find(['/', ':']).unwrap_or(source.len()));
        if let Some(name) = variable.strip_prefix('$').map(|name| name.trim_matches(['{', '}']).to_owned())
            && !body.contains(&format!("{name}="))
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        {
            source = super::super::container::param(draft, &name, None, span) + rest;
        }
        if source.replace("${{", "").contains('$') || mount.contains('$') {
            draft.refuse(span, format!("`{part}` has a variable"), "write the path");
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
