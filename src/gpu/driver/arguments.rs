//! The arguments of a launch, as the driver reads them.

use cudarc::driver::DeviceRepr;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::{ptr, slice};

/// The list of arguments for the driver, which reads each through a pointer.
#[derive(Debug, Default)]
pub struct List<'b> {
    pub(super) pointers: Vec<*mut c_void>,
    /// The bytes of each.
    sizes: Vec<usize>,
    arguments: PhantomData<&'b ()>,
}

impl<'b> List<'b> {
    /// The next argument.
    pub fn push(&mut self, argument: &'b impl Argument) {
        argument.push_to(self);
    }

    /// An argument that lies in memory as kernels read it.
    pub(super) fn push_raw<T>(&mut self, argument: &'b T) {
        self.pointers
            .push(ptr::from_ref(argument).cast_mut().cast());
        self.sizes.push(size_of::<T>());
    }

    /// A copy of the arguments.
    pub(super) fn pack(&self) -> Packed {
        let mut packed = Packed::default();
        for (&pointer, &size) in self.pointers.iter().zip(&self.sizes) {
            // SAFETY: `push_raw` stored the address of a live value of this size, which is a number or an address.
            let value = unsafe { slice::from_raw_parts(pointer.cast::<u8>(), size) };
            let at = packed.bytes.len().next_multiple_of(size);
            packed.bytes.resize(at, 0);
            packed.offsets.push(at);
            packed.bytes.extend_from_slice(value);
        }
        let whole = packed.bytes.len().next_multiple_of(8);
        packed.bytes.resize(whole, 0);
        packed
    }
}

/// Arguments as a record that C lays out: each at a multiple of its size, and the whole a multiple of 8 bytes.
#[derive(Debug, Default)]
pub(super) struct Packed {
    pub(super) bytes: Vec<u8>,
    offsets: Vec<usize>,
}

impl Packed {
    /// A pointer to each argument.
    pub(super) fn pointers(&self) -> Vec<*mut c_void> {
        let pointer = |&at: &usize| self.bytes[at..].as_ptr().cast_mut().cast();
        self.offsets.iter().map(pointer).collect()
    }
}

/// A type that a kernel can have as an argument.
pub trait Argument {
    /// Appends it to a list.
    fn push_to<'b>(&'b self, list: &mut List<'b>);
}

impl<T: DeviceRepr> Argument for T {
    fn push_to<'b>(&'b self, list: &mut List<'b>) {
        list.push_raw(self);
    }
}
