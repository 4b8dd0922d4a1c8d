//! DLPack (https://dmlc.github.io/dlpack/latest/): lends the samples of an image to NumPy, PyTorch, JAX and others.

use gpuimg::SampleType;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::Arc;

/// kDLCPU: the memory of the host.
pub const CPU: (i32, i32) = (1, 0);

/// kDLCUDA and kDLCUDAManaged: the memory of a GPU, and memory that moves to and from it.
const CUDA: i32 = 2;
const CUDA_MANAGED: i32 = 13;

/// The memory of a GPU.
pub fn gpu(number: usize) -> (i32, i32) {
    (CUDA, number as i32)
}

/// The number of the GPU in whose memory a tensor is, by its `__dlpack_device__`.
pub fn gpu_of(device: (i32, i32)) -> Option<usize> {
    let is_gpu = matches!(device.0, CUDA | CUDA_MANAGED);
    is_gpu.then_some(device.1.max(0) as usize)
}

/// The version of the structures below that have one.
const VERSION: Version = Version { major: 1, minor: 0 };
const READ_ONLY: u64 = 1;
const IS_COPIED: u64 = 2;

const VERSIONED: &CStr = c"dltensor_versioned";
const UNVERSIONED: &CStr = c"dltensor";

#[repr(C)]
struct Version {
    major: u32,
    minor: u32,
}

#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    dimensions: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct ManagedTensor {
    tensor: Tensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedTensor)>,
}

#[repr(C)]
struct ManagedTensorVersioned {
    version: Version,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedTensorVersioned)>,
    flags: u64,
    tensor: Tensor,
}

/// What a tensor lends: memory, and what keeps it.
pub struct Lent {
    /// The first sample.
    pub data: *const u8,
    /// The owner of the memory. It needs no interpreter, since a tensor may be dropped in any thread.
    pub owner: Arc<dyn Send + Sync>,
    /// The type of the samples.
    pub sample_type: SampleType,
    /// Height and width, and channels if there are several.
    pub shape: Vec<i64>,
    /// Where the memory is.
    pub device: (i32, i32),
    /// Whether the memory is a copy.
    pub is_copy: bool,
    /// Whether the receiver may change the memory.
    pub is_writable: bool,
}

/// A tensor together with all that it points to.
struct Held<T> {
    managed: T,
    shape: Vec<i64>,
    strides: Vec<i64>,
    _owner: Arc<dyn Send + Sync>,
}

impl Lent {
    /// A capsule with the tensor: with its flags if the receiver knows them.
    pub fn into_capsule(self, py: Python, versioned: bool) -> PyResult<Bound<PyAny>> {
        if versioned {
            let copied = if self.is_copy { IS_COPIED } else { 0 };
            let flags = copied | if self.is_writable { 0 } else { READ_ONLY };
            let held = self.hold(|tensor| ManagedTensorVersioned {
                version: VERSION,
                context: ptr::null_mut(),
                deleter: Some(delete_versioned),
                flags,
                tensor,
            });
            // SAFETY: a box that was given away, so that nothing else refers to it.
            unsafe {
                (*held).managed.context = held.cast();
                (*held).managed.tensor.shape = (*held).shape.as_mut_ptr();
                (*held).managed.tensor.strides = (*held).strides.as_mut_ptr();
                let managed = &raw mut (*held).managed;
                capsule(py, managed.cast(), VERSIONED, destroy_versioned)
                    .inspect_err(|_| delete_versioned(managed))
            }
        } else {
            let held = self.hold(|tensor| ManagedTensor {
                tensor,
                context: ptr::null_mut(),
                deleter: Some(delete),
            });
            // SAFETY: as above.
            unsafe {
                (*held).managed.context = held.cast();
                (*held).managed.tensor.shape = (*held).shape.as_mut_ptr();
                (*held).managed.tensor.strides = (*held).strides.as_mut_ptr();
                let managed = &raw mut (*held).managed;
                capsule(py, managed.cast(), UNVERSIONED, destroy).inspect_err(|_| delete(managed))
            }
        }
    }

    /// The tensor in memory of its own, which the deleter frees. The pointers to itself are still missing.
    fn hold<T>(self, manage: impl FnOnce(Tensor) -> T) -> *mut Held<T> {
        use SampleType::{F32, F64, I8, I16, I32};
        let code = match self.sample_type {
            I8 | I16 | I32 => 0,
            F32 | F64 => 2,
            _ => 1,
        };
        let strides = dense_strides(&self.shape);
        let tensor = Tensor {
            data: self.data.cast_mut().cast(),
            device_type: self.device.0,
            device_id: self.device.1,
            dimensions: self.shape.len() as i32,
            code,
            bits: 8 * self.sample_type.bytes() as u8,
            lanes: 1,
            shape: ptr::null_mut(),
            strides: ptr::null_mut(),
            byte_offset: 0,
        };
        Box::into_raw(Box::new(Held {
            managed: manage(tensor),
            shape: self.shape,
            strides,
            _owner: self.owner,
        }))
    }
}

