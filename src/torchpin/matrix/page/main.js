// Ties the page together: state → panels, events → state.
import { data, gpuByName, idOf, NONE } from "./data.js";
import { best } from "./choose.js";
import { showChips, startCombobox } from "./combobox.js";
import { at, fill, make } from "./dom.js";
import { drawGrid, SAYS, SIGN, startGrid } from "./grid.js";
import { drawAnswer, drawDetails, drawHorizon } from "./panels.js";
import { fromHash, isDriver, isLibc, START, toHash } from "./state.js";

const PLACEHOLDER = at("gpu").placeholder;
const TITLE = document.title;
let state = fromHash(location.hash);
const SYSTEMS = {
  "linux-x86_64": "Linux, x86-64", "linux-aarch64": "Linux, Arm (aarch64)",
  "windows-x86_64": "Windows, x86-64", "windows-arm64": "Windows, Arm",
  "macos-arm64": "macOS, Apple silicon", "macos-x86_64": "macOS, Intel",
};

const byId = (id) => data.builds.find((build) => idOf(build) === id && build.platform === data.platforms.indexOf(state.platform)) ?? null;

/** Change the state; `push` keeps the one before for the back button. */
function set(change, { push = true } = {}) {
  state = { ...state, ...change };
  const hash = toHash(state);
  if (hash !== location.hash) history[push ? "pushState" : "replaceState"](null, "", hash === "#" ? location.pathname + location.search : hash);
  draw();
}

const drop = (name) => {
  const gpus = name === null ? state.gpus.slice(0, -1) : state.gpus.filter((one) => one !== name);
  set({ gpus, build: "" });
  at("gpu").focus();
};

function pick(gpus) {
  const next = gpus.includes(NONE) ? [NONE] : [...new Set([...state.gpus.filter((one) => one !== NONE), ...gpus])];
  const arm = gpus.map((name) => gpuByName.get(name)?.platform).find((one) => one && one !== START.platform);
  set({ gpus: next, build: "", ...(arm && state.platform === START.platform ? { platform: arm } : {}) });
}

const setTool = (tool) => set({ tool }, { push: false });

function select(build, focus) {
  set({ build: build ? idOf(build) : "" });
  if (focus) at("details").focus();
}

const matches = (preset) =>
  JSON.stringify([preset.gpus, preset.driver, preset.pythons, preset.platform, preset.libc]) ===
  JSON.stringify([state.gpus, state.driver, state.pythons, state.platform, state.libc]);

function drawFields() {
  showChips(state.gpus, drop);
  at("gpu").placeholder = state.gpus.length ? "add another" : PLACEHOLDER;
  at("platform").value = state.platform;
  const python = at("python");
  const value = state.pythons.join(", ");
  if (![...python.options].some((option) => option.value === value)) python.append(make("option", { value }, value));
  python.value = value;
  for (const [id, now] of [["driver", state.driver], ["libc", state.libc]]) {
    if (document.activeElement !== at(id) || at(id).value === "") at(id).value = now;
  }
  const macos = state.platform.startsWith("macos");
  at("libc-label").textContent = macos ? "macOS" : "glibc";
  at("libc").placeholder = macos ? "14" : "2.31, or musl";
  at("libc-field").hidden = state.platform.startsWith("windows");
  at("driver-field").hidden = macos;
  check("driver", "", "What nvidia-smi prints, or the branch: 550.54.15, 550.");
  check("libc", "", macos ? "Write 14 or 15.2." : "What ldd --version prints: 2.31. Or musl.");
  [...at("presets").children].forEach((button, place) =>
    button.setAttribute("aria-pressed", String(matches(data.presets[place]))));
  at("patches").checked = state.patches;
  at("other").checked = state.other;
}

/** Mark a field whose text is no value. */
function check(id, fine, wrong) {
  const text = at(id).value.trim();
  const good = text === "" || (id === "driver" ? isDriver(text) : isLibc(text, state.platform));
  at(id).setAttribute("aria-invalid", String(!good));
  const help = at(`${id}-help`);
  help.textContent = good ? fine : wrong;
  help.classList.toggle("wrong", !good);
  return good;
}

function drawLegend() {
  const signs = Object.entries(SIGN).map(([status, sign]) => [status, sign, SAYS[status]]);
  const shown = state.gpus.length ? signs : [["there", "·", "published"], ["unknown", SIGN.unknown, SAYS.unknown]];
  fill(at("legend"), ...shown.map(([style, sign, say]) =>
    make("li", {}, make("span", { class: `sign ${style}`, "aria-hidden": "true" }, sign), say)));
}

