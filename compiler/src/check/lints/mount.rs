//! J0551: `mount` in a job from OpenPAI, whose tasks have a capability for it there.

use jobc_schema::BackendName;
use jobc_schema::job::Compat;

use crate::check::command::Command;
use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Programs that mount file systems; those of FUSE open `/dev/fuse` besides.
const PROGRAMS: [&str; 12] = [
    "mount",
    "mount.nfs",
    "mount.nfs4",
    "mount.cifs",
    "blobfuse",
    "blobfuse2",
    "sshfs",
    "s3fs",
    "gcsfuse",
    "goofys",
    "juicefs",
    "fusermount",
];

/// OpenPAI adds `SYS_ADMIN` to every task and confines none by AppArmor (rest-server, `k8s.js`); no other target does.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    let elsewhere = [BackendName::Oci, BackendName::Kubernetes].into_iter().any(|b| view.has_backend(b));
    if !elsewhere || !view.plan.compat.contains(&Compat::Openpai) {
        return;
    }
    for role in view.roles.iter().filter(|role| !may_mount(role)) {
        let Some(program) = role.commands.iter().find_map(mounting) else { continue };
        let message = format!(
            "`{program}` in role `{}` fails: only OpenPAI gives tasks the capability `SYS_ADMIN`",
            role.plan.name
        );
        sink.push(
            Diagnostic::warning(codes::OPENPAI_MOUNT, message).at(&role.run_at(), "").note(
                "in a job file, which `jobc import` writes, `data` mounts it, or `security: {capabilities: {add: [SYS_ADMIN]}}` gives the capability",
            ),
        );
    }
}

/// The program that a command mounts with; `mount` alone only lists.
fn mounting(command: &Command) -> Option<&str> {
    let program = command.program();
    let (program, arguments) = match command.arguments() {
        [first, rest @ ..] if program == "sudo" => (first.as_str(), rest),
        arguments => (program, arguments),
    };
    let names_something = arguments.iter().any(|argument| !argument.starts_with(['-', '>']));
    PROGRAMS.into_iter().find(|known| *known == program && names_something)
}

fn may_mount(role: &RoleView<'_>) -> bool {
    let security = &role.plan.security;
    let has = |name: &String| {
        let name = name.to_ascii_uppercase();
        matches!(name.trim_start_matches("CAP_"), "SYS_ADMIN" | "ALL")
    };
    security.privileged || security.capabilities.as_ref().is_some_and(|set| set.add.iter().any(has))
}
