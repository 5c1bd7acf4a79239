//! J0364: a size of /dev/shm where a directory of the job is mounted there.

use jobc_schema::Pointer;

use crate::check::view::View;
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Warns about a `shm` that has no effect, because the role shares the /dev/shm of others.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in view.roles.iter().filter(|role| role.plan.resources.shm_bytes.is_some()) {
        let Some(mount) = role.plan.mounts.iter().find(|mount| mount.path == "/dev/shm") else { continue };
        let at = role.at().keys(["resources", "shm"]);
        sink.push(
            Diagnostic::warning(
                codes::SHM_COVERED,
                format!(
                    "`shm` of role `{}` has no effect: `{}` is mounted at /dev/shm",
                    role.plan.name, mount.volume
                ),
            )
            .at(&at, "")
            .at(&Pointer::ROOT.keys(["data", &mount.volume, "mount"]), "shared by the roles of a host")
            .note(
                "leave `shm` out: what programs share counts against the `memory` of the role that writes it",
            )
            .remove(&at),
        );
    }
}
