//! `jobc oci list` and `ps`: containers, and the processes of one.

use std::ffi::OsString;
use std::process::Command;

use jobc_container::container;
use jobc_container::oci_state::{Status, rfc3339};
use jobc_container::state::Id;
use jobc_container::state::store::Store;
use jobc_sys::accounts;
use jobc_sys::error::{Error, Kind, Result};

use crate::args::ListFormat;
use crate::json::print_json_line;

/// Lists the containers of a state root.
pub(crate) fn containers(store: &Store, format: ListFormat, quiet: bool) -> Result<()> {
    let records = store.list()?;
    if quiet {
        jobc_terminal::print(&records.iter().map(|record| format!("{}\n", record.id)).collect::<String>());
        return Ok(());
    }
    let found = records.iter().filter_map(|record| {
        let directory = store.directory(&Id::new(&record.id).ok()?);
        Some((record, container::status(&directory, record), directory))
    });
    if format == ListFormat::Json {
        let mut states = Vec::new();
        for (record, status, directory) in found {
            // A container in removal no longer has a config.json.
            if let Ok(config) = container::config(&directory) {
                states.push(serde_json::json!(record.state(&config, status)));
            }
        }
        return print_json_line(&states);
    }
    let passwd = accounts::read_file("/etc/passwd").unwrap_or_default();
    let mut rows = vec![["ID", "PID", "STATUS", "BUNDLE", "CREATED", "OWNER"].map(str::to_owned)];
    rows.extend(found.map(|(record, status, _)| {
        let alive = !matches!(status, Status::Stopped | Status::Creating);
        let pid = record.process.filter(|_| alive).map_or(0, |process| process.pid);
        [
            record.id.clone(),
            pid.to_string(),
            status.to_string(),
            record.bundle.display().to_string(),
            rfc3339(record.created),
            owner(&passwd, record.owner),
        ]
    }));
    jobc_terminal::print(&table(&rows));
    Ok(())
}

/// A user's name in the text of /etc/passwd, as runc and crun show it; the number where there is none.
fn owner(passwd: &str, uid: u32) -> String {
    accounts::name_of(passwd, uid).unwrap_or_else(|| uid.to_string())
}

fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect::<Vec<_>>();
        format!("{}\n", cells.join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

/// Shows the processes of a container: their numbers, or the lines of ps(1) about them.
pub(crate) fn processes(store: &Store, id: &Id, format: ListFormat, options: &[OsString]) -> Result<()> {
    let processes = container::processes(store, id)?;
    if format == ListFormat::Json {
        return print_json_line(&processes);
    }
    let options = if options.is_empty() { &["-ef".into()][..] } else { options };
    let output = Command::new("ps").args(options).output().map_err(|error| {
        let errno = rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO);
        Error::system("execute `ps`", errno).help("install procps, or use `--format json`")
    })?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(Error::new(
            Kind::System,
            format!("`ps` failed: {}", why.lines().next().unwrap_or_default()),
        ));
    }
    let Some(lines) = filter_processes(&text, &processes) else {
        return Err(Error::new(Kind::System, "with these options, `ps` does not print the column `PID`")
            .help("add it, as in `-o pid,args`"));
    };
    jobc_terminal::print(&lines);
    Ok(())
}

/// The heading of a listing and its lines about some processes.
fn filter_processes(text: &str, processes: &[u32]) -> Option<String> {
    let heading = text.lines().next()?;
    let column = heading.split_whitespace().position(|word| word == "PID")?;
    let lines = text.lines().skip(1).filter(|line| {
        let number = line.split_whitespace().nth(column).and_then(|word| word.parse().ok());
        number.is_some_and(|number| processes.contains(&number))
    });
    Some(std::iter::once(heading).chain(lines).map(|line| format!("{line}\n")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_has_a_name_where_passwd_has_one() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nbroken\nada:x:1000:100::/home/ada:/bin/sh\n";
        assert_eq!([0, 1000, 100].map(|uid| owner(passwd, uid)), ["root", "ada", "100"]);
    }

    #[test]
    fn only_the_containers_lines_are_shown() {
        let text =
            "UID   PID  PPID CMD\nroot    1     0 init 7\nroot    7     1 sleep 1\nroot   71     7 sh\n";
        assert_eq!(
            filter_processes(text, &[7, 71]).as_deref(),
            Some("UID   PID  PPID CMD\nroot    7     1 sleep 1\nroot   71     7 sh\n")
        );
        assert_eq!(filter_processes(text, &[]).as_deref(), Some("UID   PID  PPID CMD\n"));
        assert_eq!(filter_processes("CMD\ninit\n", &[1]), None);
        assert_eq!(filter_processes("", &[1]), None);
    }
}
