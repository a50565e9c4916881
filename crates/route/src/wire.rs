//! The bytes of a command in a buffer.
//!
//! ```text
//!          63 ............ 32  31 .. 24  23 .. 16  15 ........ 0
//! word 0  │ sender endpoint  │ data object                      │
//! word 1  │ callback                                            │
//! word 2  │ length in words  │ flags   │ rank    │ kind         │
//! word 3  │ pointer to the parcel            only with PARCEL   │
//! then    │ the inline data segment                             │
//!    or   │ pointer to the data │ its length   only with SPILLED│
//! ```
//!
//! The first three words are a [`Header`] in memory, with length and flags in its padding.
//!
//! The length counts all words, the header's too. Offsets and lengths are in words everywhere: a buffer needs no
//! padding, and 32 bits reach 32 GiB. A data segment that would not fit an outgoing buffer is spilled to the heap,
//! so that any command can be delivered.
//!
//! A pointer word owns what it points to. Copying the words of a command moves that ownership, so each pointer is
//! turned back exactly once: by the receiver, or by [`drop_commands`].

use crate::{Command, Header};
use std::mem::offset_of;

/// Words of a header without parcel.
pub(crate) const HEADER_WORDS: usize = Header::WORDS;
/// Words of the largest command that is not inline: header, parcel, pointer and length of the spilled data.
pub(crate) const MIN_BUFFER_WORDS: usize = HEADER_WORDS + 3;

pub(crate) const PARCEL: u8 = 1;
pub(crate) const SPILLED: u8 = 2;
/// Not a command: the room of a sender that found the session gone after it had reserved.
const VOID: u8 = 4;

const _: () = {
    assert!(
        cfg!(target_endian = "little"),
        "a header lies in memory as it is drawn above"
    );
    assert!(size_of::<Header>() == HEADER_WORDS * 8 && align_of::<Header>() <= align_of::<u64>());
    assert!(offset_of!(Header, object) == 0 && offset_of!(Header, sender) == 4);
    assert!(offset_of!(Header, callback) == 8);
    assert!(offset_of!(Header, kind) == 16 && offset_of!(Header, rank) == 18);
};

/// A header's words, without flags and length.
///
/// Made from the fields before anything takes a reference to the header: a header that was stored field by field and
/// is then loaded as words makes the processor wait for its own stores, as long as everything else in a send takes.
#[inline]
pub(crate) fn header_words(header: Header) -> [u64; HEADER_WORDS] {
    [
        (header.sender.to_bits() as u64) << 32 | header.object.0 as u64,
        header.callback,
        (header.rank as u64) << 16 | header.kind as u64,
    ]
}

/// Adds flags and length to a header's words.
#[inline]
pub(crate) fn complete(
    mut words: [u64; HEADER_WORDS],
    flags: u8,
    len: usize,
) -> [u64; HEADER_WORDS] {
    debug_assert!(len <= u32::MAX as usize);
    words[2] |= (len as u64) << 32 | (flags as u64) << 24;
    words
}

/// The header of unused room of this length.
pub(crate) fn void_words(len: usize) -> [u64; HEADER_WORDS] {
    [0, 0, (len as u64) << 32 | (VOID as u64) << 24]
}

/// Length in words of the command at the front of `words`.
#[inline]
pub(crate) fn command_len(words: &[u64]) -> usize {
    (words[2] >> 32) as usize
}

/// A parcel as one word, which owns it.
pub(crate) fn parcel_word<P>(parcel: Box<P>) -> u64 {
    Box::into_raw(parcel).expose_provenance() as u64
}

/// The parcel of a word.
///
/// # Safety
/// `word` came from [`parcel_word`], for a parcel of this type, and was not turned back before.
unsafe fn parcel_of<P>(word: u64) -> Box<P> {
    // SAFETY: by the caller the pointer came from `Box::into_raw` and is owned here.
    unsafe { Box::from_raw(std::ptr::with_exposed_provenance_mut(word as usize)) }
}

/// The two words of spilled data; own it.
pub(crate) fn spill_words(words: &[u64]) -> [u64; 2] {
    let data: Box<[u64]> = words.into();
    [
        Box::into_raw(data).cast::<u64>().expose_provenance() as u64,
        words.len() as u64,
    ]
}

/// Spilled data on the way to its reader.
pub(crate) struct Spill(Box<[u64]>);

