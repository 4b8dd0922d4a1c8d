//! Launches with typed arguments. `gpu/launch.rs`, which is generated from the kernels' signatures, has a type with named
//! fields for each kernel. Here the arguments are checked and passed to the driver.
//!
//! The single `unsafe` of all launches relies on this:
//! * Number, order and sizes of the arguments are the kernel's: `kernels/launch.py` reads them in its source, and compares them
//!   with those of the compiled kernel.
//! * A kernel touches no memory but that of its arguments, and of each as much as the line `lengths` above it says, which
//!   `Arguments::check` compares with the views. That the kernel's code keeps to it is shown by tests alone: they run every
//!   kernel, also under a memory checker.
//! * A kernel that finds addresses in memory (indices, offsets) trusts its content. Its type is not `Checked`, and to launch
//!   it is unsafe: the line `trusts` says what must be true.
//! * The memory is still there when the kernel runs: a buffer goes back to the allocator of its stream, which gives it out
//!   only after what was queued there; work on other streams is waited for before (`Job::wait_for_stream`). The allocator of a
//!   worker whose work is recorded gives memory out for work that is recorded later, and to the driver after a wait.
//! * Of two kernels at once on the same memory the result is undefined, but no other memory is touched.

pub use super::arguments::{Argument, List};
use super::commands::Work;
use super::context::Gpu;
use super::error::{bind, description};
pub(crate) use super::kernel::Form;
use super::kernel::{Grid, Kernel};
pub(crate) use super::memory::{View, ViewMut};
pub(crate) use super::tensor::TensorMap;
use anyhow::{Result, anyhow, ensure};
use cudarc::driver::result::DriverError;
use cudarc::driver::sys;
use std::{mem, ptr};

/// The arguments of a kernel, or of a family of kernels with the same parameters.
///
/// # Safety
/// `push` gives the arguments of all `KERNELS`, in order. If `check` passes, none of them touches memory beyond the views,
/// unless the content of memory that it trusts leads it there. Only generated code implements it.
pub unsafe trait Arguments {
    /// The source file below `kernels/`, without its extension.
    const FILE: &'static str;
    /// The kernels' names, without the form.
    const KERNELS: &'static [&'static str];
    /// The forms in which they are compiled.
    const FORMS: &'static [Form];
    /// The most images of a launch for several; 0 if the kernels work on one image only.
    const IMAGES: u32;

    /// Compares the views with the lengths that the kernel needs.
    ///
    /// # Errors
    /// A view that is too short, or another condition of the kernel that does not hold.
    fn check(&self, launch: &Launch) -> Result<()>;

    /// Gives the arguments in order.
    fn push<'b>(&'b self, list: &mut List<'b>);
}

/// Arguments of kernels that do not trust the content of memory.
pub trait Checked: Arguments {}

/// The parameters of a launch other than the arguments.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'k> {
    /// The kernel's name.
    pub kernel: &'k str,
    /// The form of the kernel.
    pub form: &'static Form,
    /// The blocks and their threads.
    pub grid: Grid,
}

impl Launch<'_> {
    /// Blocks of the grid.
    pub fn blocks(&self) -> u64 {
        self.grid
            .blocks
            .iter()
            .map(|&count| u64::from(count))
            .product()
    }

    /// Threads of a block.
    pub fn block(&self) -> u64 {
        self.grid
            .threads
            .iter()
            .map(|&count| u64::from(count))
            .product()
    }

    /// Threads of all blocks.
    pub fn threads(&self) -> u64 {
        self.blocks().saturating_mul(self.block())
    }

    /// The number that ends the kernel's name, or 0.
    pub fn number(&self) -> u64 {
        let digits = self
            .kernel
            .trim_start_matches(|letter: char| !letter.is_ascii_digit());
        digits.parse().unwrap_or(0)
    }

    /// Fails unless memory of `len` bytes holds the `needed` ones.
    ///
    /// # Errors
    /// It does not.
    pub fn has(&self, name: &str, len: u64, needed: u64) -> Result<()> {
        ensure!(
            needed <= len,
            "internal error: {name} has {len} bytes, and the kernel needs {needed}"
        );
        Ok(())
    }

    /// Fails unless a condition of the kernel holds.
    ///
    /// # Errors
    /// It does not.
    pub fn requires(&self, holds: bool, condition: &str) -> Result<()> {
        ensure!(holds, "internal error: the kernel requires {condition}");
        Ok(())
    }
}

