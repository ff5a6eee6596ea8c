// The blocks of a pool as a grid on a canvas: who holds which, how full it is, what is shared,
// what is free but could be found again. Pointing at a block asks the server nothing.

const OWNERS = [0, 2, 1, 3]; // places in the palette, by sequence; shared blocks take SHARED
const SHARED = 4;
const LEAST_LABEL = 11; // pixels of a cell that can hold a letter
const LEAST_GAP = 6;

function part(root, tag, name) {
  let found = root.querySelector(`:scope > .${name}`);
  if (!found) {
    found = document.createElement(tag);
    found.className = name;
    root.appendChild(found);
  }
  return found;
}

function colours(element) {
  const style = getComputedStyle(element);
  const read = (name) => style.getPropertyValue(name).trim();
  return {
    palette: read("--st-chart-categorical-colors").split(",").map((one) => one.trim()),
    text: read("--st-text-color"),
    background: read("--st-background-color"),
    border: read("--st-border-color"),
    font: read("--st-code-font") || "monospace",
  };
}

function letter(number) {
  return String.fromCharCode(65 + (number % 26));
}

// Columns and rows that make the cells about square, and rows whole where that is possible.
function layout(count, width, height) {
  const square = Math.sqrt((count * width) / height);
  let columns = Math.max(1, Math.min(count, Math.ceil(square)));
  for (let more = 0; more < square * 0.3; more += 1) {
    const whole = [columns + more, columns - more].find((one) => one > 0 && count % one === 0);
    if (whole) {
      columns = whole;
      break;
    }
  }
  const rows = Math.ceil(count / columns);
  return { columns, cell: { width: width / columns, height: height / rows } };
}

function drawUsed(context, map, block, box, ink, labelled) {
  const shared = map.holders[block] > 1;
  const owner = map.owners[block];
  context.fillStyle = ink.palette[shared ? SHARED : OWNERS[owner % OWNERS.length]];
  context.globalAlpha = 0.25;
  context.fillRect(box.x, box.y, box.width, box.height);
  context.globalAlpha = 1;
  const full = (box.height * map.tokens[block]) / map.block_size;
  context.fillRect(box.x, box.y + box.height - full, box.width, full);
  if (shared && labelled) {
    context.strokeStyle = ink.text;
    context.lineWidth = 2;
    context.strokeRect(box.x + 1, box.y + 1, box.width - 2, box.height - 2);
  }
  if (!labelled) return;
  context.fillStyle = full > box.height / 2 ? ink.background : ink.text;
  const label = shared ? String(map.holders[block]) : letter(owner);
  context.fillText(label, box.x + box.width / 2, box.y + box.height / 2 + 1);
}

function drawFree(context, map, block, box, ink, labelled) {
  const cached = map.cached[block];
  context.strokeStyle = cached ? ink.text : ink.border;
  context.lineWidth = 1;
  context.setLineDash(cached && labelled ? [2, 2] : []);
  if (cached) {
    context.globalAlpha = 0.16;
    context.fillStyle = ink.text;
    context.fillRect(box.x, box.y, box.width, box.height);
    context.globalAlpha = 0.75;
  }
  if (labelled) {
    context.strokeRect(box.x + 0.5, box.y + 0.5, box.width - 1, box.height - 1);
  } else if (!cached) {
    context.fillStyle = ink.border;
    context.globalAlpha = 0.5;
    context.fillRect(box.x, box.y, box.width, box.height);
  }
  context.globalAlpha = 1;
  context.setLineDash([]);
}

function draw(root) {
  const canvas = root.querySelector("canvas");
  const { map } = root.tinyllmData;
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  if (!width) return;
  const scale = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  const ink = colours(root);
  const { columns, cell } = layout(map.holders.length, width, height);
  const smaller = Math.min(cell.width, cell.height);
  const gap = smaller >= LEAST_GAP ? 2 : smaller > 2 ? 0.5 : 0;
  const labelled = smaller >= LEAST_LABEL;
  context.font = `600 ${Math.min(16, Math.floor(smaller * 0.62))}px ${ink.font}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  map.holders.forEach((holders, block) => {
    const box = {
      x: (block % columns) * cell.width,
      y: Math.floor(block / columns) * cell.height,
      width: cell.width - gap,
      height: cell.height - gap,
    };
    (holders ? drawUsed : drawFree)(context, map, block, box, ink, labelled);
  });
  const chosen = root.tinyllmChosen;
  const owner = map.owners[chosen] ?? -1;
  map.holders.forEach((_, block) => {
    // The chosen block, and all others of its sequence: they lie anywhere.
    if (block !== chosen && (owner < 0 || map.owners[block] !== owner)) return;
    context.strokeStyle = ink.text;
    context.lineWidth = block === chosen ? 4 : 2;
    const x = (block % columns) * cell.width;
    const y = Math.floor(block / columns) * cell.height;
    context.strokeRect(x, y, cell.width - gap, cell.height - gap);
  });
  canvas.dataset.used = map.holders.filter((holders) => holders > 0).length;
}

function fill(sentence, values) {
  return sentence.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

function describe(root) {
  const { map, words } = root.tinyllmData;
  const panel = part(root, "div", "inspect");
  const block = root.tinyllmChosen;
  if (block === undefined || block >= map.holders.length) {
    panel.textContent = words.inspect;
    return;
  }
  const holders = map.holders[block];
  let name = holders > 1 ? "shared" : "used";
  if (!holders) name = map.cached[block] ? "cached" : "blank";
  panel.textContent = fill(words[name], {
    block,
    holders,
    tokens: map.tokens[block],
    size: map.block_size,
    letter: letter(Math.max(0, map.owners[block])),
    sequence: map.owners[block],
  });
}

function choose(root, block) {
  const last = root.tinyllmData.map.holders.length - 1;
  root.tinyllmChosen = Math.min(last, Math.max(0, block));
  draw(root);
  describe(root);
}

function listen(root, canvas) {
  const size = () =>
    layout(root.tinyllmData.map.holders.length, canvas.clientWidth, canvas.clientHeight);
  const point = (event) => {
    const { columns, cell } = size();
    const column = Math.min(columns - 1, Math.floor(event.offsetX / cell.width));
    const block = Math.floor(event.offsetY / cell.height) * columns + column;
    if (block !== root.tinyllmChosen) choose(root, block);
  };
  canvas.addEventListener("pointermove", point);
  canvas.addEventListener("pointerdown", point);
  canvas.addEventListener("keydown", (event) => {
    const { columns } = size();
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns };
    const step = { ...steps, Home: -1e9, End: 1e9 }[event.key];
    if (!step) return;
    event.preventDefault();
    choose(root, (root.tinyllmChosen ?? 0) + step);
  });
  new ResizeObserver(() => canvas.isConnected && draw(root)).observe(canvas);
}

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".tinyllm-blocks");
  const { palette } = colours(parentElement);
  root.style.setProperty("--one", palette[OWNERS[0]]);
  root.style.setProperty("--many", palette[SHARED]);
  root.tinyllmData = data;
  const legend = part(root, "div", "legend");
  if (root.tinyllmLegend !== data.legend) legend.innerHTML = root.tinyllmLegend = data.legend;
  const canvas = part(root, "canvas", "map");
  const first = !canvas.style.height;
  canvas.style.height = `${data.height / 16}rem`;
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", data.alt);
  part(root, "div", "inspect").setAttribute("aria-live", "polite");
  part(root, "div", "status").textContent = data.status;
  if (first) listen(root, canvas);
  draw(root);
  describe(root);
}
