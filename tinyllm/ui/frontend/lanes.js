// The race's lanes. Live, it shows the steps that the server has sent so far. Afterwards it replays
// them: one clock for three lanes, slowed by one factor, and nothing is asked of the server.
// Visitors who prefer less motion see the end and can scrub.

const COLOURS = [1, 0, 2];

function make(tag, name, text) {
  const node = document.createElement(tag);
  if (name) node.className = name;
  if (text !== undefined) node.textContent = text;
  return node;
}

function build(root, data) {
  root.replaceChildren();
  const list = make("div", "list");
  const views = data.lanes.map((lane) => {
    const row = make("div", "lane");
    const left = make("div", "left");
    const cache = make("div", "cache");
    left.append(make("div", "name", lane.name), make("div", "about", lane.about), cache);
    const middle = make("div", "middle");
    const track = make("div", "track");
    const fill = make("div", "fill");
    const text = make("pre");
    track.append(fill);
    middle.append(track, text);
    const right = make("div", "right");
    const [speed, unit, state] = ["speed", "unit", "state"].map((name) => make("div", name));
    right.append(speed, unit, state);
    row.append(left, middle, right);
    list.append(row);
    return { lane, row, fill, text, cache, speed, unit, state, shown: -1 };
  });
  const bar = make("div", "bar");
  const button = make("button", "", data.words.pause);
  button.type = "button";
  const scrub = make("input");
  Object.assign(scrub, { type: "range", min: 0, max: 1000, value: 0 });
  scrub.setAttribute("aria-label", data.words.scrub);
  const slowed = make("span", "slowed");
  bar.append(button, scrub, slowed);
  root.append(list, bar);
  return { views, button, scrub, slowed };
}

function write(view, steps, prompt) {
  if (view.shown > steps || view.shown < 0) {
    view.text.replaceChildren(make("span", "prompt", prompt));
    view.shown = 0;
    view.tokens = 0;
  }
  for (; view.shown < steps; view.shown += 1) {
    const pieces = view.lane.pieces[view.shown];
    const accepted = view.lane.accepted[view.shown];
    const drafted = pieces.slice(0, accepted).join("");
    if (drafted) view.text.append(make("span", "ok", drafted));
    view.text.append(document.createTextNode(pieces.slice(accepted).join("")));
    view.tokens += pieces.length;
  }
  view.text.scrollTop = view.text.scrollHeight;
}

function show(player, seconds) {
  const { data, views, total } = player;
  for (const view of views) {
    const { ends, most, caches, took } = view.lane;
    let steps = Math.max(view.shown, 0);
    if (steps > 0 && ends[steps - 1] > seconds) steps = 0;
    while (steps < ends.length && ends[steps] <= seconds) steps += 1;
    if (steps !== view.shown) write(view, steps, data.prompt);
    view.fill.style.width = `${(100 * view.tokens) / most}%`;
    view.cache.textContent = steps ? (caches[steps - 1] ?? "") : "";
    const time = steps === ends.length ? took : `${(seconds * 1000).toFixed(1)} ms`;
    view.state.textContent = `${view.tokens} ${data.words.tokens}, ${time}`;
    view.row.dataset.done = String(!data.live && steps === ends.length);
  }
  player.at = seconds;
  player.controls.scrub.value = total ? Math.round((1000 * seconds) / total) : 0;
}

function update(player, data) {
  player.data = data;
  player.total = Math.max(0, ...data.lanes.map((lane) => lane.ends[lane.ends.length - 1] ?? 0));
  player.views.forEach((view, index) => {
    view.lane = data.lanes[index];
    view.speed.textContent = view.lane.speed;
    view.unit.textContent = `${data.words.rate} (${view.lane.ratio})`;
  });
  const { button, scrub, slowed } = player.controls;
  button.disabled = scrub.disabled = data.live;
  slowed.textContent = data.live ? data.words.live : data.words.slowed;
}

function run(player) {
  const { data, controls } = player;
  let last = performance.now();
  player.playing = true;
  controls.button.textContent = data.words.pause;
  const frame = (now) => {
    if (!player.playing || !controls.button.isConnected) return;
    const at = Math.min(player.total, player.at + Math.max(0, now - last) / 1000 / data.factor);
    last = now;
    show(player, at);
    if (at < player.total) requestAnimationFrame(frame);
    else pause(player);
  };
  requestAnimationFrame(frame);
}

function pause(player) {
  player.playing = false;
  player.controls.button.textContent = player.data.words.play;
}

function start(root, data) {
  const controls = build(root, data);
  const player = { controls, views: controls.views, at: 0, playing: false };
  controls.button.onclick = () => {
    if (player.playing) return pause(player);
    if (player.at >= player.total) show(player, 0);
    return run(player);
  };
  controls.scrub.oninput = () => {
    pause(player);
    show(player, (controls.scrub.value / 1000) * player.total);
  };
  return player;
}

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".tinyllm-lanes");
  const palette = getComputedStyle(parentElement)
    .getPropertyValue("--st-chart-categorical-colors")
    .split(",");
  const isNew = root.tinyllmIdentity !== data.identity;
  if (isNew) {
    if (root.tinyllmPlayer) root.tinyllmPlayer.playing = false;
    root.tinyllmIdentity = data.identity;
    root.tinyllmPlayer = start(root, data);
  }
  const player = root.tinyllmPlayer;
  const wasLive = player.data?.live ?? false;
  if (isNew || wasLive) {
    update(player, data);
    const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    const atEnd = data.live || wasLive || still;
    show(player, atEnd ? player.total : 0);
    if (atEnd) pause(player);
    else run(player);
  }
  player.views.forEach((view, index) => {
    view.row.style.setProperty("--lane", palette[COLOURS[index]]);
  });
}
