//! `+`, `-` and `*` of integers and DECIMAL as functions that fail where the result does not fit its type.
//!
//! **Stands for** DataFusion's binary operators, which wrap around, and exceed the digits of a DECIMAL.

use datafusion::arrow::array::{Array, AsArray, Datum};
use datafusion::arrow::compute::kernels::numeric;
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef};
use datafusion::arrow::error::ArrowError;
use datafusion::common::Result;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion::logical_expr::{
    ColumnarValue, Expr, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::physical_expr_common::datum::apply;
use eris_fragment::FragmentError;
use std::sync::Arc;

/// The function for one of the operators.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct CheckedArithmetic {
    op: Operator,
    signature: Signature,
}

impl CheckedArithmetic {
    pub fn new(op: Operator) -> Self {
        CheckedArithmetic {
            op,
            signature: Signature::any(2, Volatility::Immutable),
        }
    }

    /// The operator whose place it takes.
    pub fn op(&self) -> Operator {
        self.op
    }
}

impl ScalarUDFImpl for CheckedArithmetic {
    fn name(&self) -> &str {
        match self.op {
            Operator::Plus => "add",
            Operator::Minus => "subtract",
            _ => "multiply",
        }
    }

    fn display_name(&self, arguments: &[Expr]) -> Result<String> {
        self.schema_name(arguments)
    }

    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        let names: Vec<_> = arguments
            .iter()
            .map(|argument| argument.schema_name().to_string())
            .collect();
        Ok(names.join(&format!(" {} ", self.op)))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        BinaryTypeCoercer::new(&types[0], &self.op, &types[1]).get_result_type()
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<_> = (args.arg_fields.iter())
            .map(|field| field.data_type().clone())
            .collect();
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        let field = Field::new(self.name(), self.return_type(&types)?, nullable);
        Ok(Arc::new(field))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let kernel = match self.op {
            Operator::Plus => numeric::add,
            Operator::Minus => numeric::sub,
            _ => numeric::mul,
        };
        let checked = |left: &dyn Datum, right: &dyn Datum| {
            let result = kernel(left, right)?;
            if let DataType::Decimal128(digits, _) = result.data_type() {
                let result = result.as_primitive::<Decimal128Type>();
                // The kernel minds the limits of the machine's number only.
                result
                    .validate_decimal_precision(*digits)
                    .map_err(|error| ArrowError::ArithmeticOverflow(error.to_string()))?;
            }
            Ok(result)
        };
        let [left, right] = &args.args[..] else {
            unreachable!("the signature asks for two arguments");
        };
        apply(left, right, checked).map_err(|error| self.named(error, left, right))
    }
}

impl CheckedArithmetic {
    /// An overflow, with the values where they are constants.
    fn named(
        &self,
        error: DataFusionError,
        left: &ColumnarValue,
        right: &ColumnarValue,
    ) -> DataFusionError {
        let overflow = matches!(
            error.find_root(),
            DataFusionError::ArrowError(arrow, _) if matches!(**arrow, ArrowError::ArithmeticOverflow(_))
        );
        if !overflow {
            return error;
        }
        let what = match (left, right) {
            (ColumnarValue::Scalar(left), ColumnarValue::Scalar(right)) => {
                format!("{left} {} {right}", self.op)
            }
            (ColumnarValue::Array(array), _) | (_, ColumnarValue::Array(array)) => {
                let name = crate::types::sql_name(array.data_type(), None);
                let noun = match self.op {
                    Operator::Plus => "addition",
                    Operator::Minus => "subtraction",
                    _ => "multiplication",
                };
                format!("{noun} of {name}")
            }
        };
        DataFusionError::External(Box::new(FragmentError::Overflow { what }))
    }
}
