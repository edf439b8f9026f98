//! Errors in a text, with their positions.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

/// A text from which values are read: the file, an override, a trace of bursts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its name in errors.
    pub name: Arc<str>,
    /// Its content.
    pub text: Arc<str>,
}

/// A range of one of the sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// Number of the source, from [`Problems::add_source`].
    pub source: usize,
    /// First byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

impl Span {
    /// The bytes `range` of a source.
    pub fn new(source: usize, range: Range<usize>) -> Self {
        Span { source, start: range.start, end: range.end.max(range.start) }
    }
}

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// The file, or "--set" for an override.
    pub source: String,
    /// Line, from 1; 0 for the whole source (a file that cannot be read).
    pub line: usize,
    /// Column in characters, from 1; 0 for the whole source.
    pub column: usize,
    /// Path of the key, as for `--set`: `links.sat.delay`. Empty if there is none (a syntax error).
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// What was expected.
    pub expected: Option<String>,
    /// A hint: "did you mean `delay`?".
    pub help: Option<String>,
    /// True for a warning: the text is valid, but should be changed.
    pub is_warning: bool,
    text: Arc<str>,
    range: Range<usize>,
}

impl ScenarioError {
    /// An error without a position.
    pub fn without_place(source: &str, message: String) -> Self {
        ScenarioError {
            source: source.to_owned(),
            line: 0,
            column: 0,
            key: String::new(),
            message,
            expected: None,
            help: None,
            is_warning: false,
            text: Arc::from(""),
            range: 0..0,
        }
    }

    fn at(source: &Source, span: Span, mistake: Mistake) -> Self {
        if mistake.is_whole {
            let error = Self::without_place(&source.name, mistake.message);
            return ScenarioError { key: mistake.key, expected: mistake.expected, help: mistake.help, ..error };
        }
        let text = &source.text;
        let start = floor_boundary(text, span.start);
        let end = floor_boundary(text, span.end).max(start);
        let before = &text[..start];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        ScenarioError {
            source: source.name.to_string(),
            line: 1 + before.matches('\n').count(),
            column: 1 + before[line_start..].chars().count(),
            key: mistake.key,
            message: mistake.message,
            expected: mistake.expected,
            help: mistake.help,
            is_warning: false,
            text: text.clone(),
            range: start..end,
        }
    }

    /// The same error in the text without `prefix`, under another name. This is the text that the user typed, if the prefix was added
    /// to it.
    pub fn without_prefix(mut self, prefix: &str, source: &str) -> Self {
        let Some(text) = self.text.strip_prefix(prefix) else { return self };
        let [start, end] = [self.range.start, self.range.end].map(|at| at.saturating_sub(prefix.len()));
        if self.line == 1 {
            self.column = self.column.saturating_sub(prefix.chars().count()).max(1);
        }
        (self.text, self.range, self.source) = (Arc::from(text), start..end, source.to_owned());
        self
    }

    /// Formats the error like a compiler, with the line and a caret; `colour` for a terminal.
    pub fn render(&self, colour: bool) -> String {
        let label = self.expected.as_ref().map(|expected| format!("expected {expected}"));
        let level = if self.is_warning { Level::WARNING } else { Level::ERROR };
        let mut report = if self.line == 0 && self.source.is_empty() {
            Group::with_title(level.primary_title(self.message.as_str()))
        } else if self.line == 0 {
            Group::with_title(level.primary_title(format!("{}: {}", self.source, self.message)))
        } else {
            // The renderer gets only the error's lines: it would search the whole text for them, for each error.
            let text = &*self.text;
            let first = text[..self.range.start].rfind('\n').map_or(0, |at| at + 1);
            let most = floor_boundary(text, self.range.end + MAX_SHOWN);
            let end = text[self.range.end..most].find('\n').map_or(most, |at| self.range.end + at + 1);
            let annotation =
                AnnotationKind::Primary.span(self.range.start - first..self.range.end - first).label(label);
            let snippet = Snippet::source(&text[first..end]).line_start(self.line);
            level
                .primary_title(self.message.as_str())
                .element(snippet.path(self.source.as_str()).annotation(annotation))
        };
        if !self.key.is_empty() {
            report = report.element(Level::NOTE.with_name("key").message(self.key.as_str()));
        }
        if let Some(help) = &self.help {
            report = report.element(Level::HELP.message(help.as_str()));
        }
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        renderer.decor_style(DecorStyle::Ascii).render(&[report])
    }
}

/// The last character boundary at or before `at`.
fn floor_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for ScenarioError {}

/// All errors of a file, or all warnings, ordered by position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioErrors(pub Vec<ScenarioError>);

impl ScenarioErrors {
    /// Formats all errors like a compiler; `colour` for a terminal.
    pub fn render(&self, colour: bool) -> String {
        let rendered: Vec<_> = self.0.iter().map(|error| error.render(colour)).collect();
        rendered.join("\n\n")
    }
}

impl fmt::Display for ScenarioErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for ScenarioErrors {}

/// An error whose position is not yet known.
#[derive(Clone, Debug, Default)]
pub struct Mistake {
    /// Path of the key, as for `--set`.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// What was expected.
    pub expected: Option<String>,
    /// A hint.
    pub help: Option<String>,
    /// True if it is about the whole text: no line is shown.
    pub(crate) is_whole: bool,
}

impl Mistake {
    /// A mistake at `key`.
    pub fn new(key: &str, message: impl Into<String>) -> Self {
        Mistake { key: key.to_owned(), message: message.into(), ..Mistake::default() }
    }

