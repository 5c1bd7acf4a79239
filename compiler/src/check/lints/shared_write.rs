//! J0317: data that several instances write at once.

use jobc_schema::plan::{VolumeKind, VolumePlan, VolumeSource};

use crate::check::view::View;
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Notes where instances of one role write the same data; outputs are made for it and stay silent.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in view.roles.iter().filter(|role| role.plan.instances > 1) {
        for mount in role.plan.mounts.iter().filter(|mount| mount.writable) {
            let volume = view.plan.volumes.get(&mount.volume);
            // A directory of the job is for handing files on, and one of an instance is its own.
            let is_own = |volume: &VolumePlan| {
                matches!(
                    volume.source,
                    VolumeSource::Job { .. }
                        | VolumeSource::Instance { .. }
                        | VolumeSource::Memory { .. }
                        | VolumeSource::Code { .. }
                )
            };
            if volume.is_none_or(|v| v.kind != VolumeKind::Data || is_own(v)) {
                continue;
            }
            let message = format!(
                "{} instances of role `{}` may write `{}` at the same time",
                role.plan.instances, role.plan.name, mount.volume
            );
            sink.push(
                Diagnostic::info(codes::SHARED_WRITE, message)
                    .at(&jobc_schema::Pointer::ROOT.keys(["data", &mount.volume]), "")
                    .note("leave `writable` out, or write what the role makes to one of `outputs`, in a directory for each `$JOBC_INDEX`"),
            );
        }
    }
}
