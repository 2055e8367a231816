//! Finding one secret in one place of a text, in any of its forms.
//!
//! Every matcher answers the same question: does a form of the secret start
//! here, and where does it end? Forms may be mixed and nested (JSON inside
//! JSON, a percent-encoded percent sign), so the escaped form is walked as a
//! set of positions instead of being spelled out in advance.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

/// Longest run of backslashes that is looked through: six levels of escaping.
const BACKSLASHES: usize = 64;

/// One form of one secret.
#[derive(Debug)]
pub(super) enum Matcher {
    /// As it is, or with any character escaped or percent-encoded.
    Escaped(Vec<Unit>),
    /// Two hexadecimal digits per byte, in any case, perhaps separated.
    Hex(Vec<u8>),
    /// The part of a base64 text that the secret alone decides.
    Base64(Vec<u8>),
}

/// A character of the secret, or one byte of a secret that is no text.
#[derive(Debug)]
pub(super) struct Unit {
    bytes: Vec<u8>,
    utf16: Vec<u16>,
}

impl Matcher {
    /// Every form of `secret`.
    pub(super) fn forms(secret: &[u8]) -> Vec<Self> {
        let mut forms = vec![Self::Escaped(units(secret)), Self::Hex(secret.to_vec())];
        for before in 0..3 {
            forms.push(Self::Base64(base64_core(secret, before)));
        }
        // A secret that is no text appears in texts with replacement characters.
        let lossy = String::from_utf8_lossy(secret);
        if lossy.as_bytes() != secret {
            forms.push(Self::Escaped(units(lossy.as_bytes())));
        }
        forms
    }

    /// The bytes a match may begin with.
    pub(super) fn first_bytes(&self) -> Vec<u8> {
        match self {
            Self::Escaped(units) => {
                let Some(first) = units.first().and_then(|unit| unit.bytes.first()) else {
                    return Vec::new();
                };
                let mut bytes = vec![*first, b'\\', b'%'];
                if *first == b' ' {
                    bytes.push(b'+');
                }
                bytes
            }
            Self::Hex(secret) => secret.first().map_or_else(Vec::new, |byte| {
                let digit = HEX[usize::from(byte >> 4)];
                vec![digit, digit.to_ascii_uppercase()]
            }),
            Self::Base64(core) => core.first().map_or_else(Vec::new, |first| match first {
                b'+' => b"+-%".to_vec(),
                b'/' => b"/_%\\".to_vec(),
                other => vec![*other],
            }),
        }
    }

    /// Where the match that begins at `at` ends; `None` when there is none.
    pub(super) fn end(&self, text: &[u8], at: usize) -> Option<usize> {
        match self {
            Self::Escaped(units) => escaped_end(units, text, at),
            Self::Hex(secret) => hex_end(secret, text, at),
            Self::Base64(core) => base64_end(core, text, at),
        }
    }
}

const HEX: &[u8; 16] = b"0123456789abcdef";

fn units(secret: &[u8]) -> Vec<Unit> {
    match std::str::from_utf8(secret) {
        Ok(text) => text
            .chars()
            .map(|c| Unit {
                bytes: c.to_string().into_bytes(),
                utf16: c.encode_utf16(&mut [0; 2]).to_vec(),
            })
            .collect(),
        Err(_) => secret
            .iter()
            .map(|byte| Unit {
                bytes: vec![*byte],
                utf16: vec![u16::from(*byte)],
            })
            .collect(),
    }
}

/// The sextets that `secret` alone decides when `before` unknown bytes precede
/// it in its group of three.
fn base64_core(secret: &[u8], before: usize) -> Vec<u8> {
    let mut padded = vec![0; before];
    padded.extend_from_slice(secret);
    let encoded = STANDARD_NO_PAD.encode(&padded).into_bytes();
    let first = (before * 8).div_ceil(6);
    let last = padded.len() * 8 / 6;
    encoded.get(first..last).unwrap_or_default().to_vec()
}

fn escaped_end(units: &[Unit], text: &[u8], at: usize) -> Option<usize> {
    let mut places = vec![at];
    for unit in units {
        let mut next = Vec::new();
        for place in &places {
            after_unit(unit, text, *place, &mut next);
        }
        if next.is_empty() {
            return None;
        }
        next.sort_unstable();
        next.dedup();
        places = next;
    }
    places.last().copied()
}

/// Adds every place where the unit may have ended, if it begins at `at`.
fn after_unit(unit: &Unit, text: &[u8], at: usize, out: &mut Vec<usize>) {
    // Byte by byte: literal, escaped or percent-encoded each.
    let mut places = vec![at];
    for byte in &unit.bytes {
        let mut next = Vec::new();
        for place in &places {
            after_byte(*byte, text, *place, &mut next);
        }
        places = next;
    }
    out.extend(places);
    // The character as a whole: \u00e9, or a surrogate pair.
    let mut place = at;
    for code in &unit.utf16 {
        match unicode_escape(text, place) {
            Some((found, end)) if found == *code => place = end,
            _ => return,
        }
    }
    out.push(place);
}

