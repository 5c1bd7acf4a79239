//! The code of a job: the directory that goes with it, and where each role sees it.

use camino::Utf8Path;
use indexmap::IndexMap;
use jobc_schema::code::Code;
use jobc_schema::image::Image;
use jobc_schema::plan::{CODE, MountPlan, VolumeKind, VolumePlan, VolumeSource};
use jobc_schema::role::Role;
use jobc_schema::target::Target;
use jobc_schema::{BackendName, Digest, Pointer};

use super::context::Context;
use super::volumes::{check_mount, tidy};
use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::files::CodeError;
use crate::suggest;

/// Where roles see the code by default. Images of frameworks start there too.
const DIRECTORY: &str = "/workspace";

/// Adds the code to the volumes of the job.
pub(super) fn resolve_code(
    context: &Context<'_>,
    target: &Target,
    volumes: &mut IndexMap<String, VolumePlan>,
    sink: &mut Sink,
) {
    let Some(code) = &context.job.code else { return };
    if let Some(volume) = volumes.get(CODE) {
        sink.push(
            Diagnostic::error(codes::CODE, format!("`{CODE}` is the name of the volume with the code"))
                .at_key(&volume.at(CODE), "")
                .note("give the data or output another name"),
        );
    }
    check_roles(context, code, sink);
    if let Some(mount) = code.block().and_then(|block| block.mount.as_ref()) {
        check_mount(mount, &Pointer::ROOT.keys(["code", "mount"]), sink);
    }
    let path = code.from().to_owned();
    let digest = pack(context, target, &path, &at(code), sink);
    let source = VolumeSource::Code { path, digest };
    let plan = VolumePlan { kind: VolumeKind::Data, source, secret: None, options: IndexMap::new() };
    volumes.insert(CODE.to_owned(), plan);
}

/// Where a role sees the code, and the place of the job file that says so.
pub(super) fn mount(context: &Context<'_>, name: &str, role: &Role) -> Option<(MountPlan, Pointer)> {
    let code = context.job.code.as_ref()?;
    let block = code.block();
    let declared = context.variant.groups.declared(name);
    let sees = |roles: &Vec<String>| roles.iter().any(|known| known == name || known == declared);
    if !block.and_then(|block| block.roles.as_ref()).is_none_or(sees) {
        return None;
    }
    let named = block.and_then(|block| block.mount.as_deref());
    let path = named.or(role.workdir.as_deref()).or_else(|| workdir_of_image(context, role));
    let place =
        if named.is_some() { Pointer::ROOT.keys(["code", "mount"]) } else { Pointer::ROOT.key("code") };
    let mount = MountPlan {
        volume: CODE.to_owned(),
        path: tidy(path.unwrap_or(DIRECTORY)),
        writable: true,
        subpath: None,
    };
    Some((mount, place))
}

/// The directory in which the command of a role with the code starts by default.
pub(super) fn workdir(mounts: &[MountPlan]) -> Option<String> {
    mounts.iter().find(|mount| mount.volume == CODE).map(|mount| mount.path.clone())
}

/// `workdir` of the block that builds the image of a role.
fn workdir_of_image<'a>(context: &Context<'a>, role: &'a Role) -> Option<&'a str> {
    let image = role.image.as_ref().or(context.job.image.as_ref())?;
    let block = |image: &'a Image| if let Image::Block(block) = image { Some(&**block) } else { None };
    let own = block(image)?;
    let named = own.use_.as_ref().map_or(Some(own), |name| block(context.job.images.get(name)?));
    named?.workdir.as_deref().filter(|path| path.starts_with('/'))
}

fn check_roles(context: &Context<'_>, code: &Code, sink: &mut Sink) {
    let roles = code.block().and_then(|block| block.roles.as_ref());
    for (number, role) in roles.into_iter().flatten().enumerate() {
        if context.declared_roles().any(|known| known == role) || context.job.roles.contains_key(role) {
            continue;
        }
        let at = Pointer::ROOT.keys(["code", "roles"]).index(number);
        let found = Diagnostic::error(codes::CODE, format!("`code` names an unknown role `{role}`"));
        sink.push(match suggest::nearest(role, context.declared_roles()) {
            Some(near) => found.suggest_value(&at, role, near),
            None => found.at(&at, "").note(format!("known: {}", suggest::list(context.declared_roles()))),
        });
    }
}

/// The digest of the packed code, for a target that is not this host.
fn pack(context: &Context<'_>, target: &Target, path: &str, at: &Pointer, sink: &mut Sink) -> Option<String> {
    let directory = Utf8Path::new(path);
    let runs_elsewhere = |backend: &BackendName| {
        matches!(backend, BackendName::Kubernetes | BackendName::Slurm | BackendName::Plugin(_))
    };
    if !target.is_machine() && !target.backends.iter().any(runs_elsewhere) {
        let why = if !context.files.exists(directory) {
            "no such directory"
        } else if context.files.read(directory).is_ok() {
            "it is a file"
        } else {
            return None;
        };
        report(
            &CodeError {
                is_size: false,
                message: format!("cannot read the code in `{path}`: {why}"),
                note: "name a directory; a path is relative to the directory of the job file".to_owned(),
            },
            at,
            sink,
        );
        return None;
    }
    match context.files.code(directory) {
        Ok(packed) => {
            let packed = packed?;
            for remark in &packed.remarks {
                let found = Diagnostic::warning(codes::CODE, remark.as_str());
                sink.push(
                    found.at(at, "").note("a line in `.jobcignore` leaves it out without this warning"),
                );
            }
            Some(Digest::of(&packed.bytes).to_string())
        }
        Err(error) => {
            report(&error, at, sink);
            None
        }
    }
}

fn report(error: &CodeError, at: &Pointer, sink: &mut Sink) {
    let code = if error.is_size { codes::CODE_SIZE } else { codes::CODE };
    sink.push(Diagnostic::error(code, error.message.as_str()).at(at, "").note(error.note.as_str()));
}

/// The place of the directory in the job file.
fn at(code: &Code) -> Pointer {
    let at = Pointer::ROOT.key("code");
    if code.block().is_some() { at.key("from") } else { at }
}
