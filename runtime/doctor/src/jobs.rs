//! Jobs, each of them really run: what `jobc run` does on this host for this user.

use super::check::{Check, CheckResult, Need};
use super::host::{Host, Refusal};

/// The check of a job that asks for nothing.
pub(super) const RUN: &str = "job.run";

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: RUN,
        purpose: "running a job with `image: host`",
        need: Need::CurrentUser,
        run: |machine| run(machine, "doctor-run", "", "ran"),
    },
    Check {
        name: "job.limits",
        purpose: "limits for the CPU time, memory and processes of a task",
        need: Need::Optional(""),
        run: |machine| {
            let limits = "    resources: {cpu: 1, memory: 64MiB, pids: 64}\n";
            run(machine, "doctor-limits", limits, "ran with limits")
        },
    },
    Check {
        name: "job.network",
        purpose: "`network: job`: an address for each task",
        need: Need::Optional(""),
        run: |machine| run(machine, "doctor-network", "network: job\n", "ran with a network of its own"),
    },
];

/// Runs a job that ends immediately: it checks the file that every task gets. `more` is added at its end, to its role
/// if it is indented.
fn run(machine: &dyn Host, name: &str, more: &str, ran: &str) -> CheckResult {
    let job = format!(
        "version: 1\nname: {name}\nimage: host\nroles:\n  main:\n    shell: sh\n    run: test -s /etc/jobc/job.json\n{more}"
    );
    match machine.run_job(&job) {
        Ok(()) => CheckResult::ok(ran),
        Err(Refusal { why, fix }) => CheckResult::missing(why).fixes(fix),
    }
}
