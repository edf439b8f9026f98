//! Quotations of RFCs in our files, with their positions and sections.

use std::path::Path;

use super::sections::{self, Number};

/// A quotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Quotation {
    pub(super) line: usize,
    pub(super) rfc: u32,
    pub(super) sections: Vec<Number>,
    pub(super) text: String,
}

/// An RFC and its sections; `None` for another document.
type Named = Option<(u32, Vec<Number>)>;

/// Consecutive lines that belong together, with the number of the first.
struct Block {
    line: usize,
    text: String,
    /// True if every quotation after a reference belongs to it; false if only one directly after it does.
    all: bool,
}

/// Finds the quotations of a file.
pub(super) fn find(path: &Path, content: &str) -> Vec<Quotation> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let blocks = match path.extension().and_then(|end| end.to_str()) {
        Some("rs") => comments(content),
        Some("pkt") => opening(content),
        Some("md") => paragraphs(content),
        Some("toml") => return expectations(content),
        _ => Vec::new(),
    };
    // Tables of docs/specs/rfcN.md name sections of their own RFC only by number.
    let own = name.strip_prefix("rfc").and_then(|name| name.strip_suffix(".md")).and_then(|n| n.parse().ok());
    blocks.iter().flat_map(|block| of_block(block, own)).collect()
}

fn blocks<'a>(content: &'a str, part: impl Fn(&'a str) -> Option<(&'a str, bool)>) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut kind = None;
    for (at, line) in content.lines().enumerate() {
        let found = part(line);
        match (found, blocks.last_mut()) {
            (Some((text, all)), Some(block)) if kind == Some(all) => {
                block.text.push('\n');
                block.text.push_str(text);
            }
            (Some((text, all)), _) => blocks.push(Block { line: at + 1, text: text.to_owned(), all }),
            (None, _) => {}
        }
        kind = found.map(|(_, all)| all);
    }
    blocks
}

fn comments(content: &str) -> Vec<Block> {
    blocks(content, |line| {
        let comment = line.trim_start().strip_prefix("//")?;
        match comment.strip_prefix('=') {
            Some(citation) => Some((citation, true)),
            None => Some((comment.trim_start_matches(['/', '!']), false)),
        }
    })
}

fn opening(content: &str) -> Vec<Block> {
    let end = content.lines().take_while(|line| line.starts_with("//")).map(|line| line.len() + 1).sum::<usize>();
    blocks(&content[..end.min(content.len())], |line| line.strip_prefix("//").map(|comment| (comment, true)))
}

/// The sentences of an expectation file of packet scripts: `rfc = '...'`, and below it `sentence = '...'`.
fn expectations(content: &str) -> Vec<Quotation> {
    let (mut found, mut current) = (Vec::new(), None);
    for (at, line) in content.lines().enumerate() {
        let value = |key: &str| {
            let value = line.strip_prefix(key)?.trim_start().strip_prefix('=')?.trim();
            let inner = value.get(1..value.len().saturating_sub(1))?;
            Some(inner.replace("\\\"", "\""))
        };
        if let Some(named) = value("rfc") {
            current = reference(&named, None).and_then(|(_, to)| to);
        } else if let (Some(text), Some((rfc, sections))) = (value("sentence"), current.clone()) {
            found.push(Quotation { line: at + 1, rfc, sections, text });
        }
    }
    found
}

fn paragraphs(content: &str) -> Vec<Block> {
    let rows = content.lines().enumerate().filter(|(_, line)| line.starts_with('|'));
    let rows = rows.map(|(at, line)| Block { line: at + 1, text: line.to_owned(), all: true });
    let is_text = |line: &str| !line.trim().is_empty() && !line.starts_with('|');
    rows.chain(blocks(content, |line| is_text(line).then_some((line, true)))).collect()
}

/// A reference at the beginning of `text`: its length and target.
fn reference(text: &str, own: Option<u32>) -> Option<(usize, Named)> {
    let (rfc, mut at) = match text.strip_prefix("RFC ") {
        Some(rest) => {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            (rest[..digits].parse().ok(), 4 + digits)
        }
        None if text.starts_with('§') => (own, 0),
        None => return None,
    };
    let mut sections = Vec::new();
    loop {
        let rest = &text[at..];
        let blank = rest.len() - rest.trim_start_matches([',', ' ', '\n']).len();
        let Some(number) = rest[blank..].strip_prefix('§') else { break };
        let length = number.bytes().take_while(|c| c.is_ascii_alphanumeric() || *c == b'.').count();
        let Some(section) = sections::number(&number[..length]) else { break };
        at += blank + '§'.len_utf8() + number[..length].trim_end_matches('.').len();
        sections.push(section);
    }
    if sections.is_empty() {
        return None;
    }
    Some((at, rfc.map(|rfc| (rfc, sections))))
}

fn of_block(block: &Block, own: Option<u32>) -> Vec<Quotation> {
    let text = block.text.replace(['\u{201c}', '\u{201d}'], "\"");
    let (mut found, mut at, mut current, mut behind) = (Vec::new(), 0, None, 0);
    while let Some(c) = text[at..].chars().next() {
        if let Some((length, to)) = reference(&text[at..], own) {
            at += length;
            (current, behind) = (to, at);
        } else if c == '"' {
            let Some(length) = text[at + 1..].find('"') else { break };
            let is_near = text[behind..at].chars().all(|c| " ,:(\n".contains(c));
            if let Some((rfc, sections)) = current.clone().filter(|_| block.all || is_near) {
                let line = block.line + text[..at].matches('\n').count();
                found.push(Quotation { line, rfc, sections, text: text[at + 1..at + 1 + length].to_owned() });
            }
            at += length + 2;
        } else {
            at += c.len_utf8();
        }
    }
    found
}