/// A capsule with this name, and what is called when it is collected.
///
/// # Safety
/// `destroy` frees what `managed` points to.
unsafe fn capsule<'py>(
    py: Python<'py>,
    managed: *mut c_void,
    name: &'static CStr,
    destroy: unsafe extern "C" fn(*mut ffi::PyObject),
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the name is static, and the interpreter is attached.
    unsafe {
        let capsule = ffi::PyCapsule_New(managed, name.as_ptr(), Some(destroy));
        Bound::from_owned_ptr_or_err(py, capsule)
    }
}

/// Frees a tensor; its receiver calls it once.
///
/// # Safety
/// `managed` comes from `into_capsule`.
unsafe extern "C" fn delete(managed: *mut ManagedTensor) {
    // SAFETY: `context` is the box that `hold` gave away.
    drop(unsafe { Box::from_raw((*managed).context.cast::<Held<ManagedTensor>>()) });
}

/// The same.
///
/// # Safety
/// As above.
unsafe extern "C" fn delete_versioned(managed: *mut ManagedTensorVersioned) {
    // SAFETY: as above.
    drop(unsafe { Box::from_raw((*managed).context.cast::<Held<ManagedTensorVersioned>>()) });
}

/// Frees the tensor of a capsule that nobody received: a receiver renames it.
///
/// # Safety
/// The interpreter calls it with a capsule of `into_capsule`.
unsafe extern "C" fn destroy(capsule: *mut ffi::PyObject) {
    // SAFETY: a valid capsule of this name has the pointer that `capsule` gave it.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, UNVERSIONED.as_ptr()) == 1 {
            delete(ffi::PyCapsule_GetPointer(capsule, UNVERSIONED.as_ptr()).cast());
        }
    }
}

/// The same.
///
/// # Safety
/// As above.
unsafe extern "C" fn destroy_versioned(capsule: *mut ffi::PyObject) {
    // SAFETY: as above.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) == 1 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast());
        }
    }
}

/// Refuses what the samples of an image in host memory cannot be lent to.
pub fn check_receiver(stream: Option<&Bound<PyAny>>, device: Option<(i32, i32)>) -> PyResult<()> {
    if stream.is_some() {
        let why = "the image is in host memory, which has no stream: leave stream out";
        return Err(PyBufferError::new_err(why));
    }
    match device {
        None | Some(CPU) => Ok(()),
        Some((kind, number)) => Err(PyBufferError::new_err(format!(
            "the image is in host memory (1, 0), not on the device ({kind}, {number}): copy it there, as with torch.from_dlpack(image).cuda()"
        ))),
    }
}

/// A tensor in the memory of a GPU that another library lends.
pub struct Borrowed<'py> {
    /// The tensor, which the library frees after this.
    _capsule: Bound<'py, PyAny>,
    /// Its first sample, and the number of its GPU.
    pub address: u64,
    pub gpu: usize,
    /// The sides, and the samples from one to the next of each.
    pub sides: Vec<usize>,
    pub strides: Vec<i64>,
    /// The type of the samples; `None` for one that images do not have.
    pub sample_type: Option<SampleType>,
}

/// Borrows the tensor of an object with `__dlpack__`, after whose queued work it lets the default stream wait.
pub fn borrow<'py>(object: &Bound<'py, PyAny>, stream: usize) -> PyResult<Borrowed<'py>> {
    let py = object.py();
    let arguments = pyo3::types::PyDict::new(py);
    arguments.set_item("stream", stream)?;
    let capsule = object.call_method("__dlpack__", (), Some(&arguments))?;
    // SAFETY: the name is static, and the interpreter is attached.
    let pointer = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), UNVERSIONED.as_ptr()) };
    if pointer.is_null() {
        return Err(PyErr::fetch(py));
    }
    // SAFETY: a capsule of this name has such a tensor, which lives as long as the capsule, since nobody receives it.
    let tensor = unsafe { &(*pointer.cast::<ManagedTensor>()).tensor };
    let count = tensor.dimensions.max(0) as usize;
    let numbers = |numbers: *const i64| {
        // SAFETY: a tensor has as many sides as dimensions, and as many strides, unless it has none.
        let numbers = (count > 0).then(|| unsafe { std::slice::from_raw_parts(numbers, count) });
        numbers.unwrap_or_default().to_vec()
    };
    let sides = numbers(tensor.shape);
    let strides = if tensor.strides.is_null() {
        dense_strides(&sides)
    } else {
        numbers(tensor.strides)
    };
    use SampleType::{F32, F64, I8, I16, I32, U8, U16, U32};
    let sample_type = match (tensor.code, tensor.bits, tensor.lanes) {
        (0, 8, 1) => Some(I8),
        (0, 16, 1) => Some(I16),
        (0, 32, 1) => Some(I32),
        (1, 8, 1) => Some(U8),
        (1, 16, 1) => Some(U16),
        (1, 32, 1) => Some(U32),
        (2, 32, 1) => Some(F32),
        (2, 64, 1) => Some(F64),
        _ => None,
    };
    Ok(Borrowed {
        address: tensor.data.addr() as u64 + tensor.byte_offset,
        gpu: tensor.device_id.max(0) as usize,
        sides: sides.iter().map(|&side| side.max(0) as usize).collect(),
        strides,
        sample_type,
        _capsule: capsule,
    })
}

/// The strides of sides without gaps, the last of which is 1.
fn dense_strides(sides: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; sides.len()];
    for axis in (1..sides.len()).rev() {
        strides[axis - 1] = strides[axis] * sides[axis];
    }
    strides
}
