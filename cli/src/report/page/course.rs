//! Power and CPU over the time of each attempt.

use maud::{Markup, html};

use super::{
    parts::{self, absent},
    view::PageView,
};

pub(super) fn section(view: &PageView<'_>) -> Markup {
    if view.attempts.is_empty() {
        return html! {};
    }
    let content = absent("No course of power: the input has no traces of these attempts.");
    parts::section("course", "Power over time", "", &content)
}
