// What only the browser knows: the theme and the time zone that the reader chose in Airflow.
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
    for (const cell of document.querySelectorAll("[data-moment]")) {
      const state = cell.title.split(": ").pop();
      cell.title = `${format.format(new Date(cell.dataset.moment))} ${zone}: ${state}`;
    }
  });
})();
