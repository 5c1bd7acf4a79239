use super::*;

/// Prints lines of the tasks `ps-0` (0) and `worker-10` (1); returns what a pipe or a terminal gets, with escapes
/// visible. With `wait`, no line comes soon after another.
fn shown(look: LineFormat, terminal: bool, wait: bool, lines: &[(usize, Stream, bool, &str)]) -> String {
    let (outputs, memory) = OutputStreams::in_memory(terminal);
    let mut printer = Printer::new(look, outputs);
    printer.add_task("train.1", "ps-0", false, 0);
    printer.add_task("train.1", "worker-10", false, 1);
    for &(number, stream, ends, text) in lines {
        let line =
            Line { time: "2026-11-21T13:31:53.250123Z", stream, ends, attempt: 1, text: text.as_bytes() };
        printer.line(number, &line).unwrap();
        for held in printer.partial_lines.values_mut().filter(|_| wait) {
            held.since = held.since.checked_sub(PARTIAL_LINE_TIMEOUT).unwrap();
        }
        printer.flush().unwrap();
    }
    printer.finish().unwrap();
    let text = String::from_utf8(memory.lock().unwrap().clone()).unwrap();
    text.replace('\x1b', "^").replace('\r', "<")
}

fn printed(look: LineFormat, terminal: bool, lines: &[(usize, Stream, bool, &str)]) -> String {
    shown(look, terminal, false, lines)
}

const PREFIX: LineFormat = LineFormat { prefix: true, timestamps: false, json: false };
const OUT: Stream = Stream::Stdout;
const ERR: Stream = Stream::Stderr;

#[test]
fn output_of_a_single_task_is_unchanged() {
    let lines =
        [(0, OUT, true, "one"), (0, OUT, false, "10%\r"), (0, OUT, false, "20%\r"), (0, OUT, true, "")];
    assert_eq!(printed(LineFormat::default(), true, &lines), "one\n10%<20%<\n");
    let look = LineFormat { timestamps: true, ..LineFormat::default() };
    assert_eq!(printed(look, false, &lines[..1]), "2026-11-21T13:31:53.250123Z one\n");
}

#[test]
fn several_tasks_are_distinguished() {
    let lines = [(0, OUT, true, "one"), (1, ERR, true, "訓練"), (0, OUT, true, "")];
    assert_eq!(printed(PREFIX, false, &lines), "ps-0      | one\nworker-10 | 訓練\nps-0      | \n");
    assert_eq!(
        printed(PREFIX, true, &lines),
        "^[36mps-0      |^[0m one\n^[33mworker-10^[0m ^[31m|^[0m 訓練\n^[36mps-0      |^[0m \n"
    );
}

#[test]
fn half_a_line_waits_for_its_end() {
    let lines = [
        (0, OUT, false, "load"),
        (0, OUT, false, "ing"),
        (1, OUT, true, "hello"),
        (0, OUT, true, " done"),
        (1, OUT, false, "no end"),
    ];
    assert_eq!(
        printed(PREFIX, false, &lines),
        "worker-10 | hello\nps-0      | loading done\nworker-10 | no end\n"
    );
    let json = printed(LineFormat { json: true, ..PREFIX }, false, &lines[..4]);
    assert!(json.ends_with("\"text\":\"loading done\",\"ends\":true}\n"), "{json}");
    let long = "x".repeat(MAX_LINE_BYTES);
    let text = printed(PREFIX, false, &[(0, OUT, false, &long), (0, OUT, true, "y")]);
    assert_eq!(text, format!("ps-0      | {long}y\n"));
}

#[test]
fn half_a_line_is_shown_on_a_terminal_and_continued() {
    let lines = [
        (0, OUT, false, "load"),
        (0, OUT, false, "ing"),
        (1, OUT, true, "hello"),
        (0, OUT, true, " done"),
        (0, OUT, true, "next"),
    ];
    let (ps, worker) = ("^[36mps-0      |^[0m ", "^[33mworker-10 |^[0m ");
    assert_eq!(
        shown(PREFIX, true, true, &lines),
        format!("{ps}loading\n{worker}hello\n{ps} done\n{ps}next\n")
    );
    assert_eq!(shown(PREFIX, false, true, &lines[..2]), "ps-0      | loading\n");
}

