//! A drop-in with the same limits as properties of a scope; systemd.resource-control(5).

use crate::backend::limits::{DEVICES, Limits};

/// The drop-in's text.
///
/// The scope's name is the one that runtimes with a systemd driver give to `jobc:<job>-<role>-<i>`.
pub(super) fn drop_in(limits: &Limits) -> String {
    let mut lines = vec!["[Scope]".to_owned()];
    if let Some(cpu) = limits.cpu {
        // `CPUQuota=` takes hundredths of a percent, which is a tenth of a thousandth of a CPU: nothing is rounded.
        let hundredths = u128::from(cpu.quota) * 10_000 / u128::from(cpu.period);
        lines.push(format!("CPUQuota={}%", percent(hundredths)));
        lines.push(format!("CPUQuotaPeriodSec={}ms", cpu.period / 1000));
        lines.push(format!("CPUWeight={}", cpu.weight()));
    }
    if let Some(cpus) = &limits.cpuset {
        lines.push(format!("AllowedCPUs={}", spaced(cpus)));
    }
    if let Some(mems) = &limits.mems {
        lines.push(format!("AllowedMemoryNodes={}", spaced(mems)));
    }
    if let Some(memory) = limits.memory {
        lines.push(format!("MemoryMax={}", memory.bytes));
        lines.push(format!("MemorySwapMax={}", memory.swap));
    }
    if let Some(pids) = limits.pids {
        lines.push(format!("TasksMax={pids}"));
    }
    if let Some(weight) = limits.io {
        lines.push(format!("IOWeight={}", weight.v2()));
    }
    for throttle in &limits.throttles {
        let device = throttle
            .number()
            .map_or_else(|| path(&throttle.device), |(major, minor)| format!("/dev/block/{major}:{minor}"));
        lines.extend(throttle.limits.rates().map(|(key, rate)| format!("{}={device} {rate}", property(key))));
    }
    if limits.all_devices {
        lines.push("DevicePolicy=auto".to_owned());
    } else {
        lines.push("DevicePolicy=strict".to_owned());
        lines.extend(DEVICES.iter().map(|rule| format!("DeviceAllow={} {}", rule.systemd, rule.access)));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// The property of a key of `io.max`.
fn property(key: &str) -> &'static str {
    match key {
        "rbps" => "IOReadBandwidthMax",
        "wbps" => "IOWriteBandwidthMax",
        "riops" => "IOReadIOPSMax",
        _ => "IOWriteIOPSMax",
    }
}

/// A path as a word of a unit file: `%` starts a specifier there, and a backslash keeps what follows it.
fn path(path: &str) -> String {
    path.replace('\\', "\\\\").replace(' ', "\\ ").replace('%', "%%")
}

/// Hundredths of a percent, as short as they can be written.
fn percent(hundredths: u128) -> String {
    let (whole, rest) = (hundredths / 100, hundredths % 100);
    match rest {
        0 => whole.to_string(),
        _ if rest.is_multiple_of(10) => format!("{whole}.{}", rest / 10),
        _ => format!("{whole}.{rest:02}"),
    }
}

/// A kernel list with spaces, which systemd reads as well as commas and shows so.
fn spaced(list: &str) -> String {
    list.replace(',', " ")
}
