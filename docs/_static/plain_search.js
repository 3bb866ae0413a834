// The search quotes pages as text; formulas are quoted as the text that they carry, not as their LaTeX.
if (typeof Search !== "undefined") {
  const quoted = Search.htmlToText;
  Search.htmlToText = (page, anchor) => {
    const parsed = new DOMParser().parseFromString(page, "text/html");
    parsed.querySelectorAll("[data-plain]").forEach((formula) => {
      formula.textContent = formula.dataset.plain;
    });
    return quoted(parsed.documentElement.outerHTML, anchor);
  };
}
