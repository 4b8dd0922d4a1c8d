//! The weights of the samples around a pixel, in sixteenths.

use super::Method;

/// The weights of the samples in the 5 rows and 5 columns around a pixel. They add up to 16.
pub type Kernel = [[i32; 5]; 5];

/// The kernels of a method.
#[derive(Debug)]
pub struct Kernels {
    /// Green where the pixel sees red or blue.
    pub cross: &'static Kernel,
    /// The colour of the left and right neighbours, where the pixel sees green.
    pub horizontal: &'static Kernel,
    /// The colour of the neighbours above and below, where the pixel sees green.
    pub vertical: &'static Kernel,
    /// Blue where the pixel sees red, and red where it sees blue.
    pub diagonal: &'static Kernel,
}

/// The kernels of a method as constants, for loops that are compiled for them.
pub trait Weights: Send + Sync {
    const CROSS: Kernel;
    const HORIZONTAL: Kernel;
    const VERTICAL: Kernel;
    const DIAGONAL: Kernel;
    const ALL: Kernels = Kernels {
        cross: &Self::CROSS,
        horizontal: &Self::HORIZONTAL,
        vertical: &Self::VERTICAL,
        diagonal: &Self::DIAGONAL,
    };
}

/// `Method::Bilinear`
pub struct Bilinear;

/// `Method::Malvar`
pub struct Malvar;

impl Weights for Bilinear {
    const CROSS: Kernel = [
        [0, 0, 0, 0, 0],
        [0, 0, 4, 0, 0],
        [0, 4, 0, 4, 0],
        [0, 0, 4, 0, 0],
        [0, 0, 0, 0, 0],
    ];
    const HORIZONTAL: Kernel = transposed(&Bilinear::VERTICAL);
    const VERTICAL: Kernel = [
        [0, 0, 0, 0, 0],
        [0, 0, 8, 0, 0],
        [0, 0, 0, 0, 0],
        [0, 0, 8, 0, 0],
        [0, 0, 0, 0, 0],
    ];
    const DIAGONAL: Kernel = [
        [0, 0, 0, 0, 0],
        [0, 4, 0, 4, 0],
        [0, 0, 0, 0, 0],
        [0, 4, 0, 4, 0],
        [0, 0, 0, 0, 0],
    ];
}

/// Figure 2 of the paper has the weights in eighths, some of them halves.
impl Weights for Malvar {
    const CROSS: Kernel = [
        [0, 0, -2, 0, 0],
        [0, 0, 4, 0, 0],
        [-2, 4, 8, 4, -2],
        [0, 0, 4, 0, 0],
        [0, 0, -2, 0, 0],
    ];
    const HORIZONTAL: Kernel = transposed(&Malvar::VERTICAL);
    const VERTICAL: Kernel = [
        [0, 0, -2, 0, 0],
        [0, -2, 8, -2, 0],
        [1, 0, 10, 0, 1],
        [0, -2, 8, -2, 0],
        [0, 0, -2, 0, 0],
    ];
    const DIAGONAL: Kernel = [
        [0, 0, -3, 0, 0],
        [0, 4, 0, 4, 0],
        [-3, 0, 12, 0, -3],
        [0, 4, 0, 4, 0],
        [0, 0, -3, 0, 0],
    ];
}

/// A kernel with rows and columns exchanged.
const fn transposed(kernel: &Kernel) -> Kernel {
    let mut turned = [[0; 5]; 5];
    let mut place = 0;
    while place < 25 {
        turned[place / 5][place % 5] = kernel[place % 5][place / 5];
        place += 1;
    }
    turned
}

impl Method {
    /// Its kernels.
    pub fn kernels(self) -> &'static Kernels {
        match self {
            Method::Bilinear => &Bilinear::ALL,
            Method::Malvar => &Malvar::ALL,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mosaic of one value stays as it is.
    #[test]
    fn the_weights_of_a_kernel_add_up_to_one() {
        for method in [Method::Bilinear, Method::Malvar] {
            let Kernels {
                cross,
                horizontal,
                vertical,
                diagonal,
            } = method.kernels();
            for kernel in [cross, horizontal, vertical, diagonal] {
                assert_eq!(kernel.as_flattened().iter().sum::<i32>(), 16);
            }
        }
    }
}
