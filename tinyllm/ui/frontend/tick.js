// Asks for the next tick of a run: a while after this one has come, and when no script is running.
// Streamlit keeps a fragment asked for in the middle of a run until that run is over, and may then
// throw away what the run drew in it but has not sent yet, charts included.

const ASK_AGAIN = 20; // milliseconds
const ON_ITS_WAY = 1000; // milliseconds: a click's own run may begin as late as that

// A click, a key or the browser's Back may have asked for another page, whose run is not heard of
// yet. A tick asked for then runs right behind it, and all that the new page drew was gone.
let touched = -Infinity;
for (const kind of ["pointerdown", "click", "keydown", "popstate"])
  window.addEventListener(kind, () => (touched = performance.now()), true);

function atRest() {
  if (performance.now() - touched < ON_ITS_WAY) return false;
  const state = document.querySelector("[data-test-script-state]")?.dataset.testScriptState;
  return state === undefined || state === "notRunning";
}

// One timer a node. There is nothing to release: Streamlit asks for that now and then also for a
// node that stays, and then a run would stand still.
export default function ({ data, parentElement, setTriggerValue }) {
  const ask = () => {
    if (!parentElement.isConnected) return;
    if (atRest()) setTriggerValue("tick", data.number);
    else parentElement.tinyllmTick = setTimeout(ask, ASK_AGAIN);
  };
  clearTimeout(parentElement.tinyllmTick);
  if (data.first) touched = -Infinity; // the page is drawn anew: here is what was asked for
  if (data.number !== null) parentElement.tinyllmTick = setTimeout(ask, data.milliseconds);
}