impl<'b> List<'b> {
    /// The next argument: a view, or the memory of another argument.
    pub fn push_or(&mut self, view: Option<&'b View>, other: &'b ViewMut) {
        self.push(view.map_or(&other.pointer, |view| &view.pointer));
    }
}

impl Argument for View<'_> {
    fn push_to<'b>(&'b self, list: &mut List<'b>) {
        list.push_raw(&self.pointer);
    }
}

impl Argument for ViewMut<'_> {
    fn push_to<'b>(&'b self, list: &mut List<'b>) {
        list.push_raw(&self.pointer);
    }
}

impl Argument for TensorMap<'_> {
    fn push_to<'b>(&'b self, list: &mut List<'b>) {
        list.push_raw(&self.map);
    }
}

/// How the blocks of a launch start.
#[derive(Clone, Copy)]
enum Start {
    /// Each when there is room for it, after all work queued before.
    Single,
    /// All at once.
    Cooperative,
    /// So many at once, which reach each other's shared memory.
    Clusters(u32),
    /// While the launch before ends.
    Overlapping,
}

impl Start {
    /// The attribute that asks the driver for it.
    fn attribute(self) -> Option<sys::CUlaunchAttribute> {
        use sys::CUlaunchAttributeID as Id;
        // SAFETY: a union of plain numbers, for which zeros are valid.
        let mut value: sys::CUlaunchAttributeValue = unsafe { mem::zeroed() };
        let id = match self {
            Start::Single => return None,
            Start::Cooperative => {
                value.cooperative = 1;
                Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE
            }
            Start::Clusters(x) => {
                value.clusterDim =
                    sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x, y: 1, z: 1 };
                Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
            }
            Start::Overlapping => {
                value.programmaticStreamSerializationAllowed = 1;
                Id::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
            }
        };
        Some(sys::CUlaunchAttribute {
            id,
            pad: [0; 4],
            value,
        })
    }
}

impl Gpu {
    /// Queues `kernel` with `blocks` blocks of the number of threads that it was compiled for.
    ///
    /// # Errors
    /// Those of `Arguments::check`, and the driver's.
    pub(crate) fn launch<A: Checked>(
        &self,
        kernel: &Kernel<A>,
        blocks: u32,
        arguments: A,
    ) -> Result<()> {
        self.launch_grid(kernel, kernel.grid(blocks), arguments)
    }

    /// Queues `kernel` with the given grid.
    ///
    /// # Errors
    /// As `launch`.
    pub(crate) fn launch_grid<A: Checked>(
        &self,
        kernel: &Kernel<A>,
        grid: Grid,
        arguments: A,
    ) -> Result<()> {
        // SAFETY: arguments that are `Checked` are of kernels that trust no memory.
        unsafe { self.launch_trusting(kernel, grid, arguments) }
    }

