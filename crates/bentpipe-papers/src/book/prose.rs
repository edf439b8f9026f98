//! Converts a study's Markdown to HTML for its chapter.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

/// Removes the title and lowers the headings. Links into the repository become plain text, because a reader of the book may not
/// have the repository.
pub(super) fn to_html(markdown: &str) -> String {
    let (mut in_title, mut in_link) = (false, false);
    let events = Parser::new_ext(markdown, Options::ENABLE_TABLES).filter_map(|event| {
        match &event {
            Event::Start(Tag::Heading { level: HeadingLevel::H1, .. }) => in_title = true,
            Event::End(TagEnd::Heading(HeadingLevel::H1)) => {
                in_title = false;
                return None;
            }
            Event::Start(Tag::Link { dest_url, .. }) if !dest_url.contains("://") => {
                in_link = true;
                return None;
            }
            Event::End(TagEnd::Link) if in_link => {
                in_link = false;
                return None;
            }
            _ => (),
        }
        (!in_title).then(|| lower(event))
    });
    let mut out = String::new();
    html::push_html(&mut out, events);
    out
}

/// Lowers second-level headings to the fourth level and deeper ones to the fifth, and shows HTML as text.
fn lower(event: Event<'_>) -> Event<'_> {
    let deeper = |level| if level == HeadingLevel::H2 { HeadingLevel::H4 } else { HeadingLevel::H5 };
    match event {
        Event::Start(Tag::Heading { level, id, classes, attrs }) => {
            Event::Start(Tag::Heading { level: deeper(level), id, classes, attrs })
        }
        Event::End(TagEnd::Heading(level)) => Event::End(TagEnd::Heading(deeper(level))),
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        event => event,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_title_and_links_into_the_repository_are_left_out() {
        let text = "# stp: a title\n\nIntro, [code](../x.rs) and [site](https://example.org).\n\n## Below\n\n<b>no</b>\n\n\
                    | a | b |\n|---|---|\n| 1 | 2 |\n";
        let html = to_html(text);
        assert!(
            !html.contains("title") && !html.contains("x.rs") && html.contains("Intro, code and <a href="),
            "{html}"
        );
        assert!(
            html.contains("<h4>Below</h4>") && html.contains("&lt;b&gt;no") && html.contains("<td>2</td>"),
            "{html}"
        );
    }
}
