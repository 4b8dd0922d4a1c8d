//! The PCIe link of a card: its peak from generation × lanes, through NVML, else through sysfs.

use std::fs;

/// The link's peak in one direction (GB/s) and its description, for the card at (domain, bus,
/// device). The widest and fastest the link can be: an idle card lowers its generation.
pub fn peak(address: [i32; 3]) -> Option<(f64, String)> {
    let [domain, bus, device] = address;
    let id = format!("{domain:04x}:{bus:02x}:{device:02x}.0");
    let (generation, lanes) = through_nvml(&id).or_else(|| through_sysfs(&id))?;
    Some((
        f64::from(lanes) * lane(generation)?,
        format!("PCIe {generation}.0 ×{lanes}"),
    ))
}

/// GB/s of one lane: transfers a second × what its line coding leaves, in bytes.
fn lane(generation: u32) -> Option<f64> {
    Some(match generation {
        1 => 2.5 * 0.8 / 8.0,
        2 => 5.0 * 0.8 / 8.0,
        3 => 8.0 * (128.0 / 130.0) / 8.0,
        4 => 16.0 * (128.0 / 130.0) / 8.0,
        5 => 32.0 * (128.0 / 130.0) / 8.0,
        6 => 64.0 * (236.0 / 256.0) / 8.0,
        _ => return None,
    })
}

fn through_nvml(id: &str) -> Option<(u32, u32)> {
    let nvml = nvml_wrapper::Nvml::builder()
        .lib_path("libnvidia-ml.so.1".as_ref())
        .init()
        .ok()?;
    let card = nvml.device_by_pci_bus_id(id).ok()?;
    Some((
        card.max_pcie_link_gen().ok()?,
        card.max_pcie_link_width().ok()?,
    ))
    .filter(|&(_, lanes)| lanes > 0)
}

fn through_sysfs(id: &str) -> Option<(u32, u32)> {
    let read = |name: &str| fs::read_to_string(format!("/sys/bus/pci/devices/{id}/{name}")).ok();
    let lanes = read("max_link_width")?
        .trim()
        .parse()
        .ok()
        .filter(|&lanes| lanes > 0 && lanes <= 32)?;
    // For example `32.0 GT/s PCIe`.
    let transfers: f64 = read("max_link_speed")?
        .split_whitespace()
        .next()?
        .parse()
        .ok()?;
    let generation = match transfers {
        speed if speed <= 2.5 => 1,
        speed if speed <= 5.0 => 2,
        speed if speed <= 8.0 => 3,
        speed if speed <= 16.0 => 4,
        speed if speed <= 32.0 => 5,
        _ => 6,
    };
    Some((generation, lanes))
}
