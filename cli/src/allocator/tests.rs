use super::*;

/// Allocates a block, fills it, and returns it with its layout.
fn block(allocator: &Allocator, size: usize, align: usize) -> (*mut u8, Layout) {
    let layout = Layout::from_size_align(size, align).unwrap();
    // SAFETY: the size is not 0.
    let block = unsafe { allocator.alloc(layout) };
    assert!(!block.is_null() && (block as usize).is_multiple_of(align));
    // SAFETY: a block of that size.
    unsafe { block.write_bytes(0xa5, size) };
    (block, layout)
}

#[test]
fn blocks_of_before_the_choice_live_on_after_it() {
    for choice in [Choice::System, Choice::Compiler] {
        let allocator = Box::leak(Box::new(Allocator::new()));
        let (first, layout) = block(allocator, 100, 8);
        let (second, _) = block(allocator, 3, 64);
        assert!(allocator.is_early(first) && allocator.is_early(second));
        assert!(second as usize >= first as usize + 100, "blocks do not overlap");
        allocator.choose(choice);
        assert_eq!(allocator.choice(), Some(choice));
        // SAFETY: the block and its layout; a size that is not 0.
        let grown = unsafe { allocator.realloc(first, layout, 5000) };
        assert!(!allocator.is_early(grown));
        // SAFETY: as many bytes were copied.
        assert!(unsafe { std::slice::from_raw_parts(grown, 100) }.iter().all(|byte| *byte == 0xa5));
        // SAFETY: both are of this allocator.
        unsafe {
            allocator.dealloc(grown, Layout::from_size_align(5000, 8).unwrap());
            allocator.dealloc(second, Layout::from_size_align(3, 64).unwrap());
        }
        let (later, layout) = block(allocator, 10, 8);
        assert!(!allocator.is_early(later));
        // SAFETY: of this allocator.
        unsafe { allocator.dealloc(later, layout) };
    }
}

#[test]
fn a_full_region_is_a_choice_that_stays() {
    let allocator = Box::leak(Box::new(Allocator::new()));
    block(allocator, EARLY - 16, 1);
    let (beyond, layout) = block(allocator, 17, 1);
    assert!(!allocator.is_early(beyond));
    allocator.choose(Choice::Compiler);
    assert_eq!(allocator.choice(), Some(Choice::System));
    // SAFETY: of this allocator, by the C library as it was made.
    unsafe { allocator.dealloc(beyond, layout) };
}
