//! `jobc serve`: a web page and a REST API.

use std::process::ExitCode;

use camino::Utf8PathBuf;
use jobc_serve::{Directories, Options, Proxy};
use jobc_sys::accounts;
use jobc_sys::error::{Error, Kind};

use super::jobs::{Failure, Result};
use crate::platform::directories;
use crate::runtime::args::serve::ServeArgs;
use crate::terminal;

/// The directory of this host's state besides the home directory.
const STATE: &str = ".local/state";

pub(crate) fn run(args: &ServeArgs) -> Result<ExitCode> {
    let roots = if args.root.is_empty() { vec![Utf8PathBuf::from(".")] } else { args.root.clone() };
    let options = Options {
        listen: args.listen.clone(),
        hosts: args.host.clone(),
        origins: args.origin.clone(),
        roots,
        shares: args.share.clone(),
        tls: args.tls_cert.clone().zip(args.tls_key.clone()),
        proxy: proxy(args)?,
        operators: args.operator.clone(),
        audit: args.audit.clone(),
        page: args.page.clone(),
        open: args.open,
        directories: own_directories()?,
        version: env!("CARGO_PKG_VERSION"),
    };
    // A panic fails one request, and the log has it.
    std::panic::set_hook(Box::new(|panic| eprintln!("jobc serve: internal error: {panic}")));
    jobc_serve::run(options, &|line| terminal::eprint(&format!("jobc serve: {line}\n")))?;
    Ok(ExitCode::SUCCESS)
}

/// The proxy that names users.
fn proxy(args: &ServeArgs) -> Result<Option<Proxy>> {
    let Some((header, account)) = args.trust_proxy_user.clone().zip(args.proxy_account.as_ref()) else {
        return Ok(None);
    };
    let accounts = accounts::read_file("/etc/passwd").unwrap_or_default();
    let known = accounts::users(&accounts).find(|user| user.name == account).map(|user| user.uid);
    let uid = known.or_else(|| accounts::id(account)).ok_or_else(|| {
        let error = Error::new(Kind::NotFound, format!("unknown user `{account}`"));
        Failure::usage_error(
            error.help("name the user whom the proxy runs as, such as `www-data`, or its number"),
        )
    })?;
    Ok(Some(Proxy { header, uid }))
}

/// Where the server keeps its own files.
fn own_directories() -> Result<Directories> {
    let unknown = || Error::new(Kind::System, "the home directory is unknown").help("set `HOME`");
    let set = std::env::var("XDG_STATE_HOME").ok().map(Utf8PathBuf::from).filter(|path| path.is_absolute());
    let state = set.or_else(|| Some(directories::home()?.join(STATE))).ok_or_else(unknown)?;
    let cache = directories::cache().ok_or_else(unknown)?;
    Ok(Directories { state: state.join("jobc/serve"), cache: cache.join("serve") })
}
