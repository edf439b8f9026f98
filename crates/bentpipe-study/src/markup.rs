//! Text in HTML, XML and SVG.

/// Escapes all markup in a text, for elements and attributes. Characters that XML forbids become U+FFFD: a viewer refuses a
/// document that has one.
pub fn escaped(text: &str) -> String {
    let is_forbidden = |c: char| c.is_ascii_control() && !"\t\n\r\x7f".contains(c) || "\u{fffe}\u{ffff}".contains(c);
    let text: String = text.chars().map(|c| if is_forbidden(c) { '\u{fffd}' } else { c }).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_that_xml_forbids() {
        assert_eq!(escaped("<a b=\"c\"> & d"), "&lt;a b=&quot;c&quot;&gt; &amp; d");
        assert_eq!(escaped("\u{0}\u{8}\t\n\u{b}\u{c}\r\u{1b}\u{1f} ~\u{7f}é"), "��\t\n��\r�� ~\u{7f}é");
        assert_eq!(escaped("\u{fffd}\u{fffe}\u{ffff}\u{10000}"), "���\u{10000}");
    }
}
