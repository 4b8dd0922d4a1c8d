//! The verbs of the command line, from which `generate.py` writes `package/gpuimg/_verbs.py`.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// The verbs that make images, as dictionaries: their names, help, and arguments.
#[pyfunction]
pub fn verbs(py: Python) -> PyResult<Bound<PyList>> {
    let verbs = gpuimg::verbs().map(|verb| {
        let arguments = verb.arguments.iter().map(|argument| {
            let fields = PyDict::new(py);
            fields.set_item("name", &argument.name)?;
            fields.set_item("help", &argument.help)?;
            fields.set_item("is_positional", argument.is_positional)?;
            fields.set_item("value", &argument.value)?;
            fields.set_item("choices", &argument.choices)?;
            fields.set_item("delimiter", argument.delimiter)?;
            Ok(fields)
        });
        let fields = PyDict::new(py);
        fields.set_item("name", verb.name)?;
        fields.set_item("about", &verb.about)?;
        fields.set_item("defaults", verb.defaults.to_vec())?;
        fields.set_item("arguments", arguments.collect::<PyResult<Vec<_>>>()?)?;
        Ok(fields)
    });
    PyList::new(py, verbs.collect::<PyResult<Vec<_>>>()?)
}
