// The panels beside the grid: what to install, how far it goes, and why.
import { data, EVIDENCE, gpuByName, NONE, STATUS } from "./data.js";
import { besideOf, best, buildsOf, horizon, setOf } from "./choose.js";
import { commandsOf, TOOLS } from "./commands.js";
import { at, fill, linked, make } from "./dom.js";
import { SAYS, SIGN, wanted } from "./grid.js";
import { fromHash, toHash } from "./state.js";
import { reasonsOf, verdictOf } from "./verdict.js";

const placeOf = (build) => (build.home === "pypi" ? `PyPI (${build.channel})` : `the ${build.channel} channel`);
const EXAMPLES = [
  ["V100, driver 550", "#gpu=Tesla+V100&driver=550"],
  ["RTX 5090", "#gpu=GeForce+RTX+5090"],
  ["MI300X", "#gpu=MI300X"],
  ["a laptop without a GPU", "#gpu=none"],
].filter(([, hash]) => fromHash(hash).gpus.length);
const COMPANIONS = ["torchvision", "torchaudio"];

async function copy(text, button) {
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = make("textarea", { class: "hidden", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    done = document.execCommand("copy"); // the way without a permission, for file://
    area.remove();
    button.focus();
  }
  button.textContent = done ? "Copied" : "Not copied";
  at("live").textContent = done ? "Copied." : "The browser did not copy it.";
  setTimeout(() => { button.textContent = "Copy"; }, 1600);
}

/** The commands for a set, with a tab for each tool. */
export function commandBlock(set, tool, name, setTool) {
  const tabs = TOOLS.map((one) =>
    make(
      "button",
      {
        type: "button", role: "tab", id: `${name}-tab-${one}`, "aria-selected": String(one === tool),
        "aria-controls": `${name}-panel`, tabindex: one === tool ? "0" : "-1",
        onclick: () => { setTool(one); at(`${name}-tab-${one}`).focus(); },
        onkeydown: (event) => {
          const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
          if (!step) return;
          event.preventDefault();
          const next = TOOLS[(TOOLS.indexOf(one) + step + TOOLS.length) % TOOLS.length];
          setTool(next);
          at(`${name}-tab-${next}`).focus();
        },
      },
      one,
    ),
  );
  const parts = commandsOf(tool, set).flatMap(({ say, code }) => [
    say ? make("p", { class: "help" }, say) : null,
    make(
      "div",
      { class: "snippet" },
      make("pre", {}, make("code", {}, code)),
      make("button", {
        type: "button", class: "quiet copy", "aria-label": `Copy the ${tool} ${say.startsWith("In") ? "settings" : "command"}`,
        onclick: (event) => copy(code, event.currentTarget),
      }, "Copy"),
    ),
  ]).filter(Boolean);
  return [
    make("div", { class: "tabs", role: "tablist", "aria-label": "Installer" }, ...tabs),
    make("div", { role: "tabpanel", id: `${name}-panel`, "aria-labelledby": `${name}-tab-${tool}` }, ...parts),
  ];
}

const labelOf = (name) => (name === NONE ? "machines without a GPU" : name);

function restrictions(choice) {
  const told = [];
  if (choice.driver) told.push(`driver ${choice.driver}`);
  if (choice.pythons.length) told.push(`Python ${choice.pythons.join(", ")}`);
  if (choice.libc) told.push(choice.libc === "musl" ? "musl" : `${choice.platform.startsWith("macos") ? "macOS" : "glibc"} ${choice.libc}`);
  return told.length ? ` with ${told.join(", ")}` : "";
}

/** Which companions are in the commands for a set, and which are not. */
function withIt({ pins }) {
  const inside = COMPANIONS.filter((name) => pins.some(([one]) => one === name));
  const left = COMPANIONS.filter((name) => !inside.includes(name)).join(" and no ");
  if (!inside.length) return `No ${left} is known to go with it.`;
  const told = `The ${inside.join(" and ")} in the command ${inside.length > 1 ? "go" : "goes"} with it`;
  return left ? `${told}; no ${left} is known to.` : `${told}.`;
}

/** Draw the answer; returns its summary for the live region. */
export function drawAnswer(choice, set, setTool) {
  const body = at("answer-body");
  if (!choice.gpus.length) {
    fill(
      body,
      make("p", { class: "plain" }, "Pick the GPUs above, or “No GPU”. The newest release that runs on them, and how to install it, will stand here."),
      make("p", { class: "try" }, make("span", {}, "For example:"), ...EXAMPLES.map(([say, hash]) => make("a", { href: hash }, say))),
    );
    return "Pick a GPU to see what runs.";
  }
  const who = choice.gpus.map(labelOf).join(", ");
  if (!set) {
    const parts = [make("p", { class: "big" }, "No published build is known to run.")];
    const split = choice.gpus.length > 1
      ? choice.gpus.map((name) => [name, best({ ...choice, gpus: [name] })]).filter(([, one]) => one)
      : [];
    if (split.length) {
      parts.push(make("p", { class: "plain" }, "No single install serves all of them. One by one:"));
      parts.push(make("ul", { class: "far" }, ...split.map(([name, one]) =>
        make("li", {}, make("p", {}, name), make("p", {},
          make("a", { href: toHash({ ...choice, gpus: [name], build: "" }) }, `torch ${one.build.version}`), ` from ${placeOf(one.build)}`)))));
    } else {
      parts.push(make("p", { class: "plain" }, `For ${who}${restrictions(choice)}. The grid tells why; \`torchpin recipe\` tells how to build from source.`));
    }
    fill(body, ...parts);
    return `No build is known to run on ${who}.`;
  }
  const { build } = set;
  const status = STATUS[verdictOf(build, choice).status];
  fill(
    body,
    make("p", { class: "big" }, `torch ${build.version} from ${placeOf(build)}`),
    make("p", { class: "plain" }, `${status === "runs" ? "The newest that runs" : `The newest that does (${SAYS[status]})`} on ${who}${restrictions(choice)}.`),
    ...commandBlock(set, choice.tool, "answer", setTool),
    make("p", { class: "help" }, withIt(set)),
  );
  return `torch ${build.version} from ${placeOf(build)} is the newest that runs on ${who}.`;
}

/** Why no build of a release runs: the proved reason of the first that is made for the GPU. */
export function blockOf(release, choice) {
  const kinds = wanted(choice);
  const all = buildsOf(release, choice);
  const made = all.filter((build) => kinds.has(build.kind));
  let first = null;
  for (const build of made.length ? made : all) {
    const proved = reasonsOf(build, choice).find((one) => STATUS[one.status] === "fails" && one.evidence !== "inferred");
    if (!proved) return { text: `of ${release} no build is known to run`, evidence: null };
    first ??= proved;
  }
  if (!made.length) return { text: `of ${release} no build for this hardware is known`, evidence: null };
  return { text: `${release} ends it: ${first.text}`, evidence: first.evidence };
}

/** Draw how far each GPU goes. */
export function drawHorizon(choice) {
  const newest = data.releases.find((release) => buildsOf(release, choice).length);
  if (!choice.gpus.length) {
    fill(at("horizon"), make("p", { class: "plain" }, `Which release is the last for each GPU, and what ends it. The newest is torch ${data.releases[0]}.`));
    return;
  }
  const items = choice.gpus.map((name) => {
    const one = { ...choice, gpus: [name] };
    const { release, build, ended } = horizon(one);
    const parts = [make("p", {}, name === NONE ? "No GPU" : name)];
    if (!release) {
      parts.push(make("p", {}, `No release since ${data.releases.at(-1)} is known to run.`));
    } else {
      const status = STATUS[verdictOf(build, one).status];
      const how = status === "runs" ? "." : `, which ${SAYS[status]}.`.replace("which partly", "but only partly");
      const last = release === newest ? "Runs the newest release" : "Last release";
      parts.push(make("p", {}, `${last}: ${release} from ${placeOf(build)}${how}`));
      const whole = status === "partly" ? best(one) : null;
      if (whole && whole.build !== build) parts.push(make("p", {}, `Whole: ${whole.build.version} from ${placeOf(whole.build)}.`));
    }
    if (ended) {
      const why = blockOf(ended, one);
      const text = why.text[0].toUpperCase() + why.text.slice(1);
      parts.push(make("p", { class: "why" }, `${text}${why.evidence ? " " : "."}`,
        why.evidence ? make("span", { class: "tag" }, why.evidence) : null));
    }
    return make("li", {}, ...parts);
  });
  fill(at("horizon"), make("ul", { class: "far" }, ...items));
}

/** An evidence word, and where the fact comes from behind it. */
function sourceOf(evidence, source) {
  const tag = make("span", { class: "tag" }, evidence);
  if (!source) return make("p", { class: "source" }, tag);
  return make("details", { class: "source" }, make("summary", {}, tag, " source"), make("p", {}, ...linked(source)));
}

/** A companion, with each reason why the two go together. */
const companionItem = ({ name, title, reasons, runs }) =>
  make("li", {},
    make("p", {}, title || `No ${name} is known to go with it.`),
    runs ? null : make("p", { class: "help" }, "Not known to run on what was chosen."),
    ...reasons.map((reason) => make("div", {}, make("p", {}, reason.text), sourceOf(reason.evidence, reason.source))));

/** Draw the details of a build. */
export function drawDetails(choice, build, setTool, recommended) {
  const body = at("details-body");
  if (!build) {
    fill(body, make("p", { class: "plain" }, "Choose a cell of the grid to see why it runs or not, and how that is known."));
    return;
  }
  const verdict = verdictOf(build, choice);
  const status = STATUS[verdict.status];
  const told = choice.gpus.length > 0;
  const facts = [
    ["Lies on", build.home === "pypi" ? "PyPI" : build.url],
    ["Built for", build.channel],
    ...(build.released ? [["Released", build.released]] : []),
    ["Known by", sourceOf(EVIDENCE[build.evidence], data.texts[build.sources[0]])],
  ];
  const reasons = reasonsOf(build, choice);
  const parts = [
    make("p", { class: "big" }, build.title),
    make("p", { class: `badge ${told || status !== "runs" ? status : "there"}` },
      make("span", { "aria-hidden": "true" }, told || status !== "runs" ? SIGN[status] : "·"), told || status !== "runs" ? SAYS[status] : "published"),
    reasons.length
      ? make("ul", { class: "reasons" }, ...reasons.map((reason) => {
        const word = STATUS[reason.status];
        return make("li", {},
          make("span", { class: `sign ${word}`, "aria-hidden": "true" }, SIGN[word]),
          make("div", {},
            make("p", {}, make("span", { class: "hidden" }, `${SAYS[word]}: `), reason.text),
            sourceOf(reason.evidence, reason.source)));
      }))
      : make("p", { class: "plain" }, "Nothing was chosen that it could fail on."),
    told && build.leaves.length ? make("p", { class: "help" }, `Not looked at: ${build.leaves.join("; ")}.`) : null,
    make("dl", {}, ...facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, ...(typeof value === "string" ? linked(value) : [value]))])),
  ];
  if (build.beside.length) {
    parts.push(make("h3", {}, "Goes with it"), make("ul", { class: "with" }, ...besideOf(build, COMPANIONS, choice).map(companionItem)));
  }
  if (build !== recommended && verdict.level <= 2 && told) {
    parts.push(make("h3", {}, "Install this one"));
    parts.push(...commandBlock(setOf(build, COMPANIONS, choice), choice.tool, "details", setTool));
  }
  fill(body, ...parts.filter(Boolean));
}
