//! Where the images of a registry are: the registry itself, or a mirror of it.

use jobc_sys::error::{Error, Kind, Result};

use crate::settings::Settings;

/// A place that serves images.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// `http://HOST[:PORT]` or `https://…`.
    pub(crate) address: String,
    /// Its name in messages.
    pub(crate) name: String,
    /// The name used for the login.
    pub(crate) registry: String,
    /// The prefix of a repository's name here; empty, or with a trailing `/`.
    prefix: String,
}

impl Endpoint {
    /// A registry, by its name in references.
    pub(crate) fn of_registry(registry: &str, settings: &Settings) -> Self {
        // The well-known name serves web pages.
        let host = if registry == "docker.io" { "registry-1.docker.io" } else { registry };
        let scheme = if settings.of(registry).plain_http { "http" } else { "https" };
        Self {
            address: format!("{scheme}://{host}"),
            name: registry.to_owned(),
            registry: registry.to_owned(),
            prefix: String::new(),
        }
    }

    /// A mirror as settings name it: `[http://]HOST[:PORT][/PREFIX]`.
    pub(crate) fn of_mirror(written: &str, settings: &Settings) -> Result<Self> {
        let (scheme, rest) =
            written.split_once("://").map_or((None, written), |(scheme, rest)| (Some(scheme), rest));
        let (host, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = prefix.trim_matches('/');
        if host.is_empty() || !matches!(scheme, None | Some("http" | "https")) {
            return Err(Error::new(Kind::Config, format!("`{written}` is not a mirror"))
                .help("write `HOST[:PORT][/PREFIX]`, with `http://` in front for plain HTTP"));
        }
        let own = Self::of_registry(host, settings);
        Ok(Self {
            address: scheme.map_or(own.address, |scheme| format!("{scheme}://{host}")),
            name: host.to_owned(),
            registry: host.to_owned(),
            prefix: if prefix.is_empty() { String::new() } else { format!("{prefix}/") },
        })
    }

    /// The address of something of a repository: `manifests/latest`, `blobs/sha256:…`, `blobs/uploads/`.
    pub(crate) fn url(&self, repository: &str, what: &str) -> String {
        format!("{}/v2/{}{repository}/{what}", self.address, self.prefix)
    }

    /// The permissions that a request about a repository needs: `pull`, or `pull,push`.
    pub(crate) fn scope(&self, repository: &str, actions: &str) -> String {
        format!("repository:{}{repository}:{actions}", self.prefix)
    }

    /// An address that the registry named (`Location`), which may be only a path.
    pub(crate) fn resolve(&self, location: &str) -> String {
        if location.contains("://") {
            location.to_owned()
        } else if location.starts_with("//") {
            format!("{}:{location}", self.address.split(':').next().unwrap_or("https"))
        } else {
            format!("{}/{}", self.address, location.trim_start_matches('/'))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        serde_json::from_str(r#"{"registries": {"lan:5000": {"plain_http": true}}}"#).unwrap()
    }

    #[test]
    fn a_registry_is_queried_at_its_address() {
        let hub = Endpoint::of_registry("docker.io", &settings());
        assert_eq!(
            hub.url("library/busybox", "manifests/latest"),
            "https://registry-1.docker.io/v2/library/busybox/manifests/latest"
        );
        assert_eq!(hub.scope("library/busybox", "pull"), "repository:library/busybox:pull");
        assert_eq!(Endpoint::of_registry("lan:5000", &settings()).address, "http://lan:5000");
    }

    #[test]
    fn a_mirror_has_a_place_for_what_it_keeps() {
        let mirror =
            |written: &str| Endpoint::of_mirror(written, &settings()).map(|mirror| mirror.url("a/b", "x"));
        assert_eq!(mirror("m.example"), Ok("https://m.example/v2/a/b/x".into()));
        assert_eq!(mirror("http://m.example:5000/hub/"), Ok("http://m.example:5000/v2/hub/a/b/x".into()));
        assert_eq!(mirror("lan:5000"), Ok("http://lan:5000/v2/a/b/x".into()));
        assert!(mirror("ftp://m").is_err() && mirror("").is_err() && mirror("https://").is_err());
    }

    #[test]
    fn a_location_may_be_only_a_path() {
        let lan = Endpoint::of_registry("lan:5000", &settings());
        assert_eq!(lan.resolve("/v2/a?x=1"), "http://lan:5000/v2/a?x=1");
        assert_eq!(lan.resolve("//other/v2"), "http://other/v2");
        assert_eq!(lan.resolve("https://other/v2"), "https://other/v2");
    }
}
