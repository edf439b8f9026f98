//! Figures as SVG, PNG and PDF.
//!
//! PNG and PDF are made from the SVG, so that all three look the same. Their letters are outlines of DejaVu Sans, which
//! is part of the program, so a picture does not depend on the machine's fonts. A character that this font lacks is a
//! box in them.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

use super::figure::Figure;
use super::paint::DrawError;
use super::pdf;
use crate::markup::escaped;

/// Pixels of a PNG per unit of the SVG: sharp in print and on today's screens.
const SCALE: f32 = 2.0;

/// A format of pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Picture {
    /// Scalable, text as text.
    Svg,
    /// Pixels.
    Png,
    /// Scalable, one page of the figure's size.
    Pdf,
}

impl Picture {
    /// The format indicated by a file's extension, if it is one of these.
    pub fn of(path: &Path) -> Option<Picture> {
        let ending = path.extension()?.to_str()?.to_ascii_lowercase();
        match ending.as_str() {
            "svg" => Some(Picture::Svg),
            "png" => Some(Picture::Png),
            "pdf" => Some(Picture::Pdf),
            _ => None,
        }
    }
}

impl Figure {
    /// The figure as a file of this format. `about` says how to reproduce it. It is not shown: SVG has it as `<desc>`,
    /// PNG as the text `Comment`, PDF as its subject.
    ///
    /// # Errors
    /// Fails in the same cases as [`Figure::to_svg`].
    pub fn to_picture(&self, picture: Picture, about: &str) -> Result<Vec<u8>, DrawError> {
        let svg = self.to_svg()?;
        match picture {
            Picture::Svg => Ok(svg.replacen(">\n", &format!(">\n<desc>{}</desc>\n", escaped(about)), 1).into_bytes()),
            Picture::Png => png(&tree(&svg)?, about).map_err(DrawError::of),
            Picture::Pdf => {
                let page = pdf::content(&tree(&svg)?);
                let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
                let stream = packed.write_all(&page.operators).and_then(|()| packed.finish()).map_err(DrawError::of)?;
                Ok(pdf::document(&page, &stream, &self.title, about))
            }
        }
    }
}

fn tree(svg: &str) -> Result<Tree, DrawError> {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(dejavu::sans::regular().to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    let options = Options { fontdb: Arc::new(fonts), ..Options::default() };
    Tree::from_str(svg, &options).map_err(DrawError::of)
}

fn png(tree: &Tree, about: &str) -> io::Result<Vec<u8>> {
    let pixels = |length: f32| (length * SCALE).ceil() as u32;
    let (width, height) = (pixels(tree.size().width()), pixels(tree.size().height()));
    let mut pixmap = Pixmap::new(width, height).ok_or_else(|| io::Error::other("it is too large"))?;
    resvg::render(tree, Transform::from_scale(SCALE, SCALE), &mut pixmap.as_mut());
    // The figure's background is white, so nothing is transparent.
    let colours: Vec<u8> =
        pixmap.data().as_chunks::<4>().0.iter().flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect();
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.add_itxt_chunk("Comment".to_owned(), about.to_owned())?;
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&colours)?;
    writer.finish()?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::figure::tests::figure;

    #[test]
    fn the_ending_is_the_format() {
        let of = |name: &str| Picture::of(Path::new(name));
        assert_eq!([of("a.svg"), of("b/a.PNG"), of("a.b.pdf")], [Picture::Svg, Picture::Png, Picture::Pdf].map(Some));
        assert_eq!([of("a"), of("svg"), of("a.jpeg")], [None; 3]);
    }

    #[test]
    fn an_svg_says_how_it_was_made() {
        let svg = figure().to_picture(Picture::Svg, "run <a> & b").expect("a good figure");
        let svg = String::from_utf8(svg).expect("text");
        assert!(svg.contains("<desc>run &lt;a&gt; &amp; b</desc>"), "{svg}");
    }

    #[test]
    fn a_png_has_the_colours_and_letters_of_the_figure() {
        let png = figure().to_picture(Picture::Png, "how").expect("a good figure");
        let mut reader = png::Decoder::new(io::Cursor::new(&png)).read_info().expect("a PNG");
        let mut pixels = vec![0; reader.output_buffer_size().expect("small")];
        let info = reader.next_frame(&mut pixels).expect("whole");
        // A panel of 640 by 440 with its title, and a row of the legend, at twice the size.
        assert_eq!((info.width, info.height, info.color_type), (1280, 996, png::ColorType::Rgb));
        let texts = &reader.info().utf8_text;
        assert_eq!((texts[0].keyword.as_str(), texts[0].get_text().expect("text")), ("Comment", "how".to_owned()));
        let count = |wanted: [u8; 3]| pixels.as_chunks::<3>().0.iter().filter(|pixel| **pixel == wanted).count();
        assert!(count([255, 255, 255]) > pixels.len() / 6, "the background is white");
        // The second series' line; and letters, of which only the title and the axes have black.
        assert!(count([0, 158, 115]) > 200 && count([0, 0, 0]) > 200, "{} {}", count([0, 158, 115]), count([0, 0, 0]));
    }

    #[test]
    fn every_letter_of_our_figures_is_in_the_font() {
        let mut fonts = fontdb::Database::new();
        fonts.load_font_data(dejavu::sans::regular().to_vec());
        let face = fonts.faces().next().expect("one font");
        assert_eq!(face.families[0].0, "DejaVu Sans");
        let drawn = |title: &str| {
            let svg = Figure { title: title.into(), ..figure() }.to_svg().expect("a good figure");
            pdf::content(&tree(&svg).expect("an SVG")).operators.len()
        };
        let lacking = drawn("漢");
        assert!(lacking > drawn(""), "a box");
        assert_eq!(drawn("字"), lacking);
        for letter in "az–µμ≤≈αβλνρ→×…·§⁻²³“é”".chars() {
            let outlines = drawn(&letter.to_string());
            assert!(outlines > drawn("") && outlines != lacking, "{letter} is not in the font");
        }
    }
}