    /// As `launch_grid`, of a kernel that trusts the content of memory.
    ///
    /// # Safety
    /// The memory that the kernel trusts has the content that the documentation of `A` demands.
    ///
    /// # Errors
    /// As `launch`.
    pub(crate) unsafe fn launch_trusting<A: Arguments>(
        &self,
        kernel: &Kernel<A>,
        grid: Grid,
        arguments: A,
    ) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { self.queue(kernel, grid, arguments, Start::Single) }
    }

    /// As `launch_trusting`, of a kernel whose blocks wait for each other: the driver refuses a grid that does not fit on the GPU at once.
    ///
    /// # Safety
    /// As `launch_trusting`.
    ///
    /// # Errors
    /// As `launch`.
    pub(crate) unsafe fn launch_cooperative<A: Arguments>(
        &self,
        kernel: &Kernel<A>,
        grid: Grid,
        arguments: A,
    ) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { self.queue(kernel, grid, arguments, Start::Cooperative) }
    }

    /// As `launch_grid`, in clusters of so many blocks, at most 8, that divide the grid. From compute capability 9.0 on.
    ///
    /// # Errors
    /// As `launch`.
    pub(crate) fn launch_clusters<A: Checked>(
        &self,
        kernel: &Kernel<A>,
        grid: Grid,
        blocks: u32,
        arguments: A,
    ) -> Result<()> {
        // SAFETY: arguments that are `Checked` are of kernels that trust no memory.
        unsafe { self.queue(kernel, grid, arguments, Start::Clusters(blocks)) }
    }

    /// As `launch_grid`, of a kernel that may start while the launch before it ends. From compute capability 9.0 on.
    ///
    /// # Safety
    /// The kernel waits for the end of that launch (`griddepcontrol.wait`) before it touches memory.
    ///
    /// # Errors
    /// As `launch`.
    pub(crate) unsafe fn launch_overlapping<A: Checked>(
        &self,
        kernel: &Kernel<A>,
        grid: Grid,
        arguments: A,
    ) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { self.queue(kernel, grid, arguments, Start::Overlapping) }
    }

    unsafe fn queue<A: Arguments>(
        &self,
        kernel: &Kernel<A>,
        grid: Grid,
        arguments: A,
        start: Start,
    ) -> Result<()> {
        arguments.check(&kernel.launch(grid))?;
        let mut list = List::default();
        arguments.push(&mut list);
        if let (Some(recorder), Start::Single) = (&self.recorder, start) {
            let work = Work::Launch {
                kernel: kernel.raw.clone(),
                grid,
                arguments: list.pack(),
            };
            // SAFETY: as for the launch below. The memory of the arguments belongs to this stream's allocator, or is kept for all.
            unsafe { recorder.record(work) };
            return Ok(());
        }
        self.queue_unrecorded(|| {
            bind(&self.context)?;
            let function = kernel.raw.function.cu_function();
            let ([x, y], [across, down]) = (grid.blocks, grid.threads);
            let (stream, values) = (self.stream.cu_stream(), list.pointers.as_mut_ptr());
            // SAFETY: the arguments are the kernel's, and it stays inside their memory, which outlives its run: see the top of
            // this file.
            let launched = unsafe {
                match start.attribute() {
                    None => sys::cuLaunchKernel(
                        function,
                        x,
                        y,
                        1,
                        across,
                        down,
                        1,
                        0,
                        stream,
                        values,
                        ptr::null_mut(),
                    ),
                    Some(mut attribute) => {
                        let config = sys::CUlaunchConfig {
                            gridDimX: x,
                            gridDimY: y,
                            gridDimZ: 1,
                            blockDimX: across,
                            blockDimY: down,
                            blockDimZ: 1,
                            sharedMemBytes: 0,
                            hStream: stream,
                            attrs: &raw mut attribute,
                            numAttrs: 1,
                        };
                        sys::cuLaunchKernelEx(&config, function, values, ptr::null_mut())
                    }
                }
            };
            launched
                .result()
                .map_err(|error: DriverError| anyhow!("{}", description(&error)))
        })
    }
}

impl<A> Kernel<A> {
    /// What its arguments are checked against.
    pub(super) fn launch(&self, grid: Grid) -> Launch<'_> {
        Launch {
            kernel: self.raw.name,
            form: self.form,
            grid,
        }
    }
}

