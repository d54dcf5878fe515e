//! The results as a drawing: a line for each heat, a mark for each contestant where its hit ratio
//! is.

use crate::race::record::Record;
use std::fmt::Write;

const WIDTH: usize = 860;
const LEFT: usize = 190;
const RIGHT: usize = 30;
const TOP: usize = 64;
const ROW: usize = 30;

/// Colour and shape of each contestant, in the order they first appear.
const MARKS: [(&str, Shape); 7] = [
    ("#2a9d6f", Shape::Circle),
    ("#d1495b", Shape::Circle),
    ("#3d6fd1", Shape::Circle),
    ("#8a5cc2", Shape::Square),
    ("#c98a1b", Shape::Square),
    ("#777777", Shape::Bar),
    ("#222222", Shape::Bar),
];

#[derive(Clone, Copy)]
enum Shape {
    Circle,
    Square,
    Bar,
}

fn mark(at: usize, x: f64, y: usize) -> String {
    let (colour, shape) = MARKS[at % MARKS.len()];
    match shape {
        Shape::Circle => format!("<circle cx=\"{x:.1}\" cy=\"{y}\" r=\"5\" fill=\"{colour}\"/>"),
        Shape::Square => {
            format!(
                "<rect x=\"{:.1}\" y=\"{}\" width=\"9\" height=\"9\" fill=\"{colour}\"/>",
                x - 4.5,
                y - 4
            )
        }
        Shape::Bar => {
            format!(
                "<rect x=\"{:.1}\" y=\"{}\" width=\"3\" height=\"20\" fill=\"{colour}\"/>",
                x - 1.5,
                y - 10
            )
        }
    }
}

/// One drawing that needs nothing else; without empty lines, so that it can stand in Markdown.
pub(super) fn svg(records: &[Record]) -> String {
    let mut heats: Vec<&Record> = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for record in records {
        if !heats.iter().any(|heat| heat.is_beside(record)) {
            heats.push(record);
        }
        if !names.contains(&record.table.as_str()) {
            names.push(&record.table);
        }
    }
    let height = TOP + heats.len() * ROW + 40;
    let x = |ratio: f64| LEFT as f64 + ratio * (WIDTH - LEFT - RIGHT) as f64;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\" role=\"img\" \
         aria-label=\"Hit ratios of cache policies\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    for (at, name) in names.iter().enumerate() {
        let (across, down) = (20 + at % 4 * 210, 20 + at / 4 * 22);
        let _ = writeln!(text, "{}", mark(at, across as f64, down));
        let _ = writeln!(text, "<text x=\"{}\" y=\"{}\">{name}</text>", across + 12, down + 5);
    }
    let bottom = TOP + heats.len() * ROW;
    for percent in (0..=100).step_by(20) {
        let across = x(percent as f64 / 100.0);
        let _ = writeln!(
            text,
            "<line x1=\"{across:.1}\" y1=\"{TOP}\" x2=\"{across:.1}\" y2=\"{bottom}\" \
             stroke=\"#dddddd\"/>\n<text x=\"{across:.1}\" y=\"{}\" text-anchor=\"middle\">{percent} %</text>",
            bottom + 20
        );
    }
    for (row, heat) in heats.iter().enumerate() {
        let y = TOP + row * ROW + ROW / 2;
        let _ = writeln!(
            text,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n\
             <line x1=\"{LEFT}\" y1=\"{y}\" x2=\"{}\" y2=\"{y}\" stroke=\"#eeeeee\"/>",
            LEFT - 12,
            y + 5,
            heat.workload,
            WIDTH - RIGHT
        );
        for (at, name) in names.iter().enumerate().rev() {
            let found = records.iter().find(|row| row.is_beside(heat) && row.table == *name);
            if let Some(ratio) = found.and_then(|row| row.hit_ratio) {
                let _ = writeln!(text, "{}", mark(at, x(ratio), y));
            }
        }
    }
    text + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_a_mark() {
        let record = |table: &str, ratio| Record {
            workload: "loop".to_owned(),
            table: table.to_owned(),
            hit_ratio: Some(ratio),
            ..Record::default()
        };
        let drawn = svg(&[record("a", 0.0), record("b", 0.5), record("c", 1.0)]);
        assert_eq!(drawn.matches("<circle").count(), 6, "three in the legend, three in the row");
        assert!(!drawn.contains("\n\n") && drawn.starts_with("<svg"));
    }
}
