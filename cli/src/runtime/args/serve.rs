//! The command line of `jobc serve`.

use std::time::Duration;

use camino::Utf8PathBuf;
use clap::{Args as ClapArgs, ValueEnum};
use jobc_serve::{Access, Listen, Share};

use super::duration::parse_duration;
use crate::completion;

#[derive(Debug, ClapArgs)]
pub(crate) struct ServeArgs {
    /// Address to listen on: a port, an address with a port, or `unix:PATH` [default: 127.0.0.1:8750]
    ///
    /// Port 0 takes a free one. Addresses that are not on loopback need `--tls-cert` and `--tls-key`.
    #[arg(long, short, value_name = "ADDRESS", default_value_t, hide_default_value = true)]
    pub listen: Listen,
    /// Open the page in a browser, if there is one
    #[arg(long)]
    pub open: bool,
    /// Directory that requests may name, for job files, uploads and outputs (repeatable) [default: the current directory]
    ///
    /// Relative paths in job files are below the first one.
    #[arg(long, value_name = "DIR", add = completion::directories())]
    pub root: Vec<Utf8PathBuf>,
    /// Also print a link to share, which ends: `read` or `submit`, with its time, `read:8h` [default time: 8h] (repeatable)
    #[arg(long, value_name = "ACCESS[:TIME]", value_parser = parse_share)]
    pub share: Vec<Share>,
    /// Host name of the server besides `localhost` and addresses, such as that of a proxy (repeatable)
    #[arg(long, value_name = "NAME")]
    pub host: Vec<String>,
    /// Origin of another site whose pages may use the API with a token, such as `https://lab.example.org` (repeatable)
    #[arg(long, value_name = "ORIGIN", value_parser = parse_origin)]
    pub origin: Vec<String>,
    /// Certificate chain for TLS, in PEM format
    #[arg(long, value_name = "FILE", requires = "tls_key", add = completion::files())]
    pub tls_cert: Option<Utf8PathBuf>,
    /// Private key of the certificate, in PEM format
    #[arg(long, value_name = "FILE", requires = "tls_cert", add = completion::files())]
    pub tls_key: Option<Utf8PathBuf>,
    /// Header in which a proxy on the Unix socket names the user of each request
    ///
    /// A user sees only the jobs that they started here.
    #[arg(long, value_name = "HEADER", value_parser = parse_header, requires = "proxy_account")]
    pub trust_proxy_user: Option<String>,
    /// User whom the proxy runs as, such as `www-data`
    #[arg(long, value_name = "USER", requires = "trust_proxy_user")]
    pub proxy_account: Option<String>,
    /// User who sees the jobs of all, as the proxy names them (repeatable)
    #[arg(long, value_name = "USER", requires = "trust_proxy_user")]
    pub operator: Vec<String>,
    /// Audit file [default: ~/.local/state/jobc/serve/audit.jsonl]
    #[arg(long, value_name = "FILE", add = completion::files())]
    pub audit: Option<Utf8PathBuf>,
    /// Directory with the page, while it is developed
    #[arg(long, value_name = "DIR", hide = true)]
    pub page: Option<Utf8PathBuf>,
}

/// How long a shared link lasts unless it says so.
const SHARED: Duration = Duration::from_hours(8);

/// What a shared link permits.
#[derive(Clone, Copy, ValueEnum)]
enum AccessArg {
    Read,
    Submit,
}

fn parse_share(text: &str) -> Result<Share, String> {
    let (access, lasts) = text.split_once(':').map_or((text, None), |(access, lasts)| (access, Some(lasts)));
    let access = match AccessArg::from_str(access, false) {
        Ok(AccessArg::Read) => Access::Read,
        Ok(AccessArg::Submit) => Access::Submit,
        Err(_) => return Err("write `read` or `submit`, with a time if you like: `read:8h`".to_owned()),
    };
    let lasts = lasts.map(parse_duration).transpose()?.unwrap_or(SHARED);
    Ok(Share { access, lasts })
}

fn parse_origin(text: &str) -> Result<String, String> {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    match host {
        Some(host) if !host.is_empty() && !host.contains(['/', '*', ' ', '@']) => Ok(text.to_owned()),
        _ => Err("write a scheme and a host, such as `https://lab.example.org`".to_owned()),
    }
}

fn parse_header(text: &str) -> Result<String, String> {
    let is_name = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if is_name {
        Ok(text.to_ascii_lowercase())
    } else {
        Err("write the name of a header, such as `X-Remote-User`".to_owned())
    }
}
