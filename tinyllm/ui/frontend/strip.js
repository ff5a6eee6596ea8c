// The token strip and, beside it, the distributions p and q at the token a visitor points at.
// Everything is in the data, so pointing never asks the server.

const MARKS = { accepted: 2, corrected: 1, bonus: 0, rejected: 4 };
const LONGEST = 12; // symbols of a token's text beside its bar

function element(parent, tag, name) {
  let found = parent.querySelector(`:scope > .${name}`);
  if (!found) {
    found = document.createElement(tag);
    found.className = name;
    parent.appendChild(found);
  }
  return found;
}

function escape(text) {
  const node = document.createElement("span");
  node.textContent = text;
  return node.innerHTML;
}

function shortened(text) {
  const symbols = [...text];
  return symbols.length > LONGEST ? `${symbols.slice(0, LONGEST - 1).join("")}…` : text;
}

function bars(top, words) {
  const row = 16;
  const width = 240;
  const labels = top.map(([text]) => shortened(text));
  const from = Math.max(20, 8 + 7 * Math.max(...labels.map((label) => [...label].length)));
  const lines = top.map(([text, id, p, q], index) => {
    const y = index * row;
    const length = (value) => Math.max(1, value * (width - from - 72));
    const drafted = q === null ? "" : `<rect x="${from}" y="${y + 8}" width="${length(q)}" height="6"
      fill="url(#tinyllm-hatch)" stroke="var(--mark-corrected)" stroke-width="0.7"/>`;
    const numbers = q === null ? p.toFixed(2) : `${p.toFixed(2)} / ${q.toFixed(2)}`;
    const end = from + 4 + Math.max(length(p), q === null ? 0 : length(q));
    return `<g><title>${escape(text)}, ${escape(words.token)} ${id}</title><text x="4" y="${y + 12}"
      font-weight="700" style="font-family:var(--st-code-font)">${escape(labels[index])}</text>
      <rect x="${from}" y="${y + 1}" width="${length(p)}" height="6" fill="var(--mark-bonus)"/>
      ${drafted}<text x="${end}" y="${y + 12}">${numbers}</text></g>`;
  });
  return `<svg viewBox="0 0 ${width} ${row * top.length}" role="img"><defs>
    <pattern id="tinyllm-hatch" width="4" height="4" patternUnits="userSpaceOnUse"
    patternTransform="rotate(45)"><rect width="2" height="4" fill="var(--mark-corrected)"/>
    </pattern></defs>${lines.join("")}</svg>`;
}

function inspect(panel, detail, words) {
  if (!detail) {
    panel.textContent = words.inspect;
    return;
  }
  const [mark, position, text, id, top] = detail;
  panel.innerHTML = `<div><b class="sym">${escape(shortened(text))}</b> ${escape(mark)},
    ${escape(words.token)} ${id}, ${escape(words.position)} ${position}</div>
    <div class="keys"><span><span class="swatch" style="background:var(--mark-bonus)"></span>
    ${escape(words.target)}</span><span><span class="swatch" style="background:
    repeating-linear-gradient(45deg,var(--mark-corrected) 0 2px,transparent 2px 4px)"></span>
    ${escape(words.drafter)}</span></div>${bars(top, words)}`;
}

function choose(root, number) {
  const { details, words } = root.tinyllmData;
  root.tinyllmChosen = number;
  root.querySelectorAll(".tokens .t.on").forEach((node) => node.classList.remove("on"));
  const node = root.querySelector(`.tokens .t[data-n="${number}"]`);
  node?.classList.add("on");
  inspect(element(root, "div", "inspect"), details[number], words);
  return node;
}

function listen(root, tokens) {
  const point = (event) => {
    const node = event.target.closest(".t[data-n]");
    if (node && root.tinyllmData.details[node.dataset.n]) choose(root, Number(node.dataset.n));
  };
  tokens.addEventListener("pointerover", point);
  tokens.addEventListener("click", point);
  tokens.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, Home: -1e9, End: 1e9 }[event.key];
    if (!step) return;
    event.preventDefault();
    const last = root.tinyllmData.details.length - 1;
    const next = Math.min(last, Math.max(0, (root.tinyllmChosen ?? -1) + step));
    choose(root, next)?.scrollIntoView({ block: "nearest" });
  });
}

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".tinyllm-strip");
  const palette = getComputedStyle(parentElement)
    .getPropertyValue("--st-chart-categorical-colors")
    .split(",");
  for (const [mark, index] of Object.entries(MARKS)) {
    root.style.setProperty(`--mark-${mark}`, palette[index]);
  }
  root.classList.toggle("wraps", data.wraps);
  const first = !root.tinyllmData;
  root.tinyllmData = data;
  element(root, "div", "legend").innerHTML = data.legend;
  const tokens = element(root, "div", "tokens");
  tokens.style.height = `${data.height / 16}rem`;
  tokens.tabIndex = 0;
  tokens.setAttribute("role", "group");
  tokens.setAttribute("aria-label", data.words.strip);
  const panel = element(root, "div", "inspect");
  panel.setAttribute("aria-live", "polite");
  panel.style.height = tokens.style.height; // fixed, or the page would jump under the pointer
  if (root.tinyllmHtml !== data.html) tokens.innerHTML = root.tinyllmHtml = data.html;
  if (first) listen(root, tokens);
  if (data.following) {
    tokens.scrollTop = tokens.scrollHeight;
    choose(root, data.focus);
  } else {
    const chosen = root.tinyllmChosen;
    const known = chosen !== undefined && chosen < data.details.length;
    choose(root, known ? chosen : data.focus);
  }
}
