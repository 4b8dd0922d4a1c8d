//! A page in a real browser.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Opens the page in a window so wide; fails on any word on the browser's console.
pub fn looked_at(browser: &str, folder: &Path, width: u32) -> Value {
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .args(["--enable-logging=stderr", "--virtual-time-budget=2000"])
        .args([
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
        ])
        .args(["--disable-component-update", "--disable-sync"])
        .arg(format!("--window-size={width},900"))
        .arg(format!(
            "--user-data-dir={}",
            folder.join("profile").display()
        ))
        .arg(folder.join("page.html"))
        .output()
        .expect("the browser runs");
    let (dom, log) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(!log.contains("CONSOLE"), "{log}");
    let title = dom
        .split_once("<title>")
        .and_then(|(_, rest)| rest.split_once("</title>"))
        .unwrap_or_else(|| panic!("no page: {log}"))
        .0;
    serde_json::from_str(title).unwrap_or_else(|_| panic!("the page did not answer: {title}"))
}
