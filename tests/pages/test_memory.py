"""The memory calculator: first paint, every control at its ends, own models, every wrong input."""

import json
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.memory.test_gguf import gguf
from tests.pages.opening import complaints, open_page, well
from tinyllm.memory.choice import CHOICES, ENGINES, OWN, RANGES, SWITCHES, Choice
from tinyllm.memory.gpus import gpus
from tinyllm.memory.packed import pack
from tinyllm.memory.presets import preset
from tinyllm.memory.subject import header_text
from tinyllm.ui import memory_address, memory_controls

PANELS = (
    *("Formula", "Command", "Save memory", "Real lengths", "Paste your start-up log", "Compare"),
    *("Data and link", "About"),
)
LLAMA = dict(preset("meta-llama/Llama-3.2-3B-Instruct").config)
LOG = (
    "INFO GPU KV cache size: 290,864 tokens\n"
    "INFO Maximum concurrency for 32,768 tokens per request: 33.04x\n"
)


def page(**parameters: str) -> AppTest:
    return open_page("memory", **parameters)


def tiles(app: AppTest) -> list[str]:
    return [metric.value for metric in app.metric[:4]]


def test_first_paint_is_the_article_s_example() -> None:
    app = well(page())
    assert complaints(app) == []
    assert tiles(app) == ["72.0 GiB", "72.0 GiB", "53.0 GiB", "11"]
    assert dict(app.query_params) == {}


@pytest.mark.parametrize("panel", PANELS)
def test_every_panel(panel: str) -> None:
    app = well(page(panel=panel, model="Qwen/Qwen3.5-27B", requests="4"))
    assert complaints(app) == []


@pytest.mark.parametrize("field", RANGES)
def test_numbers_at_both_ends(field: str) -> None:
    app = page(panel="Real lengths")
    for end in RANGES[field]:
        box: Any = app.number_input(key=field)
        box.set_value(type(box.value)(min(end, box.max))).run()
        well(app)
        too_many = field == "pp" and box.value > 36  # stages, of a model of 36 layers
        assert ["at most the number of layers" in said for said in complaints(app)] == [
            True
        ] * too_many


@pytest.mark.parametrize("engine", ENGINES)
def test_everything_at_its_highest_and_lowest_together(engine: str) -> None:
    for side in (0, 1):
        ends = {field: str(ends[side]) for field, ends in RANGES.items() if field != "pp"}
        ends |= {"shared_prefix": "64", "parameters": "1000000", "pool_gib": "0.0"}
        app = well(page(engine=engine, **ends))
        assert complaints(app) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_every_cache_type_of_every_engine(engine: str) -> None:
    app = page(engine=engine)
    for kind in ENGINES[engine]:
        app.selectbox(key="kv_type").set_value(kind).run()
        assert [element.message for element in app.exception] == []
        refused = kind == "fp8_ds_mla"  # for latent layers alone
        assert bool(complaints(app)) is refused


@pytest.mark.parametrize("field", [name for name in CHOICES if name not in ("engine", "kv_type")])
def test_every_choice(field: str) -> None:
    app = page(engine="llama.cpp")
    for choice in CHOICES[field]:
        app.selectbox(key=field).set_value(choice).run()
        assert complaints(well(app)) == []


def test_every_gpu() -> None:
    app = page()
    for name in gpus():
        app.selectbox(key="gpu").set_value(name).run()
        assert complaints(well(app)) == []


@pytest.mark.parametrize("field", SWITCHES)
def test_switches(field: str) -> None:
    app = page()
    toggle = app.toggle(key=field)
    toggle.set_value(not toggle.value).run()
    assert complaints(well(app)) == []
    assert app.toggle(key=field).value is not Choice.__dataclass_fields__[field].default


