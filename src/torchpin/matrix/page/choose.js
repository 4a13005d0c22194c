// Which build to take: the newest that runs, in the order of torchpin's resolver.
import { data, gpuByName, NONE, reasonOf } from "./data.js";
import { reaches, verdictOf } from "./verdict.js";

const WORST = 2; // partly
const byPlace = new Map();
for (const build of data.builds) {
  const key = `${build.platform} ${build.release}`;
  if (!byPlace.has(key)) byPlace.set(key, []);
  byPlace.get(key).push(build);
}

/** The builds of a release on the chosen system. */
export function buildsOf(release, choice) {
  return byPlace.get(`${data.platforms.indexOf(choice.platform)} ${release}`) ?? [];
}

/** How well a companion runs for what was chosen. */
function companionLevel([, , pair, pythons, kinds, floor], choice) {
  const none = choice.gpus.includes(NONE) || choice.gpus.length === 0;
  let level = none && pair === WORST ? 0 : pair;
  for (const python of choice.pythons) {
    const at = data.pythons.indexOf(python);
    if (at >= 0) level = Math.max(level, Number(data.texts[pythons][at]));
  }
  for (const name of choice.gpus) {
    const gpu = gpuByName.get(name);
    if (gpu) level = Math.max(level, Number(data.texts[kinds][gpu.kind]));
  }
  if (choice.libc && choice.libc !== "musl" && floor && !reaches(choice.libc, floor)) level = 4;
  return level;
}

/** The best version of a package beside a build, or null. */
export function companionOf(build, name, choice, cap = WORST) {
  return build.beside.find((one) => one[0] === name && companionLevel(one, choice) <= cap) ?? null;
}

function search(choice, names) {
  const rank = choice.gpus.includes(NONE) ? "rank_cpu" : "rank";
  for (let cap = 0; cap <= WORST; cap += 1) {
    for (const release of data.releases) {
      const fit = buildsOf(release, choice)
        .map((build) => ({ build, level: verdictOf(build, choice).level }))
        .filter(({ level }) => level <= cap)
        .filter(({ build }) => names.every((name) => companionOf(build, name, choice, cap)))
        .sort((a, b) => a.level - b.level || a.build[rank] - b.build[rank]);
      if (fit.length) return { build: fit[0].build, cap };
    }
  }
  return null;
}

/** The build to take, with its companions; null if none is known to run. */
export function best(choice) {
  const alone = search(choice, []);
  if (!alone) return null;
  const vision = search(choice, ["torchvision"]);
  const lead = vision ?? alone;
  const names = vision ? ["torchvision"] : [];
  const all = search(choice, [...names, "torchaudio"]);
  if (all && all.build === lead.build) return setOf(all.build, [...names, "torchaudio"], choice, all.cap);
  return setOf(lead.build, names, choice, lead.cap);
}

/** What goes with a build: {name, title, reasons, runs} each, title "" where nothing is known to. */
export function besideOf(build, names, choice) {
  return names.map((name) => {
    const here = companionOf(build, name, choice);
    const found = here ?? build.beside.find((one) => one[0] === name);
    if (!found) return { name, title: "", reasons: [], runs: true };
    const title = data.texts[found[6]];
    const reasons = found[7].map((number) => reasonOf(number, build, choice, null, title));
    return { name, title, reasons, runs: here !== null };
  });
}

/** A build with its companions, each [package, version]. */
export function setOf(build, names, choice, cap = WORST) {
  const beside = names.map((name) => companionOf(build, name, choice, cap)).filter(Boolean);
  return { build, pins: [["torch", build.version], ...beside.map((one) => [one[0], one[1]])] };
}

/** The newest release of which a build runs, at least partly, and the release that ends it. */
export function horizon(choice) {
  let ended = null;
  for (const release of data.releases) {
    const all = buildsOf(release, choice);
    const good = all
      .map((build) => ({ build, level: verdictOf(build, choice).level }))
      .filter(({ level }) => level <= WORST)
      .sort((a, b) => a.level - b.level || a.build.rank - b.build.rank);
    if (good.length) return { release, build: good[0].build, ended };
    if (all.length) ended = release;
  }
  return { release: null, build: null, ended: data.releases.find((one) => buildsOf(one, choice).length) ?? null };
}
