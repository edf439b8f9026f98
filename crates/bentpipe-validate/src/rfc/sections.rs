//! The text of an RFC as sections of words.

/// A section's number, such as `3.10.7.4` or `A.1`; empty for the text before the first section.
pub(super) type Number = Vec<u32>;

/// Appendix A is section 1000, so that it follows all others.
const APPENDICES: u32 = 1000;

/// Reads `3.10.7.4`, `A.1`.
pub(super) fn number(text: &str) -> Option<Number> {
    let mut parts = text.trim_end_matches('.').split('.');
    let first = parts.next()?;
    let mut number = match first.as_bytes() {
        [letter @ b'A'..=b'Z'] => vec![APPENDICES + u32::from(letter - b'A')],
        _ => vec![plain(first)?],
    };
    for part in parts {
        number.push(plain(part)?);
    }
    Some(number)
}

fn plain(text: &str) -> Option<u32> {
    text.parse().ok().filter(|n| (1..APPENDICES).contains(n) && !text.starts_with(['+', '0']))
}

/// Writes a number as the RFC does.
pub(super) fn name(number: &[u32]) -> String {
    let part = |&n: &u32| match u8::try_from(n.wrapping_sub(APPENDICES)) {
        Ok(letter) => char::from(b'A' + letter).to_string(),
        Err(_) => n.to_string(),
    };
    number.iter().map(part).collect::<Vec<_>>().join(".")
}

/// True if section `next` can follow section `current`: its first subsection, or the next section of its level or of
/// one above.
fn follows(current: &[u32], next: &[u32]) -> bool {
    let Some((last, parents)) = next.split_last() else { return false };
    if current == parents {
        return *last == 1;
    }
    let same_level = current.get(..next.len()).and_then(<[u32]>::split_last);
    let Some((before, above)) = same_level else { return false };
    above == parents && (*last == before + 1 || (parents.is_empty() && *before < APPENDICES && *last == APPENDICES))
}

/// The number in a line that may begin a section. `is_alone`: no text is directly above or below it.
///
/// Chapter numbers are at the margin, or in the middle of the line before a title in capitals (RFC 793); otherwise
/// they number a list. `(5.5)` of RFC 6298 is a section too.
fn heading(line: &str, is_alone: bool) -> Option<Number> {
    let is_indented = line.starts_with(' ');
    let line = line.trim();
    let appendix = line.strip_prefix("APPENDIX ").or_else(|| line.strip_prefix("Appendix ").filter(|_| !is_indented));
    let line = appendix.unwrap_or(line);
    let (first, title) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let title = title.trim();
    // Lines of a table of contents end with a page number.
    let has_page = title.ends_with(|c: char| c.is_ascii_digit()) && (title.contains("..") || title.contains(". ."));
    if has_page || title.starts_with(|c: char| !(c.is_ascii_alphanumeric() || "\"'<[(".contains(c))) {
        return None;
    }
    let bare = first.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).filter(|bare| bare.contains('.'));
    let number = number(bare.unwrap_or(first).trim_end_matches(':'))?;
    let is_chapter = number.len() == 1;
    let is_section = match appendix {
        Some(_) => true,
        None if title.is_empty() => !is_chapter,
        // "A. Author" is a name.
        None if is_chapter && number[0] >= APPENDICES => !is_indented && first.ends_with('.'),
        None if is_chapter && is_indented => is_alone && title.chars().all(|c| c.is_ascii_uppercase() || c == ' '),
        None => true,
    };
    is_section.then_some(number)
}

/// True if a line is the header or footer of a page.
fn is_margin(line: &str) -> bool {
    let (line, bytes) = (line.trim_end(), line.as_bytes());
    let is_foot = line.ends_with(']') && line.contains("[Page ");
    // "RFC 6298          Computing TCP's Retransmission Timer         June 2011"
    let ends_in_year = line.ends_with(|c: char| c.is_ascii_digit());
    let is_head =
        line.starts_with("RFC ") && bytes.get(4).is_some_and(u8::is_ascii_digit) && line.len() > 40 && ends_in_year;
    is_foot || is_head
}

/// Splits a text into its sections. Subsections are separate, not part of their section.
pub(super) fn divide(text: &str) -> Vec<(Number, Vec<String>)> {
    let mut sections: Vec<(Number, Vec<&str>)> = vec![(Number::new(), Vec::new())];
    let lines: Vec<&str> = text.lines().flat_map(|line| line.split('\x0c')).collect();
    let is_blank = |at: Option<usize>| at.and_then(|at| lines.get(at)).is_none_or(|line| line.trim().is_empty());
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| !is_margin(line)) {
        let (current, words) = sections.last_mut().expect("the list is not empty");
        let is_alone = is_blank(at.checked_sub(1)) && is_blank(Some(at + 1));
        match heading(line, is_alone).filter(|next| follows(current, next)) {
            // Titles may be quoted too; in RFC 6298 the title is the text.
            Some(next) => sections.push((next, vec![line])),
            None => words.push(line),
        }
    }
    sections.into_iter().map(|(number, lines)| (number, words(&lines.join("\n")))).collect()
}

/// The words of a text, without quotation marks and punctuation around them, without names of requirements, and with
/// words rejoined that a line break splits at a hyphen or slash.
pub(super) fn words(text: &str) -> Vec<String> {
    let around = |c: char| ".,;:()[]{}\"'`*_\u{201c}\u{201d}\u{2018}\u{2019}\u{feff}".contains(c);
    let mut words: Vec<String> = Vec::new();
    let mut is_divided = false;
    for line in text.lines() {
        let count = words.len();
        for word in line.split_whitespace() {
            match words.last_mut().filter(|_| is_divided) {
                Some(last) => last.push_str(word),
                None => words.push(word.to_owned()),
            }
            is_divided = false;
        }
        let end = words.last().filter(|_| words.len() > count).and_then(|word| word.strip_suffix(['-', '/']));
        is_divided |= end.is_some_and(|word| word.ends_with(char::is_alphanumeric));
    }
    let words = words.iter().map(|word| word.trim_matches(around).to_owned());
    words.filter(|word| !word.is_empty() && !is_label(word)).collect()
}

/// True if a word is the name of a requirement, such as `MUST-21`: RFC 9293 has them inside sentences.
fn is_label(word: &str) -> bool {
    let (kind, number) = word.split_once('-').unwrap_or_default();
    ["MUST", "SHLD", "MAY", "REC"].contains(&kind) && number.bytes().all(|digit| digit.is_ascii_digit())
}