function draw() {
  drawLegend();
  drawFields();
  const chosen = state.gpus.length ? best(state) : null;
  const build = byId(state.build) ?? chosen?.build ?? null;
  const say = drawAnswer(state, chosen, setTool);
  document.title = chosen ? `torch ${chosen.build.version} on ${state.gpus.join(", ")} · torchpin` : TITLE;
  drawHorizon(state);
  drawGrid(state, build, chosen?.build, select);
  drawDetails(state, build, setTool, chosen?.build);
  if (at("live").textContent !== say) at("live").textContent = say;
}

function typed(id) {
  const text = at(id).value.trim();
  if (check(id, "", id === "driver" ? "What nvidia-smi prints, or the branch: 550.54.15, 550." : "Write a version: 2.31.")) {
    if (state[id] !== text) set({ [id]: text }, { push: false });
  } else if (state[id]) {
    set({ [id]: "" }, { push: false });
  }
}

function theme(choice) {
  const root = document.documentElement;
  if (choice === "auto") root.removeAttribute("data-theme");
  else root.setAttribute("data-theme", choice);
  at("theme").textContent = `Theme: ${choice}`;
}

function keptTheme(choice) {
  try {
    if (choice) localStorage.setItem("torchpin-theme", choice);
    return localStorage.getItem("torchpin-theme");
  } catch {
    return null; // a page from file:// may have no storage: the choice holds until it is closed
  }
}

function start() {
  at("date").textContent = `· catalog of ${data.date}`;
  at("about").textContent = `Made by torchpin ${data.torchpin} from its catalog of ${data.date} (${data.digest.slice(0, 12)}). Every verdict is torchpin's own, worked out when the page was made; the page asks nothing of any host. What is inferred never says “does not run”.`;
  fill(at("platform"), ...data.platforms.map((name) => make("option", { value: name }, SYSTEMS[name] ?? name)));
  fill(at("python"), make("option", { value: "" }, "any"), ...data.pythons.map((name) => make("option", { value: name }, name.endsWith("t") ? `${name} (free-threaded)` : name)));
  if (data.presets.length) {
    at("presets").hidden = false;
    fill(at("presets"), ...data.presets.map((preset) =>
      make("button", {
        type: "button", "aria-pressed": "false",
        onclick: () => set({ gpus: preset.gpus, driver: preset.driver, pythons: preset.pythons, platform: preset.platform, libc: preset.libc, build: "" }),
      }, preset.name)));
  }
  startCombobox(pick, drop);
  startGrid(byId, select);
  at("platform").addEventListener("change", (event) => set({ platform: event.target.value, build: "", libc: "" }));
  at("python").addEventListener("change", (event) => set({ pythons: event.target.value ? event.target.value.split(", ") : [], build: "" }));
  for (const id of ["driver", "libc"]) at(id).addEventListener("input", () => typed(id));
  for (const id of ["patches", "other"]) at(id).addEventListener("change", (event) => set({ [id]: event.target.checked }, { push: false }));
  at("form").addEventListener("submit", (event) => event.preventDefault());
  at("reset").addEventListener("click", () => { for (const id of ["driver", "libc"]) at(id).value = ""; set({ ...START }); });
  at("skip").addEventListener("click", (event) => { event.preventDefault(); at("answer").focus(); });
  const order = ["auto", "light", "dark"];
  let chosen = order.includes(keptTheme()) ? keptTheme() : "auto";
  theme(chosen);
  at("theme").addEventListener("click", () => {
    chosen = order[(order.indexOf(chosen) + 1) % order.length];
    keptTheme(chosen);
    theme(chosen);
  });
  document.addEventListener("keydown", (event) => {
    const typing = /^(input|select|textarea)$/i.test(event.target.tagName);
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      at("gpu").focus();
    } else if (event.key === "Escape" && event.target.closest?.("#details")) {
      at("grid").querySelector('td[tabindex="0"]')?.focus();
    }
  });
  const reread = () => { state = fromHash(location.hash); for (const id of ["driver", "libc"]) at(id).value = state[id]; draw(); };
  window.addEventListener("popstate", reread);
  if (!location.hash && data.presets.length) {
    const [preset] = data.presets;
    state = { ...state, gpus: preset.gpus, driver: preset.driver, pythons: preset.pythons, platform: preset.platform, libc: preset.libc };
  }
  draw();
}

start();
