//! Makes an SVG of the same picture smaller. plotters writes an element for each packet, a third of a megabyte for a
//! transfer of 1 MB. Here, consecutive elements of the same style become one path, and elements that cover the same
//! pixels again are left out.

use std::collections::BTreeSet;

/// The document with its dots and strokes joined. Elements are as plotters writes them: one per line, in whole pixels.
pub(super) fn compact(svg: &str) -> String {
    let (mut out, mut run) = (String::new(), Run::default());
    for line in svg.lines() {
        match dot(line).or_else(|| stroke(line)) {
            Some((look, piece)) => {
                if run.look != look {
                    run.end(&mut out);
                    run.look = look;
                }
                run.add(piece);
            }
            None => {
                run.end(&mut out);
                out.push_str(&without_repeats(line).unwrap_or_else(|| line.to_owned()));
                out.push('\n');
            }
        }
    }
    run.end(&mut out);
    out
}

/// Consecutive elements of the same style.
#[derive(Default)]
struct Run {
    look: String,
    pieces: String,
    seen: BTreeSet<String>,
}

impl Run {
    fn add(&mut self, piece: String) {
        if !self.seen.contains(&piece) {
            self.pieces.push_str(&piece);
            self.seen.insert(piece);
        }
    }

    fn end(&mut self, out: &mut String) {
        let Run { look, pieces, .. } = std::mem::take(self);
        if !pieces.is_empty() {
            out.push_str(&format!("<path fill=\"none\" {look} d=\"{pieces}\"/>\n"));
        }
    }
}

/// The value of an attribute.
fn value<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!(" {name}=\""))?;
    rest.split_once('"').map(|(value, _)| value)
}

/// True if the element is opaque, so that drawing it twice makes no difference.
fn is_opaque(line: &str) -> bool {
    value(line, "opacity") == Some("1")
}

/// Style and path of a filled circle, drawn as the round caps of a stroke. Some programs draw nothing for a stroke of
/// zero length.
fn dot(line: &str) -> Option<(String, String)> {
    let is_dot = line.starts_with("<circle") && is_opaque(line) && value(line, "stroke") == Some("none");
    let radius: u32 = is_dot.then(|| value(line, "r"))??.parse().ok()?;
    let look = format!("stroke=\"{}\" stroke-width=\"{}\" stroke-linecap=\"round\"", value(line, "fill")?, 2 * radius);
    Some((look, format!("M{},{}h.01", value(line, "cx")?, value(line, "cy")?)))
}

/// Style and path of a straight line.
fn stroke(line: &str) -> Option<(String, String)> {
    let is_line = line.starts_with("<line") && is_opaque(line);
    let colour = is_line.then(|| value(line, "stroke"))??;
    let look = format!("stroke=\"{colour}\" stroke-width=\"{}\"", value(line, "stroke-width")?);
    let [x1, y1, x2, y2] = ["x1", "y1", "x2", "y2"].map(|name| value(line, name));
    Some((look, format!("M{},{}L{},{}", x1?, y1?, x2?, y2?)))
}

/// A polyline without superfluous points within a column of pixels: the first, the lowest, the highest and the last
/// stay.
fn without_repeats(line: &str) -> Option<String> {
    let points = line.starts_with("<polyline").then(|| value(line, "points"))??;
    let pairs = points.split_whitespace().map(|point| {
        let (x, y) = point.split_once(',')?;
        Some((x.parse().ok()?, y.parse().ok()?))
    });
    let pairs: Vec<(i32, i32)> = pairs.collect::<Option<_>>()?;
    let mut kept: Vec<(i32, i32)> = Vec::new();
    for column in pairs.chunk_by(|a, b| a.0 == b.0) {
        let ys = || column.iter().map(|point| point.1);
        let (first, last) = (column.first()?.1, column.last()?.1);
        let mut all = vec![first, ys().min()?, ys().max()?, last];
        all.dedup();
        kept.extend(all.into_iter().map(|y| (column[0].0, y)));
    }
    let kept: Vec<_> = kept.iter().map(|(x, y)| format!("{x},{y}")).collect();
    Some(line.replacen(points, &kept.join(" "), 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOT: &str = "opacity=\"1\" fill=\"#0072B2\" stroke=\"none\" stroke-width=\"1\"/>";

    #[test]
    fn neighbours_of_one_look_are_one_path() {
        let svg = format!(
            "<svg>\n<circle cx=\"1\" cy=\"2\" r=\"1\" {DOT}\n<circle cx=\"1\" cy=\"2\" r=\"1\" {DOT}\n<circle cx=\"3\" cy=\"4\" \
             r=\"1\" {DOT}\n<line opacity=\"1\" stroke=\"#D55E00\" stroke-width=\"1\" x1=\"5\" y1=\"6\" x2=\"7\" y2=\"8\"/>\n\
             <text>\nx\n</text>\n</svg>\n"
        );
        let expected = "<svg>\n\
                        <path fill=\"none\" stroke=\"#0072B2\" stroke-width=\"2\" stroke-linecap=\"round\" d=\"M1,2h.01M3,4h.01\"/>\n\
                        <path fill=\"none\" stroke=\"#D55E00\" stroke-width=\"1\" d=\"M5,6L7,8\"/>\n<text>\nx\n</text>\n</svg>\n";
        assert_eq!(compact(&svg), expected);
    }

    #[test]
    fn rings_and_what_shines_through_stay() {
        for line in [
            "<circle cx=\"1\" cy=\"2\" r=\"3\" opacity=\"1\" fill=\"none\" stroke=\"#0072B2\" stroke-width=\"2\"/>\n",
            "<circle cx=\"1\" cy=\"2\" r=\"1\" opacity=\"0.5\" fill=\"#0072B2\" stroke=\"none\" stroke-width=\"1\"/>\n",
        ] {
            assert_eq!(compact(line), line);
        }
    }

    #[test]
    fn a_polyline_keeps_the_pixels_that_it_covers() {
        let line = |points: &str| format!("<polyline fill=\"none\" opacity=\"1\" points=\"{points}\"/>\n");
        // Down to 9 and up to 1 within one column; then on.
        let long = line("1,5 1,5 1,7 1,9 1,4 1,1 1,3 2,3 2,4 3,4 ");
        assert_eq!(compact(&long), line("1,5 1,1 1,9 1,3 2,3 2,4 3,4"));
    }
}
