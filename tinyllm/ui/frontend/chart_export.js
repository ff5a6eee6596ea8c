// Saves the charts of the page as files, made in the browser: nothing is sent anywhere. PNG and
// SVG have the page's background; the HTML page carries plotly.js and needs no network.

const GAP_MS = 300; // browsers drop downloads that start together

function charts() {
  return [...document.querySelectorAll(".tinyllm-plot[data-drawn]")];
}

function themed(host, name) {
  return getComputedStyle(host).getPropertyValue(name).trim();
}

function figureOf(host) {
  const background = themed(host, "--st-background-color");
  const layout = { ...host.layout, paper_bgcolor: background, plot_bgcolor: background };
  return { data: host.data, layout };
}

function save(name, url) {
  const link = document.createElement("a");
  link.download = name;
  link.href = url;
  document.body.appendChild(link);
  link.click();
  link.remove();
}

async function saveImages(format) {
  for (const host of charts()) {
    const { clientWidth: width, clientHeight: height } = host;
    const scale = format === "png" ? 2 : 1;
    const url = await window.Plotly.toImage(figureOf(host), { format, width, height, scale });
    save(`tinyllm-${host.dataset.name}.${format}`, url);
    await new Promise((resolve) => setTimeout(resolve, GAP_MS));
  }
}

function escaped(text) {
  return text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

async function savePage(plotlyUrl) {
  if (!charts().length) return;
  const source = await (await fetch(plotlyUrl)).text();
  const title = escaped(document.querySelector("h1")?.innerText ?? document.title);
  const parts = charts().map((host, index) => {
    const json = JSON.stringify(figureOf(host)).replace(/</g, "\\u003c");
    const alt = escaped(host.getAttribute("aria-label"));
    return (
      `<figure><div id="c${index}" style="height:${host.clientHeight}px"></div>` +
      `<figcaption>${alt}</figcaption></figure>` +
      `<script>{ const { data, layout } = ${json};` +
      `Plotly.newPlot("c${index}", data, layout, { responsive: true, displaylogo: false }); }` +
      "</script>"
    );
  });
  const [first] = charts();
  const colours =
    `background: ${themed(first, "--st-background-color")}; ` +
    `color: ${themed(first, "--st-text-color")}`;
  const page =
    `<!doctype html><meta charset="utf-8"><title>${title}</title>` +
    `<style>body { ${colours}; font-family: sans-serif; max-width: 70rem; margin: 2rem auto; }` +
    "</style>" +
    `<script>${source}</script><h1>${title}</h1><p>${escaped(window.location.href)}</p>` +
    parts.join("");
  const url = URL.createObjectURL(new Blob([page], { type: "text/html" }));
  save("tinyllm-charts.html", url);
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

export default function ({ data, parentElement }) {
  const plotlyUrl = new URL(data.plotly, window.location.origin).href;
  parentElement.querySelectorAll("button").forEach((button) => {
    button.textContent = data.labels[button.dataset.format];
    button.onclick = async () => {
      button.disabled = true;
      try {
        if (button.dataset.format === "html") await savePage(plotlyUrl);
        else await saveImages(button.dataset.format);
      } finally {
        button.disabled = false;
      }
    };
  });
}
