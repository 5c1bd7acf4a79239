//! Whether this host enforces the limits of a job's tasks, checked before anything is fetched, built or created for it.

use oci_spec::runtime::Spec;

use crate::disk_traffic;
use jobc_container::cgroup::{ALLOW_UNENFORCED_HELP, UnenforcedLimit};
use jobc_container::config::Config;
use jobc_container::container::groups::{self, check_enforcement};
use jobc_container::rootless;
use jobc_sys::error::{Error, Kind, Result};

/// How limits are enforced on this host for this user.
#[derive(Debug)]
pub struct Limits {
    kept: groups::LimitEnforcement,
}

impl Limits {
    /// Checks the enforcement of the containers' limits; nothing is created.
    ///
    /// The limits are in their config.json, as `jobc build` writes it; one task represents those of its role.
    pub fn of<'a>(configs: impl IntoIterator<Item = &'a [u8]>) -> Result<Self> {
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        let read = |text| Ok(Config::read(text)?.spec);
        let mut specs: Vec<Spec> = configs.into_iter().map(read).collect::<Result<_>>()?;
        specs.iter_mut().try_for_each(disk_traffic::resolve)?;
        if jobc_sys::host::needs_user_namespace() {
            for spec in &mut specs {
                rootless::adapt(spec, uid.as_raw(), gid.as_raw(), rootless::Caller::IsRoot)?;
            }
        }
        Ok(Self { kept: check_enforcement(&specs)? })
    }

    /// Whether they are enforced in a scope that this user's systemd creates ([`jobc_container::scope`]).
    pub fn needs_scope(&self) -> bool {
        self.kept.needs_scope
    }

    /// The limits that nothing enforces and why, as text; `None` if all are enforced.
    pub fn unenforced(&self) -> Option<String> {
        let lines = UnenforcedLimit::in_words(&self.kept.unenforced);
        (!lines.is_empty()).then(|| lines.join("; "))
    }

    /// Refuses limits that nothing would enforce, as making the first of the containers would, in one error for all.
    ///
    /// # Errors
    ///
    /// [`Kind::Unenforceable`], with the limits, why they cannot be enforced, and what to do.
    pub fn check(&self) -> Result<()> {
        let Some(message) = self.unenforced() else { return Ok(()) };
        let hints = self.kept.hints.iter().filter(|hint| *hint != ALLOW_UNENFORCED_HELP);
        Err(unenforceable(message, hints.cloned()))
    }
}

/// The error of limits that nothing would enforce, with what else there is to do.
pub(crate) fn unenforceable(message: String, hints: impl IntoIterator<Item = String>) -> Error {
    let error =
        Error::new(Kind::Unenforceable, message).help("run without these limits with `--allow-unenforced`");
    let error = hints.into_iter().fold(error, Error::help);
    error.help("set this host up: `jobc doctor --fix` prints the commands")
}
