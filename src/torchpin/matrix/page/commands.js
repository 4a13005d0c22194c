// Install commands for a set: {build, pins}.

export const TOOLS = ["pip", "uv", "Poetry", "PDM"];

const indexName = (build) => `pytorch-${build.channel.replaceAll(".", "-")}`;
const list = (words) => `[${words.map((word) => JSON.stringify(word)).join(", ")}]`;

/** What to do with a tool: [{say, code}]. */
export function commandsOf(tool, { build, pins }) {
  const specs = pins.map(([name, version]) => `${name}==${version}`);
  const quoted = specs.map((spec) => `"${spec}"`).join(" ");
  const names = [...pins.map(([name]) => name), ...build.needs];
  const channel = build.url !== null;
  if (tool === "pip") {
    const index = channel ? `--extra-index-url ${build.url} ` : "";
    return [{ say: "", code: `pip install ${index}${specs.join(" ")}` }];
  }
  if (!channel) {
    const command = { uv: "uv add", Poetry: "poetry add", PDM: "pdm add" }[tool];
    return [{ say: "", code: `${command} ${quoted}` }];
  }
  const name = indexName(build);
  if (tool === "uv") {
    const bounds = build.needs.map((one) => `${one}>=0`);
    const lines = [
      ...(bounds.length ? ["[tool.uv]", `constraint-dependencies = ${list(bounds)}`, ""] : []),
      "[[tool.uv.index]]",
      `name = "${name}"`,
      `url = "${build.url}"`,
      "explicit = true",
      "",
      "[tool.uv.sources]",
      ...names.map((one) => `${one} = { index = "${name}" }`),
    ];
    return [
      { say: "In pyproject.toml:", code: lines.join("\n") },
      { say: "Then:", code: `uv add ${quoted}` },
    ];
  }
  if (tool === "Poetry") {
    const priority = build.needs.length ? "supplemental" : "explicit";
    return [
      {
        say: "",
        code:
          `poetry source add --priority=${priority} ${name} ${build.url}\n` +
          `poetry add --source ${name} ${quoted}`,
      },
    ];
  }
  return [
    {
      say: "In pyproject.toml:",
      code: [
        "[[tool.pdm.source]]",
        `name = "${name}"`,
        `url = "${build.url}"`,
        `include_packages = ${list(names)}`,
        'exclude_packages = ["*"]',
      ].join("\n"),
    },
    { say: "Then:", code: `pdm add ${quoted}` },
  ];
}
