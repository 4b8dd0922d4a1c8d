// Sorts the files by a button's key; a second click reverses the order. Files without a value come last.
"use strict";
const list = document.getElementById("files");
// Only the sections in view have a layout. All have the same number of files, except the last one.
const sections = [...list.children];
const size = sections[0]?.children.length;
const buttons = document.querySelectorAll("button");
for (const button of buttons) {
  button.addEventListener("click", () => {
    const ascending = button.getAttribute("aria-sort") !== "ascending";
    for (const other of buttons) other.removeAttribute("aria-sort");
    button.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    const { key, kind } = button.dataset;
    const value = (file) => {
      const text = file.dataset[key];
      return kind === "number" && text !== undefined ? Number(text) : text;
    };
    const files = sections.flatMap((section) => [...section.children]).map((file) => ({ file, value: value(file) }));
    files.sort((a, b) => {
      if (a.value === b.value) return 0;
      if (a.value === undefined) return 1;
      if (b.value === undefined) return -1;
      return a.value < b.value === ascending ? -1 : 1;
    });
    // Sections are emptied first: to move each of 10,000 files out of a full one takes a minute.
    for (const section of sections) section.replaceChildren();
    sections.forEach((section, index) => {
      const own = files.slice(index * size, (index + 1) * size);
      section.append(...own.map((entry) => entry.file));
    });
  });
}
