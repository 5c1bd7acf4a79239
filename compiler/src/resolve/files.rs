//! The small files that a role adds to its instances.

use camino::Utf8Path;
use jobc_schema::Pointer;
use jobc_schema::plan::{FileContent, FilePlan, MountPlan, Text};
use jobc_schema::role::{InlineFile, Role};

use super::context::Context;
use super::secrets;
use super::text::Texts;
use super::volumes::{check_mount, tidy};
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Readable and writable by the owner, readable by others.
const DEFAULT_MODE: u32 = 0o644;

/// The files of a role.
pub(super) fn resolve_files(
    context: &Context<'_>,
    texts: &Texts<'_>,
    role: &Role,
    mounts: &[MountPlan],
    at: &Pointer,
    sink: &mut Sink,
) -> Vec<FilePlan> {
    let mut plans: Vec<FilePlan> = Vec::new();
    for (path, file) in &role.files {
        let at = at.keys(["files", path]);
        check_path(path, &plans, mounts, &at, sink);
        let Some(what) = resolve_content(context, texts, file, &at, sink) else { continue };
        let mode = file.mode.as_deref().map_or(Ok(DEFAULT_MODE), |mode| u32::from_str_radix(mode, 8));
        plans.push(FilePlan { path: tidy(path), content: what, mode: mode.unwrap_or(DEFAULT_MODE) });
    }
    plans
}

fn check_path(path: &str, plans: &[FilePlan], mounts: &[MountPlan], at: &Pointer, sink: &mut Sink) {
    check_mount(path, at, sink);
    let tidy = tidy(path);
    let refuse = |message: String| Diagnostic::error(codes::FILE, message).at_key(at, "");
    if path.ends_with('/') {
        sink.push(refuse(format!("`{path}` is a directory, not a file")).note("add the name of the file"));
    }
    if plans.iter().any(|other| other.path == tidy) {
        sink.push(refuse(format!("duplicate file `{tidy}`")).note("remove one of them"));
    }
    if let Some(mount) = mounts.iter().find(|mount| mount.path == tidy) {
        sink.push(
            refuse(format!("`{tidy}` is where `{}` is mounted", mount.volume))
                .note("put the file into another directory, or mount the volume elsewhere"),
        );
    }
}

fn resolve_content(
    context: &Context<'_>,
    texts: &Texts<'_>,
    file: &InlineFile,
    at: &Pointer,
    sink: &mut Sink,
) -> Option<FileContent> {
    if let Some(content) = &file.content {
        let at = at.key("content");
        return Some(match texts.secret(content, &at, sink) {
            Some(secret) => FileContent::Secret { secret },
            None => FileContent::Text(texts.text(content, &at, sink)),
        });
    }
    if let Some(from) = &file.from {
        return read(context, from, &at.key("from"), sink).map(|text| FileContent::Text(Text::literal(text)));
    }
    // Exactly one of the three is set: an earlier pass checks it.
    let secret = file.secret.as_ref()?;
    secrets::check_secret(context, secret, &at.key("secret"), sink);
    Some(FileContent::Secret { secret: secret.clone() })
}

/// The content of a file next to the job file; reports why it cannot be read.
pub(super) fn read(context: &Context<'_>, path: &str, at: &Pointer, sink: &mut Sink) -> Option<String> {
    let bytes = match context.files.read(Utf8Path::new(path)) {
        Ok(bytes) => bytes,
        Err(error) => {
            let diagnostic = Diagnostic::error(codes::MISSING_FILE, format!("`{path}` cannot be read"));
            sink.push(match error.kind() {
                std::io::ErrorKind::NotFound => {
                    diagnostic.at(at, "no such file").note("paths are relative to the job file's directory")
                }
                kind => diagnostic.at(at, kind.to_string()),
            });
            return None;
        }
    };
    let text = String::from_utf8(bytes).ok();
    if text.is_none() {
        sink.push(
            Diagnostic::error(codes::FILE, format!("`{path}` is not text"))
                .at(at, "not UTF-8")
                .note("small files hold text; put other files into the image or into `data`"),
        );
    }
    text
}
