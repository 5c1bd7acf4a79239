//! The units of systemd that start a job by its `schedule`: a timer, and the service that runs the built plan.

use camino::Utf8PathBuf;
use jobc_schema::Pointer;
use jobc_schema::cron::Cron;
use jobc_schema::plan::JobPlan;

use crate::backend::{Content, File, FilePart, Origin, PartSource};

/// The units of a job; none without a schedule.
pub(super) fn units(job: &JobPlan) -> Vec<File> {
    let Some(schedule) = &job.schedule else { return vec![] };
    // An error was reported.
    let Ok(cron) = Cron::parse(&schedule.cron) else { return vec![] };
    let all = cron.on_calendar(schedule.zone.as_deref());
    let lines: String = all.iter().map(|time| format!("OnCalendar={time}\n")).collect();
    let name = format!("jobc-{}", job.name);
    let timer = format!(
        "[Unit]\nDescription=Schedule of job {job}\n\n[Timer]\n{lines}\n[Install]\nWantedBy=timers.target\n",
        job = job.name
    );
    // %Y is the directory of this file, behind the link that `systemctl --user link` makes (systemd.unit(5)).
    let grace = job.roles.iter().map(|role| role.grace_period_seconds).max().unwrap_or(30).saturating_add(30);
    let service = format!(
        "[Unit]\nDescription=Job {}\n\n[Service]\nExecStart=jobc run %Y/../..\nTimeoutStopSec={grace}\n",
        job.name
    );
    let file = |end: &str, text: String| File {
        path: Utf8PathBuf::from(format!("systemd/{name}.{end}")),
        mode: 0o644,
        content: Content::Text(text),
        origins: vec![Origin {
            part: FilePart::Pointer(Pointer::ROOT),
            from: PartSource::Spec(Pointer::ROOT.key("schedule")),
        }],
    };
    vec![file("service", service), file("timer", timer)]
}
