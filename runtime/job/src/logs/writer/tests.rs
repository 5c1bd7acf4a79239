use super::*;
use crate::logs::parse;

/// A writer in its own directory, and its parts.
struct Fixture {
    directory: tempfile::TempDir,
    writer: Writer,
    seen: Vec<String>,
    results: Vec<io::Result<()>>,
}

impl Fixture {
    fn new(limits: Limits, secrets: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let masks = Redactor::new(secrets.iter().map(|secret| secret.as_bytes()));
        let writer = Writer::open(&directory.path().join("logs/worker-0"), limits, Arc::new(masks));
        Self { directory, writer, seen: vec![], results: vec![] }
    }

    fn write(&mut self, text: impl AsRef<[u8]>) -> &mut Self {
        let mut seen = |line: &[u8]| self.seen.push(String::from_utf8_lossy(line).into_owned());
        self.results.push(self.writer.write(1, Stream::Stdout, text.as_ref(), &mut seen));
        self
    }

    fn parts(&self) -> Vec<(u64, Vec<u8>)> {
        let directory = self.directory.path().join("logs/worker-0");
        let numbers = part::list(&directory);
        numbers
            .iter()
            .map(|&number| (number, std::fs::read(part::path(&directory, number)).unwrap()))
            .collect()
    }

    /// The lines of all parts: stream, whether they end, attempt, text; times are checked and left out.
    fn lines(&self) -> Vec<String> {
        let text: Vec<u8> = self.parts().into_iter().flat_map(|(_, text)| text).collect();
        let lines = text.split_inclusive(|&byte| byte == b'\n').map(|line| {
            let line = parse(line.strip_suffix(b"\n").expect("a line has an end")).expect("a line");
            assert!(humantime::parse_rfc3339(line.time).is_ok(), "{}", line.time);
            let tag = if line.ends { 'F' } else { 'P' };
            format!("{} {tag} {} {}", line.stream.as_str(), line.attempt, line.text.escape_ascii())
        });
        lines.collect()
    }
}

#[test]
fn lines_are_kept_as_they_were_printed() {
    let mut log = Fixture::new(Limits::default(), &[]);
    log.write("one\ntw").write("o\n\n").write(b"not \xff UTF-8\r\n");
    log.writer.write(2, Stream::Stderr, b"at the end", &mut |_| ()).unwrap();
    log.writer.end(2, Stream::Stderr).unwrap();
    log.writer.end(2, Stream::Stdout).unwrap();
    assert_eq!(
        log.lines(),
        [
            "stdout F 1 one",
            "stdout F 1 two",
            "stdout F 1 ",
            r"stdout F 1 not \xff UTF-8\r",
            "stderr F 2 at the end"
        ]
    );
    assert_eq!(log.seen, ["one", "two", "", "not \u{fffd} UTF-8"]);
}

#[test]
fn each_state_of_a_progress_bar_is_seen_when_the_next_is_drawn() {
    let mut log = Fixture::new(Limits { line_bytes: 16, ..Limits::default() }, &[]);
    log.write("\r 1%").write("\r 2%\r 3").write("%");
    assert_eq!(log.seen, [" 1%", " 2%"]);
    log.write("\r100%\n").write("done\n").write("a\rb\n");
    assert_eq!(log.seen, [" 1%", " 2%", " 3%", "100%", "done", "a", "b"]);
    assert_eq!(log.lines().len(), 4, "{:?}", log.lines());
}

#[test]
fn the_streams_do_not_mix_within_a_line() {
    let mut log = Fixture::new(Limits::default(), &[]);
    log.write("out");
    log.writer.write(1, Stream::Stderr, b"err\n", &mut |_| ()).unwrap();
    log.write("put\n");
    assert_eq!(log.lines(), ["stderr F 1 err", "stdout F 1 output"]);
}

#[test]
fn a_long_line_is_cut_into_pieces() {
    let mut log = Fixture::new(Limits { line_bytes: 4, ..Limits::default() }, &[]);
    log.write("abcdefghij\nabcd\nab").write("cde\n");
    assert_eq!(
        log.lines(),
        [
            "stdout P 1 abcd",
            "stdout P 1 efgh",
            "stdout F 1 ij",
            "stdout F 1 abcd",
            "stdout P 1 abcd",
            "stdout F 1 e"
        ]
    );
    assert_eq!(log.seen, ["abcd", "efgh", "ij", "abcd", "abcd", "e"]);
}

#[test]
fn a_line_of_exactly_a_piece_ends_too() {
    let mut log = Fixture::new(Limits { line_bytes: 4, ..Limits::default() }, &[]);
    log.write("abcd").writer.end(1, Stream::Stdout).unwrap();
    log.writer.end(1, Stream::Stdout).unwrap();
    log.write("efgh").write("\n").writer.end(1, Stream::Stdout).unwrap();
    assert_eq!(log.lines(), ["stdout P 1 abcd", "stdout F 1 ", "stdout P 1 efgh", "stdout F 1 "]);
}

#[test]
fn a_prompt_is_shown_before_its_line_ends() {
    let mut log = Fixture::new(Limits::default(), &["hunter22"]);
    log.write("password: hunt");
    log.writer.flush_partial_lines().unwrap();
    log.writer.flush_partial_lines().unwrap();
    assert_eq!(log.lines(), ["stdout P 1 password: "]);
    log.write("er22, yes").writer.flush_partial_lines().unwrap();
    log.write("\n");
    assert_eq!(log.lines(), ["stdout P 1 password: ", "stdout P 1 ***, yes", "stdout F 1 "]);
    assert_eq!(log.seen, ["password: hunter22, yes"]);
}

