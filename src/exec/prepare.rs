//! Makes a GPU ready for the images of a batch, before their work is queued: later the driver makes each wait for the work of
//! all others, 10 ms and more at a time.

use crate::device::cuda::Gpu;

/// The kernels that decode a page, and that deflate a PNG, of grey images of 16 bits where there are several forms.
const KERNELS: [(&str, &[&str], &str); 12] = [
    ("png_crc", &["png_join", "png_agree", "png_crc"], ""),
    (
        "inflate_find",
        &[
            "inflate_find",
            "inflate_sieve",
            "inflate_read",
            "inflate_order",
        ],
        "",
    ),
    ("inflate_count", &["inflate_count"], ""),
    ("inflate_chain", &["inflate_chain"], ""),
    ("inflate_write", &["inflate_write"], ""),
    ("inflate_matches", &["inflate_near", "inflate_far"], ""),
    ("inflate_adler", &["inflate_adler"], ""),
    ("png_rows", &["png_kinds", "png_expand"], ""),
    ("png_unfilter", &["png_flat", "png_wave"], "b2"),
    (
        "png_filter",
        &["png_choose", "png_filter", "png_estimate"],
        "",
    ),
    ("png_codes", &["png_histogram", "png_codes"], ""),
    ("png_pack", &["png_place", "png_pack"], ""),
];

/// Bytes of device memory that the driver's pool is given: about what the first images take together.
const MEMORY: usize = 1 << 30;

/// Loads kernels, and has the driver's pool filled. What fails here fails again where it is needed, and is reported there.
pub fn prepare(gpu: &Gpu) {
    for (file, names, form) in KERNELS {
        for name in names {
            let _ = gpu.kernel(file, name, form);
        }
    }
    if gpu.memory().is_ok_and(|(free, _)| free / 8 >= MEMORY) {
        let _ = gpu
            .with_stream(true)
            .and_then(|stream| stream.alloc(MEMORY));
    }
}
