//! The command lines of `jobc port-forward` and `jobc copy`.

use clap::Args as ClapArgs;
use jobc_place::job_ref::JobRef;
use jobc_place::transfer::PortForward;

use super::format::OutputArgs;
use crate::runtime::completion::jobs::only_handles;

#[derive(Debug, ClapArgs)]
pub(crate) struct PortForwardArgs {
    /// Handle of a job on a cluster, such as `lab/train`
    #[arg(add = only_handles())]
    pub job: JobRef,
    /// Ports to forward (repeatable): a task and its port, by label or number
    ///
    /// Labels are the keys of `resources.ports` in the job file. The port on 127.0.0.1 has the same number, or LOCAL. A
    /// role stands for its first task.
    #[arg(required = true, value_name = "[LOCAL:]TASK:PORT", value_parser = parse_forward)]
    pub ports: Vec<PortForward>,
}

fn parse_forward(word: &str) -> Result<PortForward, String> {
    let parts: Vec<&str> = word.split(':').collect();
    let (local, task, port) = match parts[..] {
        [task, port] => (None, task, port),
        [local, task, port] => (Some(local), task, port),
        _ => return Err("write `TASK:PORT`, such as `server-0:http` or `8080:server-0:http`".to_owned()),
    };
    let number = |text: &str| text.parse().ok().filter(|port| *port > 0);
    let local = local.map(|text| number(text).ok_or_else(|| format!("`{text}` is not a port number")));
    if task.is_empty() || port.is_empty() || port == "0" {
        return Err("write a task and a port, such as `server-0:http`".to_owned());
    }
    Ok(PortForward { local: local.transpose()?, task: task.to_owned(), port: port.to_owned() })
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CopyArgs {
    #[command(flatten)]
    pub output_args: OutputArgs,
    /// Handle of a job on a cluster, such as `lab/train`
    #[arg(add = only_handles())]
    pub job: JobRef,
    /// File or directory to copy: a path on this host, or `TASK:PATH`
    #[arg(value_name = "[TASK:]SOURCE")]
    pub source: String,
    /// Where to copy it: a directory, or the new name
    #[arg(value_name = "[TASK:]DESTINATION")]
    pub destination: String,
}

/// The task and the path of `TASK:PATH`; none of a path on this host, which has no `:` before its first `/`.
pub(crate) fn path_in_task(word: &str) -> Option<(&str, &str)> {
    word.split_once(':').filter(|(task, _)| !task.is_empty() && !task.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_is_parsed_with_an_optional_local_number() {
        let port = |local, task: &str, port: &str| PortForward {
            local,
            task: task.to_owned(),
            port: port.to_owned(),
        };
        for (word, expected) in [
            ("server-0:http", Some(port(None, "server-0", "http"))),
            ("server:80", Some(port(None, "server", "80"))),
            ("8080:server-0:http", Some(port(Some(8080), "server-0", "http"))),
            ("http", None),
            ("server-0:", None),
            ("server-0:0", None),
            ("x:server-0:http", None),
            ("0:server-0:http", None),
            ("70000:server-0:http", None),
        ] {
            assert_eq!(parse_forward(word).ok(), expected, "{word}");
        }
    }

    #[test]
    fn a_path_in_a_task_has_a_colon_before_slashes() {
        for (word, expected) in [
            ("train-0:/output/a", Some(("train-0", "/output/a"))),
            ("train-0:a:b", Some(("train-0", "a:b"))),
            ("./a:b", None),
            ("/a:b", None),
            ("a", None),
            (":a", None),
        ] {
            assert_eq!(path_in_task(word), expected, "{word}");
        }
    }
}
