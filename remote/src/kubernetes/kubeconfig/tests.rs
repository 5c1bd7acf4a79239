use super::*;

const ONE: &str = r#"
apiVersion: v1
kind: Config
current-context: lab
clusters:
- name: lab
  cluster: {server: "https://lab.example:6443/", certificate-authority: ca.crt, tls-server-name: kubernetes}
- name: plain
  cluster: {server: "http://127.0.0.1:8001", proxy-url: "http://proxy:3128"}
users:
- name: me
  user: {client-certificate-data: YWJj, client-key-data: ZGVm, as: robot, as-groups: [a, b]}
- name: plugin
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: ./get-token
      args: [--cluster, lab]
      env: [{name: A, value: b}]
      interactiveMode: Never
contexts:
- name: lab
  context: {cluster: lab, user: me, namespace: ml}
- name: plugin
  context: {cluster: plain, user: plugin}
- name: broken
  context: {cluster: nowhere, user: me}
preferences: {}
"#;

const TWO: &str = "
current-context: other
clusters: null
users:
- {name: me, user: {token: second}}
- {name: file, user: {tokenFile: token}}
contexts:
- {name: other, context: {cluster: lab, user: file}}
";

fn load(access: &Access, more: &[(&str, &str)]) -> Result<ClusterConfig> {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in [("one", ONE), ("two", TWO), ("ca.crt", "CA"), ("bad", "a: [")] {
        fs::write(directory.path().join(name), text).unwrap();
    }
    let expand = |text: &str| text.replace('@', &directory.path().display().to_string());
    let mut access = access.clone();
    access.kubeconfig = access.kubeconfig.map(|path| expand(&path.to_string_lossy()).into());
    let result = ClusterConfig::from_environment(&access, &|name| {
        more.iter().find(|(known, _)| *known == name).map(|(_, value)| expand(value))
    });
    result.map_err(|mut error| {
        error.what = error.what.replace(&directory.path().display().to_string(), "@");
        error
    })
}

#[test]
fn the_first_file_that_has_a_name_wins() {
    let config = load(&Access::default(), &[("KUBECONFIG", "@/absent:@/one:@/two")]).unwrap();
    assert_eq!((config.server.as_str(), config.namespace.as_str()), ("https://lab.example:6443", "ml"));
    assert_eq!(config.authorities.as_deref(), Some(&b"CA"[..]));
    assert_eq!(config.certificate, Some((b"abc".to_vec(), b"def".to_vec())));
    assert_eq!(config.server_name.as_deref(), Some("kubernetes"));
    let headers: Vec<&str> = config.impersonate.iter().map(|(_, value)| value.as_str()).collect();
    assert_eq!(headers, ["robot", "a", "b"]);
    let other = load(&Access::default(), &[("KUBECONFIG", "@/two:@/one")]).unwrap();
    assert!(matches!(&other.token, TokenSource::File(path) if path.ends_with("token")), "{other:?}");
    assert_eq!(other.namespace, "default");
}

#[test]
fn a_target_chooses_file_context_and_namespace() {
    let access = Access {
        kubeconfig: Some("@/one".into()),
        context: Some("plugin".to_owned()),
        namespace: Some("team".to_owned()),
    };
    let config = load(&access, &[("KUBECONFIG", "@/two")]).unwrap();
    assert_eq!((config.server.as_str(), config.namespace.as_str()), ("http://127.0.0.1:8001", "team"));
    assert_eq!(config.proxy.as_deref(), Some("http://proxy:3128"));
    let TokenSource::Exec(plugin) = &config.token else { panic!("{config:?}") };
    assert!(plugin.command.ends_with("/get-token") && plugin.command.starts_with('/'), "{}", plugin.command);
}

#[test]
fn mistakes_are_named() {
    for (context, list, message) in [
        (None, "@/absent", "there is no kubeconfig: `@/absent` does not exist"),
        (Some("x"), "@/one", "there is no context `x` in `@/one`"),
        (
            Some("broken"),
            "@/one",
            "the context `broken` names the cluster `nowhere`, which is not in `@/one`",
        ),
        (None, "@/bad", "`@/bad` is not a kubeconfig: "),
    ] {
        let access = Access { context: context.map(str::to_owned), ..Access::default() };
        let error = load(&access, &[("KUBECONFIG", list)]).unwrap_err();
        assert!(error.message().starts_with(message), "{}", error.message());
    }
}

#[test]
fn a_pod_uses_its_own_account() {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in [("token", "t"), ("ca.crt", "CA"), ("namespace", "ml\n")] {
        fs::write(directory.path().join(name), text).unwrap();
    }
    let config =
        ClusterConfig::of_service_account(directory.path(), "fd00::1", "443", &Access::default()).unwrap();
    assert_eq!((config.server.as_str(), config.namespace.as_str()), ("https://[fd00::1]:443", "ml"));
    assert_eq!(config.token, TokenSource::File(directory.path().join("token")));
}
