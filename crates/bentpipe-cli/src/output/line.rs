//! A command line that a shell reads back as these words.

/// The line, in the words of a Unix shell or, on Windows, of its command prompt.
pub(crate) fn shell(command: &str, arguments: impl Iterator<Item = String>) -> String {
    let all: Vec<_> = std::iter::once(command.to_owned()).chain(arguments).collect();
    if cfg!(windows) {
        return all.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    }
    // Only a zero byte cannot be quoted, and no argument contains one.
    shlex::try_join(all.iter().map(String::as_str)).unwrap_or_else(|_| all.join(" "))
}

/// Quotes a word by the rules by which programs on Windows split their command line: a backslash before a quotation mark escapes it,
/// other backslashes are literal.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || r"-_./\:=,+@[]".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    let (mut text, mut backslashes) = ("\"".to_owned(), 0);
    for c in word.chars() {
        if c == '"' {
            // Doubles the backslashes before the mark, and adds the one that escapes it.
            text.push_str(&"\\".repeat(backslashes + 1));
        }
        backslashes = if c == '\\' { backslashes + 1 } else { 0 };
        text.push(c);
    }
    text.push_str(&"\\".repeat(backslashes));
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_windows_are_taken_apart_again() {
        let words = [
            (r"sub\small.toml", r"sub\small.toml"),
            ("links.sat.delay=40 ms", r#""links.sat.delay=40 ms""#),
            (r"C:\my folder\", r#""C:\my folder\\""#),
            (r#"say "yes""#, r#""say \"yes\"""#),
            (r#"a\"b"#, r#""a\\\"b""#),
            ("", r#""""#),
            ("a&b", r#""a&b""#),
        ];
        words.iter().for_each(|(word, line)| assert_eq!(quoted(word), *line));
    }
}
