//! Whether this machine keeps the limits of a job's tasks, asked before anything is fetched, built or made for it.

use oci_spec::runtime::Spec;

use jobc_container::cgroup::{GO_ON, Unenforced};
use jobc_container::config::Config;
use jobc_container::container::groups::{self, kept};
use jobc_container::rootless;
use jobc_sys::error::{Error, Kind, Result};

/// What becomes of limits on this machine, for this user.
#[derive(Debug)]
pub struct Limits {
    kept: groups::Kept,
}

impl Limits {
    /// Looks what would become of the limits of containers; nothing is made.
    ///
    /// They are given by their config.json, as `jobc build` writes it; one task stands for those of its role.
    pub fn of<'a>(configs: impl IntoIterator<Item = &'a [u8]>) -> Result<Self> {
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        let read = |text| Ok(Config::read(text)?.spec);
        let mut specs: Vec<Spec> = configs.into_iter().map(read).collect::<Result<_>>()?;
        if !uid.is_root() {
            for spec in &mut specs {
                rootless::adapt(spec, uid.as_raw(), gid.as_raw())?;
            }
        }
        Ok(Self { kept: kept(&specs)? })
    }

    /// Whether they are kept, as far as they are, in a scope that this user's systemd is to make ([`jobc_container::scope`]).
    pub fn want_scope(&self) -> bool {
        self.kept.by_scope
    }

    /// Refuses limits that nothing would enforce, as making the first of the containers would, in one error for all.
    ///
    /// # Errors
    ///
    /// [`Kind::Unenforceable`], with what is limited, why nobody keeps it, and what to do.
    pub fn check(&self) -> Result<()> {
        let groups::Kept { unenforced, help, .. } = &self.kept;
        if unenforced.is_empty() {
            return Ok(());
        }
        let message = Unenforced::in_words(unenforced).join("; ");
        let way = help.as_deref().and_then(|help| help.strip_suffix(GO_ON)).unwrap_or_default();
        let help =
            format!("{way}go on without these limits by `--allow-unenforced`; `jobc doctor` says more");
        Err(Error::new(Kind::Unenforceable, message).help(help))
    }
}
