//! Writes a picture as a PDF of one page, as far as our figures need it: filled and stroked paths, and whole shapes
//! that are half transparent. Letters have already been converted to paths.

use std::collections::BTreeSet;

use pdf_writer::types::{LineCapStyle, LineJoinStyle};
use pdf_writer::{Content, Filter, Name, Pdf, Rect, Ref, TextStr};
use resvg::tiny_skia::{PathSegment, Transform};
use resvg::usvg::{Color, Group, LineCap, LineJoin, Node, Paint, Path, Tree};

/// Points (72 per inch) per unit of SVG (96 per inch).
const POINTS: f32 = 0.75;

/// What is drawn on a page.
pub(super) struct Page {
    size: (f32, f32),
    /// Operators of the page description language.
    pub(super) operators: Vec<u8>,
    /// The opacities to which it refers, in thousandths.
    opacities: BTreeSet<u16>,
}

/// The page with the picture.
pub(super) fn content(tree: &Tree) -> Page {
    let size = (tree.size().width() * POINTS, tree.size().height() * POINTS);
    let mut content = Content::new();
    // The origin of SVG is at the upper left corner.
    content.transform([POINTS, 0.0, 0.0, -POINTS, 0.0, size.1]);
    let mut opacities = BTreeSet::new();
    group(tree.root(), 1.0, &mut content, &mut opacities);
    Page { size, operators: content.finish().into_vec(), opacities }
}

/// The file. `stream` has the page's operators, compressed.
pub(super) fn document(page: &Page, stream: &[u8], title: &str, about: &str) -> Vec<u8> {
    let [catalog, pages, leaf, contents, info] = [1, 2, 3, 4, 5].map(Ref::new);
    let mut pdf = Pdf::new();
    pdf.catalog(catalog).pages(pages);
    pdf.pages(pages).kids([leaf]).count(1);
    {
        let mut leaf = pdf.page(leaf);
        leaf.parent(pages).media_box(Rect::new(0.0, 0.0, page.size.0, page.size.1)).contents(contents);
        let mut resources = leaf.resources();
        let mut states = resources.ext_g_states();
        for &opacity in &page.opacities {
            let part = f32::from(opacity) / 1000.0;
            let mut state =
                states.insert(Name(name(opacity).as_bytes())).start::<pdf_writer::writers::ExtGraphicsState>();
            state.stroking_alpha(part).non_stroking_alpha(part);
        }
    }
    pdf.stream(contents, stream).filter(Filter::FlateDecode);
    pdf.document_info(info).title(TextStr(title)).subject(TextStr(about)).producer(TextStr("bentpipe"));
    pdf.finish()
}

fn name(opacity: u16) -> String {
    format!("o{opacity}")
}

/// The shapes of a group. The group's opacity is applied to each shape, which is equivalent as long as they do not
/// overlap.
fn group(of: &Group, opacity: f32, content: &mut Content, opacities: &mut BTreeSet<u16>) {
    let opacity = opacity * of.opacity().get();
    for node in of.children() {
        match node {
            Node::Group(inner) => group(inner, opacity, content, opacities),
            Node::Text(text) => group(text.flattened(), opacity, content, opacities),
            Node::Path(path) if path.is_visible() => draw(path, opacity, content, opacities),
            Node::Path(_) | Node::Image(_) => {}
        }
    }
}

