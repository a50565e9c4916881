use super::*;
use datafusion::arrow::array::{
    Date32Array, DictionaryArray, Int32Array, Int64Array, StringViewArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{Field, Int32Type};

#[derive(Debug)]
struct Given {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Frame for Given {
    fn kind(&self) -> &str {
        "test"
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn rows(&self) -> Option<u64> {
        None
    }

    fn read(&self, columns: &[usize], _: &[Condition]) -> Result<FrameBatches, FrameError> {
        let columns = columns.to_vec();
        let batches = self.batches.clone().into_iter();
        let batches = batches.map(move |batch| batch.project(&columns).map_err(FrameError::new));
        Ok(Box::new(batches))
    }
}

fn reading(schema: &Schema, batches: Vec<RecordBatch>) -> Result<Arc<dyn FileReading>, FileError> {
    let schema = Arc::new(schema.clone());
    let frame = Arc::new(Given {
        schema: Arc::clone(&schema),
        batches,
    });
    let known =
        types::schema(&schema).map_err(|(column, kind)| fault(&"f".into(), column, kind))?;
    let all: Vec<usize> = (0..known.fields().len()).collect();
    let source = FrameSource {
        name: "f".into(),
        given: schema,
        schema: Arc::new(known),
        frame,
    };
    Ok(source.begin(&all, &[], &ReadProgress::default()))
}

fn schema(data_type: DataType) -> Schema {
    Schema::new(vec![Field::new("a", data_type, true)])
}

fn batch(column: ArrayRef) -> RecordBatch {
    RecordBatch::try_from_iter([("a", column)]).unwrap()
}

#[test]
fn workers_take_slices_and_miss_none() {
    let rows = 2 * ROWS + 17;
    let whole = Int64Array::from_iter_values(0..rows as i64);
    let batches = vec![
        batch(Arc::new(Int64Array::from(Vec::<i64>::new()))),
        batch(Arc::new(whole.slice(0, 5))),
        batch(Arc::new(whole.slice(5, rows - 5))),
    ];
    let reading = reading(&schema(DataType::Int64), batches).unwrap();
    let mut found: Vec<i64> = std::thread::scope(|scope| {
        let worker = || {
            let mut values = Vec::new();
            while let Some(batch) = reading.next(&mut None).unwrap() {
                assert!(batch.num_rows() <= ROWS);
                let column = batch.column(0).as_any().downcast_ref::<Int64Array>();
                values.extend_from_slice(column.unwrap().values());
            }
            values
        };
        let other = scope.spawn(worker);
        let mut values = worker();
        values.extend(other.join().unwrap());
        values
    });
    found.sort_unstable();
    assert_eq!(found, Vec::from_iter(0..rows as i64));
}

#[test]
fn dictionaries_and_texts_become_views() {
    let texts: DictionaryArray<Int32Type> = vec![Some("x"), None, Some("y")].into_iter().collect();
    let given = schema(texts.data_type().clone());
    let texts: ArrayRef = Arc::new(texts);
    let reading = reading(&given, vec![batch(texts.slice(1, 2))]).unwrap();
    let batch = reading.next(&mut None).unwrap().unwrap();
    let expected = StringViewArray::from(vec![None, Some("y")]);
    assert_eq!(batch.column(0).to_data(), expected.to_data());
}

#[test]
fn an_entry_of_a_dictionary_may_be_null() {
    let entries = StringViewArray::from(vec![Some("x"), None]);
    let keys = Int32Array::from(vec![Some(0), Some(1), None, Some(1)]);
    for entries in [
        Arc::new(entries.clone()) as ArrayRef,
        cast(&entries, &DataType::Utf8).unwrap(),
    ] {
        let texts = DictionaryArray::try_new(keys.clone(), entries).unwrap();
        let given = schema(texts.data_type().clone());
        let reading = reading(&given, vec![batch(Arc::new(texts))]).unwrap();
        let batch = reading.next(&mut None).unwrap().unwrap();
        let found: Vec<_> = batch.column(0).as_string_view().iter().collect();
        assert_eq!(found, [Some("x"), None, None, None]);
    }
}

#[test]
fn what_is_not_what_it_says_is_rejected() {
    for (declared, given, message) in [
        (
            DataType::Int64,
            batch(Arc::new(Int32Array::from(vec![1]))),
            "frame \"f\": column \"a\": the schema says Int64, but a batch has Int32",
        ),
        (
            DataType::Date32,
            batch(Arc::new(Date32Array::from(vec![i32::MAX]))),
            "frame \"f\": column \"a\": a date or timestamp is out of range",
        ),
    ] {
        let reading = reading(&schema(declared), vec![given]).unwrap();
        assert_eq!(reading.next(&mut None).unwrap_err().to_string(), message);
        assert!(reading.next(&mut None).unwrap().is_none());
    }
    let rejected = |given: &Schema| reading(given, Vec::new()).err().unwrap().to_string();
    let map = DataType::Decimal256(50, 2);
    assert_eq!(
        rejected(&schema(map)),
        "frame \"f\": column \"a\": there is no type of SQL for values of Arrow's type Decimal256(50, 2)"
    );
    assert_eq!(rejected(&Schema::empty()), "frame \"f\": it has no columns");
    let field = Field::new("a", DataType::Int64, true);
    let doubled = Schema::new(vec![field.clone(), field]);
    assert_eq!(
        rejected(&doubled),
        "frame \"f\": column \"a\": two columns have this name"
    );
}
