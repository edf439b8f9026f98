//! Files of text that a user names.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Max length of a file: a day of a recorded rate has some 100 MB. A device such as `/dev/zero` has no end.
const MAX_BYTES: u64 = 1 << 28;

/// The text of a file.
///
/// # Errors
/// Fails if the file cannot be read, is no UTF-8 or has a zero byte, or is longer than 256 MiB. The message does not have the path.
pub fn read(path: &Path) -> io::Result<String> {
    from(File::open(path)?)
}

/// The same from an open file, such as standard input.
///
/// # Errors
/// As [`read`].
pub fn from(file: impl Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    if file.take(MAX_BYTES + 1).read_to_end(&mut bytes)? as u64 > MAX_BYTES {
        return Err(io::Error::new(ErrorKind::FileTooLarge, format!("longer than {} MiB", MAX_BYTES >> 20)));
    }
    let refused = |good: &[u8], why: &str| {
        let line = 1 + good.iter().filter(|&&byte| byte == b'\n').count();
        io::Error::new(ErrorKind::InvalidData, format!("line {line} is not text: {why}"))
    };
    if bytes.contains(&0) {
        let before = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
        return Err(refused(before, "it contains a zero byte"));
    }
    String::from_utf8(bytes)
        .map_err(|error| refused(&error.as_bytes()[..error.utf8_error().valid_up_to()], "expected UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_and_anything_else_is_said() {
        let said = |file: &mut dyn Read| from(file).map_err(|error| error.to_string());
        assert_eq!(said(&mut "ü\n".as_bytes()), Ok("ü\n".to_owned()));
        assert_eq!(said(&mut &b"a = 1\n\xff\xfe"[..]), Err("line 2 is not text: expected UTF-8".to_owned()));
        assert_eq!(said(&mut &b"a\nb\n\0"[..]), Err("line 3 is not text: it contains a zero byte".to_owned()));
        assert_eq!(said(&mut io::repeat(b'#')), Err("longer than 256 MiB".to_owned()));
        assert_eq!(said(&mut io::repeat(b'#').take(MAX_BYTES)).map(|text| text.len() as u64), Ok(MAX_BYTES));
        assert!(read(Path::new("/no/such/file")).is_err_and(|error| error.kind() == ErrorKind::NotFound));
    }
}
