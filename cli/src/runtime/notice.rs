//! A notice on the desktop that a job has ended: by the terminal, and by notify-send(1) where a desktop is.
//!
//! It delays the command by at most [`TIMEOUT`], and cannot fail it.

use std::io::{IsTerminal as _, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long notify-send may take: it waits for the desktop's daemon.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The most characters of a notice.
const MAX_CHARS: usize = 200;

/// How a terminal is asked for a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// `OSC 9 ; TEXT BEL`, first in iTerm2.
    Osc9,
    /// `OSC 777 ; notify ; TITLE ; TEXT ST`, first in rxvt-unicode.
    Osc777,
    /// The bell: the terminal, or the multiplexer, marks the window.
    Bell,
}

/// Terminals that show notices, by a variable and the beginning of its value. The first match counts; others get the bell.
const TERMINALS: [(&str, &str, Form); 10] = [
    // A multiplexer keeps what it does not know, or throws it away.
    ("TMUX", "", Form::Bell),
    ("STY", "", Form::Bell),
    ("TERM_PROGRAM", "iTerm", Form::Osc9),
    ("TERM_PROGRAM", "WezTerm", Form::Osc9),
    ("TERM_PROGRAM", "ghostty", Form::Osc9),
    ("KITTY_WINDOW_ID", "", Form::Osc9),
    ("TERM", "xterm-kitty", Form::Osc9),
    ("ConEmuPID", "", Form::Osc9),
    ("TERM", "rxvt-unicode", Form::Osc777),
    ("TERM", "foot", Form::Osc777),
];

/// Shows a notice. Without a terminal and a desktop it does nothing.
pub(crate) fn show(title: &str, text: &str) {
    let variable = |name: &str| std::env::var(name).ok();
    let is_terminal = std::io::stderr().is_terminal();
    if is_terminal && variable("TERM").is_some_and(|kind| kind != "dumb") {
        // A terminal that is gone needs no notice.
        let _ = std::io::stderr().write_all(sequence(form(&variable), title, text).as_bytes());
    }
    if ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| variable(name).is_some_and(|value| !value.is_empty()))
    {
        notify_send(title, text);
    }
}

/// The form for a terminal with these variables.
fn form(variable: &dyn Fn(&str) -> Option<String>) -> Form {
    let matches = |name: &str, start: &str| {
        variable(name).is_some_and(|value| !value.is_empty() && value.starts_with(start))
    };
    TERMINALS.iter().find(|(name, start, _)| matches(name, start)).map_or(Form::Bell, |(.., form)| *form)
}

/// What is written to the terminal. The bell comes with every form: it marks the window even if notices are turned off.
fn sequence(form: Form, title: &str, text: &str) -> String {
    let (title, text) = (plain(title), plain(text));
    match form {
        Form::Osc9 => format!("\x1b]9;{title}: {text}\x07\x07"),
        Form::Osc777 => format!("\x1b]777;notify;{title};{text}\x1b\\\x07"),
        Form::Bell => "\x07".to_owned(),
    }
}

/// A text without what ends a sequence or a field of it.
fn plain(text: &str) -> String {
    let plain = |c: char| if c.is_control() || c == ';' { ' ' } else { c };
    text.chars().map(plain).take(MAX_CHARS).collect()
}

fn notify_send(title: &str, text: &str) {
    let mut command = Command::new("notify-send");
    command.args(["--app-name=jobc", "--", &plain(title), &plain(text)]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else { return };
    let deadline = Instant::now() + TIMEOUT;
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() >= deadline {
            let _ = child.kill();
            let _ = child.wait();
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_terminal_gets_what_it_shows() {
        let check = |variables: &[(&str, &str)], expected: Form| {
            let variable = |name: &str| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(form(&variable), expected, "{variables:?}");
        };
        check(&[("TERM", "xterm-256color")], Form::Bell);
        check(&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "iTerm.app")], Form::Osc9);
        check(&[("TERM", "xterm-kitty"), ("KITTY_WINDOW_ID", "1")], Form::Osc9);
        check(&[("TERM", "foot")], Form::Osc777);
        check(&[("TERM", "rxvt-unicode-256color")], Form::Osc777);
        check(
            &[("TERM", "screen"), ("TMUX", "/tmp/tmux-0/default,1,0"), ("KITTY_WINDOW_ID", "1")],
            Form::Bell,
        );
        check(&[("TMUX", ""), ("KITTY_WINDOW_ID", "1")], Form::Osc9);
    }

    #[test]
    fn a_text_cannot_end_the_sequence() {
        let text = "failed: \x1b[31m訓練\x07; exit 3\n";
        assert_eq!(sequence(Form::Osc9, "a.1", text), "\x1b]9;a.1: failed:  [31m訓練   exit 3 \x07\x07");
        assert_eq!(
            sequence(Form::Osc777, "a;1", text),
            "\x1b]777;notify;a 1;failed:  [31m訓練   exit 3 \x1b\\\x07"
        );
        assert_eq!(sequence(Form::Bell, "a", "b"), "\x07");
        assert_eq!(plain(&"x".repeat(1000)).len(), MAX_CHARS);
    }
}