/// # Safety
/// The two words came from [`spill_words`] and were not turned back before.
unsafe fn take_spill(words: [u64; 2]) -> Spill {
    let start = std::ptr::with_exposed_provenance_mut(words[0] as usize);
    let data = std::ptr::slice_from_raw_parts_mut(start, words[1] as usize);
    // SAFETY: by the caller these are the parts of a box that is owned here.
    Spill(unsafe { Box::from_raw(data) })
}

/// Whether the command at the front of `words` owns nothing, and is one.
#[inline]
pub(crate) fn is_plain(words: &[u64]) -> bool {
    (words[2] >> 24) as u8 == 0
}

/// Whether two commands at the fronts of these have one object, kind, rank, length and flags.
#[inline]
pub(crate) fn are_alike(one: &[u64], other: &[u64]) -> bool {
    one[2] == other[2] && one[0] as u32 == other[0] as u32
}

/// Has the processor fetch what lies some lines behind a place.
#[inline(always)]
pub(crate) fn fetch_ahead(words: &[u64], at: usize) {
    const AHEAD: usize = 128;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults, wherever it points.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(words.as_ptr().wrapping_add(at + AHEAD).cast());
    }
}

/// The header at the front of a command's words.
#[inline(always)]
pub(crate) fn header(words: &[u64]) -> &Header {
    let words = words
        .first_chunk::<HEADER_WORDS>()
        .expect("a command has a header");
    // SAFETY: words of commands are made by `header_words` and `complete`, or by `void_words`: their layout is that of
    // `Header` with a valid rank, as asserted above. Length and flags lie in its padding.
    unsafe { &*words.as_ptr().cast::<Header>() }
}

/// Reads the command at the front of `words`, which is not [plain](is_plain); also says how many words it takes. `None`
/// for unused room.
///
/// # Safety
/// `words` begins with a command that was written by this module, with a parcel of type `P` if it has one, and its
/// pointers are owned by the caller, who gives them up. Data that was spilled is pushed to `spills`, which must live,
/// without being touched, for `'a`.
#[cold]
pub(crate) unsafe fn take<'a, P>(
    words: &'a [u64],
    spills: &mut Vec<Spill>,
) -> (usize, Option<Command<'a, P>>) {
    let len = command_len(words);
    let flags = (words[2] >> 24) as u8;
    let data = &words[HEADER_WORDS..len];
    // SAFETY: handed through from the caller.
    (len, unsafe {
        take_pointers(flags, *header(words), data, spills)
    })
}

/// What [`take`] makes of flags and data.
///
/// # Safety
/// As for [`take`].
unsafe fn take_pointers<'a, P>(
    flags: u8,
    header: Header,
    mut data: &'a [u64],
    spills: &mut Vec<Spill>,
) -> Option<Command<'a, P>> {
    if flags & VOID != 0 {
        return None;
    }
    let mut parcel = None;
    if flags & PARCEL != 0 {
        // SAFETY: the flag says that this word owns a parcel; the caller gives it up.
        parcel = Some(unsafe { parcel_of(data[0]) });
        data = &data[1..];
    }
    if flags & SPILLED != 0 {
        // SAFETY: the flag says that these words own spilled data; the caller gives it up.
        let spill = unsafe { take_spill([data[0], data[1]]) };
        // SAFETY: the box's contents do not move when the box does, and the caller keeps `spills` for `'a`.
        data = unsafe { std::slice::from_raw_parts(spill.0.as_ptr(), spill.0.len()) };
        spills.push(spill);
    }
    Some(Command {
        header,
        words: data,
        parcel,
    })
}

/// Drops the parcels and spilled data of a run of commands that nobody will read.
///
/// # Safety
/// `words` is a whole number of commands written by this module, with parcels of type `P`, whose pointers the caller
/// owns and gives up.
pub(crate) unsafe fn drop_commands<P>(mut words: &[u64]) {
    let mut spills = Vec::new();
    while !words.is_empty() {
        if is_plain(words) {
            words = &words[command_len(words)..];
            continue;
        }
        // SAFETY: handed through; the command, and with it the data, is dropped before the spills are.
        let (len, command) = unsafe { take::<P>(words, &mut spills) };
        drop(command);
        spills.clear();
        words = &words[len..];
    }
}
