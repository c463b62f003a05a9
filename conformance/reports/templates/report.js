"use strict";
(() => {
  const form = document.getElementById("filter");
  const rows = [...document.querySelectorAll(".requirements tbody tr")];
  const verdicts = [...form.querySelectorAll("[data-verdict]")];
  const texts = new Map(rows.map((row) => [row, row.cells[1].textContent.toLowerCase()]));

  function apply() {
    const chosen = verdicts.filter((button) => button.ariaPressed === "true").map((button) => button.dataset.verdict);
    const words = form.elements.text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const area = form.elements.area.value;
    let shown = 0;
    for (const row of rows) {
      const wanted = (!chosen.length || chosen.includes(row.dataset.verdict))
        && (!area || row.dataset.area === area)
        && words.every((word) => texts.get(row).includes(word));
      row.hidden = !wanted;
      shown += wanted;
    }
    form.elements.shown.value = `${shown} of ${rows.length}`;
    return { chosen, area, text: form.elements.text.value };
  }

  // The fragment keeps what is chosen: a page that was opened from a file may change nothing else of its address.
  function remember() {
    const { chosen, area, text } = apply();
    const state = new URLSearchParams(chosen.map((verdict) => ["verdict", verdict]));
    if (area) state.set("area", area);
    if (text) state.set("text", text);
    history.replaceState(null, "", state.size ? `#?${state}` : "#requirements");
  }

  function recall(state) {
    for (const button of verdicts) button.ariaPressed = String(state.getAll("verdict").includes(button.dataset.verdict));
    form.elements.area.value = state.get("area") ?? "";
    form.elements.text.value = state.get("text") ?? "";
    apply();
    form.scrollIntoView();
  }

  function clear() {
    for (const button of verdicts) button.ariaPressed = "false";
    form.elements.area.value = "";
    form.elements.text.value = "";
    apply();
  }

  // A link to a row that the filter hides must still lead there.
  function follow() {
    if (location.hash.startsWith("#?")) {
      recall(new URLSearchParams(location.hash.slice(2)));
      return;
    }
    const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (place && place.hidden) clear();
    for (let outer = place; outer; outer = outer.parentElement) if (outer.tagName === "DETAILS") outer.open = true;
    if (place) place.scrollIntoView();
  }

  async function copy(button) {
    const block = button.parentElement.querySelector("pre");
    try {
      await navigator.clipboard.writeText(block.textContent);
      button.textContent = "Copied";
    } catch {
      // Without permission for the clipboard, the text is selected and the reader copies it.
      getSelection().selectAllChildren(block);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  }

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", remember);
  form.addEventListener("reset", (event) => { event.preventDefault(); clear(); remember(); });
  for (const button of verdicts) {
    button.addEventListener("click", () => {
      button.ariaPressed = String(button.ariaPressed !== "true");
      remember();
    });
  }
  for (const link of document.querySelectorAll("#areas a[data-area]")) {
    link.addEventListener("click", (event) => { event.preventDefault(); clear(); form.elements.area.value = link.dataset.area; remember(); form.scrollIntoView(); });
  }
  for (const button of document.querySelectorAll(".copy")) {
    button.hidden = false;
    button.addEventListener("click", () => copy(button));
  }
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details.gap:not([open])")];
    for (const block of opened) block.open = true;
  });
  addEventListener("afterprint", () => { for (const block of opened) block.open = false; });
  addEventListener("hashchange", follow);
  form.hidden = false;
  apply();
  follow();
})();
