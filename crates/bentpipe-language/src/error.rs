//! Errors in a text, with their positions.

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

    /// Formats the error like a compiler, with the line and a caret; `colour` for a terminal.
    pub fn render(&self, colour: bool) -> String {
        let label = self.expected.as_ref().map(|expected| format!("expected {expected}"));
        let level = if self.is_warning { Level::WARNING } else { Level::ERROR };
        let mut report = if self.line == 0 {
            Group::with_title(level.primary_title(format!("{}: {}", self.source, self.message)))
        } else {
            let annotation = AnnotationKind::Primary.span(self.range.clone()).label(label);
            level
                .primary_title(self.message.as_str())
                .element(Snippet::source(&*self.text).path(self.source.as_str()).annotation(annotation))
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

/// An error without its position yet.
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
}

impl Mistake {
    /// A mistake at `key`.
    pub fn new(key: &str, message: impl Into<String>) -> Self {
        Mistake { key: key.to_owned(), message: message.into(), expected: None, help: None }
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

/// The sources, and the errors found in them so far.
#[derive(Clone, Debug)]
pub struct Problems {
    document: &'static str,
    /// The texts, by their numbers.
    pub sources: Vec<Source>,
    found: Vec<(Span, ScenarioError)>,
    warnings: Vec<(Span, ScenarioError)>,
}

impl Problems {
    /// No errors yet; `document` is the name for the whole text, such as "scenario".
    pub fn of(document: &'static str) -> Problems {
        Problems { document, sources: Vec::new(), found: Vec::new(), warnings: Vec::new() }
    }

    /// The name for the whole text.
    pub fn document(&self) -> &'static str {
        self.document
    }

    /// Adds a source; its number goes into spans.
    pub fn add_source(&mut self, name: &str, text: &str) -> usize {
        self.sources.push(Source { name: Arc::from(name), text: Arc::from(text) });
        self.sources.len() - 1
    }

    /// The sources, without the errors found in them.
    pub(crate) fn adopt(mut self) -> Problems {
        self.found.clear();
        self.warnings.clear();
        self
    }

    /// Records a mistake. Two at one position with the same message count as one.
    pub fn add(&mut self, span: Span, mistake: Mistake) {
        let error = ScenarioError::at(&self.sources[span.source], span, mistake);
        if !self.found.iter().any(|(at, known)| *at == span && known.message == error.message) {
            self.found.push((span, error));
        }
    }

    /// Records a warning. A key may be read several times; the warning is recorded once.
    pub fn warn(&mut self, span: Span, mistake: Mistake) {
        if !self.warnings.iter().any(|(at, _)| *at == span) {
            let warning = ScenarioError::at(&self.sources[span.source], span, mistake);
            self.warnings.push((span, ScenarioError { is_warning: true, ..warning }));
        }
    }

    /// The warnings so far.
    pub fn take_warnings(&mut self) -> ScenarioErrors {
        let mut warnings = core::mem::take(&mut self.warnings);
        warnings.sort_by_key(|(span, _)| *span);
        ScenarioErrors(warnings.into_iter().map(|(_, warning)| warning).collect())
    }

    /// The number of errors so far.
    pub fn count(&self) -> usize {
        self.found.len()
    }

    /// Returns the value, unless there were mistakes.
    pub fn finish<T>(mut self, value: Option<T>) -> Result<T, ScenarioErrors> {
        self.found.sort_by_key(|(span, _)| *span);
        let errors: Vec<_> = self.found.into_iter().map(|(_, error)| error).collect();
        match value {
            Some(value) if errors.is_empty() => Ok(value),
            _ => Err(ScenarioErrors(errors)),
        }
    }
}
