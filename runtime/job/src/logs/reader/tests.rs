use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::logs::line::format_time;
use crate::logs::{Limits, Redactor, Watch, Writer, part};
use jobc_place::time::Time;

/// Writes a part of a log: a second, a tag, an attempt and a text in each line.
fn part(directory: &Path, number: u64, lines: &[(u64, &str)]) {
    std::fs::create_dir_all(directory).unwrap();
    let text: String = lines
        .iter()
        .map(|(second, rest)| format!("{} {rest}\n", format_time(Time::from_millis(second * 1000).into())))
        .collect();
    std::fs::write(part::path(directory, number), text).unwrap();
}

/// The lines passed on: `0: text`, with a `+` for a line that continues and `#` before a remark.
fn read(reader: &mut Reader) -> Vec<String> {
    let mut lines = vec![];
    let mut each = |number: usize, line: &Line<'_>| {
        let remark = if line.stream == Stream::Jobc { "#" } else { "" };
        let more = if line.ends { "" } else { "+" };
        lines.push(format!("{number}: {remark}{}{more}", String::from_utf8_lossy(line.text)));
        Ok(())
    };
    while reader.read(&mut each).unwrap() {}
    lines
}

fn check(directories: &[&Path], choice: LineFilter, expected: &[&str]) {
    let mut reader = Reader::new(directories.iter().map(|&directory| directory.to_owned()), choice);
    assert_eq!(read(&mut reader), expected);
    assert_eq!(read(&mut reader), [""; 0]);
}

fn since(second: u64) -> LineFilter {
    LineFilter::default().since(Some(Time::from_millis(second * 1000)))
}

#[test]
fn logs_are_merged_by_time() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b, none) = (dir.path().join("a"), dir.path().join("b"), dir.path().join("none"));
    part(&a, 1, &[(1, "stdout F 1 a1"), (3, "stdout P 1 a3"), (5, "stderr F 1 a5")]);
    // The clock went back: the order within a task stays.
    part(&b, 1, &[(2, "stdout F 1 b2"), (4, "stdout F 2 b4"), (1, "stdout F 2 b1")]);
    let all = ["0: a1", "1: b2", "0: a3+", "1: b4", "1: b1", "0: a5"];
    check(&[&a, &b, &none], LineFilter::default(), &all);
    check(&[&b], LineFilter::default().attempt(Some(2)), &["0: b4", "0: b1"]);
    check(&[&a, &b], since(4), &["1: b4", "0: a5"]);
}

#[test]
fn the_last_lines_of_each_task_are_found_from_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    part(&a, 1, &[(1, "stdout F 1 one"), (2, "stdout F 1 two")]);
    part(&a, 2, &[(3, "stdout P 1 thr"), (4, "stdout F 1 ee"), (5, "stdout F 2 four")]);
    part(&b, 1, &[(1, "stdout F 1 b")]);
    let tail = |count| LineFilter::default().tail(Some(count));
    check(&[&a, &b], tail(0), &[]);
    check(&[&a], tail(1), &["0: four"]);
    check(&[&a], tail(2), &["0: three", "0: four"]);
    check(&[&a], tail(3), &["0: two", "0: three", "0: four"]);
    check(&[&a, &b], tail(1), &["1: b", "0: four"]);
    check(&[&a], tail(9), &["0: one", "0: two", "0: three", "0: four"]);
    check(&[&a], tail(1).attempt(Some(1)), &["0: three"]);
    check(&[&a], since(4).tail(Some(3)), &["0: ee", "0: four"]);
}

#[test]
fn of_a_progress_bar_the_last_lines_have_what_it_drew_last() {
    let dir = tempfile::tempdir().unwrap();
    let a = dir.path().join("a");
    let bar =
        [(1, "stdout F 1 one"), (2, "stderr P 1 \r 1%\r 2%"), (2, "stdout F 1 two"), (3, "stderr P 1 \r 3")];
    part(&a, 1, &bar);
    check(&[&a], LineFilter::default().tail(Some(9)), &["0: one", "0: two", "0:  3+"]);
    let end = [(4, "stderr F 1 %"), (5, "stdout F 1 end\r")];
    part(&a, 1, &[&bar[..], &end].concat());
    check(&[&a], LineFilter::default().tail(Some(2)), &["0:  3%", "0: end\r"]);
    let all = ["0: one", "0: \r 1%\r 2%+", "0: two", "0: \r 3+", "0: %", "0: end\r"];
    check(&[&a], LineFilter::default(), &all);
}

#[test]
fn parts_before_a_moment_are_not_read() {
    let dir = tempfile::tempdir().unwrap();
    for number in 1..5 {
        part(dir.path(), number, &[(number * 10, &format!("stdout F 1 {number}"))]);
    }
    // Were it read, this would be an error.
    std::fs::remove_file(part::path(dir.path(), 1)).unwrap();
    std::fs::create_dir(part::path(dir.path(), 1)).unwrap();
    check(&[dir.path()], since(30), &["0: 3", "0: 4"]);
}

#[test]
fn invalid_lines_are_skipped() {
    let dir = tempfile::tempdir().unwrap();
    part(dir.path(), 1, &[(1, "stdout F 1 good"), (2, "stdout X 1 bad"), (3, "stdout F x bad"), (4, "")]);
    let path = part::path(dir.path(), 1);
    let mut text = std::fs::read(&path).unwrap();
    text.extend_from_slice(&vec![0xff; 300_000]);
    text.extend_from_slice(
        b"\n1970-01-01T00:00:09.000000Z stdout F 1 good\n1970-01-01T00:00:09.000000Z stdout F 1 torn",
    );
    std::fs::write(&path, text).unwrap();
    check(&[dir.path()], LineFilter::default(), &["0: good", "0: good"]);
    check(&[dir.path()], LineFilter::default().tail(Some(1)), &["0: good"]);
}

