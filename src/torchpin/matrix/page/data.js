// The data of the page: read once, never changed.

export const data = JSON.parse(document.getElementById("data").textContent);

export const STATUS = data.statuses; // from best to worst
export const EVIDENCE = data.evidence;
export const NONE = "none"; // "no GPU" among the chosen GPUs
const [BUILD, GPU, DRIVER, LIBC, COMPANION] = data.marks;

export const gpuByName = new Map(data.gpus.map((gpu) => [gpu.name, gpu]));

export const keyOf = (text) => text.toLowerCase().replace(/[^a-z0-9]+/g, "");
const bareOf = (key) => key.replace(/^(?:nvidia|amd|tesla|geforce|quadro|radeon|instinct)+/, "");

/** The GPU that a link names, which people write by hand too: "V100"; undefined if it is none, or several. */
export function gpuNamed(text) {
  if (text === NONE || gpuByName.has(text)) return text;
  const key = keyOf(text);
  const found = data.gpus.filter((gpu) => keyOf(gpu.name) === key || gpu.also.split(" ").includes(key));
  const named = found.length ? found : data.gpus.filter((gpu) => bareOf(keyOf(gpu.name)) === bareOf(key));
  return key && named.length === 1 ? named[0].name : undefined;
}

/** What a build is called in a link: its release and where it lies. */
export function idOf(build) {
  return `${build.release}@${build.home === "pypi" ? "pypi" : build.channel}`;
}

/** A reason as text, with what the user chose put in. */
export function reasonOf(number, build, choice, gpu, companion = "") {
  const [text, status, evidence, source] = data.reasons[number];
  const said = data.texts[text]
    .replaceAll(BUILD, build.title)
    .replaceAll(GPU, gpu ? gpu.said : "")
    .replaceAll(DRIVER, choice.driver)
    .replaceAll(LIBC, choice.libc)
    .replaceAll(COMPANION, companion);
  const place = source < 0 ? build.sources[~source] : source;
  return { text: said, status, evidence: EVIDENCE[evidence], source: data.texts[place] };
}
