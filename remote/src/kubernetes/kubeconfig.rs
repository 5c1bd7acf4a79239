//! Kubeconfig files: the cluster, the user, and the namespace.
//!
//! As kubectl reads them: `KUBECONFIG` is a list of files, and the first file with a name or value wins; paths in a
//! file are relative to it, and in a pod without a kubeconfig the pod's service account is used.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jobc_sys::error::{AtPath as _, Error, Kind, Result};
use jobc_sys::yaml;
use serde::Deserialize;

use super::exec_plugin::ExecPlugin;
use super::uses::Uses;

/// The directory with a pod's account.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The cluster settings of a target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// A kubeconfig file instead of those of `KUBECONFIG`.
    pub kubeconfig: Option<PathBuf>,
    /// A context instead of the current one.
    pub context: Option<String>,
    /// A namespace instead of the context's.
    pub namespace: Option<String>,
}

/// A cluster, and how to connect to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterConfig {
    /// The URL of the API server, without a slash at its end.
    pub server: String,
    /// The namespace of jobs.
    pub namespace: String,
    /// The authorities that sign the server's certificate, in PEM format; none for those of the host.
    pub(crate) authorities: Option<Vec<u8>>,
    pub(crate) insecure: bool,
    pub(crate) server_name: Option<String>,
    pub(crate) proxy: Option<String>,
    /// Certificate and key in PEM format.
    pub(crate) certificate: Option<(Vec<u8>, Vec<u8>)>,
    pub(crate) token: TokenSource,
    /// Headers of a user who is impersonated.
    pub(crate) impersonate: Vec<(String, String)>,
    /// The features that the target's jobs use.
    pub uses: Uses,
}