#[test]
fn a_progress_bar_does_not_run_over_the_name() {
    let lines = [
        (0, OUT, false, "10%\r20%"),
        (0, OUT, false, "\r30%"),
        (0, OUT, true, "\r"),
        (0, OUT, true, "crlf\r"),
    ];
    let name = "^[36mps-0      |^[0m ";
    let expected = format!("{name}10%<{name}20%<{name}30%\n{name}crlf\n");
    assert_eq!(shown(PREFIX, true, true, &lines), expected);
    assert_eq!(printed(PREFIX, false, &lines[..2]), "ps-0      | 10%<20%<30%\n");
}

#[test]
fn colors_of_a_task_end_with_its_line() {
    let lines = [(0, OUT, true, "\x1b[31mred")];
    assert_eq!(printed(PREFIX, true, &lines), "^[36mps-0      |^[0m ^[31mred^[0m\n");
    assert_eq!(printed(PREFIX, false, &lines), "ps-0      | ^[31mred\n");
}

#[test]
fn json_format_prints_objects() {
    let look = LineFormat { json: true, ..PREFIX };
    assert_eq!(
        printed(
            look,
            true,
            &[(1, ERR, true, "say \"hi\"\r"), (0, Stream::Jobc, true, "2 lines lost: disk full")]
        ),
        concat!(
            r#"{"time":"2026-11-21T13:31:53.250123Z","job":"train.1","task":"worker-10","attempt":1,"stream":"stderr","text":"say \"hi\"","ends":true}"#,
            "\n",
            r#"{"time":"2026-11-21T13:31:53.250123Z","job":"train.1","task":"ps-0","attempt":1,"stream":"jobc","text":"2 lines lost: disk full","ends":true}"#,
            "\n"
        )
    );
}

#[test]
fn json_format_has_each_state_of_a_progress_bar() {
    let look = LineFormat { json: true, ..PREFIX };
    let lines = printed(look, true, &[(0, OUT, false, "\r1%\r2"), (0, OUT, true, "%\r\r3%")]);
    let states = lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let states: Vec<String> = states.map(|state| format!("{} {}", state["text"], state["ends"])).collect();
    assert_eq!(states, [r#""1%" true"#, r#""2%" true"#, r#""3%" true"#]);
}

#[test]
fn remarks_are_printed_on_separate_lines() {
    let lines = [
        (0, OUT, false, "half"),
        (1, Stream::Jobc, true, "2 lines lost: disk full"),
        (0, OUT, true, "other half"),
    ];
    assert_eq!(
        shown(PREFIX, true, true, &lines),
        "^[36mps-0      |^[0m half\n^[2mjobc: worker-10: 2 lines lost: disk full^[0m\n^[36mps-0      |^[0m other half\n"
    );
}

#[test]
fn a_footer_stays_below_the_lines() {
    let (outputs, memory) = OutputStreams::in_memory(true);
    let mut printer = Printer::new(LineFormat::default(), outputs);
    printer.add_task("train.1", "ps-0", false, 0);
    let line = |printer: &mut Printer, text: &str, ends: bool| {
        let line = Line { time: "", stream: OUT, ends, attempt: 1, text: text.as_bytes() };
        printer.line(0, &line).and_then(|()| printer.flush()).unwrap();
        String::from_utf8(std::mem::take(&mut *memory.lock().unwrap()))
            .unwrap()
            .replace('\x1b', "^")
            .replace('\r', "<")
    };
    printer.set_footer(vec!["a".to_owned(), "b".to_owned()]).unwrap();
    assert_eq!(line(&mut printer, "one", true), "^[2ma^[0m\n^[2mb^[0m\n<^[2A^[Jone\n^[2ma^[0m\n^[2mb^[0m\n");
    // The same again draws nothing.
    printer.set_footer(vec!["a".to_owned(), "b".to_owned()]).unwrap();
    // A line without an end has nothing below it, until its end has come.
    assert_eq!(line(&mut printer, "10%", false), "<^[2A^[J10%");
    printer.set_footer(vec!["c".to_owned()]).unwrap();
    assert_eq!(line(&mut printer, "20%", true), "20%\n^[2mc^[0m\n");
    printer.set_footer(vec![]).unwrap();
    assert_eq!(line(&mut printer, "two", true), "<^[1A^[Jtwo\n");
    assert_eq!(printer.last_text(0).as_deref(), Some("two"));
}
