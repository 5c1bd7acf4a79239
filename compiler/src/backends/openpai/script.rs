//! The command of an instance, as the single script that OpenPAI passes to `bash -o errexit -o nounset -o pipefail`.
//!
//! It is one item of `commands`: servers differ in whether they join items by a line break or by `&&`.

use std::fmt::Write as _;

use jobc_schema::job::Compat;
use jobc_schema::plan::{CommandPlan, EnvPlan, FileContent, FilePlan, Launch, PortPlan, RolePlan, Text};

use super::shell::{self, ALIASES, HOSTS, Hosts, INDEX, is_verbatim, literal, word};
use super::{Lowering, storage};
use crate::openpai::{ROLE_MARK, Section};

/// The provided file with the whole picture; the others are host files.
const JOB_FILE: &str = "/etc/jobc/job.json";

/// The command of instances that do not launch: idle until the job ends.
const IDLE: &str = "trap 'exit 0' TERM INT\n  while :; do sleep 3600 & wait $!; done";

impl Lowering<'_> {
    /// The script of a role.
    pub(super) fn script(&mut self, role: &RolePlan) -> String {
        let compat = self.job.compat.contains(&Compat::Openpai);
        let mut out = String::new();
        self.part(Section::Provided { compat }, &mut out, |all, out| {
            all.provide(role, true, out);
        });
        self.part(Section::Framework, &mut out, |all, out| all.provide(role, false, out));
        self.part(Section::Env, &mut out, |all, out| all.environment(role, out));
        let links = storage::links(self.job, role);
        self.part(Section::Framework, &mut out, |_, out| {
            for link in &links {
                let _ = writeln!(out, "{link}");
            }
        });
        self.part(Section::Files, &mut out, |all, out| {
            for file in &role.files {
                all.file(role, file, out);
            }
        });
        if let Some(workdir) = &role.workdir {
            let _ = writeln!(out, "{}\ncd {}", Section::Workdir.mark(), literal(workdir));
        }
        match role.launch {
            Launch::All => self.command(role, &mut out),
            Launch::First => {
                let _ = writeln!(
                    out,
                    "{}\nif [ \"${INDEX}\" != 0 ]; then\n  {IDLE}\nfi",
                    Section::Framework.mark()
                );
                self.command(role, &mut out);
            }
            Launch::None => {
                let _ = writeln!(out, "{}\n{}", Section::Framework.mark(), IDLE.replace("\n  ", "\n"));
            }
        }
        // Only what the script calls is defined.
        let define = |name: &str, function: &'static str| if out.contains(name) { function } else { "" };
        let (hosts, aliases) = (define("$(jobc_hosts ", HOSTS), define("$(jobc_aliases ", ALIASES));
        // The server knows it by other letters.
        let name =
            (super::names::role(&role.name) != role.name).then(|| format!("{ROLE_MARK}{}\n", role.name));
        format!("{}{hosts}{aliases}{out}", name.unwrap_or_default())
    }

    /// Writes a part under its marker comment, unless it is empty and the comment says nothing.
    fn part(&mut self, section: Section, out: &mut String, write: impl FnOnce(&mut Self, &mut String)) {
        let mut text = String::new();
        write(self, &mut text);
        if !text.is_empty() || section == (Section::Provided { compat: true }) {
            let _ = write!(out, "{}\n{text}", section.mark());
        }
    }

    /// What jobc provides: `usual` is for every process, the rest is for a framework.
    fn provide(&mut self, role: &RolePlan, usual: bool, out: &mut String) {
        // The server sets its own PAI_* variables, which `compat: [openpai]` only imitates elsewhere, and its ssh
        // plugin writes the ports into ~/.ssh/config, where Open MPI's own `-p` would overrule them.
        let left_out = |name: &str| name.starts_with("PAI_") || name == "OMPI_MCA_plm_rsh_args";
        let is_usual = |name: &str| {
            ["JOBC_JOB", "JOBC_ROLE", "JOBC_INDEX", "JOBC_INSTANCES"].contains(&name)
                || ["JOBC_PORT_", "JOBC_HOSTS_", "JOBC_ENDPOINTS_"]
                    .iter()
                    .any(|start| name.starts_with(start))
        };
        for (name, value) in &role.provided_env {
            if !left_out(name) && !role.env.contains_key(name) && is_usual(name) == usual {
                export(name, &self.provided(role, name, value), out);
            }
        }
        for file in role.provided_files.iter().filter(|file| (file.path == JOB_FILE) == usual) {
            self.file(role, file, out);
        }
    }

    /// `export` lines for what the user set.
    fn environment(&mut self, role: &RolePlan, out: &mut String) {
        for (name, value) in &role.env {
            match value {
                EnvPlan::Text(text) => {
                    export(name, &word(self.job, role, text, Hosts::Addresses), out);
                }
                EnvPlan::Secret { secret } => {
                    let template = self.secret(secret);
                    // A here-document accepts any value: the shell expands nothing in it.
                    let _ = writeln!(
                        out,
                        "IFS= read -r -d '' {name} <<'JOBC_SECRET' || :\n{template}\nJOBC_SECRET\nexport {name}=\"${{{name}%$'\\n'}}\""
                    );
                }
            }
        }
    }

    /// A provided value; a port's variable lists the numbers that OpenPAI chose.
    fn provided(&self, role: &RolePlan, name: &str, value: &Text) -> String {
        let own = |port: &&PortPlan| {
            name.strip_prefix("JOBC_PORT_") == Some(&port.label.to_ascii_uppercase().replace('-', "_"))
        };
        match role.ports.iter().find(own) {
            Some(port) => format!(
                "\"$PAI_CONTAINER_HOST_{}_PORT_LIST\"",
                super::names::label(self.job, &role.name, &port.label)
            ),
            None => word(self.job, role, value, Hosts::Addresses),
        }
    }

    fn file(&mut self, role: &RolePlan, file: &FilePlan, out: &mut String) {
        let path = literal(&file.path);
        if let Some(directory) = file
            .path
            .rsplit_once('/')
            .map(|(directory, _)| directory)
            .filter(|directory| !directory.is_empty())
        {
            let _ = writeln!(out, "mkdir -p {}", literal(directory));
        }
        match &file.content {
            FileContent::Secret { secret } => {
                let template = self.secret(secret);
                let _ = writeln!(out, "(umask 077; cat >{path}) <<'JOBC_SECRET'\n{template}\nJOBC_SECRET");
            }
            FileContent::Text(text) => match text.as_literal() {
                Some(body) if is_verbatim(text) && body.ends_with('\n') => {
                    let end = delimiter(body);
                    let _ = writeln!(out, "cat >{path} <<'{end}'\n{body}{end}");
                }
                _ => {
                    let hosts = self.hosts_in(role, file);
                    let body = word(self.job, role, text, hosts);
                    let _ = writeln!(out, "printf %s {body} >{path}");
                }
            },
        }
        let _ = writeln!(out, "chmod {:04o} {path}", file.mode);
    }

    /// Where the ssh plugin is on, host files name its aliases: they carry the port that sshd listens on.
    fn hosts_in(&self, role: &RolePlan, file: &FilePlan) -> Hosts {
        let ssh = self.job.distributed.as_ref().is_some_and(|distributed| distributed.ssh.is_some());
        let host_file = file.path != JOB_FILE && role.provided_files.contains(file);
        if ssh && host_file { Hosts::Aliases } else { Hosts::Addresses }
    }

    fn command(&self, role: &RolePlan, out: &mut String) {
        let words = |texts: &[Text]| -> Vec<String> {
            texts.iter().map(|text| word(self.job, role, text, Hosts::Addresses)).collect()
        };
        // A limit needs a process of its own to stop.
        let limit = role
            .timeout_seconds
            .map(|seconds| format!("timeout --kill-after={} {seconds} ", role.grace_period_seconds));
        match &role.command {
            CommandPlan::Argv { argv, setup } => {
                if let Some(setup) = setup {
                    let _ = writeln!(out, "{}", Section::Setup.mark());
                    self.inline(role, setup, out);
                }
                let _ = writeln!(out, "{}", Section::Run { chomped: false }.mark());
                let _ = writeln!(out, "exec {}{}", limit.unwrap_or_default(), words(argv).join(" "));
            }
            CommandPlan::Script { shell, setup, script } => {
                let own = shell.iter().map(String::as_str).eq(["bash", "-euo", "pipefail", "-c"]);
                if own && limit.is_none() {
                    if let Some(setup) = setup {
                        let _ = writeln!(out, "{}", Section::Setup.mark());
                        self.inline(role, setup, out);
                    }
                    let chomped = script.as_literal().is_some_and(|script| !script.ends_with('\n'));
                    let _ = writeln!(out, "{}", Section::Run { chomped }.mark());
                    self.inline(role, script, out);
                    return;
                }
                let _ = writeln!(out, "{}", Section::Run { chomped: false }.mark());
                let mut whole = setup.clone().unwrap_or_default();
                if setup.is_some() {
                    whole.push_str("\n");
                }
                whole.push_text(script);
                let shell: Vec<String> = shell.iter().map(|part| literal(part)).collect();
                let script = word(self.job, role, &whole, Hosts::Addresses);
                let _ = writeln!(out, "exec {}{} {script}", limit.unwrap_or_default(), shell.join(" "));
            }
            // Rejected earlier; even with `--allow-lossy`, there is nothing to run.
            CommandPlan::Image {} | CommandPlan::Args(_) => {
                out.push_str("echo 'jobc: OpenPAI cannot run the command of an image' >&2\nexit 1\n");
            }
        }
    }

    /// A user's script in OpenPAI's own shell, which has the same options as a `run` string.
    fn inline(&self, role: &RolePlan, text: &Text, out: &mut String) {
        match text.as_literal() {
            Some(script) if shell::is_verbatim(text) => {
                out.push_str(script);
                if !script.ends_with('\n') {
                    out.push('\n');
                }
            }
            _ => {
                let _ = writeln!(out, "eval {}", word(self.job, role, text, Hosts::Addresses));
            }
        }
    }
}

/// Sets a variable for the command; `export` itself would hide a failure of the expansion.
fn export(name: &str, value: &str, out: &mut String) {
    let _ = if value.contains("$(jobc_") {
        writeln!(out, "{name}={value}\nexport {name}")
    } else {
        writeln!(out, "export {name}={value}")
    };
}

/// A delimiter that is not a line of the text.
fn delimiter(body: &str) -> String {
    let mut delimiter = "JOBC_FILE".to_owned();
    while body.lines().any(|line| line == delimiter) {
        delimiter.push('_');
    }
    delimiter
}
