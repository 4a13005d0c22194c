// The data of the page: read once, never changed.

export const data = JSON.parse(document.getElementById("data").textContent);

export const STATUS = data.statuses; // from best to worst
export const EVIDENCE = data.evidence;
export const NONE = "none"; // "no GPU" among the chosen GPUs
const [BUILD, GPU, DRIVER, LIBC] = data.marks;

export const gpuByName = new Map(data.gpus.map((gpu) => [gpu.name, gpu]));

/** What a build is called in a link: its release and where it lies. */
export function idOf(build) {
  return `${build.release}@${build.home === "pypi" ? "pypi" : build.channel}`;
}

/** A reason as text, with what the user chose put in. */
export function reasonOf(number, build, choice, gpu) {
  const [text, status, evidence, source] = data.reasons[number];
  const said = data.texts[text]
    .replaceAll(BUILD, build.title)
    .replaceAll(GPU, gpu ? gpu.said : "")
    .replaceAll(DRIVER, choice.driver)
    .replaceAll(LIBC, choice.libc);
  const place = source < 0 ? build.sources[~source] : source;
  return { text: said, status, evidence: EVIDENCE[evidence], source: data.texts[place] };
}
