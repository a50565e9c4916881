//! Whether an operation goes to the data, or the data to the operation.
//!
//! ```text
//!   asking place                   owning places 1 … n
//!   ┌───────────┐  ── pull ──►     ┌─────┐ ┌─────┐
//!   │ operation │  ◄─ column ──    │ C₁  │ │ C₂  │ …
//!   └───────────┘                  └─────┘ └─────┘
//!                 ── push: positions, condition ──►   each works on its part
//!                 ◄─ positions or values that match ──
//! ```
//!
//! A place is whatever has memory of its own and a link to others: a node of a machine, or a machine. The functions are
//! pure: what places can do is given to them.
//!
//! Source: Tinnefeld, Kossmann, Grund, Boese, Renkes, Sikka, Plattner, "Elastic Online Analytical Processing on
//! RAMCloud" (EDBT 2013), Section 5. As printed, equations 2 to 4 leave open what an empty list of positions means, and
//! count positions with the size of a record. Here they read as follows:
//!
//! ```text
//!   (1)  M_DP  = S_C · S_r / BW_Net                                 the whole column travels
//!   (2)  M_OP  = (S_P · S_p + S_D · n + S_P · s · S_r) / BW_Net     without a list no S_P · S_p
//!   (3)  T_O   = S_P · S_r · (1 + s) / BW_Mem                       without a list S_P is S_C
//!   (4)  T_ovh = (S_P · n / 8 + S_P · s · S_r) / BW_Merge           one place splits and merges nothing
//!   (5)  E_DP  = M_DP + T_O
//!   (6)  E_OP  = M_OP + T_ovh + max(T_O,i)
//! ```
//!
//! What each place has to do before it begins, such as a hash table of probe data, is in (3) of the paper a smaller
//! BW_Mem. Here it is a time of its own, for it does not become less with more places.
//!
//! The first summand of (4) is printed as `S_P · n / BW_Mem / S_p`, where S_p has 8 bytes throughout: a bit per record
//! and place.

#![forbid(unsafe_code)]

pub mod help;
pub mod spread;

/// What is asked of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Operation {
    /// Records of the column: S_C.
    pub records: f64,
    /// Bytes of one: S_r.
    pub record_bytes: f64,
    /// How many of them are meant: S_P. `None`: all, and no list of them travels.
    pub positions: Option<f64>,
    /// Bytes of a position: S_p.
    pub position_bytes: f64,
    /// Bytes of the condition, which goes to each place: S_D. Those of a join's probe data are many.
    pub condition_bytes: f64,
    /// Seconds that each place needs before it begins, whatever its part is.
    pub setup: f64,
    /// The share of the records meant that come back: s.
    pub selectivity: f64,
}

impl Operation {
    /// Records that are looked at.
    fn met(&self) -> f64 {
        self.positions.unwrap_or(self.records)
    }

    /// Bytes that come back.
    fn result_bytes(&self) -> f64 {
        self.met() * self.selectivity * self.record_bytes
    }
}

/// The places that a column lies in, in equal parts, and the link to them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Places {
    /// How many: n.
    pub count: f64,
    /// Bytes per second of the link of the place that asks: BW_Net.
    pub link: f64,
    /// Bytes per second of the operation, wherever it is done: BW_Mem.
    pub memory: f64,
    /// Bytes per second at which lists are split and results merged. In the paper it is BW_Mem, too. But an operation
    /// may be much slower than memory.
    pub merging: f64,
}

/// Seconds that an operation takes, by what they are for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// What travels: M.
    pub transfer: f64,
    /// Lists that are split and results that are merged: T_ovh.
    pub overhead: f64,
    /// The operation: T_O, or the longest of its parts.
    pub work: f64,
}

impl Cost {
    /// All of it: E.
    pub fn seconds(&self) -> f64 {
        self.transfer + self.overhead + self.work
    }
}

/// Where an operation is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Where the data is.
    Push,
    /// Where it is asked for.
    Pull,
}

/// What it costs to do the operation where it is asked for: equations 1, 3, 5.
pub fn pull(operation: &Operation, places: &Places) -> Cost {
    Cost {
        transfer: operation.records * operation.record_bytes / places.link,
        overhead: 0.0,
        work: local(operation, places).work,
    }
}

/// What it costs to do the operation where the data is: equations 2, 3, 4, 6.
pub fn push(operation: &Operation, places: &Places) -> Cost {
    let list = operation.positions.unwrap_or(0.0) * operation.position_bytes;
    let conditions = operation.condition_bytes * places.count;
    let overhead = match places.count > 1.0 {
        true => operation.met() * places.count / 8.0 + operation.result_bytes(),
        false => 0.0,
    };
    Cost {
        transfer: (list + conditions + operation.result_bytes()) / places.link,
        overhead: overhead / places.merging,
        work: operation.setup + (local(operation, places).work - operation.setup) / places.count,
    }
}

/// What the operation would cost if the column lay where it is asked for: equation 3.
pub fn local(operation: &Operation, places: &Places) -> Cost {
    let bytes = operation.met() * operation.record_bytes + operation.result_bytes();
    Cost {
        work: operation.setup + bytes / places.memory,
        ..Cost::default()
    }
}

/// The cheaper way. Of two that cost the same, the operation goes to the data.
pub fn choose(operation: &Operation, places: &Places) -> Strategy {
    match push(operation, places).seconds() <= pull(operation, places).seconds() {
        true => Strategy::Push,
        false => Strategy::Pull,
    }
}
