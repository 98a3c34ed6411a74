//! Shows views on standard error: in place on a terminal, else a line per change.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    io::IsTerminal as _,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::Zoned;

use super::view::WatchView;

/// The bar and the lines below it. There are no colours, so `NO_COLOR` changes nothing.
const TEMPLATE: &str = "{prefix}\n{bar:40} {pos}/{len} trials\n{msg}";
/// The same before the number of trials is known.
const TEMPLATE_WITHOUT_TRIALS: &str = "{prefix}\n{msg}";

/// Where views go.
pub(super) struct Display {
    name: String,
    bar: Option<ProgressBar>,
    last: RefCell<String>,
    attempts: RefCell<BTreeSet<String>>,
    /// Whether attempts that ended before this program began are known.
    is_begun: Cell<bool>,
}

impl Display {
    pub(super) fn new(name: &str) -> Self {
        let bar = std::io::stderr()
            .is_terminal()
            .then(|| ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr()));
        Self {
            name: name.to_owned(),
            bar,
            last: RefCell::default(),
            attempts: RefCell::default(),
            is_begun: Cell::new(false),
        }
    }

    /// Shows a moment.
    pub(super) fn show(&self, view: &WatchView) {
        let Some(bar) = &self.bar else {
            self.change(&view.state);
            return;
        };
        let template = match view.trials {
            Some((done, planned)) => {
                bar.set_length(planned.max(1));
                bar.set_position(done);
                TEMPLATE
            }
            None => TEMPLATE_WITHOUT_TRIALS,
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("##-"));
        }
        let left = view.left.as_ref().map(|left| format!(", {left}"));
        bar.set_prefix(format!(
            "{}: {}{}",
            self.name,
            view.state,
            left.unwrap_or_default()
        ));
        bar.set_message(view.lines.join("\n"));
        bar.tick();
    }

    /// Reports attempts that have ended since the last call, each once. The first call's are only counted.
    pub(super) fn attempts(&self, attempts: &[(String, String)]) {
        let mut known = self.attempts.borrow_mut();
        let is_begun = self.is_begun.replace(true);
        for (name, line) in attempts {
            if known.insert(name.clone()) && is_begun {
                self.line(line);
            }
        }
    }

    /// A line about the connection; repeated only after another line.
    pub(super) fn note(&self, text: &str) {
        self.change(&format!("{text}; trying again"));
    }

    fn change(&self, text: &str) {
        let mut last = self.last.borrow_mut();
        if *last != text {
            self.line(text);
            text.clone_into(&mut last);
        }
    }

    /// A line with the time; on a terminal above the bar.
    fn line(&self, text: &str) {
        let now = Zoned::now().strftime("%H:%M:%S").to_string();
        let line = format!("{now} {}: {text}", self.name);
        match &self.bar {
            Some(bar) => bar.println(line),
            None => eprintln!("{line}"),
        }
    }

    /// Removes the view in place.
    pub(super) fn close(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
