//! Tables that polars, pandas, pyarrow and duckdb read without a copy: Arrow's PyCapsule interface.
//!
//! <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{DataType, Field, Schema};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyList};

use crate::error::failed;

/// A column with few distinct names, each of which is stored once.
pub(crate) type Words = StringDictionaryBuilder<Int32Type>;

/// A table. Its columns are Arrow arrays.
#[pyclass(frozen, module = "bentpipe")]
pub(crate) struct Table(RecordBatch);

/// The table of columns of equal length: name, meaning, values.
pub(crate) fn table<'a>(columns: impl IntoIterator<Item = (&'a str, &'a str, ArrayRef)>) -> Table {
    let (fields, arrays): (Vec<_>, Vec<_>) = columns
        .into_iter()
        .map(|(name, meaning, array)| {
            let meaning = HashMap::from([("meaning".to_owned(), meaning.to_owned())]);
            (Field::new(name, array.data_type().clone(), true).with_metadata(meaning), array)
        })
        .unzip();
    Table(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("columns of equal length"))
}

/// Declares a table once: the builders of its columns, and their meanings.
macro_rules! columns {
    ($(#[$doc:meta])* $name:ident { $($column:ident: $builder:ty, $meaning:literal;)* }) => {
        $(#[$doc])*
        #[derive(Default)]
        pub(crate) struct $name { $(pub(crate) $column: $builder),* }

        impl $name {
            /// The table of all that was appended.
            pub(crate) fn finish(mut self) -> $crate::table::Table {
                use arrow_array::builder::ArrayBuilder;
                $crate::table::table([$((stringify!($column), $meaning, ArrayBuilder::finish(&mut self.$column))),*])
            }
        }
    };
}
pub(crate) use columns;

impl Table {
    fn find(&self, name: &str) -> PyResult<&ArrayRef> {
        self.0.column_by_name(name).ok_or_else(|| {
            let names = self.column_names().join(", ");
            PyKeyError::new_err(format!("no column `{name}`; there are {names}"))
        })
    }
}

/// One byte per value: 1 if the value is missing.
fn missing<'py>(py: Python<'py>, array: &dyn Array) -> Option<Bound<'py, PyBytes>> {
    let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0)?;
    let mask: Vec<u8> = nulls.iter().map(|is_there| u8::from(!is_there)).collect();
    Some(PyBytes::new(py, &mask))
}

/// A column for NumPy: the kind of its values, the values, one byte per missing value, and the words to which values
/// refer.
type Plain<'py> = (&'static str, Bound<'py, PyAny>, Option<Bound<'py, PyBytes>>, Option<Vec<String>>);

#[pymethods]
impl Table {
    #[getter]
    fn num_rows(&self) -> usize {
        self.0.num_rows()
    }

    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// What a column means.
    fn meaning(&self, name: &str) -> PyResult<String> {
        self.find(name)?;
        let schema = self.0.schema();
        let field = schema.field_with_name(name).map_err(failed)?;
        Ok(field.metadata().get("meaning").cloned().unwrap_or_default())
    }

    /// The values of a column, for NumPy.
    fn plain<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Plain<'py>> {
        let array = self.find(name)?;
        let bytes = |bytes: &[u8]| PyBytes::new(py, bytes).into_any();
        Ok(match array.data_type() {
            DataType::Int64 => {
                let values = bytes(array.as_primitive::<Int64Type>().values().inner().as_slice());
                ("i8", values, missing(py, array), None)
            }
            DataType::Float64 => {
                let values = bytes(array.as_primitive::<Float64Type>().values().inner().as_slice());
                ("f8", values, missing(py, array), None)
            }
            DataType::Boolean => {
                let flags: Vec<u8> = array.as_boolean().values().iter().map(u8::from).collect();
                ("?", bytes(&flags), missing(py, array), None)
            }
            DataType::Dictionary(..) => {
                let words = array.as_dictionary::<Int32Type>();
                let numbers = bytes(words.keys().values().inner().as_slice());
                let known = words.values().as_string::<i32>().iter().map(|word| word.unwrap_or_default().to_owned());
                ("i4", numbers, missing(py, array), Some(known.collect()))
            }
            _ => ("O", PyList::new(py, array.as_string::<i32>().iter())?.into_any(), None, None),
        })
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows a producer to ignore the request.
        let _ = requested_schema;
        let reader = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.0.schema().as_ref()).map_err(failed)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }
}
