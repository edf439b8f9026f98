//! Manual pages that `clap_mangen` writes, made readable.

/// The page with its text after the options as it stands in the help: examples and tables keep their lines, which would otherwise be filled
/// like prose. The footer shows `version`; the page itself has the last word of the command there, in place of the date.
pub fn readable(page: &str, version: &str) -> String {
    let mut text = String::new();
    let (mut is_below, mut is_table) = (false, false);
    for line in page.lines() {
        if line.starts_with(".SH ") {
            if std::mem::take(&mut is_table) {
                text.push_str(".fi\n");
            }
            is_below = line == ".SH EXTRA";
            // Less than other sections are indented: the lines of the help are up to 80 characters long.
            text.push_str(if is_below { ".SH NOTES\n.in 2n" } else { line });
        } else if let Some(title) = line.strip_prefix(".TH ") {
            let name = title.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
            text.push_str(&format!(".TH {name} \"\" \"{version}\""));
        } else if line == "Examples:" && text.ends_with(".SH NOTES\n.in 2n\n") {
            text.truncate(text.len() - "NOTES\n.in 2n\n".len());
            text.push_str("EXAMPLES\n.in 2n");
        } else {
            if is_below && line.starts_with(' ') != is_table {
                is_table = !is_table;
                text.push_str(if is_table { ".nf\n" } else { ".fi\n" });
            }
            text.push_str(line);
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::readable;

    /// Lines that begin with a space are kept, also at the end of the section.
    #[test]
    fn tables_keep_their_lines() {
        let page = ".ie \\n(.g .ds Aq \\(aq\n.TH a-run 8  \"run \" \n.SH OPTIONS\n  x\n.SH EXTRA\nExamples:\n  a run x   y\n\nCodes:\n  0  z\n.SH VERSION\nv1\n";
        let wanted = ".ie \\n(.g .ds Aq \\(aq\n.TH a-run 8 \"\" \"a 1\"\n.SH OPTIONS\n  x\n.SH EXAMPLES\n.in 2n\n.nf\n  a run x   y\n.fi\n\nCodes:\n.nf\n  0  z\n.fi\n.SH VERSION\nv1\n";
        assert_eq!(readable(page, "a 1"), wanted);
        assert_eq!(readable(".SH EXTRA\nPapers:\n", "a 1"), ".SH NOTES\n.in 2n\nPapers:\n");
    }
}
