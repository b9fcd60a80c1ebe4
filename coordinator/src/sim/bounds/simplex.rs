//! The cheapest covering, in fractions: least `prices . x` with `rows . x >= demand`, all at least zero.
//!
//! Called by the fluid bound, once per instant. Solved as its dual (most `demand . y` with `y . rows <= prices`), whose
//! constraints do not change with the demand: the last answer is where the next begins. Primal simplex on a dense
//! tableau with the rule of Bland, which cannot cycle.

/// Below this a number is rounding.
const TINY: f64 = 1e-9;
/// The tableau is begun anew after so many exchanges, so that rounding does not pile up.
const FRESH_AFTER: u32 = 500;

/// The problem and where the last answer left it.
pub(super) struct Covering {
    rows: Vec<Vec<f64>>,
    prices: Vec<f64>,
    /// Per kind of node: coefficients of all `y`, of all slacks, and the right side.
    tableau: Vec<Vec<f64>>,
    basis: Vec<usize>,
    exchanges: u32,
}

impl Covering {
    /// `rows[r][k]` is what one node of kind `k` gives to row `r`; `prices[k]` is at least zero.
    pub fn new(rows: Vec<Vec<f64>>, prices: Vec<f64>) -> Self {
        let mut covering = Self {
            rows,
            prices,
            tableau: Vec::new(),
            basis: Vec::new(),
            exchanges: 0,
        };
        covering.begin();
        covering
    }

    fn begin(&mut self) {
        let (rows, kinds) = (self.rows.len(), self.prices.len());
        self.tableau = (0..kinds)
            .map(|kind| {
                let mut line: Vec<f64> = self.rows.iter().map(|row| row[kind]).collect();
                line.extend((0..kinds).map(|slack| f64::from(u8::from(slack == kind))));
                line.push(self.prices[kind]);
                line
            })
            .collect();
        self.basis = (rows..rows + kinds).collect();
        self.exchanges = 0;
    }

    /// The least cost; absent: no amount of nodes covers it.
    pub fn cost(&mut self, demand: &[f64]) -> Option<f64> {
        if self.exchanges > FRESH_AFTER {
            self.begin();
        }
        // In parts of the largest, so that rounding is of one size.
        let largest = demand.iter().copied().fold(0.0, f64::max);
        if largest <= 0.0 {
            return Some(0.0);
        }
        let worth = |column: usize| demand.get(column).map_or(0.0, |wanted| wanted / largest);
        let right = self.rows.len() + self.prices.len();
        loop {
            let gain = |column: usize| {
                let lost: f64 = self
                    .tableau
                    .iter()
                    .zip(&self.basis)
                    .map(|(line, base)| worth(*base) * line[column])
                    .sum();
                worth(column) - lost
            };
            let Some(enters) = (0..right).find(|column| gain(*column) > TINY) else {
                break;
            };
            let leaves = (0..self.tableau.len())
                .filter(|line| self.tableau[*line][enters] > TINY)
                .map(|line| (self.tableau[line][right] / self.tableau[line][enters], line))
                .min_by(|a, b| {
                    a.0.total_cmp(&b.0)
                        .then_with(|| self.basis[a.1].cmp(&self.basis[b.1]))
                })?;
            self.exchange(leaves.1, enters);
        }
        let cost: f64 = self
            .tableau
            .iter()
            .zip(&self.basis)
            .map(|(line, base)| worth(*base) * line[right])
            .sum();
        Some(cost * largest)
    }

    fn exchange(&mut self, leaves: usize, enters: usize) {
        let by = self.tableau[leaves][enters];
        for value in &mut self.tableau[leaves] {
            *value /= by;
        }
        let pivot = self.tableau[leaves].clone();
        for (index, line) in self.tableau.iter_mut().enumerate() {
            let factor = line[enters];
            if index != leaves && factor != 0.0 {
                for (value, of) in line.iter_mut().zip(&pivot) {
                    *value -= factor * of;
                }
            }
        }
        self.basis[leaves] = enters;
        self.exchanges += 1;
    }
}
