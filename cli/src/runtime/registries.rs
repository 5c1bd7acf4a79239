//! The source of images: a client with the settings of `registries.yaml`, or none if this jobc was built without it.

use jobc_image::Fetch;
use jobc_image::build::access::{Certificates, Download};
#[cfg(not(feature = "registry"))]
use jobc_sys::error::{Error, Kind, Result};
#[cfg(feature = "registry")]
pub(crate) use with::*;
#[cfg(not(feature = "registry"))]
pub(crate) use without::*;

/// What a build reaches other hosts by, and trusts.
#[derive(Default)]
pub(crate) struct BuildClients {
    /// The source of base images.
    pub(crate) fetch: Option<Box<dyn Fetch>>,
    /// The client for `ADD` of URLs.
    pub(crate) downloads: Option<Box<dyn Download>>,
    /// Certificates for commands and git.
    pub(crate) certificates: Option<Certificates>,
}

#[cfg(feature = "registry")]
mod with {
    use std::path::{Path, PathBuf};

    use camino::Utf8Path;
    use jobc_compiler::diagnostic::{Diagnostic, Sink};
    use jobc_compiler::document::Part;
    use jobc_compiler::parse;
    use jobc_compiler::source::{Source, SourceId, Sources};
    use jobc_image::Fetch;
    use jobc_image::build::access::Certificates;
    use jobc_registry::settings::SettingsError;
    use jobc_registry::{Client, Credentials, Settings, WebClient, certificate_bundle};
    use jobc_schema::Pointer;
    use jobc_sys::error::{Error, Kind, Result};

    use super::BuildClients;
    use crate::input::{self, InputError};
    use crate::runtime::settings::registries;

    /// The settings of the host, used in addition to those of the user.
    const SYSTEM_SETTINGS: &str = "/etc/jobc/registries.yaml";

    /// A client with the settings of this user and of this host.
    pub(crate) fn client(plain_http: bool) -> Result<Client> {
        Ok(Client::new(settings(plain_http)?, Credentials::of_user()))
    }

    /// The same, for callers that only need images.
    pub(crate) fn fetcher(plain_http: bool) -> Result<Box<dyn Fetch>> {
        Ok(Box::new(client(plain_http)?))
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
            fetch: Some(Box::new(Client::new(settings, Credentials::of_user()))),
            downloads: Some(Box::new(WebClient { ca })),
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
        let text =
            input::read(Utf8Path::new(&shown)).map_err(|InputError(why)| Error::new(Kind::Config, why))?;
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
}

#[cfg(not(feature = "registry"))]
mod without {
    use jobc_image::store::Store;
    use jobc_image::{Descriptor, Fetch, Platform, ProgressFn, Reference};

    use super::Result;

    /// No source: an error if an image is not in the store.
    struct Nobody;

    pub(crate) fn fetcher(_: bool) -> Result<Box<dyn Fetch>> {
        Ok(Box::new(Nobody))
    }

    /// No clients, so no certificates either.
    pub(crate) fn of_build(_: bool, ca: &[std::path::PathBuf]) -> Result<super::BuildClients> {
        if ca.is_empty() { Ok(super::BuildClients::default()) } else { Err(super::absent()) }
    }

    impl Fetch for Nobody {
        fn fetch(
            &self,
            store: &Store,
            reference: &Reference,
            _: &Platform,
            _: ProgressFn<'_>,
        ) -> Result<Descriptor> {
            store.find(reference)?.ok_or_else(super::absent)
        }
    }
}

/// Why nothing can be pulled or pushed.
#[cfg(not(feature = "registry"))]
pub(crate) fn absent() -> Error {
    Error::new(Kind::Unsupported, "this jobc was built without the feature `registry`")
        .help("import archives or directories with `jobc image import`")
}
