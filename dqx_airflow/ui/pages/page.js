// What only the browser knows: the theme and the time zone that the reader chose in Airflow, the way
// out of Airflow's frame, which its sandbox closes to plain links; what is new since, how long ago
// that was, and whether the server still answers; and the headings of cells where a screen is too
// narrow for columns.
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
  // In the night in which the clocks go back, an hour comes twice.
  const HOUR = 3600000;
  const isTwice = (moment) => {
    const words = format.format(moment);
    return [-HOUR, HOUR].some((apart) => format.format(+moment + apart) === words);
  };
  const named = (moment) => {
    if (!isTwice(moment)) return zone;
    const parts = new Intl.DateTimeFormat("en", { timeZone: zone, timeZoneName: "shortOffset" });
    const offset = parts.formatToParts(moment).find((part) => part.type === "timeZoneName");
    return `${zone} ${offset.value}`;
  };
  const local = (time) => `${format.format(new Date(time))} ${named(new Date(time))}`;
  const clock = (time) => `${format.format(new Date(time)).slice(11)} ${named(new Date(time))}`;
  const short = (time) => format.format(new Date(time)).slice(5, 16);

  const UNITS = [["day", "d", 86400], ["hour", "h", 3600], ["minute", "min", 60]];
  const age = (time) => {
    const seconds = (Date.now() - new Date(time)) / 1000;
    const first = UNITS.findIndex(([, , length]) => Math.abs(seconds) >= length);
    if (first < 0) return seconds < 0 ? "in less than a minute" : "just now";
    const [unit, sign, length] = UNITS[first];
    const count = Math.floor(Math.abs(seconds) / length);
    if (seconds >= 0) return `${count} ${unit}${count === 1 ? "" : "s"} ago`;
    // A deadline has two units: of two hours, the minutes count.
    const [, nextSign, nextLength] = UNITS[first + 1] ?? [];
    const next = nextLength ? Math.floor((-seconds % length) / nextLength) : 0;
    return `in ${count} ${sign}${next ? ` ${next} ${nextSign}` : ""}`;
  };
  const countAges = (root) => {
    for (const time of root.querySelectorAll("time[data-ago]")) {
      const words = age(time.dateTime);
      if (time.textContent !== words) time.textContent = words;
    }
  };
  const localize = (root) => {
    for (const time of root.querySelectorAll("time[datetime]")) {
      if ("ago" in time.dataset) {
        time.title = local(time.dateTime);
        continue;
      }
      time.title = "short" in time.dataset ? local(time.dateTime) : time.textContent;
      const shown = "clock" in time.dataset ? clock : "short" in time.dataset ? short : local;
      time.textContent = shown(time.dateTime);
    }
    for (const cell of root.querySelectorAll("[data-moment]")) {
      const state = cell.title.split(": ").pop();
      cell.title = `${local(cell.dataset.moment)}: ${state}`;
    }
    countAges(root);
  };

  // On a phone, a row of a table is a few lines: each cell with the heading of its column.
  const entitle = (root) => {
    for (const table of root.querySelectorAll(".scroll[role=region] > table")) {
      const heads = [...table.querySelectorAll("thead th")].map((head) => head.textContent);
      for (const cell of table.querySelectorAll("tbody td")) {
        if ("head" in cell.dataset || !cell.textContent.trim()) continue;
        cell.dataset.head = heads[cell.cellIndex] ?? "";
      }
    }
  };

  // The newest state replaces the page, unless the reader is busy with it: the head of the page
  // says that it waits, and for whom, and since when the server gives no answer.
  const openedByServer = new WeakSet();
  const remember = (main) => {
    for (const one of main.querySelectorAll("details[open]")) openedByServer.add(one);
  };
  const isChanged = (field) => {
    if (field.type === "hidden") return false;
    if (field.type === "checkbox" || field.type === "radio") {
      return field.checked !== field.defaultChecked;
    }
    if (field.options) {
      const chosen = [...field.options].findIndex((option) => option.defaultSelected);
      return field.selectedIndex !== Math.max(chosen, 0);
    }
    return field.value !== field.defaultValue;
  };
  const busyWith = (main) => {
    const active = document.activeElement;
    const fields = [...main.querySelectorAll("input, textarea, select")];
    if (fields.includes(active) || fields.some(isChanged)) return "while you type";
    const opened = [...main.querySelectorAll("details[open]")];
    if (opened.some((one) => !openedByServer.has(one))) return "while a part is open";
    const hasFocus = active !== main && main.contains(active);
    return hasFocus ? "while you are on a link" : "";
  };
  const say = (words, kind = "") => {
    const line = document.querySelector(".fresh");
    const status = line?.querySelector("[role=status]");
    if (!status) return;
    line.className = `fresh ${kind}`.trim();
    const text = words && `, ${words}`;
    if (status.textContent !== text) status.textContent = text;
  };
  // The numbers in the bar: they are asked for after the page, which does not wait for them.
  const count = async () => {
    try {
      const answer = await fetch("counts", { credentials: "same-origin" });
      if (!answer.ok) return;
      const counts = await answer.json();
      for (const place of document.querySelectorAll("[data-count]")) {
        const number = counts[place.dataset.count] ?? 0;
        const isUrgent = place.dataset.count !== "alerts";
        place.hidden = !number;
        place.classList.toggle("hot", isUrgent);
        place.textContent = place.dataset.count === "board" ? ` ${number} need you` : ` ${number}`;
      }
    } catch {
      // Without an answer, the bar has no numbers.
    }
  };
  let silentSince;
  const refresh = async (main) => {
    try {
      const answer = await fetch(location.href, { credentials: "same-origin" });
      if (!answer.ok) throw new Error(answer.status);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.querySelector("main");
      if (!fresh) throw new Error("no page");
      silentSince = undefined;
      if (busyWith(main)) return main; // the reader began while the server answered
      for (const part of ["title", ".bar .fresh time"]) {
        const [old, now] = [document, page].map((one) => one.querySelector(part));
        if (old && now) old.replaceWith(now);
      }
      count();
      localize(document.querySelector(".fresh"));
      localize(fresh);
      entitle(fresh);
      remember(fresh);
      main.replaceWith(fresh);
      return fresh;
    } catch {
      silentSince ??= new Date();
      return main;
    }
  };
  const keepFresh = (first) => {
    if (!first?.dataset.refresh) return;
    let main = first;
    let isAsking = false;
    let due = Date.now() + main.dataset.refresh * 1000;
    const look = async () => {
      if (isAsking || document.hidden) return;
      const busy = busyWith(main);
      if (!busy && Date.now() >= due) {
        isAsking = true;
        main = await refresh(main);
        isAsking = false;
        due = Date.now() + main.dataset.refresh * 1000;
      }
      if (silentSince) say(`no answer since ${clock(silentSince)}`, "silent");
      else if (busy) say(`paused ${busy}`, "stale");
      else say(`refreshes every ${main.dataset.refresh} s`);
    };
    for (const event of ["focusin", "focusout", "input", "visibilitychange"]) {
      document.addEventListener(event, () => setTimeout(look));
    }
    document.addEventListener("toggle", () => setTimeout(look), true);
    setInterval(look, 1000);
    look();
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
    remember(document);
    setInterval(() => countAges(document), 10000);
    keepFresh(document.querySelector("main"));
    if (document.querySelector("[data-count]")) count();
  });
})();
