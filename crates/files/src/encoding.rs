//! Encodings of text: whatever a file is written in becomes UTF-8 while it is read.
//!
//! A byte order mark tells UTF-16 from UTF-8. All others have to be said.

use crate::compression::{Compression, peek};
use encoding_rs::{Decoder, DecoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE};
use std::io::{self, Read};

/// How a text is stored, where that is not as its name and its first bytes say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextCoding {
    /// How it is compressed.
    pub compression: Option<Compression>,
    /// Its encoding.
    pub encoding: Option<TextEncoding>,
}

/// An encoding of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextEncoding(&'static Encoding);

impl TextEncoding {
    /// The encoding of this name, such as `latin-1`, `utf-16` or `shift_jis`.
    pub fn named(name: &str) -> Option<Self> {
        let lower = name.to_ascii_lowercase();
        // Names that other databases take, but the standard of encodings does not list.
        let label = match lower.as_str() {
            "latin-1" | "iso_8859_1" => "latin1",
            "utf16" => "utf-16",
            other => other,
        };
        Encoding::for_label_no_replacement(label.as_bytes()).map(TextEncoding)
    }
}

/// Bytes of input that are decoded at once.
const PIECE: usize = 64 << 10;

/// The text in UTF-8. Bytes that are said to be UTF-8, or that nothing is said of, come as they are.
pub(crate) fn utf8(
    text: Box<dyn Read + Send>,
    encoding: Option<TextEncoding>,
) -> io::Result<Box<dyn Read + Send>> {
    match encoding {
        Some(TextEncoding(encoding)) if encoding == UTF_8 => Ok(text),
        Some(TextEncoding(encoding)) => Ok(Box::new(Transcoded::new(text, encoding))),
        None => {
            let (begun, text) = peek(text, 2)?;
            match Encoding::for_bom(&begun).map(|(encoding, _)| encoding) {
                Some(encoding) if encoding == UTF_16LE || encoding == UTF_16BE => {
                    Ok(Box::new(Transcoded::new(text, encoding)))
                }
                _ => Ok(text),
            }
        }
    }
}

struct Transcoded {
    text: Box<dyn Read + Send>,
    encoding: &'static Encoding,
    decoder: Decoder,
    input: Vec<u8>,
    /// What is not decoded yet begins here.
    from: usize,
    /// Whether `input` holds the last of it.
    ended: bool,
    /// Whether the last of it is decoded.
    finished: bool,
    output: Vec<u8>,
    /// What is not handed on yet begins here.
    at: usize,
}

impl Transcoded {
    fn new(text: Box<dyn Read + Send>, encoding: &'static Encoding) -> Self {
        Transcoded {
            text,
            encoding,
            // A mark at the beginning decides between the forms of Unicode.
            decoder: encoding.new_decoder(),
            input: Vec::new(),
            from: 0,
            ended: false,
            finished: false,
            output: Vec::new(),
            at: 0,
        }
    }

    /// Decodes the next piece.
    fn refill(&mut self) -> io::Result<()> {
        if self.from == self.input.len() && !self.ended {
            self.input.clear();
            self.from = 0;
            let read = (self.text.by_ref().take(PIECE as u64)).read_to_end(&mut self.input)?;
            self.ended = read < PIECE;
        }
        // A byte becomes at most three.
        self.output.resize(3 * PIECE, 0);
        let input = &self.input[self.from..];
        let (result, read, written) =
            (self.decoder).decode_to_utf8_without_replacement(input, &mut self.output, self.ended);
        self.from += read;
        self.output.truncate(written);
        self.at = 0;
        match result {
            DecoderResult::InputEmpty => {
                self.finished = self.ended;
                Ok(())
            }
            DecoderResult::OutputFull => Ok(()),
            DecoderResult::Malformed(..) => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("it holds bytes that are no {}", self.encoding.name()),
            )),
        }
    }
}

impl Read for Transcoded {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        while self.at == self.output.len() {
            if self.finished {
                return Ok(0);
            }
            self.refill()?;
        }
        let read = (&self.output[self.at..]).read(bytes)?;
        self.at += read;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn decoded(bytes: &[u8], encoding: Option<&str>) -> Result<String, String> {
        let encoding = encoding.map(|name| TextEncoding::named(name).unwrap());
        let mut text = String::new();
        let mut reader = utf8(Box::new(Cursor::new(bytes.to_vec())), encoding).unwrap();
        match reader.read_to_string(&mut text) {
            Ok(_) => Ok(text),
            Err(error) => Err(error.to_string()),
        }
    }

    fn utf16(text: &str, to_bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(to_bytes).collect()
    }

    #[test]
    fn a_mark_tells_utf16() {
        let text = "a,ä\n1,😀\n".repeat(100_000);
        for to_bytes in [u16::to_le_bytes, u16::to_be_bytes] {
            let marked = utf16(&format!("\u{feff}{text}"), to_bytes);
            assert!(decoded(&marked, None).unwrap() == text);
        }
        let bare = utf16(&text, u16::to_le_bytes);
        assert!(decoded(&bare, Some("utf-16")).unwrap() == text);
    }

    #[test]
    fn others_are_said() {
        assert_eq!(decoded(b"gr\xFC\xDFe", Some("latin-1")).unwrap(), "grüße");
        assert_eq!(decoded(b"\x83\x5C", Some("shift_jis")).unwrap(), "ソ");
        assert_eq!(decoded("grüße".as_bytes(), None).unwrap(), "grüße");
        assert_eq!(decoded(b"", None).unwrap(), "");
        assert_eq!(decoded(b"", Some("utf-16")).unwrap(), "");
        assert_eq!(TextEncoding::named("klingon"), None);
    }

    #[test]
    fn what_is_malformed_is_an_error() {
        for bytes in [&b"a\x00\x00\xD8"[..], b"a\x00b"] {
            let error = decoded(bytes, Some("utf-16")).unwrap_err();
            assert_eq!(error, "it holds bytes that are no UTF-16LE");
        }
    }
}