/// Defines the arguments of kernels: whether the kernels trust memory, the type, the file, the kernels and their forms, the
/// parameters, then the checks and the list.
macro_rules! arguments {
    (
        $(#[$doc:meta])*
        trusting $name:ident $(<$lifetime:lifetime>)? = $file:literal [$($kernel:literal),+] $forms:expr, $images:literal;
        { $($field:ident: $type:ty),* }
        |$it:ident, $launch:ident, $list:ident| $check:block $push:block
    ) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name $(<$lifetime>)? {
            $(pub $field: $type,)*
        }

        // SAFETY: `kernels/launch.py` has read all of this in the kernels' source.
        unsafe impl $(<$lifetime>)? $crate::gpu::driver::launch::Arguments for $name $(<$lifetime>)? {
            const FILE: &'static str = $file;
            const KERNELS: &'static [&'static str] = &[$($kernel),+];
            const FORMS: &'static [$crate::gpu::driver::launch::Form] = $forms;
            const IMAGES: u32 = $images;

            #[allow(unused_variables, reason = "some kernels have nothing to check")]
            fn check(&self, $launch: &$crate::gpu::driver::launch::Launch) -> anyhow::Result<()> {
                let $it = self;
                $check
                Ok(())
            }

            #[allow(unused_variables, reason = "some kernels have no parameters")]
            fn push<'b>(&'b self, $list: &mut $crate::gpu::driver::launch::List<'b>) {
                let $it = self;
                $push
            }
        }
    };
    ($(#[$doc:meta])* checked $name:ident $(<$lifetime:lifetime>)? = $($rest:tt)*) => {
        arguments! { $(#[$doc])* trusting $name $(<$lifetime>)? = $($rest)* }

        impl $(<$lifetime>)? $crate::gpu::driver::launch::Checked for $name $(<$lifetime>)? {}
    };
}
pub(crate) use arguments;

/// Defines a record that host and device share: its name, its bytes, and its fields.
macro_rules! record {
    ($(#[$doc:meta])* $name:ident = $size:literal { $($field:ident: $type:ty),* }) => {
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name {
            $(pub $field: $type,)*
        }

        // A record of so many bytes as its fields together has no gaps.
        const _: () = assert!(size_of::<$name>() == $size && $(size_of::<$type>() +)* 0 == $size);

        // SAFETY: every field is a number, or an array of numbers, for which 0 is a value.
        unsafe impl bytemuck::Zeroable for $name {}

        // SAFETY: the layout is C's and has no gaps, as was just asserted, and every field takes any bits.
        unsafe impl bytemuck::Pod for $name {}
    };
}
pub(crate) use record;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::launch::normalize::{Minmax, Scale};
    use crate::gpu::launch::papers::local::Local;
    use crate::gpu::launch::png_rows::{PALETTE, PngExpand, RGB_KEY};

    fn launch(kernel: &'static str, form: &'static Form, blocks: u32) -> Launch<'static> {
        let grid = Grid {
            blocks: [blocks, 1],
            threads: [256, 1],
        };
        Launch { kernel, form, grid }
    }

    /// The message of a check that fails.
    fn refusal(checked: Result<()>) -> Option<String> {
        checked.err().map(|error| error.to_string())
    }

    #[test]
    fn a_view_that_is_too_short_is_refused() {
        for form in Minmax::FORMS {
            let samples = 48;
            let bytes = samples * form.sample as usize;
            let minmax = |src, ranges| Minmax {
                src: View::without_memory(src),
                samples: samples as u64,
                ranges: ViewMut::without_memory(ranges),
            };
            let check = |src, ranges| {
                let launch = launch("minmax", form, 1);
                refusal(minmax(src, ranges).check(&launch))
            };
            let words = 8 * form.channels as usize;
            assert_eq!(check(bytes, words), None, "{}", form.name);
            let said = format!("src has {} bytes, and the kernel needs {bytes}", bytes - 1);
            assert!(check(bytes - 1, words).is_some_and(|why| why.ends_with(&said)));
            assert!(check(bytes, words - 1).is_some_and(|why| why.contains("ranges")));
        }
    }

    #[test]
    fn conditions_of_a_kernel_are_checked() {
        let form = &Scale::FORMS[7];
        assert_eq!(form.name, "u16_c4");
        let check = |samples, blocks| {
            let scale = Scale {
                src: None,
                dst: ViewMut::without_memory(1 << 20),
                samples,
                ranges: View::without_memory(64),
                per_channel: 0,
                lo: 0,
                hi: 1,
            };
            refusal(scale.check(&launch("scale", form, blocks)))
        };
        assert_eq!(check(4096, 2), None);
        assert!(check(4097, 3).is_some_and(|why| why.contains("samples % CHANNELS == 0")));
        assert!(check(4096, 3).is_some_and(|why| why.contains("grid.blocks == ")));
        // More samples than 64 bits count bytes of.
        assert!(check(u64::MAX - 3, 2).is_some_and(|why| why.contains("dst has")));
    }

    #[test]
    fn lengths_follow_from_modes_and_from_the_kernels_name() {
        let check = |mode, bits, samples| {
            let expand = PngExpand {
                rows: View::without_memory(600),
                row: 60,
                width: 10,
                height: 10,
                bits,
                mode,
                key: 0,
                palette: View::without_memory(16),
                colours: 4,
                samples: ViewMut::without_memory(samples),
                report: ViewMut::without_memory(64),
            };
            refusal(expand.check(&launch("png_expand", &Form::ONLY, 1)))
        };
        assert_eq!(check(PALETTE, 2, 300), None);
        assert_eq!(check(RGB_KEY, 8, 400), None);
        assert_eq!(check(RGB_KEY, 16, 800), None);
        assert!(check(RGB_KEY, 16, 799).is_some_and(|why| why.contains("needs 800")));
        let local = |kernel, src| {
            let local = Local {
                src: View::without_memory(src),
                dst: ViewMut::without_memory(40),
                threads: 10,
            };
            refusal(local.check(&launch(kernel, &Form::ONLY, 1)))
        };
        assert_eq!(local("spilled_16", 640), None);
        assert!(local("registers_64", 640).is_some_and(|why| why.contains("needs 2560")));
    }
}