fn draw(path: &Path, opacity: f32, content: &mut Content, opacities: &mut BTreeSet<u16>) {
    content.save_state();
    let Transform { sx, ky, kx, sy, tx, ty } = path.abs_transform();
    content.transform([sx, ky, kx, sy, tx, ty]);
    if opacity < 1.0 {
        let thousandths = (opacity * 1000.0).round() as u16;
        opacities.insert(thousandths);
        content.set_parameters(Name(name(thousandths).as_bytes()));
    }
    let fill = path.fill().and_then(|fill| colour(fill.paint()));
    if let Some([r, g, b]) = fill {
        content.set_fill_rgb(r, g, b);
    }
    let stroke = path.stroke().and_then(|stroke| Some((stroke, colour(stroke.paint())?)));
    if let Some((stroke, [r, g, b])) = stroke {
        content.set_stroke_rgb(r, g, b).set_line_width(stroke.width().get());
        content.set_line_cap(match stroke.linecap() {
            LineCap::Butt => LineCapStyle::ButtCap,
            LineCap::Round => LineCapStyle::RoundCap,
            LineCap::Square => LineCapStyle::ProjectingSquareCap,
        });
        content.set_line_join(match stroke.linejoin() {
            LineJoin::Miter | LineJoin::MiterClip => LineJoinStyle::MiterJoin,
            LineJoin::Round => LineJoinStyle::RoundJoin,
            LineJoin::Bevel => LineJoinStyle::BevelJoin,
        });
    }
    outline(path, content);
    match (fill, stroke) {
        (Some(_), Some(_)) => content.fill_nonzero_and_stroke(),
        (Some(_), None) => content.fill_nonzero(),
        (None, Some(_)) => content.stroke(),
        (None, None) => content.end_path(),
    };
    content.restore_state();
}

/// The path itself. PDF has no quadratic curves; a cubic one with control points at two thirds is equivalent.
fn outline(path: &Path, content: &mut Content) {
    let mut last = (0.0, 0.0);
    for segment in path.data().segments() {
        match segment {
            PathSegment::MoveTo(to) => {
                content.move_to(to.x, to.y);
                last = (to.x, to.y);
            }
            PathSegment::LineTo(to) => {
                content.line_to(to.x, to.y);
                last = (to.x, to.y);
            }
            PathSegment::QuadTo(by, to) => {
                let third = |end: f32, by: f32| end + (by - end) * 2.0 / 3.0;
                let (first, second) =
                    ((third(last.0, by.x), third(last.1, by.y)), (third(to.x, by.x), third(to.y, by.y)));
                content.cubic_to(first.0, first.1, second.0, second.1, to.x, to.y);
                last = (to.x, to.y);
            }
            PathSegment::CubicTo(first, second, to) => {
                content.cubic_to(first.x, first.y, second.x, second.y, to.x, to.y);
                last = (to.x, to.y);
            }
            PathSegment::Close => {
                content.close_path();
            }
        }
    }
}

/// A plain colour; our figures have no others.
fn colour(paint: &Paint) -> Option<[f32; 3]> {
    let Paint::Color(Color { red, green, blue }) = paint else { return None };
    Some([red, green, blue].map(|part| f32::from(*part) / 255.0))
}

#[cfg(test)]
mod tests {
    use resvg::usvg::Options;

    use super::*;

    #[test]
    fn shapes_become_operators() {
        let svg = "<svg xmlns='http://www.w3.org/2000/svg' width='40' height='20'><g opacity='0.5'>\
                   <rect x='4' y='2' width='8' height='6' fill='#ff0000'/></g>\
                   <path d='M0 0 Q 3 0 3 3' fill='none' stroke='#0000ff' stroke-width='2'/></svg>";
        let page = content(&Tree::from_str(svg, &Options::default()).expect("an SVG"));
        assert_eq!((page.size, page.opacities.iter().copied().collect::<Vec<_>>()), ((30.0, 15.0), vec![500]));
        let text = String::from_utf8(page.operators.clone()).expect("operators are text");
        for part in ["0.75 0 0 -0.75 0 15 cm", "/o500 gs", "1 0 0 rg", "4 2 m", "0 0 1 RG", "2 w", "2 0 3 1 3 3 c"] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
        let file = document(&page, b"", "a title", "how");
        assert!(file.starts_with(b"%PDF-") && file.trim_ascii_end().ends_with(b"%%EOF"));
        for part in ["/MediaBox [0 0 30 15]", "(a title)", "(how)", "/CA 0.5"] {
            assert!(String::from_utf8_lossy(&file).contains(part), "{part} is missing");
        }
    }
}
