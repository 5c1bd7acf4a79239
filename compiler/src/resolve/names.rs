//! `extra_hosts` and `dns`: what the roles find under other names than those of the job.

use std::net::IpAddr;

use jobc_schema::Pointer;
use jobc_schema::plan::HOST_GATEWAY;

use super::context::Context;
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Checks the names and addresses; their forms are those of hosts(5) and resolv.conf(5).
pub(super) fn check(context: &Context<'_>, sink: &mut Sink) {
    let at = Pointer::ROOT.key("extra_hosts");
    for (name, address) in &context.job.extra_hosts {
        let at = at.key(name);
        let wrong = |message: String| Diagnostic::error(codes::HOST_NAME, message);
        if !is_host_name(name) {
            sink.push(
                wrong(format!("`{name}` is not a host name")).at_key(&at, "").note(
                    "write letters, digits, `-` and `_` between dots, as in `db.lab`: the name is the key and the address its value",
                ),
            );
        } else if is_task(context, name) {
            sink.push(
                wrong(format!("`{name}` is the name of a task of this job"))
                    .at_key(&at, "")
                    .note("tasks find each other by these names; write another name"),
            );
        }
        if address != HOST_GATEWAY && address.parse::<IpAddr>().is_err() {
            sink.push(wrong(format!("`{address}` is not an IP address")).at(&at, "").note(
                "write an address such as `10.0.0.7`, or `host-gateway` for the host that runs the task",
            ));
        }
    }
    let Some(dns) = &context.job.dns else { return };
    let at = Pointer::ROOT.key("dns");
    for (number, server) in dns.servers.iter().enumerate() {
        if server.parse::<IpAddr>().is_err() {
            sink.push(
                Diagnostic::error(codes::HOST_NAME, format!("`{server}` is not an IP address"))
                    .at(&at.key("servers").index(number), "")
                    .note(
                        "a name server is found by its address, without a port: write one such as `10.0.0.2`",
                    ),
            );
        }
    }
    for (number, domain) in dns.search.iter().enumerate() {
        if domain != "." && !is_host_name(domain.strip_suffix('.').unwrap_or(domain)) {
            sink.push(
                Diagnostic::error(codes::HOST_NAME, format!("`{domain}` is not a domain"))
                    .at(&at.key("search").index(number), "")
                    .note("write one domain an entry, such as `corp.example.com`"),
            );
        }
    }
    for (number, option) in dns.options.iter().enumerate() {
        if option.is_empty() || option.contains(|c: char| c.is_whitespace() || c.is_control()) {
            sink.push(
                Diagnostic::error(codes::HOST_NAME, format!("`{option}` is not one option of the resolver"))
                    .at(&at.key("options").index(number), "")
                    .note("write one option an entry, such as `ndots:2`"),
            );
        }
    }
}

fn is_host_name(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

/// Whether a name is `<role>-<i>` or `<role>-<i>.<job>`.
fn is_task(context: &Context<'_>, name: &str) -> bool {
    let task = name.strip_suffix(&format!(".{}", context.name)).unwrap_or(name);
    task.rsplit_once('-').is_some_and(|(role, index)| {
        let instances = context.table.get(role).map_or(0, |facts| facts.instances);
        index.parse::<u32>().is_ok_and(|number| number < instances && number.to_string() == index)
    })
}