#[test]
fn secrets_are_redacted_across_reads_and_cuts() {
    let secret = "hunter22-and-more";
    for line_bytes in [1, 5, 16, 17, 64] {
        for at in 0..=secret.len() {
            let mut log = Fixture::new(Limits { line_bytes, ..Limits::default() }, &[secret]);
            let (first, second) = secret.split_at(at);
            log.write(format!("a {first}")).write(format!("{second} z {secret}\n"));
            let text: String =
                log.lines().iter().map(|line| line.splitn(4, ' ').nth(3).unwrap().to_owned()).collect();
            assert_eq!(text, "a *** z ***", "{line_bytes} {at}");
        }
    }
}

#[test]
fn half_a_secret_at_the_end_is_redacted() {
    for (printed, kept) in
        [("key hunter2", "key ***"), ("he", "he"), ("abcdef", "***"), ("abcdefghij", "***")]
    {
        let mut log = Fixture::new(Limits::default(), &["hunter22", "abcd", "cdefghij"]);
        log.write(printed).writer.end(1, Stream::Stdout).unwrap();
        assert_eq!(log.lines(), [format!("stdout F 1 {kept}")]);
    }
}

#[test]
fn a_line_without_end_stays_small_in_memory() {
    // Secrets that make everything undecided for as long as possible.
    let mut log = Fixture::new(
        Limits { part_bytes: 1 << 16, parts: 2, line_bytes: 1 << 10 },
        &["xxxxxxxx", &"x".repeat(5000)],
    );
    for _ in 0..1000 {
        log.write("x".repeat(1000));
        let held = &log.writer.partial_lines[0];
        assert!(held.raw.len() <= 5000 + 1024 && held.raw.capacity() < 1 << 14);
        assert!(log.writer.out.capacity() <= MAX_IDLE_BUFFER_BYTES);
    }
    log.seen.clear();
    log.writer.end(1, Stream::Stdout).unwrap();
    let text: String =
        log.lines().iter().map(|line| line.splitn(4, ' ').nth(3).unwrap().to_owned()).collect();
    assert_eq!(text, "***");
}

#[test]
fn parts_are_bounded_in_size_and_number() {
    let mut log = Fixture::new(Limits { part_bytes: 1000, parts: 3, ..Limits::default() }, &[]);
    for number in 0..200 {
        log.write(format!("line {number}\n"));
    }
    let parts = log.parts();
    assert_eq!(parts.len(), 3);
    assert!(
        !crate::logs::is_whole(&log.directory.path().join("logs/worker-0")),
        "the oldest parts were removed"
    );
    assert!(parts.iter().all(|(_, text)| text.len() <= 1000));
    assert_eq!(parts[2].0, parts[0].0 + 2);
    let lines = log.lines();
    assert_eq!(lines.last().unwrap(), "stdout F 1 line 199");
    // Nothing is missing between the first line that is left and the last.
    assert_eq!(*lines.first().unwrap(), format!("stdout F 1 line {}", 200 - lines.len()));
    // The same within one write.
    let all: String = (0..200).map(|number| format!("line {number}\n")).collect();
    let mut log = Fixture::new(Limits { part_bytes: 1000, parts: 3, ..Limits::default() }, &[]);
    log.write(all);
    assert_eq!(log.lines(), lines);
}

#[test]
fn another_writer_goes_on_with_the_next_part() {
    let mut log = Fixture::new(Limits { parts: 2, ..Limits::default() }, &[]);
    for round in 0..3 {
        log.write(format!("round {round}\n"));
        log.writer =
            Writer::open(&log.directory.path().join("logs/worker-0"), log.writer.limits, Arc::default());
    }
    assert_eq!(log.parts().iter().map(|(number, _)| *number).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(log.lines(), ["stdout F 1 round 1", "stdout F 1 round 2"]);
}

#[test]
fn a_full_disk_loses_lines_and_says_how_many() {
    let mut log = Fixture::new(Limits::default(), &[]);
    log.write("kept\n");
    let good = log.writer.part.replace(Part::full());
    log.write("lost 1\nlost 2\n").write("lost 3\n");
    assert_eq!(log.writer.lost(), 3);
    // Another try fails as well.
    log.writer.failure.as_mut().unwrap().retry = Instant::now();
    log.write("lost 4\n");
    assert_eq!(log.writer.lost(), 4);
    log.writer.part = good;
    log.write("lost 5\n");
    log.writer.failure.as_mut().unwrap().retry = Instant::now();
    log.write("kept again\n");
    assert_eq!(log.writer.lost(), 0);
    assert_eq!(
        log.lines(),
        [
            "stdout F 1 kept",
            "jobc F 0 5 lines lost: no space left on device (ENOSPC)",
            "stdout F 1 kept again"
        ]
    );
    let output: Vec<bool> = log.results.iter().map(Result::is_err).collect();
    assert_eq!(output, [false, true, false, false, false, false]);
}

#[test]
fn a_directory_that_cannot_be_made_is_tried_again() {
    let mut log = Fixture::new(Limits::default(), &[]);
    let logs = log.directory.path().join("logs");
    std::fs::write(&logs, "in the way").unwrap();
    log.write("lost\n");
    assert!(log.results[0].is_err());
    std::fs::remove_file(&logs).unwrap();
    log.writer.failure.as_mut().unwrap().retry = Instant::now();
    log.write("kept\n");
    assert_eq!(log.lines(), ["jobc F 0 1 line lost: not a directory (ENOTDIR)", "stdout F 1 kept"]);
}

#[test]
fn numbers_are_grouped() {
    assert_eq!([0, 999, 1000, 1_234_567].map(format_grouped), ["0", "999", "1,000", "1,234,567"]);
}
