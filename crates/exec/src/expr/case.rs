//! CASE: every condition and every result is evaluated on exactly the rows that reach it, so that a guarded division
//! does not fail on the rows it is guarded from.
//!
//! ```text
//! rows      0 1 2 3 4 5     CASE WHEN a THEN x WHEN b THEN y ELSE z END
//! open      0 1 2 3 4 5 ──a──▶ x on 1 4
//! open      0 2 3 5     ──b──▶ y on 0
//! open      2 3 5       ─────▶ z
//! pieces    z: 2 3 5 │ x: 1 4 │ y: 0        interleaved: (y,0) (x,0) (z,0) (z,1) (x,1) (z,2)
//! ```

use super::compile::Expression;
use super::error::unexpected;
use super::eval::Frame;
use arrow_array::{Array, ArrayRef, UInt32Array, new_null_array};
use arrow_schema::DataType;
use arrow_select::interleave::interleave;
use eris_fragment::FragmentError;

pub(super) fn evaluate(
    branches: &[(Expression, Expression)],
    otherwise: Option<&Expression>,
    data_type: &DataType,
    frame: &Frame,
) -> Result<ArrayRef, FragmentError> {
    // Piece 0 is NULL, for rows that no branch takes.
    let mut pieces = vec![new_null_array(data_type, 1)];
    let mut source = vec![(0, 0); frame.rows];
    let mut open = UInt32Array::from_iter_values(0..frame.rows as u32);
    for (condition, result) in branches {
        let taken = condition.holds(&frame.narrow(&open, condition)?)?;
        let pick = |keep| {
            let rows = |row: usize| open.value(row);
            UInt32Array::from_iter_values(arrow_buffer::BooleanBuffer::set_indices(keep).map(rows))
        };
        let (here, rest) = (pick(&taken), pick(&!&taken));
        add(result, here, frame, &mut pieces, &mut source)?;
        open = rest;
        if open.is_empty() {
            break;
        }
    }
    if let Some(otherwise) = otherwise {
        add(otherwise, open, frame, &mut pieces, &mut source)?;
    }
    let pieces: Vec<&dyn Array> = pieces.iter().map(|piece| piece.as_ref()).collect();
    interleave(&pieces, &source).map_err(unexpected)
}

/// Evaluates one result on its rows and notes where each of them finds its value.
fn add(
    result: &Expression,
    rows: UInt32Array,
    frame: &Frame,
    pieces: &mut Vec<ArrayRef>,
    source: &mut [(usize, usize)],
) -> Result<(), FragmentError> {
    if rows.is_empty() {
        return Ok(());
    }
    let values = result.evaluate(&frame.narrow(&rows, result)?)?;
    for (place, &row) in rows.values().iter().enumerate() {
        source[row as usize] = (pieces.len(), place);
    }
    pieces.push(values);
    Ok(())
}
