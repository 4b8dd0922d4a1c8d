//! Memory for samples. Large images get huge pages where the system grants them: touching 128 MiB
//! for the first time takes 33 000 page faults otherwise, longer than the operation on it.

use anyhow::Result;
use bytemuck::Pod;
use memmap2::{Advice, MmapMut};
use std::ops::{Deref, DerefMut};

/// From this many bytes on memory is mapped by itself.
const LARGE: usize = 4 << 20;

/// A fixed number of samples; used as a slice.
#[derive(Debug)]
pub struct Buffer<T> {
    len: usize,
    memory: Memory<T>,
}

#[derive(Debug)]
enum Memory<T> {
    Heap(Vec<T>),
    Mapped(MmapMut),
}

impl<T: Pod> Buffer<T> {
    /// `len` zeros, untouched until used; an error if the system will not give the memory.
    pub fn zeroed(len: usize) -> Result<Buffer<T>> {
        let bytes = len.saturating_mul(size_of::<T>());
        let memory = if bytes < LARGE {
            Memory::Heap(vec![T::zeroed(); len])
        } else {
            let map = MmapMut::map_anon(bytes)
                .map_err(|_| anyhow::anyhow!("not enough memory for {bytes} bytes of samples"))?;
            // A wish: without huge pages the memory is as good, only slower to touch.
            let _ = map.advise(Advice::HugePage);
            Memory::Mapped(map)
        };
        Ok(Buffer { len, memory })
    }
}

impl<T> From<Vec<T>> for Buffer<T> {
    fn from(vec: Vec<T>) -> Buffer<T> {
        Buffer {
            len: vec.len(),
            memory: Memory::Heap(vec),
        }
    }
}

impl<T> FromIterator<T> for Buffer<T> {
    fn from_iter<I: IntoIterator<Item = T>>(samples: I) -> Buffer<T> {
        Vec::from_iter(samples).into()
    }
}

impl<T: Pod> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.memory {
            Memory::Heap(vec) => vec,
            Memory::Mapped(map) => bytemuck::cast_slice(&map[..self.len * size_of::<T>()]),
        }
    }
}

impl<T: Pod> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.memory {
            Memory::Heap(vec) => vec,
            Memory::Mapped(map) => bytemuck::cast_slice_mut(&mut map[..self.len * size_of::<T>()]),
        }
    }
}

impl<T: Pod> Clone for Buffer<T> {
    fn clone(&self) -> Buffer<T> {
        match Buffer::zeroed(self.len) {
            Ok(mut copy) => {
                copy.copy_from_slice(self);
                copy
            }
            // The allocator's own way to say that there is no memory.
            Err(_) => self.to_vec().into(),
        }
    }
}

impl<T: Pod + PartialEq> PartialEq for Buffer<T> {
    fn eq(&self, other: &Buffer<T>) -> bool {
        **self == **other
    }
}

impl<T: Pod + Eq> Eq for Buffer<T> {}
