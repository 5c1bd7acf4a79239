//! The source of images: a client with the settings of `registries.yaml`.

use std::path::{Path, PathBuf};

use camino::Utf8Path;
use jobc_compiler::diagnostic::{Diagnostic, Sink};
use jobc_compiler::document::Part;
use jobc_compiler::parse;
use jobc_compiler::source::{Source, SourceId, Sources};
use jobc_image::build::access::Certificates;
use jobc_registry::settings::SettingsError;
use jobc_registry::{Client, Credentials, Settings, WebClient, certificate_bundle};
use jobc_schema::Pointer;
use jobc_sys::error::{Error, Kind, Result};

use crate::input::{self, InputError};
use crate::runtime::settings::registries;

/// The settings of the host, used in addition to those of the user.
const SYSTEM_SETTINGS: &str = "/etc/jobc/registries.yaml";

/// What a build reaches other hosts by, and trusts.
pub(crate) struct BuildClients {
    /// The source of base images.
    pub(crate) fetch: Client,
    /// The client for `ADD` of URLs.
    pub(crate) downloads: WebClient,
    /// Certificates for commands and git.
    pub(crate) certificates: Option<Certificates>,
}

/// A client with the settings of this user and of this host.
pub(crate) fn client(plain_http: bool) -> Result<Client> {
    Ok(Client::new(settings(plain_http)?, Credentials::of_user()))
}

/// Clients of a build, which trust the certificates of files, too: for images, for files that a Dockerfile adds by
/// URL, and the certificates for commands and git, if there are any besides the host's.
pub(crate) fn of_build(plain_http: bool, ca: &[PathBuf]) -> Result<BuildClients> {
    let mut settings = settings(plain_http)?;
    settings.ca.extend_from_slice(ca);
    let ca = settings.ca.clone();
    let certificates = (!ca.is_empty()).then(|| Certificates::new(certificate_bundle(&ca)?.into_bytes()));
    Ok(BuildClients {
        certificates: certificates.transpose()?,
        fetch: Client::new(settings, Credentials::of_user()),
        downloads: WebClient { ca },
    })
}

fn settings(plain_http: bool) -> Result<Settings> {
    let mut settings = Settings { plain_http, ..Settings::default() };
    let system = (PathBuf::from(SYSTEM_SETTINGS), false);
    for (path, is_required) in registries().into_iter().chain([system]) {
        if is_required || path.exists() {
            settings = settings.merge(read(&path)?);
        }
    }
    Ok(settings)
}

fn read(path: &Path) -> Result<Settings> {
    let shown = path.to_string_lossy();
    let text = input::read(Utf8Path::new(&shown)).map_err(|InputError(why)| Error::new(Kind::Config, why))?;
    let wrong = |line: Option<u32>, why: &str| {
        let line = line.map(|line| format!(" line {line}:")).unwrap_or_default();
        Error::new(Kind::Config, format!("`{shown}`:{line} {why}"))
            .help("docs/guides/images.md describes the settings of registries")
    };
    let mut sources = Sources::new();
    let id = sources.add(Source::new(shown.as_ref(), text));
    let mut sink = Sink::new();
    let document = parse::parse(&sources, id, &mut sink);
    if let Some(first) = sink.finish().first() {
        return Err(wrong(line_of(&sources, id, first), &first.message));
    }
    let Some(document) = document else { return Ok(Settings::default()) };
    let settings = Settings::read(document.to_json()).map_err(|SettingsError { path, message }| {
        // A number may be an index of a list or a key; only the document knows which.
        let at = path.iter().fold(Pointer::ROOT, |at, segment| at.key(segment));
        let span = document.span(&at, Part::Key);
        let line = sources.get(id).line_column(span.start).line;
        wrong(Some(line), &format!("`{}`: {message}", path.join(".")))
    })?;
    Ok(settings.relative_to(path.parent().unwrap_or(path)))
}

fn line_of(sources: &Sources, id: SourceId, finding: &Diagnostic) -> Option<u32> {
    let span = finding.labels.first()?.place.span()?;
    Some(sources.get(id).line_column(span.start).line)
}
