// Sorts the files by a button's key; a second click reverses the order. Files without a value come last.
"use strict";
const list = document.getElementById("files");
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
    const files = [...list.children].map((file) => ({ file, value: value(file) }));
    files.sort((a, b) => {
      if (a.value === b.value) return 0;
      if (a.value === undefined) return 1;
      if (b.value === undefined) return -1;
      return a.value < b.value === ascending ? -1 : 1;
    });
    list.append(...files.map((entry) => entry.file));
  });
}
