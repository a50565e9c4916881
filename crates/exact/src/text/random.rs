//! `gen_random_uuid()`.
//!
//! **Stands for** DataFusion's `uuid`, which gives strings.

use crate::types::UUID_BYTES;
use datafusion::arrow::array::FixedSizeBinaryBuilder;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;
use uuid::Uuid;

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct RandomUuid {
    aliases: [String; 1],
    signature: Signature,
}

impl Default for RandomUuid {
    fn default() -> Self {
        RandomUuid {
            aliases: ["gen_random_uuid".to_owned()],
            signature: Signature::nullary(Volatility::Volatile),
        }
    }
}

impl ScalarUDFImpl for RandomUuid {
    fn name(&self) -> &str {
        "uuid"
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::FixedSizeBinary(UUID_BYTES))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut uuids = FixedSizeBinaryBuilder::with_capacity(args.number_rows, UUID_BYTES);
        for _ in 0..args.number_rows {
            uuids.append_value(Uuid::new_v4())?;
        }
        Ok(ColumnarValue::Array(Arc::new(uuids.finish())))
    }
}
