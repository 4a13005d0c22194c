// What was chosen, in the address: a link opens the page as it was.
import { data, gpuNamed, NONE } from "./data.js";
import { TOOLS } from "./commands.js";

export const START = Object.freeze({
  gpus: [], driver: "", pythons: [], platform: data.platforms[0], libc: "",
  build: "", tool: "pip", patches: false, other: false,
});

export const isDriver = (text) => /^[0-9]{3}(\.[0-9]{1,3}){0,2}$/.test(text) && Number(text.slice(0, 3)) >= 300;
export const isGlibc = (text) => /^2\.[0-9]{1,2}$/.test(text) && Number(text.slice(2)) >= 5;
export const isMacos = (text) => /^[0-9]{2}(\.[0-9]{1,2})?$/.test(text) && Number(text.slice(0, 2)) >= 10;
export const isLibc = (text, platform) =>
  platform.startsWith("macos") ? isMacos(text) : platform.startsWith("linux") && (text === "musl" || isGlibc(text));

/** The state of an address; what is no value of the page is left out. */
export function fromHash(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const platform = data.platforms.includes(given.get("platform")) ? given.get("platform") : START.platform;
  const gpus = [...new Set(given.getAll("gpu").map(gpuNamed))].filter(Boolean);
  const driver = given.get("driver") ?? "";
  const libc = given.get("libc") ?? "";
  return {
    gpus: gpus.includes(NONE) ? [NONE] : gpus,
    driver: isDriver(driver) ? driver : "",
    pythons: given.getAll("python").filter((one) => data.pythons.includes(one)),
    platform,
    libc: isLibc(libc, platform) ? libc : "",
    build: given.get("build") ?? "",
    tool: TOOLS.find((one) => one.toLowerCase() === given.get("tool")) ?? START.tool,
    patches: given.has("patches"),
    other: given.has("other"),
  };
}

/** The address of a state; what is as at the start is not written. */
export function toHash(state) {
  const out = new URLSearchParams();
  for (const name of state.gpus) out.append("gpu", name);
  if (state.driver) out.set("driver", state.driver);
  for (const python of state.pythons) out.append("python", python);
  if (state.platform !== START.platform) out.set("platform", state.platform);
  if (state.libc) out.set("libc", state.libc);
  if (state.build) out.set("build", state.build);
  if (state.tool !== START.tool) out.set("tool", state.tool.toLowerCase());
  if (state.patches) out.set("patches", "1");
  if (state.other) out.set("other", "1");
  return `#${out}`;
}
