// Pick GPUs by typing: the ARIA pattern "editable combobox with list autocomplete".
import { data, keyOf, NONE } from "./data.js";
import { at, fill, make } from "./dom.js";

const MOST = 40;
const entries = [
  { key: "nogpu", also: ["cpu", "none", "cpuonly"], label: "No GPU (CPU only)", hint: "cpu", gpus: [NONE] },
  ...data.gpus.map((gpu) => ({
    key: keyOf(gpu.name), also: gpu.also.split(" "), label: gpu.name, hint: gpu.hint, gpus: [gpu.name],
  })),
  ...data.instances.map(([name, gpus]) => ({
    key: keyOf(name),
    label: name,
    hint: gpus.map((one) => data.gpus[one].name).join(", "),
    gpus: gpus.map((one) => data.gpus[one].name),
  })),
];

/** The entries that a text finds, best first. */
export function found(text) {
  const bare = text.replace(/\b(nvidia|amd|corporation)\b/gi, " ").trim();
  for (let words = bare.split(/[\s-]+/); words.length; words.pop()) {
    const list = matching(words.join(" "));
    if (list.length) return list; // "V100-SXM2-16GB": what tools add is left out from the end
  }
  return [];
}

function matching(text) {
  const words = text.toLowerCase().split(/[^a-z0-9]+/).filter(Boolean);
  const whole = keyOf(text);
  if (!whole) return entries.slice(0, MOST);
  const score = (one) => {
    const hint = keyOf(one.hint);
    if (one.key === whole || one.also?.includes(whole)) return 0;
    if (one.key.startsWith(whole)) return 1;
    if (one.key.endsWith(whole)) return 2;
    if (one.key.includes(whole)) return 3;
    if (hint === whole) return 4;
    return words.every((word) => one.key.includes(word) || hint.includes(word)) ? 5 : 9;
  };
  return entries
    .map((one) => ({ one, score: score(one) }))
    .filter(({ score: value }) => value < 9)
    .sort((a, b) => a.score - b.score || a.one.key.length - b.one.key.length)
    .slice(0, MOST)
    .map(({ one }) => one);
}

/** Start the box; `pick(gpus)` and `drop(name)` are called for choices. */
export function startCombobox(pick, drop) {
  const input = at("gpu");
  const list = at("gpu-list");
  let shown = [];
  let active = -1;

  const close = () => {
    list.hidden = true;
    active = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const mark = (index) => {
    active = index;
    [...list.children].forEach((option, place) => option.setAttribute("aria-selected", String(place === index)));
    const option = list.children[index];
    if (option?.id) {
      input.setAttribute("aria-activedescendant", option.id);
      option.scrollIntoView({ block: "nearest" });
    }
  };
  const open = () => {
    shown = found(input.value);
    fill(
      list,
      ...shown.map((one, index) =>
        make(
          "li",
          {
            role: "option", id: `gpu-${index}`, "aria-selected": "false",
            onmousedown: (event) => { event.preventDefault(); choose(index); },
          },
          make("span", {}, one.label),
          make("small", {}, one.hint),
        ),
      ),
    );
    if (!shown.length) {
      fill(list, make("li", { role: "option", "aria-disabled": "true", "aria-selected": "false" },
        "Not known. Write its compute capability (sm_90) or ISA (gfx942)."));
    }
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    input.removeAttribute("aria-activedescendant");
    active = -1;
    if (input.value && shown.length) mark(0);
  };
  const choose = (index) => {
    const one = shown[index];
    if (!one) return;
    input.value = "";
    close();
    pick(one.gpus);
  };
  input.addEventListener("input", open);
  input.addEventListener("click", open);
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (list.hidden) open();
      else if (shown.length) mark((active + (event.key === "ArrowDown" ? 1 : -1) + shown.length) % shown.length);
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (!list.hidden && active >= 0) choose(active);
    } else if (event.key === "Escape") {
      if (list.hidden) input.value = "";
      close();
      event.stopPropagation();
    } else if (event.key === "Backspace" && !input.value) {
      drop(null);
    }
  });
}

/** Show what is chosen. */
export function showChips(gpus, drop) {
  fill(
    at("chips"),
    ...gpus.map((name) => {
      const label = name === NONE ? "No GPU (CPU only)" : name;
      return make(
        "li",
        {},
        make("span", {}, label),
        make("button", { type: "button", "aria-label": `Remove ${label}`, onclick: () => drop(name) }, "×"),
      );
    }),
  );
}
