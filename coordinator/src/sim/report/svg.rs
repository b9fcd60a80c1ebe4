//! Plots as inline SVG: lines over time and stacked or grouped bars, with axes, legend and a description for readers
//! who do not see them.
//!
//! Called by `charts`. Knows no score. Texts are escaped here.

use std::fmt::Write as _;

const WIDTH: f64 = 860.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 34.0;
const PLOT: f64 = 210.0;
const BOTTOM: f64 = 40.0;

/// One line over equal parts of the time.
pub(super) struct Line {
    pub name: String,
    /// A class of the page's style.
    pub class: &'static str,
    pub values: Vec<f64>,
    /// Filled below.
    pub area: bool,
}

/// One bar: its name and parts, drawn end to end.
pub(super) struct Bar {
    pub name: String,
    /// Class of the style, value.
    pub parts: Vec<(&'static str, f64)>,
    /// Beside the bar.
    pub note: String,
}

/// Text for HTML and SVG.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Not allowed in any markup.
            c if c.is_control() && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Lines over time. `hours` is the length of the run.
pub(super) fn lines(title: &str, unit: &str, hours: f64, lines: &[Line]) -> String {
    let most = lines
        .iter()
        .flat_map(|line| line.values.iter().copied())
        .fold(0.0, f64::max);
    let step = nice_step(most);
    let top = ((most / step).ceil() * step).max(step);
    let height = TOP + PLOT + BOTTOM;
    let mut out = open(title, height);
    let y = |value: f64| TOP + PLOT * (1.0 - value / top);
    let mut tick = 0.0;
    while tick <= top + step / 2.0 {
        let _ = write!(
            out,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
             <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            y(tick) + 4.0,
            label(tick, step),
            at = y(tick),
        );
        tick += step;
    }
    time_axis(&mut out, hours);
    let _ = write!(
        out,
        "<text class=\"tick\" x=\"{LEFT}\" y=\"{:.1}\">{}</text>",
        TOP - 20.0,
        escaped(unit)
    );
    for line in lines {
        let wide = (WIDTH - LEFT - RIGHT) / (line.values.len().max(1) as f64);
        let mut path = String::new();
        let mut last: Option<f64> = None;
        for (at, value) in line.values.iter().enumerate() {
            let x = LEFT + wide * at as f64;
            let height = y(*value);
            match last {
                None => {
                    let _ = write!(path, "M{x:.1} {height:.1}");
                }
                Some(before) if (before - height).abs() >= 0.05 => {
                    let _ = write!(path, "H{x:.1}V{height:.1}");
                }
                Some(_) => continue,
            }
            last = Some(height);
        }
        let _ = write!(path, "H{:.1}", WIDTH - RIGHT);
        if line.area {
            let floor = TOP + PLOT;
            let _ = write!(path, "V{floor:.1}H{LEFT}Z");
        }
        let kind = if line.area { "area" } else { "line" };
        let _ = write!(
            out,
            "<path class=\"{kind} {}\" d=\"{path}\"><title>{}</title></path>",
            line.class,
            escaped(&line.name)
        );
    }
    out.push_str("</svg>");
    let names: Vec<(&str, &str)> = lines
        .iter()
        .map(|line| (line.class, line.name.as_str()))
        .collect();
    format!("<figure>{out}{}</figure>", legend(title, &names))
}

/// Horizontal bars with a common scale. `names` are the classes of the parts and what they mean.
pub(super) fn bars(
    title: &str,
    unit: &str,
    bars: &[Bar],
    names: &[(&'static str, &'static str)],
) -> String {
    let sum = |bar: &Bar| {
        bar.parts
            .iter()
            .map(|(_, value)| value.max(0.0))
            .sum::<f64>()
    };
    let most = bars.iter().map(sum).fold(0.0, f64::max).max(1e-9);
    let (row, bar_height) = (26.0, 18.0);
    let left = 225.0;
    let wide = WIDTH - left - 200.0;
    let height = 4.0 + row * bars.len() as f64;
    let mut out = open(title, height);
    for (at, bar) in bars.iter().enumerate() {
        let y = 4.0 + row * at as f64;
        let _ = write!(
            out,
            "<text class=\"name\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            left - 8.0,
            y + 13.0,
            escaped(&cut(&bar.name, 34)),
        );
        let mut x = left;
        for (class, value) in &bar.parts {
            let length = wide * value.max(0.0) / most;
            let meaning = names
                .iter()
                .find(|(known, _)| known == class)
                .map_or("", |(_, name)| name);
            let _ = write!(
                out,
                "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{length:.1}\" \
                 height=\"{bar_height}\"><title>{}: {} {}</title></rect>",
                escaped(meaning),
                short(*value),
                escaped(unit),
            );
            x += length;
        }
        let _ = write!(
            out,
            "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x + 6.0,
            y + 13.0,
            escaped(&bar.note)
        );
    }
    out.push_str("</svg>");
    format!("<figure>{out}{}</figure>", legend(title, names))
}

fn open(title: &str, height: f64) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"{0}\" \
         xmlns=\"http://www.w3.org/2000/svg\">",
        escaped(title)
    )
}

fn legend(title: &str, names: &[(&str, &str)]) -> String {
    let mut out = format!("<figcaption><b>{}</b>", escaped(title));
    for (class, name) in names {
        let _ = write!(
            out,
            " <span class=\"key\"><span class=\"dot {class}\"></span>{}</span>",
            escaped(name)
        );
    }
    out.push_str("</figcaption>");
    out
}

fn time_axis(out: &mut String, hours: f64) {
    let (scale, unit) = if hours >= 72.0 {
        (24.0, "days")
    } else if hours >= 3.0 {
        (1.0, "hours")
    } else if hours >= 3.0 / 60.0 {
        (1.0 / 60.0, "minutes")
    } else {
        (1.0 / 3_600.0, "seconds")
    };
    // A run without length has an axis of a second.
    let end = if hours > 0.0 { hours / scale } else { 1.0 };
    let step = nice_step(end);
    let mut tick = 0.0;
    while tick <= end + 1e-9 {
        let x = LEFT + (WIDTH - LEFT - RIGHT) * tick / end;
        let _ = write!(
            out,
            "<text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            TOP + PLOT + 16.0,
            label(tick, step)
        );
        tick += step;
    }
    let _ = write!(
        out,
        "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{unit} since the start</text>",
        WIDTH - RIGHT,
        TOP + PLOT + 32.0
    );
}

/// 1, 2 or 5 times a power of ten, so that there are about five steps.
fn nice_step(most: f64) -> f64 {
    if most <= 0.0 {
        return 1.0;
    }
    let rough = most / 5.0;
    let power = 10_f64.powf(rough.log10().floor());
    let of = rough / power;
    let nice = if of <= 1.0 {
        1.0
    } else if of <= 2.0 {
        2.0
    } else if of <= 5.0 {
        5.0
    } else {
        10.0
    };
    nice * power
}

/// At an axis: with as many decimals as tell one step from the next.
fn label(value: f64, step: f64) -> String {
    if step >= 1.0 {
        return short(value);
    }
    let decimals = (1..9_usize).find(|n| step >= 0.999 * 0.1_f64.powi(*n as i32));
    format!("{value:.*}", decimals.unwrap_or(9))
}

fn short(value: f64) -> String {
    if value.abs() >= 100.0 {
        return crate::sim::score::table::whole(value);
    }
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    text.to_owned()
}

fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(most - 1).collect();
    short.push('\u{2026}');
    short
}
