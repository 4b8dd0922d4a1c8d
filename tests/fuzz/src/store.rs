//! Zarr stores as one input: each file is a line with its name, two bytes with its length (the least significant first), and its
//! bytes. The last file may be shorter than its length says.

use std::collections::BTreeMap;

/// The files of a store by their names.
pub type Files = BTreeMap<String, Vec<u8>>;

/// The input for a store.
pub fn packed(files: &Files) -> Vec<u8> {
    let mut input = Vec::new();
    for (name, bytes) in files {
        let length = u16::try_from(bytes.len()).expect("seeds are small");
        input.extend_from_slice(name.as_bytes());
        input.push(b'\n');
        input.extend_from_slice(&length.to_le_bytes());
        input.extend_from_slice(bytes);
    }
    input
}

/// The store of an input.
pub fn unpacked(mut input: &[u8]) -> Files {
    let mut files = Files::new();
    while let Some(end) = input.iter().position(|&byte| byte == b'\n') {
        let name = String::from_utf8_lossy(&input[..end]).into_owned();
        let Some((length, rest)) = input[end + 1..].split_first_chunk() else {
            break;
        };
        let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
        let (bytes, rest) = rest.split_at(length);
        files.insert(name, bytes.to_vec());
        input = rest;
    }
    files
}
