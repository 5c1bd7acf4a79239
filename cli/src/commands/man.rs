//! `jobc man`: the manual page, in roff.

use crate::args::Args;
use crate::outcome::Outcome;
use crate::terminal;

pub(crate) fn run(command: Option<&str>) -> Outcome {
    let mut all = Args::full_command();
    all.build();
    let page = match command {
        None => clap_mangen::Man::new(all),
        Some(name) => {
            if let Some(found) = all.find_subcommand(name) {
                clap_mangen::Man::new(found.clone())
            } else {
                terminal::eprint(&format!(
                    "jobc: unknown command `{name}`; `jobc --help` lists the commands\n"
                ));
                return Outcome::UsageError;
            }
        }
    };
    let mut text = Vec::new();
    if let Err(error) = page.render(&mut text) {
        terminal::eprint(&format!("jobc: cannot make the page: {error}\n"));
        return Outcome::SystemError;
    }
    terminal::print(&String::from_utf8_lossy(&text));
    Outcome::Success
}
