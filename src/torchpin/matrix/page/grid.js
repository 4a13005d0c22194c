// The grid of releases and channels: the ARIA pattern "data grid", one cell in the tab order.
import { data, gpuByName, idOf, NONE, STATUS } from "./data.js";
import { buildsOf } from "./choose.js";
import { at, fill, make } from "./dom.js";
import { verdictOf } from "./verdict.js";

export const SIGN = { runs: "✓", "runs-via-ptx": "~", partly: "!", unknown: "?", fails: "✕" };
export const SAYS = {
  runs: "runs",
  "runs-via-ptx": "runs by compiling PTX, slow at first use",
  partly: "partly: a library in it fails there",
  unknown: "not known",
  fails: "does not run",
};
const ORDER = ["cpu", "cuda", "rocm", "xpu"];
const WANTS = { nvidia: "cuda", amd: "rocm", intel: "xpu" };

/** The kinds of builds that the chosen hardware is for. */
export function wanted(choice) {
  if (!choice.gpus.length) return new Set(ORDER);
  if (choice.gpus.includes(NONE)) return new Set(["cpu"]);
  return new Set(choice.gpus.map((name) => WANTS[data.kinds[gpuByName.get(name).kind].vendor]));
}

const newestPatch = (releases) => {
  const seen = new Set();
  return releases.filter((release) => {
    const minor = release.split(".").slice(0, 2).join(".");
    return !seen.has(minor) && seen.add(minor);
  });
};

const channelOrder = (a, b) =>
  ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind) ||
  b.name.localeCompare(a.name, "en", { numeric: true }); // the newest first

/** What the grid shows: columns and rows of builds with verdicts. */
export function table(choice) {
  const kinds = wanted(choice);
  const all = choice.patches ? data.releases : newestPatch(data.releases);
  const columns = new Map();
  const rows = [];
  for (const release of all) {
    const cells = new Map();
    for (const build of buildsOf(release, choice)) {
      const pypi = build.home === "pypi";
      if (!pypi && !choice.other && !kinds.has(build.kind)) continue;
      const name = pypi ? "PyPI" : build.channel;
      columns.set(name, { name, kind: pypi ? "" : build.kind });
      cells.set(name, { build, ...verdictOf(build, choice) });
    }
    if (cells.size) rows.push({ release, cells });
  }
  return { columns: [...columns.values()].sort(channelOrder), rows };
}

/** Draw the grid; `select(build, focus)` is called for a cell. */
export function drawGrid(choice, chosen, recommended, select) {
  const { columns, rows } = table(choice);
  const told = choice.gpus.length > 0;
  const head = make(
    "tr",
    { role: "row" },
    make("th", { scope: "col", role: "columnheader" }, make("span", { class: "hidden" }, "Release")),
    ...columns.map(({ name }) => make("th", { scope: "col", role: "columnheader" }, name)),
  );
  const body = rows.map(({ release, cells }) => {
    const best = recommended?.release === release;
    return make(
      "tr",
      { role: "row" },
      make("th", { scope: "row", role: "rowheader", class: best ? "best" : null }, release),
      ...columns.map(({ name }) => {
        const cell = cells.get(name);
        if (!cell) return make("td", { role: "gridcell", tabindex: "-1" }, make("span", { class: "hidden" }, "not published"));
        const status = STATUS[cell.status];
        const quiet = !told && status === "runs";
        const sign = quiet ? "·" : SIGN[status];
        const say = `${cell.build.title}: ${quiet ? "published" : SAYS[status]}`;
        return make(
          "td",
          {
            role: "gridcell", tabindex: "-1", title: say, class: quiet ? "there" : status,
            "data-build": idOf(cell.build), "data-verdict": status,
            "aria-selected": String(cell.build === chosen),
            onclick: () => select(cell.build, false),
          },
          make("span", { "aria-hidden": "true" }, sign),
          name === "PyPI" ? make("small", { "aria-hidden": "true" }, cell.build.channel) : null,
          make("span", { class: "hidden" }, say),
        );
      }),
    );
  });
  const grid = at("grid");
  const inside = grid.contains(document.activeElement);
  fill(grid, make("thead", {}, head), make("tbody", {}, ...body));
  const first = grid.querySelector('td[aria-selected="true"]') ?? grid.querySelector("td[data-build]") ?? grid.querySelector("td");
  if (first) {
    first.setAttribute("tabindex", "0");
    const room = grid.parentElement; // what is chosen is in sight, also on a phone
    const right = first.offsetLeft + first.offsetWidth;
    room.scrollLeft = right > room.clientWidth ? right - room.clientWidth + 48 : 0;
    if (inside) first.focus();
  }
  return { columns, rows };
}

/** Move through the cells by keys. */
export function startGrid(byId, select) {
  const grid = at("grid");
  grid.addEventListener("keydown", (event) => {
    const cell = event.target.closest("td");
    if (!cell) return;
    const rows = [...grid.querySelectorAll("tbody tr")].map((row) => [...row.querySelectorAll("td")]);
    const y = rows.findIndex((row) => row.includes(cell));
    const x = rows[y].indexOf(cell);
    const ends = { Home: [event.ctrlKey ? 0 : y, 0], End: [event.ctrlKey ? rows.length - 1 : y, rows[y].length - 1] };
    const to = {
      ArrowUp: [y - 1, x], ArrowDown: [y + 1, x], ArrowLeft: [y, x - 1], ArrowRight: [y, x + 1],
      PageUp: [Math.max(0, y - 5), x], PageDown: [Math.min(rows.length - 1, y + 5), x], ...ends,
    }[event.key];
    if (to) {
      event.preventDefault();
      const next = rows[to[0]]?.[to[1]];
      if (!next) return;
      cell.setAttribute("tabindex", "-1");
      next.setAttribute("tabindex", "0");
      next.focus();
    } else if ((event.key === "Enter" || event.key === " ") && cell.dataset.build) {
      event.preventDefault();
      select(byId(cell.dataset.build), true);
    }
  });
}