/// Where the bearer token comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum TokenSource {
    #[default]
    None,
    Static(String),
    /// A file that is replaced before its token expires.
    File(PathBuf),
    Exec(Box<ExecPlugin>),
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct File {
    current_context: Option<String>,
    clusters: Vec<Named<Cluster>>,
    users: Vec<Named<User>>,
    contexts: Vec<Named<Context>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Named<T> {
    name: String,
    #[serde(alias = "cluster", alias = "user", alias = "context")]
    value: Option<T>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Cluster {
    server: String,
    certificate_authority: Option<PathBuf>,
    certificate_authority_data: Option<String>,
    insecure_skip_tls_verify: bool,
    tls_server_name: Option<String>,
    proxy_url: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct User {
    client_certificate: Option<PathBuf>,
    client_certificate_data: Option<String>,
    client_key: Option<PathBuf>,
    client_key_data: Option<String>,
    token: Option<String>,
    #[serde(rename = "tokenFile")]
    token_file: Option<PathBuf>,
    exec: Option<ExecPlugin>,
    auth_provider: Option<serde_json::Value>,
    username: Option<String>,
    #[serde(rename = "as")]
    impersonate: Option<String>,
    as_groups: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Context {
    cluster: String,
    user: String,
    namespace: Option<String>,
}

impl ClusterConfig {
    /// The cluster that a target names, from this process's environment.
    ///
    /// # Errors
    ///
    /// There is no kubeconfig, of the kind [`Kind::NotFound`]; or it cannot be used, with the file and the name at fault.
    pub fn load(access: &Access) -> Result<Self> {
        Self::from_environment(access, &|name| std::env::var(name).ok())
    }

    fn from_environment(access: &Access, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let default = variable("HOME").map(|home| Path::new(&home).join(".kube/config"));
        let paths: Vec<PathBuf> = match (&access.kubeconfig, variable("KUBECONFIG")) {
            (Some(path), _) => {
                if !path.exists() {
                    let shown = path.display();
                    let message = format!("the kubeconfig `{shown}` of the target does not exist");
                    return Err(Error::new(Kind::NotFound, message));
                }
                vec![path.clone()]
            }
            (None, Some(list)) => {
                std::env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).collect()
            }
            (None, None) => default.into_iter().collect(),
        };
        let files: Vec<&PathBuf> = paths.iter().filter(|path| path.exists()).collect();
        if files.is_empty() {
            let directory = Path::new(SERVICE_ACCOUNT);
            if let (None, Some(host), Some(port)) =
                (&access.context, variable("KUBERNETES_SERVICE_HOST"), variable("KUBERNETES_SERVICE_PORT"))
            {
                return Self::of_service_account(directory, &host, &port, access);
            }
            let shown: Vec<String> = paths.iter().map(|path| format!("`{}`", path.display())).collect();
            let shown = if shown.is_empty() { "`~/.kube/config`".to_owned() } else { shown.join(", ") };
            let message = format!("there is no kubeconfig: {shown} does not exist");
            return Err(Error::new(Kind::NotFound, message).help(
                "get one from your cluster, and set `KUBECONFIG`, or `kubernetes.kubeconfig` of the target",
            ));
        }
        let mut merged = Merged::default();
        for path in files {
            merged.add(path)?;
        }
        merged.choose(access)
    }

    /// The account that a pod has.
    fn of_service_account(directory: &Path, host: &str, port: &str, access: &Access) -> Result<Self> {
        let read = |name: &str| {
            let path = directory.join(name);
            fs::read(&path).at_path("read", &path)
        };
        let namespace = String::from_utf8_lossy(&read("namespace")?).trim().to_owned();
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        Ok(Self {
            server: format!("https://{host}:{port}"),
            namespace: access.namespace.clone().unwrap_or(namespace),
            authorities: Some(read("ca.crt")?),
            token: TokenSource::File(directory.join("token")),
            ..Self::default()
        })
    }
}

/// The files of `KUBECONFIG` put together.
#[derive(Default)]
struct Merged {
    current_context: Option<String>,
    clusters: BTreeMap<String, (PathBuf, Cluster)>,
    users: BTreeMap<String, (PathBuf, User)>,
    contexts: BTreeMap<String, Context>,
    paths: Vec<PathBuf>,
}

impl Merged {
    fn add(&mut self, path: &Path) -> Result<()> {
        let text = fs::read_to_string(path).at_path("read", path)?;
        let broken = |why: String| wrong(format!("`{}` is not a kubeconfig: {why}", path.display()));
        let file: File = if text.trim().is_empty() {
            File::default()
        } else {
            let value = yaml::read(&text).map_err(broken)?;
            serde_json::from_value(without_nulls(value)).map_err(|error| broken(error.to_string()))?
        };
        let directory = path.parent().unwrap_or(Path::new("/")).to_owned();
        self.paths.push(path.to_owned());
        self.current_context =
            self.current_context.take().or(file.current_context.filter(|name| !name.is_empty()));
        for Named { name, value } in file.clusters {
            self.clusters.entry(name).or_insert((directory.clone(), value.unwrap_or_default()));
        }
        for Named { name, value } in file.users {
            self.users.entry(name).or_insert((directory.clone(), value.unwrap_or_default()));
        }
        for Named { name, value } in file.contexts {
            self.contexts.entry(name).or_insert(value.unwrap_or_default());
        }
        Ok(())
    }

    fn choose(self, access: &Access) -> Result<ClusterConfig> {
        let shown =
            self.paths.iter().map(|path| format!("`{}`", path.display())).collect::<Vec<_>>().join(", ");
        let names =
            |names: Vec<&String>| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let known = names(self.contexts.keys().collect());
        let Some(name) = access.context.as_ref().or(self.current_context.as_ref()) else {
            return Err(wrong(format!("no context is chosen in {shown}"))
                .help(format!("run `kubectl config use-context NAME`, or set `kubernetes.context` of the target; contexts: {known}")));
        };
        let Some(context) = self.contexts.get(name) else {
            return Err(
                wrong(format!("there is no context `{name}` in {shown}")).help(format!("contexts: {known}"))
            );
        };
        let Some((base, cluster)) = self.clusters.get(&context.cluster) else {
            return Err(wrong(format!(
                "the context `{name}` names the cluster `{}`, which is not in {shown}",
                context.cluster
            )));
        };
        let server = cluster.server.trim_end_matches('/').to_owned();
        if !server.starts_with("https://") && !server.starts_with("http://") {
            return Err(wrong(format!(
                "the `server` of the cluster `{}` is not a URL: `{server}`",
                context.cluster
            )));
        }
        let none = (PathBuf::new(), User::default());
        let (home, user) = match self.users.get(&context.user) {
            Some(entry) => entry,
            None if context.user.is_empty() => &none,
            None => {
                return Err(wrong(format!(
                    "the context `{name}` names the user `{}`, which is not in {shown}",
                    context.user
                )));
            }
        };
        if user.auth_provider.is_some() || user.username.is_some() {
            return Err(wrong(format!(
                "the user `{}` logs in with `auth-provider` or a password, which is not supported",
                context.user
            ))
            .help("use an `exec` plugin, such as `kubelogin`, a token or a client certificate"));
        }
        let certificate = data(
            user.client_certificate_data.as_ref(),
            user.client_certificate.as_ref(),
            home,
            "client-certificate",
        )?;
        let key = data(user.client_key_data.as_ref(), user.client_key.as_ref(), home, "client-key")?;
        let token = match (&user.token_file, &user.token, &user.exec) {
            (Some(path), ..) => TokenSource::File(home.join(path)),
            (_, Some(token), _) if !token.is_empty() => TokenSource::Static(token.clone()),
            (.., Some(plugin)) => TokenSource::Exec(Box::new(plugin.in_directory(home))),
            _ => TokenSource::None,
        };
        let user_header = user.impersonate.iter().map(|name| ("Impersonate-User".to_owned(), name.clone()));
        let groups = user.as_groups.iter().map(|name| ("Impersonate-Group".to_owned(), name.clone()));
        let namespace =
            access.namespace.clone().or_else(|| context.namespace.clone().filter(|name| !name.is_empty()));
        Ok(ClusterConfig {
            server,
            namespace: namespace.unwrap_or_else(|| "default".to_owned()),
            authorities: data(
                cluster.certificate_authority_data.as_ref(),
                cluster.certificate_authority.as_ref(),
                base,
                "certificate-authority",
            )?,
            insecure: cluster.insecure_skip_tls_verify,
            server_name: cluster.tls_server_name.clone(),
            proxy: cluster.proxy_url.clone().filter(|url| !url.is_empty()),
            certificate: certificate.zip(key),
            token,
            impersonate: user_header.chain(groups).collect(),
            uses: Uses::default(),
        })
    }
}

/// Bytes that a kubeconfig has in base64, or in a file.
fn data(inline: Option<&String>, path: Option<&PathBuf>, base: &Path, name: &str) -> Result<Option<Vec<u8>>> {
    if let Some(text) = inline.filter(|text| !text.is_empty()) {
        let text: String = text.split_whitespace().collect();
        return STANDARD
            .decode(text)
            .map(Some)
            .map_err(|error| wrong(format!("`{name}-data` is not base64: {error}")));
    }
    path.map(|path| base.join(path))
        .map(|path| fs::read(&path).at_path(&format!("read the `{name}`"), &path))
        .transpose()
}

/// Go reads `clusters: null` as an empty list.
fn without_nulls(value: serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::Object(map) => map
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key, without_nulls(value)))
            .collect(),
        Value::Array(list) => list.into_iter().map(without_nulls).collect(),
        other => other,
    }
}

fn wrong(message: String) -> Error {
    Error::new(Kind::Config, message)
}

#[cfg(test)]
mod tests;
