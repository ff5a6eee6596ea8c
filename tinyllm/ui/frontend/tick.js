// Asks for the next tick of a run: a while after this one has come, and when no script is running.
// Streamlit keeps a fragment asked for in the middle of a run until that run is over, and may then
// throw away what the run drew in it but has not sent yet, charts included.

const ASK_AGAIN = 20; // milliseconds

function atRest() {
  const state = document.querySelector("[data-test-script-state]")?.dataset.testScriptState;
  return state === undefined || state === "notRunning";
}

export default function ({ data, setTriggerValue }) {
  let timer = null;
  const ask = () => {
    if (atRest()) setTriggerValue("tick", data.number);
    else timer = setTimeout(ask, ASK_AGAIN);
  };
  if (data.number !== null) timer = setTimeout(ask, data.milliseconds);
  return () => clearTimeout(timer);
}
