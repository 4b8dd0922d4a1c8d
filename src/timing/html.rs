//! What the pages of `bench` and of `--stats` share.

/// Text for an HTML page.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// The beginning of a page, after its doctype: up to its heading.
pub fn head(title: &str, style: &str) -> String {
    let title = escaped(title);
    format!(
        "<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <link rel=\"icon\" href=\"data:,\">\
         <title>{title}</title><style>\n{style}</style></head><body>\n<h1>{title}</h1>\n"
    )
}
