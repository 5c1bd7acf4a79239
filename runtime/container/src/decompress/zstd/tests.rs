use zstd_safe::{CCtx, CParameter};

use super::*;

/// A frame without a content size, with a window of this power of two bytes.
fn packed(content: &[u8], window: u32) -> Vec<u8> {
    let mut context = CCtx::create();
    context.set_parameter(CParameter::WindowLog(window)).expect("a window");
    let mut bytes = vec![0; content.len() + (1 << 17)];
    let mut output = OutBuffer::around(&mut bytes[..]);
    let mut input = InBuffer::around(content);
    while input.pos() < content.len() {
        context.compress_stream(&mut output, &mut input).expect("compressed");
    }
    assert_eq!(context.end_stream(&mut output), Ok(0));
    let count = output.pos();
    bytes.truncate(count);
    bytes
}

/// Bytes that do not repeat, so that all of the window is used.
fn content(count: u32) -> Vec<u8> {
    (0..count / 4).flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()).collect()
}

fn read(bytes: &[u8], budget: &MemoryBudget) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    Frames::new(bytes, budget).read_to_end(&mut all).map(|_| all)
}

#[test]
fn how_far_a_frame_looks_back() {
    let check = |after_magic: &[u8], window: u64| {
        let bytes = [&MAGIC, after_magic].concat();
        let (read, found) = header(&mut &bytes[..]).expect("a header");
        assert_eq!((read, found), (bytes.clone(), window), "{after_magic:x?}");
        assert!(header(&mut &bytes[..bytes.len() - 1]).is_err());
    };
    check(&[0x00, 0x00], 1 << 10);
    check(&[0x00, 0x68], 8 << 20);
    check(&[0x04, 0x6f], 15 << 20);
    check(&[0x00, 0xff], (1 << 41) + 7 * (1 << 38));
    // In one piece: content sizes of one, two, four and eight bytes, after the id of a dictionary.
    check(&[0x20, 7], 7);
    check(&[0x60, 1, 1], 513);
    check(&[0xa0, 0, 0, 1, 0], 1 << 16);
    check(&[0xe0, 0, 0, 0, 0, 1, 0, 0, 0], 1 << 32);
    check(&[0x63, 9, 9, 9, 9, 1, 1], 513);
}

#[test]
fn no_frame_looks_further_back_than_there_is_memory() {
    let (budget, large) = (MemoryBudget::new(1 << 20), content(3 << 20));
    assert!(read(&packed(&large, 20), &budget).expect("as much as there is") == large);
    let error = read(&packed(&large, 21), &budget).expect_err("twice as much");
    assert_eq!(error.kind(), io::ErrorKind::Unsupported);
    assert!(
        error.to_string().contains("its zstd window is 2 MiB, but at most 1 MiB are supported"),
        "{error}"
    );
    // Unused budget costs nothing.
    let small = content(1 << 19);
    assert!(read(&packed(&small, 27), &budget).expect("a small content") == small);
    assert_eq!(budget.take(1 << 20).bytes(), 1 << 20, "all was given back");
    let huge = [&MAGIC[..], &[0x00, 0xff, 1, 0, 0]].concat();
    assert!(read(&huge, &budget).is_err(), "a window of terabytes");
}

#[test]
fn frames_that_are_read_at_once_share_the_memory() {
    let (budget, content) = (MemoryBudget::new(1 << 20), content(3 << 20));
    let packed = packed(&content, 20);
    let mut first = Frames::new(&packed[..], &budget);
    let mut some = [0; 100];
    first.read_exact(&mut some).expect("its beginning");
    std::thread::scope(|scope| {
        let second = scope.spawn(|| read(&packed, &budget));
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(!second.is_finished(), "it waits for the first");
        drop(first);
        assert!(second.join().expect("an end").expect("read") == content);
    });
}

#[test]
fn a_larger_frame_may_follow_a_smaller_one() {
    let (budget, content) = (MemoryBudget::new(1 << 20), content(3 << 20));
    let frames = [packed(&content, 12), packed(&content, 20), packed(&content, 12)].concat();
    assert!(read(&frames, &budget).expect("read") == content.repeat(3));
}
