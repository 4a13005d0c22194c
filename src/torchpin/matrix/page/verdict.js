// What runs where. Every answer was worked out by torchpin's own judge; here versions are compared
// with the floors that it gave, and the worst of its answers is taken.
import { data, gpuByName, NONE, reasonOf } from "./data.js";

const parsed = new Map();
const numbersOf = (text) => {
  let found = parsed.get(text);
  if (!found) parsed.set(text, (found = text.split(".").map(Number)));
  return found;
};

/** Whether a version reaches a floor; a shorter one stands for the newest that begins so. */
export function reaches(version, floor) {
  const have = numbersOf(version);
  const need = numbersOf(floor);
  for (let at = 0; at < need.length; at += 1) {
    if (at >= have.length) return true;
    if (have[at] !== need[at]) return have[at] > need[at];
  }
  return true;
}

const places = new Map();

/** The place of a driver among the versions where an answer may change. */
export function driverPlace(driver) {
  if (places.has(driver)) return places.get(driver);
  let place = 0;
  data.drivers.forEach((from, at) => {
    if (reaches(driver, from)) place = at;
  });
  places.set(driver, place);
  return place;
}

/** Choose the answer of steps: [level, status, reason numbers]. */
function stepAnswer(number, fits) {
  const steps = data.steps[number];
  const unset = data.answers[steps[0]];
  if (!fits || steps.length === 1) return unset;
  let chosen = steps[2];
  for (let at = 1; at < steps.length; at += 2) if (fits(steps[at])) chosen = steps[at + 1];
  const [level, status, ...rest] = data.answers[chosen];
  const gone = new Set(rest.filter((one) => one < 0).map((one) => ~one));
  const kept = unset.slice(2).filter((one) => !gone.has(one));
  return [level, status, ...kept, ...rest.filter((one) => one >= 0)];
}

/** Every answer on a build for what was chosen: {answer, gpu}. */
function answersOf(build, choice) {
  const out = [];
  const add = (answer, gpu = null) => out.push({ answer, gpu });
  const place = choice.driver ? driverPlace(choice.driver) : -1;
  for (const name of choice.gpus) {
    if (name === NONE) add(data.answers[build.idle]);
    const gpu = gpuByName.get(name);
    if (!gpu) continue;
    const row = data.rows[build.gpus];
    add(stepAnswer(row[gpu.kind], place < 0 ? null : (from) => from <= place), gpu);
  }
  if (choice.libc === "musl") {
    if (build.musl !== null) add(data.answers[build.musl]);
  } else if (choice.libc) {
    add(stepAnswer(build.libc, (floor) => floor === "0" || reaches(choice.libc, floor)));
  }
  for (const python of choice.pythons) {
    const at = data.pythons.indexOf(python);
    if (at >= 0) add(data.answers[data.rows[build.pythons][at]]);
  }
  return out;
}

const known = new WeakMap(); // choices are never changed, only replaced

/** The verdict on a build: the worst answer. `level` is how good it is for a plan. */
export function verdictOf(build, choice) {
  let verdicts = known.get(choice);
  if (!verdicts) known.set(choice, (verdicts = new Map()));
  let verdict = verdicts.get(build);
  if (!verdict) verdicts.set(build, (verdict = judged(build, choice)));
  return verdict;
}

function judged(build, choice) {
  let status = 0;
  let level = build.proved ? 0 : 3;
  for (const { answer } of answersOf(build, choice)) {
    level = Math.max(level, answer[0]);
    status = Math.max(status, answer[1]);
  }
  for (const number of build.exists) status = Math.max(status, data.reasons[number][1]);
  return { status, level };
}

/** Every reason, worst first, each once. */
export function reasonsOf(build, choice) {
  const found = new Map();
  const tell = (number, gpu) => {
    const reason = reasonOf(number, build, choice, gpu);
    found.set(`${reason.text}\n${reason.evidence}\n${reason.source}`, reason);
  };
  for (const { answer, gpu } of answersOf(build, choice)) {
    for (const number of answer.slice(2)) tell(number, gpu);
  }
  for (const number of build.exists) tell(number, null);
  return [...found.values()].sort((a, b) => b.status - a.status);
}
