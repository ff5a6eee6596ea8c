// PageUp / PageDown press the hidden page links of presenter mode; nothing reloads.
export default function ({ data }) {
  const press = (event) => {
    const name = { PageUp: "previous", PageDown: "next" }[event.key];
    if (!name || !data[name]) return;
    event.preventDefault();
    const links = document.querySelectorAll(`.st-key-presenter_${name} a`);
    if (links.length) links[0].click();
  };
  window.tinyllmKeys?.abort();
  window.tinyllmKeys = new AbortController();
  window.addEventListener("keydown", press, { signal: window.tinyllmKeys.signal });
  return () => window.tinyllmKeys?.abort();
}
