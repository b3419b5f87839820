// Sorting, filtering, copying, and drawing of figures. No network; every text is set as text.
"use strict";

(function () {
  const each = (selector, act, root = document) => root.querySelectorAll(selector).forEach(act);

  // --- the index ---------------------------------------------------------------------------------
  function value(row, column, numeric) {
    const cell = row.cells[column];
    const text = cell.dataset.value ?? cell.textContent.trim();
    return numeric ? Number(text) : text.toLowerCase();
  }

  function sortBy(button) {
    const heading = button.closest("th");
    const table = heading.closest("table");
    const numeric = button.dataset.sort === "number";
    const now = heading.getAttribute("aria-sort");
    // Errors are looked for from the largest down, names from A on.
    const first = numeric ? "descending" : "ascending";
    const second = numeric ? "ascending" : "descending";
    const direction = now === first ? second : first;
    each("th[aria-sort]", (other) => other.removeAttribute("aria-sort"), table);
    heading.setAttribute("aria-sort", direction);
    const sign = direction === "ascending" ? 1 : -1;
    const column = heading.cellIndex;
    const rows = [...table.tBodies[0].rows].map((row) => [value(row, column, numeric), row]);
    rows.sort(([a], [b]) => sign * (a < b ? -1 : a > b ? 1 : 0));
    table.tBodies[0].append(...rows.map(([, row]) => row));
  }

  function filter(form) {
    const words = form.elements.text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = [...document.querySelectorAll("#results tbody tr")];
    let shown = 0;
    for (const row of rows) {
      const chosen = [...form.querySelectorAll("select")].every(
        (select) => !select.value || row.dataset[select.name] === select.value);
      const text = row.textContent.toLowerCase();
      row.hidden = !(chosen && words.every((word) => text.includes(word)));
      shown += row.hidden ? 0 : 1;
    }
    document.getElementById("shown").textContent = `${shown} of ${rows.length} shown`;
  }

  each("#results thead button", (button) => button.addEventListener("click", () => sortBy(button)));
  // Say that there is more to the right where there is.
  each("#results", (table) => {
    const tell = () => document.body.classList.toggle(
      "overflows", table.parentElement.scrollWidth > table.parentElement.clientWidth + 1);
    const seen = new ResizeObserver(tell);
    seen.observe(table);
    seen.observe(table.parentElement);
  });
  each("form.filters", (form) => {
    form.addEventListener("input", () => filter(form));
    form.addEventListener("reset", () => setTimeout(() => filter(form)));
    form.addEventListener("submit", (event) => event.preventDefault());
    filter(form); // a browser may have kept what was typed before
  });

  // --- copying -----------------------------------------------------------------------------------
  async function copy(button) {
    const code = button.previousElementSibling;
    let done = true;
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch {
      const selection = getSelection();
      selection.selectAllChildren(code);
      done = document.execCommand("copy");
      if (done) selection.removeAllRanges();
    }
    button.textContent = done ? "Copied" : "Selected";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  }
  each("button.copy", (button) => button.addEventListener("click", () => copy(button)));

  // --- figures -----------------------------------------------------------------------------------
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function theme(layout, narrow) {
    const [ink, line] = [color("--ink"), color("--line")];
    const themed = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", autosize: true,
      font: { color: ink, size: narrow ? 10 : 12, family: "system-ui, DejaVu Sans, sans-serif" },
      margin: { l: narrow ? 50 : 70, r: 15, t: 10, b: 50 }, bargap: 0,
      colorway: ["--accent", "--second", "--third", "--good", "--bad", "--warn"].map(color),
      legend: { orientation: "h", y: -0.18, yanchor: "top" },
      hoverlabel: { align: "left" },
      xaxis: {}, yaxis: {},
      ...layout,
    };
    if (narrow) themed.legend = { orientation: "h", y: -0.2, yanchor: "top", font: { size: 9 } };
    for (const name of Object.keys(themed).filter((key) => /^[xy]axis\d*$/.test(key))) {
      themed[name] = { gridcolor: line, zerolinecolor: line, linecolor: line, ...themed[name] };
    }
    themed.shapes = (themed.shapes ?? []).map(
      (shape) => ({ ...shape, line: { ...shape.line, color: color("--soft") } }));
    if (narrow) thin(themed);
    return themed;
  }

  // On a narrow screen: no labels beside the lines (the caption has them), every other tick.
  function thin(layout) {
    layout.annotations = [];
    const axis = layout.xaxis;
    if (axis?.tickvals?.length > 9) {
      const middle = (axis.tickvals.length - 1) / 2;
      const kept = (_, index) => (index - middle) % 2 === 0;
      layout.xaxis = { ...axis, tickvals: axis.tickvals.filter(kept), ticktext: axis.ticktext.filter(kept) };
    }
    if (layout.yaxis?.automargin) layout.yaxis = { ...layout.yaxis, tickfont: { size: 8 } };
  }

  function colored(trace) {
    const byMeaning = {
      band: "--accent", mean: "--second", points: "--bad", zeros: "--bad", exact: "--accent",
      mark: "--ink",
    };
    const kernel = /^kernel-(\d)$/.exec(trace.meta);
    const name = kernel ? `--c${kernel[1]}` : byMeaning[trace.meta];
    if (!name) return trace;
    return {
      ...trace,
      line: { ...trace.line, color: color(name) },
      marker: { ...trace.marker, color: color(name) },
      ...(trace.fill ? { fillcolor: color(name) + "33" } : {}),
    };
  }

  function draw(place) {
    const spec = JSON.parse(document.getElementById(place.dataset.spec).textContent);
    const narrow = place.clientWidth < 600;
    const name = place.dataset.spec.replace("spec-", "");
    const options = {
      responsive: true, displaylogo: false,
      toImageButtonOptions: { format: "svg", filename: name },
      modeBarButtonsToRemove: ["select2d", "lasso2d"],
    };
    if (spec.layout.height) place.style.height = `${spec.layout.height}px`;
    place.dataset.drawn = "yes";
    // Names beside marks would lie on each other there; the legend has them.
    const unnamed = (trace) => (trace.mode === "markers+text" ? { ...trace, mode: "markers" } : trace);
    const traces = spec.data.map(colored).map((trace) => (narrow ? unnamed(trace) : trace));
    return Plotly.react(place, traces, theme(spec.layout, narrow), options);
  }

  const places = [...document.querySelectorAll(".plot")];

  function missing() {
    for (const place of places) {
      place.classList.add("failed");
      place.textContent = "assets/plotly.min.js is missing beside this site; tables have the figures.";
    }
  }

  function watch() {
    // What is not yet in sight is drawn when it comes near.
    const near = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        if (entry.isIntersecting) {
          near.unobserve(entry.target);
          draw(entry.target);
        }
      }
    }, { rootMargin: "300px" });
    places.forEach((place) => near.observe(place));
    // Paper is white: figures take the light colors, all of them, and then those of the screen again.
    const paper = (printing) => {
      document.documentElement.classList.toggle("printing", printing);
      places.filter((place) => printing || place.dataset.drawn).forEach(draw);
    };
    addEventListener("beforeprint", () => paper(true));
    addEventListener("afterprint", () => paper(false));
    matchMedia("(prefers-color-scheme: dark)").addEventListener(
      "change", () => places.filter((place) => place.dataset.drawn).forEach(draw));
  }

  function load() {
    // After the page itself: megabytes of script do not keep the text waiting.
    const script = document.createElement("script");
    script.src = document.body.dataset.plotly;
    script.addEventListener("load", watch);
    script.addEventListener("error", missing);
    document.head.append(script);
  }
  if (places.length) addEventListener("load", () => setTimeout(load));
})();
