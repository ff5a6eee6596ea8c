// Draws a Plotly figure and updates it in place: Plotly.react on one node, so that nothing blinks,
// zoom survives (uirevision), and the chart follows the page's theme. Colours in the figure are
// names: "$0".."$9" of the palette, "$text", "$grid", "$background".

function load(url) {
  if (window.Plotly) return Promise.resolve(window.Plotly);
  window.tinyllmPlotly ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = url;
    script.onload = () => resolve(window.Plotly);
    script.onerror = () => reject(new Error("plotly.js did not load"));
    document.head.appendChild(script);
  });
  return window.tinyllmPlotly;
}

function colours(element) {
  const style = getComputedStyle(element);
  const read = (name) => style.getPropertyValue(name).trim();
  const named = { $text: read("--st-text-color"), $background: read("--st-background-color") };
  named.$grid = read("--st-border-color");
  read("--st-chart-categorical-colors")
    .split(",")
    .forEach((colour, index) => (named["$" + index] = colour.trim()));
  return named;
}

function paint(value, named) {
  if (typeof value === "string") {
    const [name, opacity] = value.split("/");
    if (!(name in named)) return value;
    const alpha = Math.round(255 * Number(opacity ?? 1)).toString(16).padStart(2, "0");
    return opacity === undefined ? named[name] : named[name] + alpha;
  }
  if (Array.isArray(value)) {
    if (typeof value[value.length - 1] === "number") return value;
    return value.map((item) => paint(item, named));
  }
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, paint(item, named)]));
}

function base(named, font, size) {
  const axis = { gridcolor: "$grid", linecolor: "$grid", zerolinecolor: "$grid" };
  return paint(
    {
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: "$text", family: font, size },
      hoverlabel: { bgcolor: "$background", bordercolor: "$text", font: { color: "$text", size } },
      axis,
    },
    named,
  );
}

function complete(layout, named, font, size) {
  const { axis, ...common } = base(named, font, size);
  const result = { ...common, ...paint(layout, named), autosize: true, uirevision: "keep" };
  for (const name of Object.keys(result)) {
    if (!/^[xy]axis\d*$/.test(name)) continue;
    result[name] = { automargin: true, ...axis, ...result[name] };
    if (result[name].title) result[name].title.font = { size };
  }
  return result;
}

// Called by Streamlit, now and then also for a node that stays: then there is nothing to do.
function release(host) {
  if (host.isConnected) return;
  host.tinyllmSize?.disconnect();
  window.Plotly?.purge(host);
}

// A click that is no drag chooses the place under it, in the units of the first axes.
function pick(host, choose) {
  host.tinyllmPick = choose;
  if (host.tinyllmPicks) return;
  host.tinyllmPicks = true;
  let down = null;
  host.addEventListener("pointerdown", (event) => (down = [event.clientX, event.clientY]), true);
  window.addEventListener("pointerup", (event) => {
    const from = down;
    down = null;
    if (!from || !host.isConnected || !host._fullLayout) return;
    if (Math.hypot(event.clientX - from[0], event.clientY - from[1]) > 4) return;
    const area = host.querySelector(".nsewdrag")?.getBoundingClientRect();
    if (!area || from[0] < area.left || from[0] > area.right) return;
    if (from[1] < area.top || from[1] > area.bottom) return;
    const { xaxis, yaxis } = host._fullLayout;
    const place = { x: xaxis.p2d(from[0] - area.left), y: yaxis.p2d(from[1] - area.top) };
    host.tinyllmPick(place);
  });
}

export default function ({ data, parentElement, setTriggerValue }) {
  const host = parentElement.querySelector(".tinyllm-plot");
  const scale = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
  host.style.height = `${Math.round(data.height * scale)}px`;
  host.setAttribute("aria-label", data.alt);
  host.dataset.name = data.name;
  const style = getComputedStyle(parentElement);
  const font = style.getPropertyValue("--st-font").trim() || "sans-serif";
  const named = colours(parentElement);
  const config = {
    responsive: true,
    displaylogo: false,
    displayModeBar: false,
    doubleClick: "reset",
    showSendToCloud: false,
    showEditInChartStudio: false,
    locale: "en",
  };
  if (!host.dataset.drawn) host.textContent = data.alt; // until plotly.js is there
  const wanted = JSON.stringify([data.figure, named, font, scale]);
  if (host.tinyllmWanted === wanted) return () => release(host); // nothing to draw anew
  host.tinyllmWanted = wanted;
  const token = (host.tinyllmDraw = (host.tinyllmDraw ?? 0) + 1);
  load(new URL(data.plotly, window.location.origin).href)
    .then((Plotly) => {
      if (host.tinyllmDraw !== token) return null; // a newer figure is on its way
      if (!host.dataset.drawn) host.textContent = "";
      const layout = complete(data.figure.layout, named, font, Math.round(13 * scale));
      return Plotly.react(host, paint(data.figure.data, named), layout, config);
    })
    .then((drawn) => {
      if (drawn) host.dataset.drawn = String(token);
      if (drawn && data.picks) pick(host, (place) => setTriggerValue("pick", place));
      if (drawn && !host.tinyllmSize) {
        host.tinyllmSize = new ResizeObserver(() => {
          if (host.isConnected && host.clientWidth) window.Plotly.Plots.resize(host);
        });
        host.tinyllmSize.observe(host);
      }
    })
    .catch((error) => {
      host.textContent = `${data.alt} (${error.message})`;
    });
  return () => release(host);
}
