//! Controllers of the cgroup v2 hierarchy: a group has those that the group above passes on (`cgroup.subtree_control`).

use std::path::Path;

use rustix::io::Errno;

use super::super::controller::Controller;
use super::super::file::write;
use super::super::limit::ALLOW_UNENFORCED_HELP;
use super::super::plan::Group;
use jobc_sys::error::{Error, Kind};

/// Switches the controllers of a group on in every group above it, from the base down.
///
/// Those that are only for counting may fail; of the others the error is returned.
pub(in super::super) fn enable_controllers(group: &Group) -> Vec<(Controller, Error)> {
    let mut wanted = vec![Controller::Memory, Controller::Pids];
    wanted.extend(group.limits.iter().map(|limit| limit.controller).filter(|one| !one.is_always_enabled()));
    wanted.sort_unstable();
    wanted.dedup();
    let mut failed: Vec<(Controller, Error)> = vec![];
    for above in [group.base_directory()].into_iter().chain(group.ancestor_names()) {
        let file = above.join("cgroup.subtree_control");
        let text = |list: &[Controller]| {
            list.iter().map(|one| format!("+{}", one.name())).collect::<Vec<_>>().join(" ")
        };
        // Some controllers the kernel would pass on even so, and then no group below could hold whole processes.
        let full = holds_processes(&above);
        if !full && write(&file, &text(&wanted)).is_ok() {
            continue;
        }
        // The kernel enables all controllers of a line or none, so each has its own write.
        let on = std::fs::read_to_string(&file).unwrap_or_default();
        wanted.retain(|&one| {
            if on.split_whitespace().any(|name| name == one.name()) {
                return true;
            }
            match if full { Err(Errno::BUSY) } else { write(&file, &text(&[one])) } {
                Ok(()) => true,
                Err(errno) => {
                    failed.push((one, enable_error(one, &above, errno)));
                    false
                }
            }
        });
    }
    failed
}

/// Whether a group holds processes that conflict with its controllers: any group but the root of the hierarchy, which
/// alone has no `cgroup.type`.
fn holds_processes(group: &Path) -> bool {
    group.join("cgroup.type").exists()
        && std::fs::read(group.join("cgroup.procs")).is_ok_and(|list| !list.is_empty())
}

fn enable_error(controller: Controller, group: &Path, errno: Errno) -> Error {
    let (name, at) = (controller.name(), group.display());
    let error = |message: String| Error::new(Kind::Unenforceable, message);
    match errno {
        Errno::BUSY => {
            error(format!("the cgroup `{at}` holds processes, so it cannot enable `{name}` for its children"))
                .help(format!("move its processes to a child: `mkdir {at}/main` and write their PIDs to `{at}/main/cgroup.procs`"))
        }
        Errno::NOENT | Errno::INVAL => {
            error(format!("the cgroup `{at}` does not have the controller `{name}`"))
        }
        Errno::OPNOTSUPP => {
            error(format!("the cgroup `{at}` is threaded, and `{name}` is not a threaded controller"))
        }
        _ => error(format!("cannot enable `{name}` in the cgroup `{at}`")).because(errno),
    }
    .help(ALLOW_UNENFORCED_HELP)
}