def test_another_engine_takes_a_cache_type_that_it_has() -> None:
    app = page(engine="llama.cpp", kv_type="q8_0")
    assert complaints(app) == []
    app.segmented_control(key="engine").set_value("vLLM").run()
    assert complaints(well(app)) == ["vLLM has no cache type q8_0. bfloat16 is taken instead."]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((field, str(ends[0] - 1)) for field, ends in RANGES.items()),
        *((field, "many") for field in RANGES),
        *(("model", "Qwen/Qwen9"), ("gpu", "H900"), ("engine", "vllm"), ("kv_type", "int3")),
        *(("v_type", "int3"), ("weights", "int1"), ("kv_unified", "maybe"), ("prompts", "long")),
        *(
            ("outputs", "uniform:9:1"),
            ("contxt", "8192"),
            ("config", "%%%"),
            ("compare", "model=1"),
        ),
        ("panel", "Nothing"),
    ],
)
def test_a_wrong_address_is_said(name: str, value: str) -> None:
    parameters = {name: value} if name != "compare" else {name: value, "panel": "Compare"}
    app = well(page(**parameters))
    assert len(complaints(app)) == 1
    assert name in complaints(app)[0]
    assert tiles(app) == ["72.0 GiB", "72.0 GiB", "53.0 GiB", "11"]


def test_a_parameter_given_twice_is_said() -> None:
    app = open_page("memory", context=["4096", "8192"])
    assert "context is given 2 times" in complaints(well(app))[0]


def test_another_page_s_cache_type_is_not_taken_over() -> None:
    app = open_page("kv_cache", kv_dtype="int8")
    app.switch_page("pages/memory.py").run()
    assert complaints(well(app)) == []
    assert tiles(app)[0] == "72.0 GiB"


def test_an_engine_and_a_cache_type_that_contradict_each_other() -> None:
    app = well(page(kv_type="q8_0"))
    assert complaints(app) == ["vLLM has no cache type q8_0. bfloat16 is taken instead."]


def test_a_pasted_config() -> None:
    app = page()
    app.text_area(key=memory_address.TEXT).set_value(json.dumps(LLAMA)).run()
    well(app)
    assert app.selectbox(key="model").value == OWN
    assert complaints(app) == []
    assert app.query_params["config"] in (pack(LLAMA), [pack(LLAMA)])
    assert tiles(app)[:2] == ["56.0 GiB", "56.0 GiB"]
    assert tiles(app)[3] == "-"  # nobody said how many parameters it has
    app.number_input(key="parameters").set_value(3_212_749_824).run()
    assert tiles(well(app))[3] != "-"


def test_a_config_in_the_address() -> None:
    app = well(page(model=OWN, config=str(pack(LLAMA)), parameters="3212749824"))
    assert complaints(app) == []
    assert tiles(app)[0] == "56.0 GiB"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not a JSON file"),
        ("[]", "must be an object"),
        ("{}", "num_hidden_layers"),
        (json.dumps(LLAMA | {"num_key_value_heads": -1}), "num_key_value_heads must be"),
        (json.dumps(LLAMA | {"kv_window_magic": 7}), "kv_window_magic"),
        ("![x](https://example.org/x.png)", "not a JSON file"),
        ("/etc/passwd", "not a JSON file"),
    ],
)
def test_a_config_that_cannot_be_sized_is_kept_and_named(text: str, says: str) -> None:
    app = page(context="8192")
    app.text_area(key=memory_address.TEXT).set_value(text).run()
    well(app)
    assert len(complaints(app)) == 1
    assert says in complaints(app)[0]
    assert app.text_area(key=memory_address.TEXT).value == text
    assert tiles(app)[0] == "18.0 GiB"  # the last good choice


def test_your_own_without_a_file_says_what_to_do() -> None:
    app = well(page(model=OWN))
    assert "paste a config.json" in complaints(app)[0]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (json.dumps(LLAMA).encode(), ""),
        (gguf("llama", block_count=2, attention__head_count=4, embedding_length=64), ""),
        (b"GGUF", "header ends"),
        (b"\xff\xfe\x00", "neither UTF-8"),
        (b"{", "not a JSON file"),
    ],
)
def test_an_upload(content: bytes, said: str) -> None:
    app = page()
    app.file_uploader[0].set_value([("model.json", content, "application/octet-stream")]).run()
    well(app)
    assert (app.selectbox(key="model").value == OWN) == (not said or "JSON" in said)
    assert [said in sentence for sentence in complaints(app)] == [True] * bool(said)