    /// The same with what was expected.
    pub fn expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = Some(expected.into());
        self
    }

    /// The same with a hint.
    pub fn help(mut self, help: impl Into<Option<String>>) -> Self {
        self.help = help.into();
        self
    }
}

/// Maximum bytes of a line that are shown after a mistake: a file of another kind may be one line.
const MAX_SHOWN: usize = 500;

/// Maximum number of errors that are reported for one text: a file of another kind has one in each line.
const MAX_ERRORS: usize = 20;

/// The mistakes found so far, each once.
#[derive(Clone, Debug, Default)]
struct Found {
    all: Vec<(Span, Mistake)>,
    known: BTreeSet<(Span, String)>,
}

impl Found {
    /// Adds a mistake, unless there is one at this position with the same `mark`.
    fn add(&mut self, span: Span, mark: &str, mistake: Mistake) {
        if self.known.insert((span, mark.to_owned())) {
            self.all.push((span, mistake));
        }
    }

    /// The first of them, in order of their positions, and how many more there are.
    fn errors(mut self, sources: &[Source], is_warning: bool) -> ScenarioErrors {
        self.all.sort_by_key(|(span, _)| *span);
        let rest = self.all.split_off(self.all.len().min(MAX_ERRORS)).len();
        let place = |(span, mistake): (Span, Mistake)| ScenarioError::at(&sources[span.source], span, mistake);
        let mut errors: Vec<_> = self.all.into_iter().map(place).collect();
        if rest > 0 {
            let (what, s) = (if is_warning { "warning" } else { "error" }, if rest == 1 { "" } else { "s" });
            errors.push(ScenarioError::without_place("", format!("and {rest} more {what}{s}")));
        }
        errors.iter_mut().for_each(|error| error.is_warning = is_warning);
        ScenarioErrors(errors)
    }
}

/// The sources, and the errors found in them so far.
#[derive(Clone, Debug)]
pub struct Problems {
    document: &'static str,
    /// The texts, by their numbers.
    pub sources: Vec<Source>,
    found: Found,
    warnings: Found,
}

impl Problems {
    /// No errors yet; `document` is the name for the whole text, such as "scenario".
    pub fn of(document: &'static str) -> Problems {
        Problems { document, sources: Vec::new(), found: Found::default(), warnings: Found::default() }
    }

    /// The name for the whole text.
    pub fn document(&self) -> &'static str {
        self.document
    }

    /// Adds a source; its number goes into spans. A file that both directions of a link name is one source, so that its
    /// mistakes are reported once.
    pub fn add_source(&mut self, name: &str, text: &str) -> usize {
        let same = |source: &Source| *source.name == *name && *source.text == *text;
        if let Some(number) = self.sources.iter().position(same) {
            return number;
        }
        self.sources.push(Source { name: Arc::from(name), text: Arc::from(text) });
        self.sources.len() - 1
    }

    /// The sources, without the errors found in them.
    pub(crate) fn adopt(mut self) -> Problems {
        (self.found, self.warnings) = Default::default();
        self
    }

    /// Records a mistake. Two at one position with the same message count as one.
    pub fn add(&mut self, span: Span, mistake: Mistake) {
        let message = mistake.message.clone();
        self.found.add(span, &message, mistake);
    }

    /// Records a warning. A key may be read several times; the warning is recorded once.
    pub fn warn(&mut self, span: Span, mistake: Mistake) {
        self.warnings.add(span, "", mistake);
    }

    /// The warnings so far.
    pub fn take_warnings(&mut self) -> ScenarioErrors {
        core::mem::take(&mut self.warnings).errors(&self.sources, true)
    }

    /// The number of errors so far.
    pub fn count(&self) -> usize {
        self.found.all.len()
    }

    /// Returns the value, unless there were mistakes.
    pub fn finish<T>(self, value: Option<T>) -> Result<T, ScenarioErrors> {
        match value {
            Some(value) if self.count() == 0 => Ok(value),
            _ => Err(self.found.errors(&self.sources, false)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The errors of a text of `lines` lines with a mistake in each, recorded twice and in reverse.
    fn errors(lines: usize) -> ScenarioErrors {
        let mut problems = Problems::of("text");
        let text = "wrong\n".repeat(lines);
        let source = problems.add_source("t.toml", &text);
        for line in (0..lines).rev() {
            let span = Span::new(source, line * 6..line * 6 + 5);
            problems.add(span, Mistake::new("", "no"));
            problems.add(span, Mistake::new("", "no"));
        }
        problems.finish::<()>(None).expect_err("there is no value")
    }

    #[test]
    fn a_file_that_is_read_twice_has_its_mistakes_once() {
        let mut problems = Problems::of("text");
        for _ in 0..2 {
            let source = problems.add_source("a.trace", "wrong");
            problems.add(Span::new(source, 0..5), Mistake::new("", "no"));
        }
        let other = problems.add_source("b.trace", "wrong");
        problems.add(Span::new(other, 0..5), Mistake::new("", "no"));
        assert_eq!(problems.count(), 2);
    }

    #[test]
    fn the_first_errors_and_how_many_more() {
        assert_eq!(errors(MAX_ERRORS).0.len(), MAX_ERRORS);
        let many = errors(100_000);
        assert_eq!(many.0.len(), MAX_ERRORS + 1);
        assert_eq!((many.0[0].line, many.0[MAX_ERRORS - 1].line), (1, MAX_ERRORS));
        let text = many.render(false);
        assert!(text.ends_with("\n\nerror: and 99980 more errors"), "{text}");
        assert!(text.contains("--> t.toml:20:1\n   |\n20 | wrong\n   | ^^^^^"), "{text}");
    }
}
