//! The sealed bytes of a backup.
//!
//! File: magic, PBKDF2 iterations (u32, big endian), salt (16 bytes), nonce (12 bytes), then AES-256-GCM over
//! [length of the key (u32), key PEM, store]; everything before it is authenticated. The key is PBKDF2-HMAC-SHA256 of the
//! passphrase (iterations by OWASP's Password Storage Cheat Sheet, 2023). Called by `backup`. Pure, but for salt and nonce.

use super::BackupError;
use ring::{aead, pbkdf2};
use std::num::NonZeroU32;
use std::path::Path;

/// Iterations, the work of a guess: a file with fewer is not ours.
pub(super) const ITERATIONS: u32 = 600_000;
/// Nor is one with more: opening it must not take for ever.
const ITERATIONS_MOST: u32 = 10_000_000;
pub(super) const MAGIC: &[u8; 16] = b"drover-backup-1\n";
const SALT: usize = 16;
const NONCE: usize = 12;
pub(super) const HEADER: usize = MAGIC.len() + 4 + SALT + NONCE;

fn cipher(
    passphrase: &str,
    salt: &[u8],
    iterations: u32,
) -> Result<aead::LessSafeKey, BackupError> {
    let iterations = NonZeroU32::new(iterations).ok_or(BackupError::Crypto)?;
    let mut key = [0; 32];
    let algorithm = pbkdf2::PBKDF2_HMAC_SHA256;
    pbkdf2::derive(algorithm, iterations, salt, passphrase.as_bytes(), &mut key);
    aead::UnboundKey::new(&aead::AES_256_GCM, &key)
        .map(aead::LessSafeKey::new)
        .map_err(|_| BackupError::Crypto)
}

pub(super) fn seal(
    key: &[u8],
    store: &[u8],
    passphrase: &str,
    iterations: u32,
) -> Result<Vec<u8>, BackupError> {
    let salt = rand::random::<[u8; SALT]>();
    let nonce = rand::random::<[u8; NONCE]>();
    let header = [&MAGIC[..], &iterations.to_be_bytes(), &salt, &nonce].concat();
    let length = u32::try_from(key.len()).map_err(|_| BackupError::Crypto)?;
    let mut body = [&length.to_be_bytes()[..], key, store].concat();
    // Salt, and with it the key, is new for every file: the nonce is used once.
    cipher(passphrase, &salt, iterations)?
        .seal_in_place_append_tag(
            aead::Nonce::assume_unique_for_key(nonce),
            aead::Aad::from(&header),
            &mut body,
        )
        .map_err(|_| BackupError::Crypto)?;
    Ok([header, body].concat())
}

pub(super) fn unseal(
    path: &Path,
    sealed: &[u8],
    passphrase: &str,
    least: u32,
) -> Result<(Vec<u8>, Vec<u8>), BackupError> {
    let foreign = || BackupError::NotABackup {
        path: path.to_owned(),
    };
    let broken = || BackupError::Sealed {
        path: path.to_owned(),
    };
    let (header, body) = sealed.split_at_checked(HEADER).ok_or_else(foreign)?;
    let rest = header.strip_prefix(&MAGIC[..]).ok_or_else(foreign)?;
    let (iterations, rest) = rest.split_first_chunk::<4>().ok_or_else(foreign)?;
    let (salt, nonce) = rest.split_at(SALT);
    let iterations = u32::from_be_bytes(*iterations);
    if !(least..=ITERATIONS_MOST).contains(&iterations) {
        return Err(foreign());
    }
    let nonce = aead::Nonce::try_assume_unique_for_key(nonce).map_err(|_| foreign())?;
    let mut body = body.to_vec();
    let plain = cipher(passphrase, salt, iterations)?
        .open_in_place(nonce, aead::Aad::from(header), &mut body)
        .map_err(|_| broken())?;
    let (length, rest) = plain.split_first_chunk::<4>().ok_or_else(broken)?;
    let length = usize::try_from(u32::from_be_bytes(*length)).map_err(|_| broken())?;
    let (key, store) = rest.split_at_checked(length).ok_or_else(broken)?;
    Ok((key.to_vec(), store.to_vec()))
}
