//! SHA-1 (FIPS 180-4), which the handshake of WebSocket needs; nothing depends on its strength there.

/// The digest of some bytes.
pub(super) fn sha1(bytes: &[u8]) -> [u8; 20] {
    let mut state: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    let end = (padded.len() + 8).next_multiple_of(64);
    padded.resize(end, 0);
    padded[end - 8..].copy_from_slice(&(bytes.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks_exact(64) {
        let mut words = [0_u32; 80];
        for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
            *word = bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
        }
        for index in 16..80 {
            let mixed = words[index - 3] ^ words[index - 8] ^ words[index - 14] ^ words[index - 16];
            words[index] = mixed.rotate_left(1);
        }
        let mut mixed = state;
        for (index, word) in words.iter().enumerate() {
            let [first, second, third, fourth, fifth] = mixed;
            let (choice, constant) = match index {
                0..20 => (second & third | !second & fourth, 0x5a82_7999),
                20..40 => (second ^ third ^ fourth, 0x6ed9_eba1),
                40..60 => (second & third | second & fourth | third & fourth, 0x8f1b_bcdc),
                _ => (second ^ third ^ fourth, 0xca62_c1d6_u32),
            };
            let parts = [choice, fifth, constant, *word];
            let sum = parts.iter().fold(first.rotate_left(5), |sum, part| sum.wrapping_add(*part));
            mixed = [sum, first, second.rotate_left(30), third, fourth];
        }
        for (part, value) in state.iter_mut().zip(mixed) {
            *part = part.wrapping_add(value);
        }
    }
    let mut digest = [0; 20];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_specification() {
        for (text, digest) in [
            ("", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
            ("abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "84983e441c3bd26ebaae4aa1f95129e5e54670f1",
            ),
            (&"a".repeat(1_000_000), "34aa973cd4c4daa4f61eeb2bdbad27316534016f"),
        ] {
            let shown: String = sha1(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(shown, digest);
        }
    }
}
