//! The PCIe link of a GPU: its peak bandwidth from generation × lanes, read through NVML or else
//! from sysfs.

use std::fs;

/// A link's generation and lanes: current and maximal. An idle GPU lowers its generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Current generation and number of lanes.
    pub now: (u32, u32),
    /// The highest generation and number of lanes that GPU and slot support together.
    pub most: (u32, u32),
}

/// The link of the GPU at (domain, bus, device).
pub fn link(address: [i32; 3]) -> Option<Link> {
    let id = id(address);
    through_nvml(&id).or_else(|| through_sysfs(&id))
}

/// The link's peak bandwidth in one direction (GB/s) and a description, for the GPU at (domain,
/// bus, device).
pub fn peak(address: [i32; 3]) -> Option<(f64, String)> {
    let (generation, lanes) = link(address)?.most;
    Some((
        f64::from(lanes) * lane(generation)?,
        format!("PCIe {generation}.0 ×{lanes}"),
    ))
}

/// Properties of a GPU from NVML, NVIDIA's management library.
#[derive(Clone, Debug)]
pub struct Managed {
    /// The driver's version: `535.161.08`.
    pub driver: String,
    /// Whether the GPU is partitioned into instances (MIG).
    pub cut: bool,
    /// Whether the driver stays loaded while no process uses the GPU (persistence mode), if known.
    pub stays: Option<bool>,
}

/// The properties of the GPU at (domain, bus, device) if NVML is installed.
pub fn managed(address: [i32; 3]) -> Option<Managed> {
    let nvml = nvml()?;
    let gpu = nvml.device_by_pci_bus_id(id(address)).ok()?;
    Some(Managed {
        driver: nvml.sys_driver_version().ok()?,
        // GPUs without MIG return an error.
        cut: gpu.mig_mode().is_ok_and(|mode| mode.current != 0),
        #[cfg(target_os = "linux")]
        stays: gpu.is_in_persistent_mode().ok(),
        #[cfg(not(target_os = "linux"))]
        stays: None,
    })
}

fn id([domain, bus, device]: [i32; 3]) -> String {
    format!("{domain:04x}:{bus:02x}:{device:02x}.0")
}

fn nvml() -> Option<nvml_wrapper::Nvml> {
    nvml_wrapper::Nvml::builder()
        .lib_path("libnvidia-ml.so.1".as_ref())
        .init()
        .ok()
}

/// GB/s of one lane: transfers per second times the efficiency of the line code, in bytes.
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

fn through_nvml(id: &str) -> Option<Link> {
    let nvml = nvml()?;
    let gpu = nvml.device_by_pci_bus_id(id).ok()?;
    let link = Link {
        now: (
            gpu.current_pcie_link_gen().ok()?,
            gpu.current_pcie_link_width().ok()?,
        ),
        most: (
            gpu.max_pcie_link_gen().ok()?,
            gpu.max_pcie_link_width().ok()?,
        ),
    };
    Some(link).filter(|link| link.most.1 > 0)
}

fn through_sysfs(id: &str) -> Option<Link> {
    let read = |name: &str| fs::read_to_string(format!("/sys/bus/pci/devices/{id}/{name}")).ok();
    let lanes = |name| {
        let lanes = read(name)?.trim().parse().ok()?;
        (1..=32).contains(&lanes).then_some(lanes)
    };
    // For example `32.0 GT/s PCIe`.
    let generation = |name| {
        let transfers: f64 = read(name)?.split_whitespace().next()?.parse().ok()?;
        Some(match transfers {
            speed if speed <= 2.5 => 1,
            speed if speed <= 5.0 => 2,
            speed if speed <= 8.0 => 3,
            speed if speed <= 16.0 => 4,
            speed if speed <= 32.0 => 5,
            _ => 6,
        })
    };
    Some(Link {
        now: (
            generation("current_link_speed")?,
            lanes("current_link_width")?,
        ),
        most: (generation("max_link_speed")?, lanes("max_link_width")?),
    })
}
