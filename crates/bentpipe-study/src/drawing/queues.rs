//! Queues and servers in a row, with feedback to earlier ones.

use super::canvas::{Anchor, BLACK, BLUE, Canvas, GREEN, GREY, LIGHT, ORANGE};
use super::{Drawing, csv_row};

const WIDTH: i32 = 230;
const GAP: i32 = 70;
const HEIGHT: i32 = 110;

/// The shape of a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A queue: bars from the right.
    Queue,
    /// Servers side by side.
    Servers,
}

/// A queue or a group of servers.
#[derive(Clone, Debug)]
pub struct Station {
    /// The text above it.
    pub title: String,
    /// How it is drawn.
    pub shape: Shape,
    /// The facts written below: quantity and value.
    pub facts: Vec<(String, String)>,
    /// Why packets return to this station from the next one, if they do.
    pub back: Option<String>,
}

fn inside(canvas: &mut Canvas, (x, y): (i32, i32), shape: Shape) {
    match shape {
        Shape::Queue => {
            canvas.rect((x, y), (WIDTH, HEIGHT), LIGHT, BLACK);
            for n in 1..=6 {
                let at = x + WIDTH - 22 * n;
                canvas.path(&[(at, y), (at, y + HEIGHT)], GREY, false, false);
            }
        }
        Shape::Servers => {
            canvas.rect((x, y), (WIDTH, HEIGHT), "none", GREY);
            for n in 0..4 {
                let height = HEIGHT / 4;
                canvas.rect((x + 50, y + height * n + 4), (WIDTH - 100, height - 8), LIGHT, BLUE);
            }
            canvas.text((x + WIDTH - 44, y + HEIGHT / 2 + 4), Anchor::Start, BLUE, "…");
        }
    }
}

/// Draws the stations, at least one, from left to right, with their facts below them and as a table.
pub fn queues(title: &str, ends: [&str; 2], stations: &[Station]) -> Drawing {
    let mut canvas = Canvas::default();
    let mut csv = String::from("station,quantity,value\n");
    let x = |n: usize| 150 + (WIDTH + GAP) * n as i32;
    let top = if stations.iter().any(|station| station.back.is_some()) { 90 } else { 34 };
    let middle = top + HEIGHT / 2;
    let last = x(stations.len() - 1) + WIDTH;
    for (n, station) in stations.iter().enumerate() {
        let at = x(n);
        inside(&mut canvas, (at, top), station.shape);
        canvas.text((at + WIDTH / 2, top - 12), Anchor::Middle, BLUE, &station.title);
        canvas.path(&[(if n == 0 { 100 } else { at - GAP }, middle), (at, middle)], BLACK, false, true);
        for (row, (quantity, value)) in station.facts.iter().enumerate() {
            let y = top + HEIGHT + 26 + 36 * row as i32;
            canvas.text((at, y), Anchor::Start, GREY, quantity);
            canvas.text((at, y + 16), Anchor::Start, BLACK, value);
            csv += &csv_row(&[&station.title, quantity, value]);
        }
        if let Some(why) = &station.back {
            let (from, to) = (x(n + 1) + WIDTH / 2, at + WIDTH / 2);
            canvas.path(&[(from, top - 30), (from, top - 60), (to, top - 60), (to, top - 30)], ORANGE, true, true);
            canvas.text(((from + to) / 2, top - 66), Anchor::Middle, ORANGE, why);
        }
    }
    canvas.path(&[(last, middle), (last + 60, middle)], BLACK, false, true);
    canvas.text((92, middle + 4), Anchor::End, GREEN, ends[0]);
    canvas.text((last + 68, middle + 4), Anchor::Start, GREEN, ends[1]);
    Drawing { svg: canvas.finish(title), csv }
}