fn after_byte(byte: u8, text: &[u8], at: usize, out: &mut Vec<usize>) {
    let Some(found) = text.get(at) else { return };
    if *found == byte {
        out.push(at + 1);
    }
    match *found {
        b'+' if byte == b' ' => out.push(at + 1),
        b'%' => {
            // %25 is an encoded percent sign, at any depth.
            let mut digits = at + 1;
            while text.get(digits..digits + 2) == Some(b"25") {
                if byte == b'%' {
                    out.push(digits + 2);
                }
                digits += 2;
            }
            if hex_pair(text, digits) == Some(byte) {
                out.push(digits + 2);
            }
        }
        b'\\' => {
            let run = text[at..]
                .iter()
                .take(BACKSLASHES)
                .take_while(|b| **b == b'\\')
                .count();
            if byte == b'\\' {
                // A doubled backslash is one backslash, at any depth.
                out.extend((at + 2)..=(at + run));
            }
            after_backslashes(byte, text, at + run, out);
        }
        _ => {}
    }
}

/// What may follow backslashes in place of `byte`.
fn after_backslashes(byte: u8, text: &[u8], at: usize, out: &mut Vec<usize>) {
    let Some(found) = text.get(at) else { return };
    let short = match byte {
        b'\n' => Some(b'n'),
        b'\r' => Some(b'r'),
        b'\t' => Some(b't'),
        0x07 => Some(b'a'),
        0x08 => Some(b'b'),
        0x0b => Some(b'v'),
        0x0c => Some(b'f'),
        0x1b => Some(b'e'),
        other if other.is_ascii_punctuation() || other == b' ' => Some(other),
        _ => None,
    };
    if short == Some(*found) {
        out.push(at + 1);
    }
    if matches!(found, b'x' | b'X') && hex_pair(text, at + 1) == Some(byte) {
        out.push(at + 3);
    }
    if let Some([a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7']) = text.get(at..at + 3)
        && (a - b'0') * 64 + (b - b'0') * 8 + (c - b'0') == byte
    {
        out.push(at + 3);
    }
}

/// A `\uXXXX` behind any number of backslashes, and where it ends.
fn unicode_escape(text: &[u8], at: usize) -> Option<(u16, usize)> {
    let run = text
        .get(at..)?
        .iter()
        .take(BACKSLASHES)
        .take_while(|byte| **byte == b'\\')
        .count();
    let digits = at + run + 1;
    if run == 0 || text.get(at + run) != Some(&b'u') {
        return None;
    }
    let (high, low) = (hex_pair(text, digits)?, hex_pair(text, digits + 2)?);
    Some((u16::from_be_bytes([high, low]), digits + 4))
}

fn hex_pair(text: &[u8], at: usize) -> Option<u8> {
    let digit = |place: usize| {
        text.get(place)
            .and_then(|byte| char::from(*byte).to_digit(16))
            .and_then(|digit| u8::try_from(digit).ok())
    };
    Some(digit(at)? << 4 | digit(at + 1)?)
}

fn hex_end(secret: &[u8], text: &[u8], at: usize) -> Option<usize> {
    let mut place = at;
    for (index, byte) in secret.iter().enumerate() {
        if index > 0 {
            place = after_gap(text, place, b" \t:,");
        }
        if hex_pair(text, place) != Some(*byte) {
            return None;
        }
        place += 2;
    }
    Some(place)
}

fn base64_end(core: &[u8], text: &[u8], at: usize) -> Option<usize> {
    let mut place = at;
    for (index, sextet) in core.iter().enumerate() {
        if index > 0 {
            place = after_gap(text, place, b"");
        }
        place = base64_digit_end(*sextet, text, place)?;
    }
    Some(place)
}

/// One digit in either alphabet, escaped or percent-encoded where that occurs.
fn base64_digit_end(digit: u8, text: &[u8], at: usize) -> Option<usize> {
    let found = *text.get(at)?;
    let in_either_alphabet = match digit {
        b'+' => found == b'+' || found == b'-',
        b'/' => found == b'/' || found == b'_',
        other => found == other,
    };
    if in_either_alphabet {
        return Some(at + 1);
    }
    match (digit, found) {
        (b'+' | b'/', b'%') if hex_pair(text, at + 1) == Some(digit) => Some(at + 3),
        (b'/', b'\\') if text.get(at + 1) == Some(&b'/') => Some(at + 2),
        _ => None,
    }
}

/// Skips line breaks, plain or escaped, and the given separators: encoders wrap
/// long texts.
fn after_gap(text: &[u8], at: usize, separators: &[u8]) -> usize {
    let mut place = at;
    while let Some(byte) = text.get(place) {
        if matches!(byte, b'\n' | b'\r') || separators.contains(byte) {
            place += 1;
        } else if *byte == b'\\' {
            let run = text[place..]
                .iter()
                .take(BACKSLASHES)
                .take_while(|b| **b == b'\\')
                .count();
            match text.get(place + run) {
                Some(b'n' | b'r') => place += run + 1,
                _ => break,
            }
        } else {
            break;
        }
    }
    place
}
