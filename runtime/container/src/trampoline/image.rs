//! The trampoline as an ELF file: headers, code, and what the code reads.
//!
//! `ET_EXEC` with one `PT_LOAD`, so the kernel needs no interpreter and no relocation, and addresses are known here
//! (elf(5)). The segment is readable and executable and never writable.

use std::ffi::CString;
use std::os::fd::RawFd;

use linux_raw_sys::general::_LINUX_CAPABILITY_VERSION_3;
use linux_raw_sys::ptrace::sock_filter;

use super::Label;
use super::birth::{AFTER_FILTER, ProgramProcess};
use crate::seccomp::Program;

/// Where the image begins in memory: above what `vm.mmap_min_addr` reserves, where linkers put such programs.
const BASE: u64 = 0x40_0000;

/// The largest page size of the architectures.
const ALIGNMENT: u64 = 0x1_0000;

const ELF_HEADER: u16 = 64;
const PROGRAM_HEADER: u16 = 56;

/// Where the code begins: behind the ELF header and two program headers, on the 16 bytes it is aligned to.
const ENTRY: usize = (ELF_HEADER as usize + 2 * PROGRAM_HEADER as usize).next_multiple_of(16);

/// The header of capset(2) and both halves of its data (capset(2), version 3).
const CAPSET_SIZE: usize = 32;

const PT_LOAD: u32 = 1;
const PT_GNU_STACK: u32 = 0x6474_e551;
const PF_X: u32 = 1;
const PF_W: u32 = 2;
const PF_R: u32 = 4;

#[cfg(target_arch = "x86_64")]
const MACHINE: u16 = 62;
#[cfg(target_arch = "aarch64")]
const MACHINE: u16 = 183;

/// The data of the code, placed directly after it. Addresses are of the running image.
#[repr(C)]
pub(super) struct Header {
    /// The `struct sock_fprog` of the filter, or 0.
    pub(super) program: u64,
    /// An array of addresses of path names, ended by 0.
    pub(super) candidates: u64,
    /// The address of the name of the attribute's file, or 0 without a label.
    pub(super) attribute: u64,
    /// The address of the string to write.
    pub(super) label: u64,
    /// How many bytes that has.
    pub(super) length: u64,
    /// The header and the data of capset(2), or 0.
    pub(super) capabilities: u64,
    /// As above, for a process that is created after the filter was loaded, or 0.
    pub(super) last_capabilities: u64,
    /// Flags of seccomp(2).
    pub(super) flags: u32,
    /// The file descriptor a failure is written to.
    pub(super) report: u32,
    /// The file descriptor of the directory that the attribute's file is in.
    pub(super) attributes: u32,
    /// The file descriptor to confirm that the filter's listener was taken, or -1 without a listener.
    pub(super) reply: i32,
    /// How the last process is made: flags of [`super::birth`], or 0 where none is.
    pub(super) birth: u32,
    /// Nothing: a header is a multiple of 8 bytes.
    pub(super) padding: u32,
}

