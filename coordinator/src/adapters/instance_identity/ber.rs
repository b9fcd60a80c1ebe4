//! BER to DER: EC2's metadata service gives its signatures in BER with indefinite lengths and an OCTET STRING in pieces,
//! and what reads the structure takes DER only.
//!
//! Called for signatures of a bounded size. Pure; never looks at what the values mean.

/// Nesting that is followed; a signature needs 9 levels.
const DEPTH: u32 = 16;

const OCTET_STRING: u8 = 0x04;
const CONSTRUCTED: u8 = 0x20;
const HIGH_TAG: u8 = 0x1f;
const UNIVERSAL: u8 = 0xc0;
const INDEFINITE: u8 = 0x80;

/// Why bytes are no single BER element that has a DER form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BerError {
    /// It ends within an element.
    #[error("it is cut off")]
    CutOff,
    /// There is more behind the element.
    #[error("something follows it")]
    Trailing,
    /// Nested too deeply.
    #[error("it is nested too deeply")]
    TooDeep,
    /// A form that no signature needs.
    #[error("it has a form that no signature needs")]
    Form,
}

/// The DER of one BER element.
///
/// # Errors
/// See [`BerError`].
pub fn to_der(ber: &[u8]) -> Result<Vec<u8>, BerError> {
    let mut rest = ber;
    let mut der = Vec::with_capacity(ber.len());
    element(&mut rest, DEPTH, &mut der)?;
    if rest.is_empty() {
        Ok(der)
    } else {
        Err(BerError::Trailing)
    }
}

fn element(rest: &mut &[u8], depth: u32, der: &mut Vec<u8>) -> Result<(), BerError> {
    let depth = depth.checked_sub(1).ok_or(BerError::TooDeep)?;
    let tag = byte(rest)?;
    if tag & HIGH_TAG == HIGH_TAG {
        return Err(BerError::Form);
    }
    let mut content = Vec::new();
    match (length(rest)?, tag & CONSTRUCTED != 0) {
        (Some(length), false) => {
            content.extend_from_slice(take(rest, length)?);
        }
        (Some(length), true) => {
            let mut inner = take(rest, length)?;
            while !inner.is_empty() {
                part(&mut inner, tag, depth, &mut content)?;
            }
        }
        (None, true) => {
            while !rest.starts_with(&[0, 0]) {
                part(rest, tag, depth, &mut content)?;
            }
            take(rest, 2)?;
        }
        (None, false) => return Err(BerError::Form),
    }
    // A string in pieces is one string in DER.
    let tag = if is_pieces(tag) {
        tag & !CONSTRUCTED
    } else {
        tag
    };
    der.push(tag);
    put_length(content.len(), der);
    der.extend_from_slice(&content);
    Ok(())
}

/// One element within another: of a string in pieces only what it holds.
fn part(rest: &mut &[u8], outer: u8, depth: u32, content: &mut Vec<u8>) -> Result<(), BerError> {
    if !is_pieces(outer) {
        return element(rest, depth, content);
    }
    let mut piece = Vec::new();
    element(rest, depth, &mut piece)?;
    let mut piece = piece.as_slice();
    if byte(&mut piece)? != OCTET_STRING {
        return Err(BerError::Form);
    }
    length(&mut piece)?;
    content.extend_from_slice(piece);
    Ok(())
}

/// A string type that is constructed. Of those only OCTET STRING is put together.
fn is_pieces(tag: u8) -> bool {
    tag & UNIVERSAL == 0 && tag == OCTET_STRING | CONSTRUCTED
}

fn byte(rest: &mut &[u8]) -> Result<u8, BerError> {
    let (first, after) = rest.split_first().ok_or(BerError::CutOff)?;
    *rest = after;
    Ok(*first)
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Result<&'a [u8], BerError> {
    let (taken, after) = rest.split_at_checked(count).ok_or(BerError::CutOff)?;
    *rest = after;
    Ok(taken)
}

/// `None`: indefinite.
fn length(rest: &mut &[u8]) -> Result<Option<usize>, BerError> {
    let first = byte(rest)?;
    if first == INDEFINITE {
        return Ok(None);
    }
    if first & INDEFINITE == 0 {
        return Ok(Some(first.into()));
    }
    let bytes = take(rest, usize::from(first & !INDEFINITE))?;
    let mut length = 0_usize;
    for byte in bytes {
        length = length.checked_mul(256).ok_or(BerError::CutOff)? + usize::from(*byte);
    }
    Ok(Some(length))
}

fn put_length(length: usize, der: &mut Vec<u8>) {
    match u8::try_from(length) {
        Ok(short) if short & INDEFINITE == 0 => der.push(short),
        _ => {
            let bytes = length.to_be_bytes();
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            let bytes = &bytes[zeros..];
            // At most 8.
            der.push(INDEFINITE | u8::try_from(bytes.len()).unwrap_or(0));
            der.extend_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indefinite_lengths_and_strings_in_pieces_become_der() {
        for (ber, der) in [
            (
                &b"\x30\x80\x02\x01\x01\x00\x00"[..],
                &b"\x30\x03\x02\x01\x01"[..],
            ),
            (b"\x24\x80\x04\x01a\x04\x02bc\x00\x00", b"\x04\x03abc"),
            (
                b"\x24\x80\x24\x80\x04\x01a\x00\x00\x04\x00\x00\x00",
                b"\x04\x01a",
            ),
            (b"\x04\x81\x01a", b"\x04\x01a"),
            (b"\xa0\x80\x30\x80\x00\x00\x00\x00", b"\xa0\x02\x30\x00"),
            (b"\x05\x00", b"\x05\x00"),
        ] {
            assert_eq!(to_der(ber).as_deref(), Ok(der), "{ber:x?}");
        }
        let long = [&[0x04, 0x82, 0x01, 0x00][..], &[7; 256]].concat();
        assert_eq!(to_der(&long), Ok(long.clone()));
    }

    #[test]
    fn what_is_no_single_element_is_refused() {
        for (ber, why) in [
            (&b""[..], BerError::CutOff),
            (b"\x30", BerError::CutOff),
            (b"\x30\x80\x02\x01\x01", BerError::CutOff),
            (b"\x04\x84\xff\xff\xff\xffa", BerError::CutOff),
            (b"\x04\xff", BerError::CutOff),
            (b"\x04\x00\x00", BerError::Trailing),
            (b"\x04\x80\x00\x00", BerError::Form),
            (b"\x1f\x01\x00", BerError::Form),
            (b"\x24\x03\x02\x01\x01", BerError::Form),
        ] {
            assert_eq!(to_der(ber), Err(why), "{ber:x?}");
        }
        assert_eq!(to_der(&[0x30, 0x80].repeat(40)), Err(BerError::TooDeep));
    }
}
