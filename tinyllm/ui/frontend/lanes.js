// Replays the race: one clock for three lanes, slowed by one factor. Nothing is asked of the
// server. Visitors who prefer less motion see the end and can scrub.

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
    left.append(make("div", "name", lane.name), make("div", "about", lane.about));
    const middle = make("div", "middle");
    const track = make("div", "track");
    const fill = make("div", "fill");
    const text = make("pre");
    track.append(fill);
    middle.append(track, text);
    const right = make("div", "right");
    const state = make("div", "state");
    right.append(
      make("div", "speed", lane.speed),
      make("div", "unit", `${data.words.rate} (${lane.ratio})`),
      state,
    );
    row.append(left, middle, right);
    list.append(row);
    return { lane, row, fill, text, state, shown: -1 };
  });
  const bar = make("div", "bar");
  const button = make("button", "", data.words.pause);
  button.type = "button";
  const scrub = make("input");
  Object.assign(scrub, { type: "range", min: 0, max: 1000, value: 0 });
  scrub.setAttribute("aria-label", data.words.scrub);
  bar.append(button, scrub, make("span", "slowed", data.words.slowed));
  root.append(list, bar);
  return { views, button, scrub };
}

function write(view, steps, prompt) {
  if (view.shown > steps || view.shown < 0) {
    view.text.replaceChildren(make("span", "prompt", prompt));
    view.shown = 0;
    view.tokens = 0;
  }
  for (; view.shown < steps; view.shown += 1) {
    const text = view.lane.texts[view.shown];
    const accepted = view.lane.accepted[view.shown];
    if (accepted) view.text.append(make("span", "ok", text.slice(0, accepted)));
    if (accepted < text.length) view.text.append(document.createTextNode(text.slice(accepted)));
    view.tokens += text.length;
  }
  view.text.scrollTop = view.text.scrollHeight;
}

function show(player, seconds) {
  const { data, views, total } = player;
  for (const view of views) {
    const { ends, texts } = view.lane;
    let steps = Math.max(view.shown, 0);
    if (steps > 0 && ends[steps - 1] > seconds) steps = 0;
    while (steps < ends.length && ends[steps] <= seconds) steps += 1;
    if (steps !== view.shown) {
      write(view, steps, data.prompt);
      const all = texts.reduce((sum, text) => sum + text.length, 0);
      view.fill.style.width = `${(100 * view.tokens) / all}%`;
    }
    const done = steps === ends.length;
    const time = done ? view.lane.took : `${(seconds * 1000).toFixed(1)} ms`;
    view.state.textContent = `${view.tokens} ${data.words.tokens}, ${time}`;
    view.row.dataset.done = String(done);
  }
  player.at = seconds;
  player.controls.scrub.value = Math.round((1000 * seconds) / total);
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

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".tinyllm-lanes");
  const palette = getComputedStyle(parentElement)
    .getPropertyValue("--st-chart-categorical-colors")
    .split(",");
  if (root.tinyllmIdentity !== data.identity) {
    if (root.tinyllmPlayer) root.tinyllmPlayer.playing = false;
    root.tinyllmIdentity = data.identity;
    const controls = build(root, data);
    const total = Math.max(...data.lanes.map((lane) => lane.ends[lane.ends.length - 1]));
    const player = { data, controls, views: controls.views, total, at: 0, playing: false };
    root.tinyllmPlayer = player;
    controls.button.onclick = () => {
      if (player.playing) return pause(player);
      if (player.at >= total) show(player, 0);
      return run(player);
    };
    controls.scrub.oninput = () => {
      pause(player);
      show(player, (controls.scrub.value / 1000) * total);
    };
    const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    show(player, still ? total : 0);
    if (still) pause(player);
    else run(player);
  }
  root.tinyllmPlayer.views.forEach((view, index) => {
    view.row.style.setProperty("--lane", palette[COLOURS[index]]);
  });
}
