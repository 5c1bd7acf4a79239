//! A tar archive with pax and GNU headers: every entry and its data, without the file system.
#![no_main]
use jobc_container::tar::Reader;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut reader = Reader::new(bytes);
    while let Ok(Some(_)) = reader.next() {
        let mut total = 0_usize;
        while let Ok(count) = reader.data().map(<[u8]>::len) {
            if count == 0 {
                break;
            }
            total += count;
            assert!(total <= bytes.len(), "an entry has more data than its archive");
            reader.consume(count);
        }
    }
});
