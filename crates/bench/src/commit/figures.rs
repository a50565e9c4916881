//! What rounds have measured, case by case.

use super::sessions::Ran;
use crate::report::{BenchReport, median};
use serde_json::Value;

/// The settings of a case, by name.
pub type Params<'a> = &'a [(&'static str, Value)];

struct Figure {
    case: &'static str,
    params: Vec<(&'static str, Value)>,
    unit: &'static str,
    /// One value a round.
    runs: Vec<f64>,
    limits: Vec<f64>,
}

/// The figures, in the order in which the first round has them.
#[derive(Default)]
pub struct Figures(Vec<Figure>);

impl Figures {
    /// One round's value of a case, beside the limit of the same round.
    pub fn note(
        &mut self,
        case: &'static str,
        params: Params<'_>,
        unit: &'static str,
        value: f64,
        limit: Option<f64>,
    ) {
        let is_it = |figure: &Figure| {
            (figure.case, &figure.params[..], figure.unit) == (case, params, unit)
        };
        let place = self.0.iter().position(is_it).unwrap_or(self.0.len());
        if place == self.0.len() {
            self.0.push(Figure {
                case,
                params: params.to_vec(),
                unit,
                runs: Vec::new(),
                limits: Vec::new(),
            });
        }
        self.0[place].runs.push(value);
        self.0[place].limits.extend(limit);
    }

    /// The median and the 99th percentile of what a session waited in one round, beside those of what limits it.
    pub fn waits(
        &mut self,
        case: &'static str,
        params: Params<'_>,
        ran: &Ran,
        limit: Option<&Ran>,
    ) {
        for percent in [50, 99] {
            let params = [params, &[("p", percent.into())]].concat();
            let wait = |ran: &Ran| ran.percentile(percent) * 1e6;
            self.note(case, &params, "µs", wait(ran), limit.map(wait));
        }
    }

    /// Adds them to a report. A limit is the median of its rounds, too.
    pub fn report(self, report: &mut BenchReport) {
        for figure in self.0 {
            let limit = (!figure.limits.is_empty()).then(|| median(&figure.limits));
            report.row(figure.case, figure.params, figure.unit, figure.runs, limit);
        }
    }
}
