//! What every build has of this host, whoever starts it: `jobc image build`, or `jobc run` and `jobc submit` for a job.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use jobc_image::build::access::Access;
use jobc_image::build::{Compression, Extras, Request};
use jobc_image::dockerfile::ignore::Ignore;
use jobc_image::dockerfile::{self, Build, Inspection, Options};
use jobc_image::{Fetch, Platform};
use jobc_job::network::BuildNetworks;
use jobc_sys::error::Result;

use super::proxies;
use crate::runtime::registries::{self, BuildClients};

/// Creates networks for commands.
const NETWORKS: BuildNetworks = BuildNetworks;

/// Clients, certificates, proxies and networks for builds.
pub(crate) struct BuildHost {
    clients: BuildClients,
    /// Build arguments with proxies, by their names.
    proxies: IndexMap<String, String>,
}

impl BuildHost {
    /// Reads the user's settings. `ca` are files with certificates that are trusted, too.
    pub(crate) fn read(plain_http: bool, ca: &[PathBuf]) -> Result<Self> {
        Ok(Self { clients: registries::of_build(plain_http, ca)?, proxies: proxies::of_user()? })
    }

    /// The source of base images.
    pub(crate) fn fetch(&self) -> &dyn Fetch {
        &self.clients.fetch
    }

    /// The default access of a build: its own network, and downloads.
    pub(crate) fn access(&self) -> Access<'_> {
        Access {
            networks: Some(&NETWORKS),
            downloads: Some(&self.clients.downloads),
            certificates: self.clients.certificates.as_ref(),
            ..Access::default()
        }
    }

    /// Build arguments, with the proxies that are not among them.
    pub(crate) fn arguments(
        &self,
        given: impl IntoIterator<Item = (String, String)>,
    ) -> Vec<(String, String)> {
        let mut all = self.proxies.clone();
        all.extend(given);
        all.into_iter().collect()
    }

    /// Parses a Dockerfile.
    pub(crate) fn inspect(
        text: &[u8],
        args: &[(String, String)],
        target: Option<&str>,
        platform: &Platform,
    ) -> Inspection {
        let (platform, here) = (platform.to_string(), Platform::here().to_string());
        dockerfile::inspect(text, &Options { args, target, platform: &platform, build_platform: &here })
    }

    /// A build with nothing requested besides.
    pub(crate) fn request<'a>(&'a self, build: &'a Build, context: &Path, platform: Platform) -> Request<'a> {
        Request {
            build,
            context: Some(context.to_owned()),
            ignore: Ignore::default(),
            labels: IndexMap::new(),
            tags: Vec::new(),
            secrets: IndexMap::new(),
            no_cache: false,
            locked: IndexMap::new(),
            pull: false,
            epoch: build.epoch,
            platform,
            compression: Compression::default(),
            fetch: Some(self.fetch()),
            access: self.access(),
            extras: Extras::default(),
        }
    }
}
