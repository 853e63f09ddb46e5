// What only the browser knows: the theme and the time zone that the reader chose in Airflow, and
// the way out of Airflow's frame, which its sandbox closes to plain links.
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

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.('a[target="_top"]');
    if (!link || window.top === window) return;
    try {
      const own = window.top.document.createElement("a");
      own.href = link.href;
      if (event.ctrlKey || event.metaKey) own.target = "_blank";
      own.click();
      event.preventDefault();
    } catch {
      // In a frame of another site: the browser decides.
    }
  });
  const say = (event) => {
    const mark = event.target.closest?.("[data-says]");
    const line = mark?.closest("figure")?.querySelector(".says");
    if (line) line.textContent = mark.dataset.says;
  };
  document.addEventListener("mouseover", say);
  document.addEventListener("focusin", say);

  document.addEventListener("DOMContentLoaded", () => {
    const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
    let zone = chosen("timezone") || own;
    let format;
    try {
      format = formatIn(zone);
    } catch {
      zone = own;
      format = formatIn(zone);
    }
    for (const time of document.querySelectorAll("time[datetime]")) {
      time.title = time.textContent;
      time.textContent = `${format.format(new Date(time.dateTime))} ${zone}`;
    }
    for (const form of document.querySelectorAll("form.filters")) {
      form.addEventListener("change", () => form.requestSubmit());
    }
    for (const cell of document.querySelectorAll("[data-moment]")) {
      const state = cell.title.split(": ").pop();
      cell.title = `${format.format(new Date(cell.dataset.moment))} ${zone}: ${state}`;
    }
  });
})();
