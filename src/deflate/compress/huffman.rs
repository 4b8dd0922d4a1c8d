//! Length-limited Huffman codes, defined to the bit: the same weights give the same code anywhere.

/// Symbols of the literal and length alphabet that can occur (RFC 1951, section 3.2.5).
pub const LITLEN: usize = 286;

/// The length in bits of each symbol's code: 0 where the weight is 0, else 1..=`limit`. The code
/// is complete, except that a lone symbol has one bit.
///
/// Symbols are sorted by (weight, symbol), rarest first. Huffman's algorithm on that order (of two
/// equal weights the leaf is taken before the node, and the older node first) says how many codes of
/// each length there are. Codes longer than `limit` get that length. While that overfills the code,
/// a code of the greatest length below `limit` is replaced by two that are one bit longer, the second
/// of which takes the place of one of the longest. The lengths are then dealt out in that order,
/// longest first. Weights must add up to less than 2³².
pub fn lengths(weights: &[u32], limit: usize, lengths: &mut [u8]) {
    lengths.fill(0);
    let mut order = [0u64; LITLEN];
    let mut used = 0;
    for (symbol, &weight) in weights
        .iter()
        .enumerate()
        .filter(|(_, weight)| **weight > 0)
    {
        order[used] = u64::from(weight) << 16 | symbol as u64;
        used += 1;
    }
    let order = &mut order[..used];
    order.sort_unstable();
    if let [only] = order {
        lengths[(*only & 0xffff) as usize] = 1;
    }
    if used < 2 {
        return;
    }
    let mut counts = depths(order);
    // Codes deeper than the limit, and by how much they overfill the code, in units of 2^-limit.
    let deep: u32 = counts[limit + 1..].iter().sum();
    counts[limit] += deep;
    let filled = |len: usize| u64::from(counts[len]) << (limit - len);
    let mut total: u64 = (1..=limit).map(filled).sum();
    while total > 1 << limit {
        let Some(len) = (1..limit).rev().find(|&len| counts[len] > 0) else {
            break; // unreachable: 2^limit ≥ LITLEN codes of the longest kind always fit
        };
        counts[len] -= 1;
        counts[len + 1] += 2;
        counts[limit] -= 1;
        total -= 1;
    }
    let mut rarest = order.iter();
    for len in (1..=limit).rev() {
        for entry in rarest.by_ref().take(counts[len] as usize) {
            lengths[(entry & 0xffff) as usize] = len as u8;
        }
    }
}

/// How many leaves of the Huffman tree lie at each depth; `order` holds weight << 16, ascending.
fn depths(order: &[u64]) -> [u32; LITLEN] {
    let leaves = order.len();
    // Inner nodes in the order of their making, which is that of their weights.
    let mut weight = [0u32; LITLEN];
    let mut parent = [0u16; LITLEN];
    let (mut leaf, mut node) = (0, 0);
    for made in 0..leaves - 1 {
        let mut sum = 0;
        for _ in 0..2 {
            let rarest = order.get(leaf).map(|entry| (entry >> 16) as u32);
            match rarest {
                Some(light) if node == made || light <= weight[node] => {
                    sum += light;
                    leaf += 1;
                }
                _ => {
                    sum += weight[node];
                    parent[node] = made as u16;
                    node += 1;
                }
            }
        }
        weight[made] = sum;
    }
    // From the root down: a depth with `open` places has `inner` of them taken by nodes.
    let mut counts = [0u32; LITLEN];
    let mut depth = [0u16; LITLEN];
    let mut inner = [0u32; LITLEN];
    let root = leaves - 2;
    inner[0] = 1;
    for node in (0..root).rev() {
        depth[node] = depth[parent[node] as usize] + 1;
        inner[depth[node] as usize] += 1;
    }
    for level in 1..leaves {
        counts[level] = 2 * inner[level - 1] - inner[level];
    }
    counts
}

/// The canonical code of each symbol (RFC 1951, section 3.2.2), its bits reversed to be packed as they are.
pub fn codes(lengths: &[u8], codes: &mut [u16]) {
    let mut next = [0u16; 17];
    for &len in lengths {
        next[len as usize + 1] += 1;
    }
    next[1] = 0; // symbols that are not used take no code
    for len in 1..15 {
        next[len + 1] = (next[len] + next[len + 1]) << 1;
    }
    for (code, &len) in codes.iter_mut().zip(lengths) {
        if len > 0 {
            // A code of len bits reversed: all 16 reversed, then moved down.
            *code = next[len as usize].reverse_bits() >> (16 - len);
            next[len as usize] += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(weights: &[u32], limit: usize) -> u64 {
        let mut found = vec![0xa5; weights.len()];
        lengths(weights, limit, &mut found);
        let mut space = 0u64;
        let mut cost = 0;
        for (&len, &weight) in found.iter().zip(weights) {
            assert_eq!(len == 0, weight == 0);
            assert!(usize::from(len) <= limit);
            space += if len > 0 {
                1 << (limit - usize::from(len))
            } else {
                0
            };
            cost += u64::from(len) * u64::from(weight);
        }
        let used = weights.iter().filter(|weight| **weight > 0).count();
        assert_eq!(
            space,
            [0, 1 << (limit - 1), 1 << limit][used.min(2)],
            "not complete"
        );
        cost
    }

    /// The least cost under a limit, by package-merge: each of `limit` rounds pairs what is there
    /// and adds the symbols again; the cheapest 2 n − 2 items of the last are the code.
    fn least(weights: &[u32], limit: usize) -> u64 {
        let mut symbols: Vec<u64> = weights
            .iter()
            .filter(|w| **w > 0)
            .map(|w| (*w).into())
            .collect();
        symbols.sort_unstable();
        let mut items = symbols.clone();
        for _ in 1..limit {
            let pairs = items
                .as_chunks::<2>()
                .0
                .iter()
                .map(|pair| pair[0] + pair[1]);
            items = pairs.chain(symbols.iter().copied()).collect();
            items.sort_unstable();
        }
        items.iter().take(2 * symbols.len() - 2).sum()
    }

    #[test]
    fn codes_are_complete_and_near_the_least() {
        let mut state = 1u64;
        let mut next = || {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 40) as u32
        };
        let mut limited = 0;
        for round in 0..400 {
            let count = 2 + next() as usize % (LITLEN - 1);
            let shift = next() % 24;
            let mut weights: Vec<u32> = (0..count)
                .map(|_| (next() & 0xffff) >> (next() % (shift + 1)))
                .collect();
            if round % 4 == 0 {
                // Fibonacci's numbers make the deepest tree.
                let (mut a, mut b) = (1, 1);
                for weight in weights.iter_mut().take(30) {
                    *weight = a;
                    (a, b) = (b, a + b);
                }
            }
            if weights.iter().filter(|weight| **weight > 0).count() < 2 {
                continue;
            }
            let free = least(&weights, 40);
            assert_eq!(
                checked(&weights, 40),
                free,
                "Huffman's own code is the least"
            );
            for limit in [14, 15] {
                let (found, least) = (checked(&weights, limit), least(&weights, limit));
                limited += usize::from(least > free);
                assert!(
                    found as f64 <= 1.02 * least as f64,
                    "{found} against {least} at {limit}"
                );
            }
        }
        assert!(limited > 100, "the limit mattered in {limited} cases alone");
    }

    #[test]
    fn few_symbols() {
        assert_eq!(checked(&[0, 0], 12), 0);
        assert_eq!(checked(&[0, 7], 12), 7);
        assert_eq!(checked(&[9, 7], 12), 16);
        assert_eq!(checked(&[1; LITLEN], 9), 286 * 9 - 226);
    }
}
