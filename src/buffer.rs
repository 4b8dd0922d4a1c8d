//! Memory for samples. Large images get huge pages where the system grants them: touching 128 MiB
//! for the first time takes 33 000 page faults otherwise, longer than the operation on it. A thread
//! that works on one image after another keeps the memory of the last ones on its shelf.

use anyhow::Result;
use bytemuck::Pod;
use memmap2::{Advice, MmapMut};
use std::cell::RefCell;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// From this many bytes on memory is mapped by itself.
const LARGE: usize = 4 << 20;

/// Blocks smaller than this are not worth a place on a shelf.
const SHELVED: usize = 64 << 10;

/// What debug builds fill memory with that is to be written.
pub const POISON: u8 = 0xa5;

/// A fixed number of samples; used as a slice.
pub struct Buffer<T> {
    len: usize,
    memory: Memory<T>,
}

enum Memory<T> {
    Heap(Vec<T>),
    Mapped(MmapMut),
    /// From a shelf, and which stock of it.
    Shelved(Block, usize),
    /// What is left of a buffer that gave its memory back.
    Gone,
}

/// Memory of a shelf: plain bytes, aligned for samples of 16 bits.
pub type Block = Box<dyn Bytes>;

/// Bytes that can be read and written.
pub trait Bytes: DerefMut<Target = [u8]> + Send + Sync {}

impl<B: DerefMut<Target = [u8]> + Send + Sync> Bytes for B {}

thread_local! {
    static SHELF: RefCell<Option<Shelf>> = const { RefCell::new(None) };
}

/// The memory that a thread keeps for its next images.
struct Shelf {
    blocks: Vec<Block>,
    /// Bytes that may lie here.
    most: usize,
    make: Box<dyn Fn(usize) -> Option<Block>>,
    /// Counts the stocks; what is left of an earlier one is not taken back.
    stock: usize,
}

/// Gives this thread a shelf for at most `most` bytes, new blocks made by `make` (`None`: as without
/// a shelf), and takes it away after `work`.
pub fn with_shelf<R>(
    most: usize,
    make: impl Fn(usize) -> Option<Block> + 'static,
    work: impl FnOnce() -> R,
) -> R {
    let shelf = Shelf {
        blocks: Vec::new(),
        most,
        make: Box::new(make),
        stock: 0,
    };
    SHELF.set(Some(shelf));
    let result = work();
    SHELF.set(None);
    result
}

/// Gives up what lies on this thread's shelf, if it has one: `make` makes better blocks from now on.
pub fn restock() {
    SHELF.with_borrow_mut(|shelf| {
        if let Some(shelf) = shelf {
            shelf.blocks.clear();
            shelf.stock += 1;
        }
    });
}

/// Memory of the system's own, with huge pages if it will; `None` if there is none.
pub fn mapped(bytes: usize) -> Option<MmapMut> {
    let map = MmapMut::map_anon(bytes).ok()?;
    // A wish: without huge pages the memory is as good, only slower to touch.
    let _ = map.advise(Advice::HugePage);
    Some(map)
}

impl Shelf {
    /// A block for `bytes`: the smallest that serves, or a new one.
    fn take(&mut self, bytes: usize) -> Option<(Block, usize)> {
        let serves = |block: &Block| block.len() >= bytes && block.len() / 4 <= bytes;
        let best = self
            .blocks
            .iter()
            .enumerate()
            .filter(|(_, block)| serves(block));
        let block = match best.min_by_key(|(_, block)| block.len()) {
            Some((index, _)) => Some(self.blocks.remove(index)),
            None => (self.make)(bytes),
        };
        block.map(|block| (block, self.stock))
    }

    fn put(&mut self, block: Block, stock: usize) {
        if stock != self.stock {
            return;
        }
        self.blocks.push(block);
        let mut lying: usize = self.blocks.iter().map(|block| block.len()).sum();
        // The oldest go first.
        while lying > self.most {
            lying -= self.blocks.remove(0).len();
        }
    }
}

impl<T: Pod> Buffer<T> {
    /// `len` zeros, untouched until used; an error if the system will not give the memory.
    pub fn zeroed(len: usize) -> Result<Buffer<T>> {
        let bytes = len.saturating_mul(size_of::<T>());
        let memory = if bytes < LARGE {
            Memory::Heap(vec![T::zeroed(); len])
        } else {
            let map = mapped(bytes)
                .ok_or_else(|| anyhow::anyhow!("not enough memory for {bytes} bytes of samples"))?;
            Memory::Mapped(map)
        };
        Ok(Buffer { len, memory })
    }

    /// `len` samples of any value, for those who write every one: the memory may be an earlier
    /// image's. An error if the system will not give it.
    ///
    /// In debug builds, and so in the tests, every byte is `POISON`, whatever the size and wherever
    /// the memory is from: a sample that is left unwritten shows.
    pub fn any(len: usize) -> Result<Buffer<T>> {
        let mut buffer = Buffer::recycled(len)?;
        if cfg!(debug_assertions) {
            bytemuck::cast_slice_mut::<T, u8>(&mut buffer).fill(POISON);
        }
        Ok(buffer)
    }

    /// Memory that another image had, or new memory.
    fn recycled(len: usize) -> Result<Buffer<T>> {
        let bytes = len.saturating_mul(size_of::<T>());
        let shelved = (bytes >= SHELVED)
            .then(|| SHELF.with_borrow_mut(|shelf| shelf.as_mut()?.take(bytes)))
            .flatten();
        match shelved {
            Some((block, stock)) => Ok(Buffer {
                len,
                memory: Memory::Shelved(block, stock),
            }),
            None => Buffer::zeroed(len),
        }
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        if let Memory::Shelved(block, stock) = std::mem::replace(&mut self.memory, Memory::Gone) {
            // A thread without a shelf, or one that ends, gives the memory back to the system.
            let _ = SHELF.try_with(|shelf| {
                if let Some(shelf) = shelf.borrow_mut().as_mut() {
                    shelf.put(block, stock);
                }
            });
        }
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
        let bytes = self.len * size_of::<T>();
        match &self.memory {
            Memory::Heap(vec) => vec,
            Memory::Mapped(map) => bytemuck::cast_slice(&map[..bytes]),
            Memory::Shelved(block, _) => bytemuck::cast_slice(&block[..bytes]),
            Memory::Gone => &[],
        }
    }
}

impl<T: Pod> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        let bytes = self.len * size_of::<T>();
        match &mut self.memory {
            Memory::Heap(vec) => vec,
            Memory::Mapped(map) => bytemuck::cast_slice_mut(&mut map[..bytes]),
            Memory::Shelved(block, _) => bytemuck::cast_slice_mut(&mut block[..bytes]),
            Memory::Gone => &mut [],
        }
    }
}

impl<T: Pod + fmt::Debug> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        (**self).fmt(f)
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
