// What only the browser knows: the theme and the time zone that the reader chose in Airflow, the way
// out of Airflow's frame, which its sandbox closes to plain links, and what is new since; and the
// headings of cells where a screen is too narrow for columns.
(() => {
  const chosen = (key) => {
    try {
      const text = localStorage.getItem(key);
      return text?.startsWith('"') ? JSON.parse(text) : text;
    } catch {
      return null;
    }
  };
  const formatIn = (timeZone) =>
    new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "medium" });

  const theme = chosen("theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;

  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  let zone = chosen("timezone") || own;
  let format;
  try {
    format = formatIn(zone);
  } catch {
    zone = own;
    format = formatIn(zone);
  }
  const local = (time) => `${format.format(new Date(time))} ${zone}`;
  const localize = (root) => {
    for (const time of root.querySelectorAll("time[datetime]")) {
      if ("ago" in time.dataset) {
        time.title = local(time.dateTime);
        continue;
      }
      time.title = time.textContent;
      time.textContent = local(time.dateTime);
    }
    for (const cell of root.querySelectorAll("[data-moment]")) {
      const state = cell.title.split(": ").pop();
      cell.title = `${local(cell.dataset.moment)}: ${state}`;
    }
  };

  // On a phone, a row of a table is a few lines: each cell with the heading of its column.
  const entitle = (root) => {
    for (const table of root.querySelectorAll(".scroll[role=region] > table")) {
      const heads = [...table.querySelectorAll("thead th")].map((head) => head.textContent);
      for (const cell of table.querySelectorAll("tbody td")) {
        if (cell.textContent.trim()) cell.dataset.head = heads[cell.cellIndex] ?? "";
      }
    }
  };

  // Replaces the page by its newest state, unless the reader is busy with it.
  const refresh = async (main) => {
    const fields = [...main.querySelectorAll("input")];
    const isBusy =
      main.contains(document.activeElement) ||
      main.querySelector("details[open]") ||
      fields.some((field) => field.value !== field.defaultValue);
    if (document.hidden || isBusy) return main;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin" });
      if (!answer.ok) return main;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.querySelector("main");
      if (!fresh) return main;
      localize(fresh);
      entitle(fresh);
      main.replaceWith(fresh);
      return fresh;
    } catch {
      return main; // the server does not answer: what is shown is the last that is known
    }
  };
  const keepFresh = (main) => {
    if (!main?.dataset.refresh) return;
    setTimeout(async () => keepFresh(await refresh(main)), main.dataset.refresh * 1000);
  };

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.('a[target="_top"], a[target="_blank"]');
    if (!link || window.top === window) return;
    try {
      const outside = window.top.document.createElement("a");
      outside.href = link.href;
      outside.rel = link.rel;
      if (event.ctrlKey || event.metaKey || link.target === "_blank") outside.target = "_blank";
      outside.click();
      event.preventDefault();
    } catch {
      // In a frame of another site: the browser decides.
    }
  });
  const showReading = (event) => {
    const mark = event.target.closest?.("[data-reading]");
    const line = mark?.closest("figure")?.querySelector(".reading");
    if (line) line.textContent = mark.dataset.reading;
  };
  document.addEventListener("mouseover", showReading);
  document.addEventListener("focusin", showReading);
  document.addEventListener("change", (event) => {
    event.target.closest?.("form.filters")?.requestSubmit();
  });
  document.addEventListener("DOMContentLoaded", () => {
    localize(document);
    entitle(document);
    keepFresh(document.querySelector("main"));
  });
})();
