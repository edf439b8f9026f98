//! Fields of comma-separated values (RFC 4180).

/// A field: quoted if it has a comma, a quote or a line break (RFC 4180 §2).
pub fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}
