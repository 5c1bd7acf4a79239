//! `extra_hosts` and `dns` of a job: `hostAliases` and `dnsConfig` of its pods.

use std::collections::BTreeMap;

use jobc_schema::Pointer;
use jobc_schema::plan::JobPlan;
use k8s_openapi::api::core::v1::{HostAlias, PodDNSConfig, PodDNSConfigOption, PodSpec};

use super::origins::Origins;

/// Whether the servers of the job replace that of the cluster, by whose names pods find each other.
pub(super) fn replaces_servers(job: &JobPlan) -> bool {
    job.roles.iter().map(|role| role.instances).sum::<u32>() == 1
}

/// Adds the names, and the settings of the resolver.
pub(super) fn add(job: &JobPlan, spec: &mut PodSpec, origins: &mut Origins) {
    // An entry has one address and its names.
    let mut names: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, address) in &job.extra_hosts {
        names.entry(address).or_default().push(name.clone());
    }
    let at = Pointer::ROOT.key("extra_hosts");
    for (number, names) in names.values().enumerate() {
        origins.spec(["hostAliases", &number.to_string()], &at.key(&names[0]));
    }
    let alias = |(ip, names): (&str, Vec<String>)| HostAlias { ip: ip.to_owned(), hostnames: Some(names) };
    let aliases: Vec<HostAlias> = names.into_iter().map(alias).collect();
    spec.host_aliases = (!aliases.is_empty()).then_some(aliases);
    let Some(dns) = &job.dns else { return };
    let at = Pointer::ROOT.key("dns");
    let list = |values: &Vec<String>| (!values.is_empty()).then(|| values.clone());
    let option = |text: &String| {
        let (name, value) =
            text.split_once(':').map_or((text.as_str(), None), |(name, value)| (name, Some(value)));
        PodDNSConfigOption { name: Some(name.to_owned()), value: value.map(str::to_owned) }
    };
    spec.dns_config = Some(PodDNSConfig {
        nameservers: list(&dns.servers),
        searches: list(&dns.search),
        options: (!dns.options.is_empty()).then(|| dns.options.iter().map(option).collect()),
    });
    for (key, origin, values) in [
        ("nameservers", "servers", &dns.servers),
        ("searches", "search", &dns.search),
        ("options", "options", &dns.options),
    ] {
        if !values.is_empty() {
            origins.spec(["dnsConfig", key], &at.key(origin));
        }
    }
    if !dns.servers.is_empty() && replaces_servers(job) {
        spec.dns_policy = Some("None".to_owned());
        origins.spec(["dnsPolicy"], &at.key("servers"));
    }
}