def test_a_header_becomes_text_for_the_link() -> None:
    text = header_text(gguf("llama", block_count=2, attention__head_count=4, embedding_length=64))
    packed = pack(json.loads(text))
    app = well(page(model=OWN, config=str(packed)))
    assert complaints(app) == []


def test_a_saving_can_be_taken() -> None:
    app = page(panel="Save memory")
    app.button(key="_save_0").click().run()
    assert complaints(well(app)) == []
    assert app.selectbox(key="kv_type").value == "fp8_e4m3"
    assert tiles(app)[0] == "36.0 GiB"


def test_examples_of_lengths_set_the_controls() -> None:
    app = page(panel="Real lengths")
    for button in [one.key for one in app.button if str(one.key).startswith("_lengths_")]:
        app.button(key=button).click().run()
        assert complaints(well(app)) == []
        assert app.query_params["prompts"]
        assert len(app.metric) == 8
    alike = app.metric
    assert alike[7].value != "-"  # all requests alike: a closed form


@pytest.mark.parametrize(
    ("csv", "says"),
    [("1200,300\n800,40\n", ""), ("a,b\n1,2,3", "line 2 must be two whole numbers")],
)
def test_pasted_lengths(csv: str, says: str) -> None:
    app = page(panel="Real lengths")
    app.text_area(key="_lengths_csv").set_value(csv).run()
    well(app)
    assert [says in sentence for sentence in complaints(app)] == [True] * bool(says)


def test_lengths_of_one_side_alone_are_refused() -> None:
    app = well(page(panel="Real lengths", prompts="fixed:100"))
    assert "give lengths for both" in complaints(app)[0]


def test_a_log_is_explained_and_checked() -> None:
    app = page(panel="Paste your start-up log", model="Qwen/Qwen3.5-27B")
    app.text_area(key="_log").set_value(LOG).run()
    well(app)
    assert "contradict each other" in complaints(app)[0]
    assert "1,487 blocks" in app.success[0].value.replace("\\", "")
    app.text_area(key="_log").set_value("nothing of the kind").run()
    assert "No line of this log" in complaints(well(app))[0]


def test_up_to_four_choices_are_compared() -> None:
    app = page(panel="Compare")
    for model in (
        "Qwen/Qwen3-8B",
        "openai/gpt-oss-20b",
        "Qwen/Qwen3.5-27B",
        "google/gemma-2-9b-it",
    ):
        app.selectbox(key="model").set_value(model).run()
        app.button(key="_pin").click().run()
        assert complaints(well(app)) == []
    assert app.button(key="_pin").disabled
    assert len(app.query_params["compare"]) == 4
    again = well(page(panel="Compare", compare=app.query_params["compare"][1]))
    assert complaints(again) == []
    again.button(key="_unpin_0").click().run()
    assert "compare" not in well(again).query_params


def test_a_place_on_a_chart_becomes_a_choice() -> None:
    app = page()
    state: Any = app.session_state
    for place, context, requests in (
        ((40_123.4, 7.6), 39_936, 8),
        ((1.0, 0.001), 16, 1),
        ((1e12, 1e12), 2**24, 100_000),
    ):
        assert memory_controls.place_of(*place) == (context, requests)
    assert state["context"] == 32_768


def test_presenter_mode_folds_the_explanation() -> None:
    app = well(page(present="true"))
    assert not app.expander[-1].proto.expanded


def test_values_survive_a_switch_of_pages() -> None:
    app = page()
    app.number_input(key="requests").set_value(3).run()
    app.switch_page("pages/home.py").run()
    app.switch_page("pages/memory.py").run()
    assert app.number_input(key="requests").value == 3
    assert complaints(well(app)) == []
