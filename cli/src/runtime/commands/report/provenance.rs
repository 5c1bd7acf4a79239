//! What the run was made from: the command, the host, versions, digests, the roles and the job file.

use jobc_job::origin::{Host, Origin};
use jobc_schema::plan::{JobPlan, RolePlan};
use jobc_schema::shell;

use super::data::ReportData;
use super::html::{Cell, escape, not_shown, table};
use crate::plan_text;
use crate::report::cpus;
use crate::runtime::quantity::bytes;

/// Maximum number of roles.
const MAX_ROLES: usize = 100;

/// Maximum number of characters of a role's command.
const MAX_COMMAND_CHARS: usize = 2000;

/// Maximum number of bytes of the job file.
const MAX_JOB_FILE_BYTES: usize = 256 << 10;

/// The section.
pub(super) fn provenance(facts: &ReportData) -> String {
    let mut out = String::from("<ul class=\"known wider\">\n");
    for (name, html) in facts_of_run(facts) {
        out += &format!("<li><small>{name}</small> <span>{html}</span></li>\n");
    }
    out += "</ul>\n";
    if let Some(origin) = &facts.origin {
        out += &images(origin);
    }
    if let Some(plan) = &facts.plan {
        out += &roles(plan);
    }
    out + &job_file(facts)
}

/// Names, and values as HTML.
fn facts_of_run(facts: &ReportData) -> Vec<(&'static str, String)> {
    let job = &facts.job;
    let code = |text: &str| format!("<code>{}</code>", escape(text));
    let mut out = vec![];
    if let Some(origin) = &facts.origin {
        if !origin.command.is_empty() {
            out.push(("Command", code(&shell_words(&origin.command))));
        }
        if let Some(directory) = &origin.working_directory {
            out.push(("Working directory", code(&directory.display().to_string())));
        }
    }
    out.extend(job.summary.source.iter().map(|source| ("Job file", code(&source.display().to_string()))));
    if let Some(digest) = facts.origin.as_ref().and_then(|origin| origin.job_file.as_ref()) {
        out.push(("Digest of the job file", code(&digest.to_string())));
    }
    out.extend(job.fact("target").map(|target| ("Target", escape(target))));
    if let Some(plan) = &facts.plan {
        let pairs = |pairs: Vec<String>| pairs.iter().map(|pair| code(pair)).collect::<Vec<_>>().join(" ");
        if !plan.matrix.is_empty() {
            let values = plan.matrix.iter().map(|(axis, value)| format!("{axis}={value}"));
            out.push(("Matrix", pairs(values.collect())));
        }
        if !plan.params.is_empty() {
            let values = plan.params.iter().map(|(name, value)| format!("{name}={value}"));
            out.push(("Parameters", pairs(values.collect())));
        }
    }
    out.extend(job.fact("network").map(|network| ("Network", escape(network))));
    if let Some(origin) = &facts.origin {
        out.push(("User", escape(&origin.user)));
        out.push(("Host", escape(&host(&origin.host))));
        out.push(("Host resources", escape(&host_resources(&origin.host))));
        out.push(("jobc", escape(&origin.version)));
    }
    out
}

/// `node-3, Debian GNU/Linux 12 (bookworm), Linux 6.12.8, x86_64`.
fn host(host: &Host) -> String {
    let parts = [Some(&host.name), host.system.as_ref(), Some(&host.kernel), Some(&host.architecture)];
    parts.into_iter().flatten().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join(", ")
}

fn host_resources(host: &Host) -> String {
    let mut parts = vec![];
    let processors = cpus(host.cpu_millis);
    parts.push(host.processor.as_ref().map_or(processors.clone(), |model| format!("{processors} ({model})")));
    parts.push(format!("{} of memory", bytes(host.memory_bytes)));
    parts.extend(host.gpu_driver.as_ref().map(|version| format!("NVIDIA driver {version}")));
    parts.join(", ")
}

/// The words of a command as a shell reads them. The program is shown by its name.
fn shell_words(words: &[String]) -> String {
    let name = words.first().map(|program| program.rsplit_once('/').map_or(&**program, |(_, name)| name));
    shell::join(name.into_iter().chain(words.iter().skip(1).map(String::as_str)))
}

fn images(origin: &Origin) -> String {
    // The host's own files have no digest.
    let rows: Vec<Vec<Cell>> = origin
        .images
        .iter()
        .take(MAX_ROLES)
        .map(|(name, image)| {
            let digest = image.digest.as_ref().map(|digest| format!("<code>{digest}</code>"));
            vec![
                Cell::text(name),
                Cell::html(format!("<code>{}</code>", escape(&image.reference))),
                Cell::html(digest.unwrap_or_default()),
            ]
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    format!("<h3>Images</h3>\n{}", table("Images", &["Image", "Reference", "Digest"], &rows))
}

fn roles(plan: &JobPlan) -> String {
    let rows: Vec<Vec<Cell>> = plan.roles.iter().take(MAX_ROLES).map(role).collect();
    let headings = ["Role", "Instances", "Image", "CPUs", "Memory", "GPUs", "Needs", "Command"];
    let more = not_shown(plan.roles.len().saturating_sub(MAX_ROLES), "roles");
    format!("<h3>Roles</h3>\n{}{more}", table("Roles", &headings, &rows))
}

fn role(role: &RolePlan) -> Vec<Cell> {
    let resources = &role.resources;
    let gpus = resources.gpu.as_ref().map(|gpu| gpu.count.to_string());
    let needs: Vec<&str> = role.needs.iter().map(|need| need.role.as_str()).collect();
    let whole = plan_text::command(&role.command);
    let cut: String = whole.chars().take(MAX_COMMAND_CHARS).collect();
    let more = if cut.len() < whole.len() { "…" } else { "" };
    vec![
        Cell::text(&role.name),
        Cell::number(&role.instances.to_string()),
        Cell::text(&role.image),
        Cell::number(&resources.cpu_millis.map(plan_text::cpus).unwrap_or_default()),
        Cell::number(&resources.memory_bytes.map(bytes).unwrap_or_default()),
        Cell::number(&gpus.unwrap_or_default()),
        Cell::text(&needs.join(", ")),
        Cell::html(format!("<pre>{}{more}</pre>", escape(cut.trim_end()))),
    ]
}

fn job_file(facts: &ReportData) -> String {
    let Some(text) = &facts.job_file else { return String::new() };
    let end = text.floor_char_boundary(MAX_JOB_FILE_BYTES);
    let more = if end < text.len() { "\n…" } else { "" };
    format!(
        "<details><summary>Job file <small>{} lines</small></summary>\n<pre class=\"file\" role=\"region\" aria-label=\"Job file\" tabindex=\"0\">{}{more}</pre></details>\n",
        text.lines().count(),
        escape(&text[..end])
    )
}

#[cfg(test)]
mod tests {
    use super::shell_words;

    #[test]
    fn a_command_can_be_pasted() {
        let words =
            ["/opt/bin/jobc", "run", "--set", "name=a b", "it's.yaml", "", "訓練.yaml"].map(str::to_owned);
        assert_eq!(shell_words(&words), "jobc run --set 'name=a b' 'it'\\''s.yaml' '' '訓練.yaml'");
    }
}
