//! Known answers: vectors of cacophony (github.com/haskell-cryptography/cacophony, `vectors/cacophony.txt`), in the public
//! domain. Both ends run through [`Handshake`]; the keys of [`Handshake::split`] go on to [`Key`], as a session's do.

use super::super::cipher::{Cipher as DataCipher, Key};
use super::*;

struct Vector {
    pattern: &'static str,
    preshared: Option<&'static str>,
    /// Payload and message.
    messages: &'static [(&'static str, &'static str)],
}

const PROLOGUE: &str = "4a6f686e2047616c74";
const STATICS: [&str; 2] = [
    "e61ef9919cde45dd5f82166404bd08e38bceb5dfdfded0a34c8df7ed542214d1",
    "4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893",
];
const EPHEMERALS: [&str; 2] = [
    "893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a",
    "bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b",
];
const RESPONDER: &str = "31e0303fd6418d2f8c0e78b91f22e8caed0fbe48656dcf4767e4834f701b8f62";

const VECTORS: [Vector; 2] = [
    Vector {
        pattern: "Noise_IK_25519_ChaChaPoly_BLAKE2s",
        preshared: None,
        messages: &[
            (
                "4c756477696720766f6e204d69736573",
                "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c79440b03ddc7aac5123d06a1b23b71670e32e76c28239a7ca4ac8f784de7e44c1adbfc6e83fef7352a58d9d56157400c0a737b1d171ce368229c7b752ac25b8faf4eca690f6d896f543be02c996ab2b86b76",
            ),
            (
                "4d757272617920526f746862617264",
                "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843d9b5a8927f0ac9655ef76833bc7e5561f42e691ac8404efd6fbd6308b6a27c",
            ),
            ("462e20412e20486179656b", "2c256ed08fcd08c2980f954ee4beaccb61c9581340f5dd2fd1cf3b"),
            ("4361726c204d656e676572", "d6033f70eee20945c7c9dba304e397ee3b284ff5e00fd9efb095d3"),
        ],
    },
    Vector {
        pattern: PATTERN,
        preshared: Some("54686973206973206d7920417573747269616e20706572737065637469766521"),
        messages: &[
            (
                "4c756477696720766f6e204d69736573",
                "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944001e21de9f98ddd8e2ad57527207feb56253c9c94a9e496782ecfcb2a75fbcaf1b52948cc48daefe660c62119ab5000980c84831215f2441eba616548e832985464cf17e51ee93109008399a21f7e13f",
            ),
            (
                "4d757272617920526f746862617264",
                "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843cb765f2caef0751b8f007572dab0322217755c0632f365717edbf34d33e87a",
            ),
            ("462e20412e20486179656b", "8153ca9833bc3c1b91a7e66e5f4d4f5b59bf9e64c2f20d15f0bba7"),
            ("4361726c204d656e676572", "07af0c9c86e1b4e80f36b04ff7688d51141af3debd0332f0a705ef"),
        ],
    },
];

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..][..2], 16).expect("hexadecimal")).collect()
}

fn key(hex: &str) -> [u8; 32] {
    bytes(hex).try_into().expect("32 bytes")
}

#[test]
fn the_vectors_of_cacophony() {
    for Vector { pattern, preshared, messages } in VECTORS {
        let prologue = bytes(PROLOGUE);
        let preshared = preshared.map(|hex| PresharedKey(std::sync::Arc::new(Zeroizing::new(key(hex)))));
        let responder = PublicKey(key(RESPONDER));
        let mut ends = [0, 1].map(|side| {
            let private = PrivateKey::fill(|secret| {
                secret.copy_from_slice(&key(STATICS[side]));
                Ok(())
            });
            Handshake::new(&Parties {
                pattern,
                prologue: &prologue,
                private: &private.expect("a key"),
                peer: (side == 0).then_some(&responder),
                preshared: preshared.as_ref(),
                ephemeral: Some(&key(EPHEMERALS[side])),
            })
        });
        for (number, (payload, message)) in messages[..2].iter().enumerate() {
            let (mut out, mut read) = ([0; 256], [0; 256]);
            let length = ends[number].write(&bytes(payload), &mut out).expect("there is room");
            assert_eq!(out[..length], bytes(message), "{pattern} message {number}");
            let length = ends[1 - number].read(&out[..length], &mut read).expect("it is authentic");
            assert_eq!(read[..length], bytes(payload));
        }
        assert_eq!(ends[0].peer(), Some(responder));
        let keys = ends.map(|end| end.split().map(|key| Key::new(DataCipher::ChaCha20Poly1305, &key)));
        for (number, (payload, message)) in messages[2..].iter().enumerate() {
            let mut sealed = [bytes(payload), vec![0; TAG]].concat();
            keys[number][0].seal(0, &[], &mut sealed).expect("there is room");
            assert_eq!(sealed, bytes(message), "{pattern} message {}", number + 2);
            assert_eq!(keys[1 - number][1].open(0, &[], &mut sealed), Some(sealed.len() - TAG));
        }
    }
}