/// The image's bytes.
pub(super) fn build_image(
    code: &[u8],
    candidates: &[CString],
    filter: Option<&Program>,
    label: Option<Label<'_>>,
    report: RawFd,
    reply: Option<RawFd>,
    process: ProgramProcess,
) -> Vec<u8> {
    let header = ENTRY + code.len();
    let table = header + size_of::<Header>();
    let program = table + 8 * (candidates.len() + 1);
    let instructions = program + if filter.is_some() { 16 } else { 0 };
    let count = filter.map_or(0, |filter| filter.instructions.len());
    let strings = instructions + count * size_of::<sock_filter>();
    let attribute = strings + candidates.iter().map(|path| path.as_bytes_with_nul().len()).sum::<usize>();
    let written = attribute + label.map_or(0, |label| label.file.count_bytes() + 1);
    let rights = filter.and_then(|filter| filter.rights_after);
    let birth = process.flags(filter, report);
    let last_rights = filter.and_then(|filter| filter.rights_without).filter(|_| birth & AFTER_FILTER != 0);
    let capabilities = (written + label.map_or(0, |label| label.text.len())).next_multiple_of(8);
    let last_capabilities = capabilities + rights.map_or(0, |_| CAPSET_SIZE);
    let size = last_capabilities + last_rights.map_or(0, |_| CAPSET_SIZE);

    let mut image = Vec::with_capacity(size);
    elf_header(&mut image);
    program_header(&mut image, PT_LOAD, PF_R | PF_X, size as u64);
    program_header(&mut image, PT_GNU_STACK, PF_R | PF_W, 0);
    image.resize(ENTRY, 0);
    image.extend(code);

    put_word(&mut image, if filter.is_some() { address(program) } else { 0 });
    put_word(&mut image, address(table));
    put_word(&mut image, label.map_or(0, |_| address(attribute)));
    put_word(&mut image, address(written));
    put_word(&mut image, label.map_or(0, |label| label.text.len() as u64));
    put_word(&mut image, rights.map_or(0, |_| address(capabilities)));
    put_word(&mut image, last_rights.map_or(0, |_| address(last_capabilities)));
    image.extend(filter.map_or(0, |filter| filter.flags).to_ne_bytes());
    image.extend(report.to_ne_bytes());
    image.extend(label.map_or(-1, |label| label.attributes).to_ne_bytes());
    image.extend(reply.unwrap_or(-1).to_ne_bytes());
    put_word(&mut image, birth.into()); // and the padding, on little-endian hosts

    let mut string = strings;
    for path in candidates {
        put_word(&mut image, address(string));
        string += path.as_bytes_with_nul().len();
    }
    put_word(&mut image, 0);

    if let Some(filter) = filter {
        put_word(&mut image, count as u64); // `unsigned short len` and padding, on little-endian hosts
        put_word(&mut image, address(instructions));
        for instruction in &filter.instructions {
            image.extend(instruction.code.to_ne_bytes());
            image.extend([instruction.jt, instruction.jf]);
            image.extend(instruction.k.to_ne_bytes());
        }
    }
    for path in candidates {
        image.extend(path.as_bytes_with_nul());
    }
    if let Some(label) = label {
        image.extend(label.file.to_bytes_with_nul());
        image.extend(label.text);
    }
    image.resize(capabilities, 0);
    for rights in [rights, last_rights].into_iter().flatten() {
        image.extend(_LINUX_CAPABILITY_VERSION_3.to_ne_bytes());
        image.extend(0_u32.to_ne_bytes());
        // The lower halves of all sets, then the upper ones, on little-endian hosts.
        for half in [0..4, 4..8] {
            for set in [rights.effective, rights.permitted, rights.inheritable] {
                image.extend(&set.to_le_bytes()[half.clone()]);
            }
        }
    }
    debug_assert_eq!(image.len(), size);
    image
}

/// The address in memory of an offset in the file.
fn address(offset: usize) -> u64 {
    BASE + offset as u64
}

fn put_word(image: &mut Vec<u8>, word: u64) {
    image.extend(word.to_ne_bytes());
}

/// An `Elf64_Ehdr`: 64-bit, little-endian, version 1, executable, with two program headers and no sections.
fn elf_header(image: &mut Vec<u8>) {
    image.extend([0x7f, b'E', b'L', b'F', 2, 1, 1, 0]);
    put_word(image, 0);
    image.extend(2_u16.to_ne_bytes());
    image.extend(MACHINE.to_ne_bytes());
    image.extend(1_u32.to_ne_bytes());
    put_word(image, address(ENTRY));
    put_word(image, ELF_HEADER.into());
    put_word(image, 0);
    image.extend(0_u32.to_ne_bytes());
    for half in [ELF_HEADER, PROGRAM_HEADER, 2, 0, 0, 0] {
        image.extend(half.to_ne_bytes());
    }
}

/// An `Elf64_Phdr` of the whole file, or of nothing.
fn program_header(image: &mut Vec<u8>, kind: u32, flags: u32, size: u64) {
    image.extend(kind.to_ne_bytes());
    image.extend(flags.to_ne_bytes());
    put_word(image, 0);
    let address = if size == 0 { 0 } else { BASE };
    for word in [address, address, size, size, ALIGNMENT] {
        put_word(image, word);
    }
}