#[test]
fn a_log_whose_beginning_is_gone_says_so() {
    let dir = tempfile::tempdir().unwrap();
    part(dir.path(), 7, &[(1, "stdout F 1 seven")]);
    check(
        &[dir.path()],
        LineFilter::default(),
        &["0: #the log starts here, older lines were deleted", "0: seven"],
    );
    check(&[dir.path()], LineFilter::default().tail(Some(5)), &["0: seven"]);
}

/// A writer with small parts, and a reader that follows it.
fn followed(limits: Limits) -> (tempfile::TempDir, Writer, Reader) {
    let dir = tempfile::tempdir().unwrap();
    let directory = dir.path().join("logs/a-0");
    let writer = Writer::open(&directory, limits, Arc::new(Redactor::default()));
    (dir, writer, Reader::new([directory], LineFilter::default()))
}

fn write(writer: &mut Writer, text: &str) {
    writer.write(1, Stream::Stdout, text.as_bytes(), &mut |_| ()).unwrap();
}

#[test]
fn a_reader_follows_from_part_to_part() {
    let (_dir, mut writer, mut reader) = followed(Limits { part_bytes: 200, parts: 2, line_bytes: 100 });
    assert_eq!(read(&mut reader), [""; 0]);
    for number in 0..100 {
        write(&mut writer, &format!("{number}\n"));
        assert_eq!(read(&mut reader), [format!("0: {number}")]);
    }
}

#[test]
fn a_slow_reader_learns_what_it_missed() {
    let (_dir, mut writer, mut reader) = followed(Limits { part_bytes: 200, parts: 2, line_bytes: 100 });
    write(&mut writer, "0\n");
    assert_eq!(read(&mut reader), ["0: 0"]);
    for number in 1..=30 {
        write(&mut writer, &format!("{number}\n"));
    }
    let lines = read(&mut reader);
    let gap = lines.iter().position(|line| line.starts_with("0: #")).unwrap();
    // Four lines per part: the first part is still read to its end, and the last two exist.
    assert_eq!(lines[..gap], ["0: 1", "0: 2", "0: 3"]);
    assert_eq!(lines[gap], "0: #lines are missing here: 5 parts of the log, deleted before the read");
    assert_eq!(lines[gap + 1..], (24..=30).map(|number| format!("0: {number}")).collect::<Vec<_>>());
}

#[test]
fn half_a_line_is_shown_when_it_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = part::path(dir.path(), 1);
    let mut reader = Reader::new([dir.path().to_owned()], LineFilter::default());
    std::fs::write(&path, "1970-01-01T00:00:01.000000Z stdout F 1 torn by a full di").unwrap();
    assert_eq!(read(&mut reader), [""; 0]);
    // The writer took it back and wrote another.
    std::fs::write(&path, "1970-01-01T00:00:02.000000Z stdout F 1 whole\n").unwrap();
    assert_eq!(read(&mut reader), ["0: whole"]);
}

#[test]
fn a_flood_is_passed_on_in_portions() {
    let (_dir, mut writer, mut reader) = followed(Limits::default());
    write(&mut writer, &"x\n".repeat(MAX_LINES_PER_READ + 5));
    let mut count = 0;
    let mut each = |_: usize, _: &Line<'_>| {
        count += 1;
        Ok(())
    };
    assert!(reader.read(&mut each).unwrap());
    assert!(!reader.read(&mut each).unwrap());
    assert_eq!(count, MAX_LINES_PER_READ + 5);
}

#[test]
fn a_waiting_reader_is_woken_by_a_new_line() {
    use std::time::{Duration, Instant};
    let (dir, mut writer, mut reader) = followed(Limits::default());
    let record = dir.path().to_owned();
    let mut watch = Watch::new([record.clone(), record.join("logs"), record.join("logs/a-0")]);
    let (other, keep) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut wait = |longest| watch.wait(&[std::os::fd::AsFd::as_fd(&other)], longest).unwrap();
    assert_eq!(wait(Duration::from_millis(1)), [false]);
    let long = Duration::from_secs(20);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..3 {
                std::thread::sleep(Duration::from_millis(30));
                write(&mut writer, &format!("{number}\n"));
            }
        });
        let began = Instant::now();
        let mut lines = vec![];
        while lines.len() < 3 {
            assert_eq!(wait(long), [false]);
            lines.extend(read(&mut reader));
        }
        assert_eq!(lines, ["0: 0", "0: 1", "0: 2"]);
        assert!(began.elapsed() < long);
    });
    drop(keep);
    assert_eq!(wait(long), [true]);
}

proptest! {
    // Each case makes up to a thousand files.
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn what_was_written_is_read(
        texts in prop::collection::vec("[a-z\n ]{0,40}", 0..20),
        line_bytes in 1..50_usize,
        part_bytes in 1..500_u64,
    ) {
        let (_dir, mut writer, mut reader) = followed(Limits { part_bytes, parts: 10_000, line_bytes });
        for text in &texts {
            write(&mut writer, text);
        }
        writer.end(1, Stream::Stdout).unwrap();
        let mut got = String::new();
        let mut each = |_: usize, line: &Line<'_>| {
            got += std::str::from_utf8(line.text).unwrap();
            got += if line.ends { "\n" } else { "" };
            Ok(())
        };
        while reader.read(&mut each).unwrap() {}
        let mut expected = texts.concat();
        if !expected.is_empty() && !expected.ends_with('\n') {
            expected.push('\n');
        }
        prop_assert_eq!(got, expected);
    }
}
