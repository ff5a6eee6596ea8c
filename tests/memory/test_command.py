"""`python -m tinyllm memory` as a user calls it: its JSON fields, its text and its refusals."""

import json

import pytest

from tinyllm.__main__ import main
from tinyllm.memory.presets import preset

LLAMA = "meta-llama/Meta-Llama-3.1-8B"


def sizes(capsys, *arguments: str) -> dict:
    assert main(["memory", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_logical_bytes(capsys):
    found = sizes(capsys, "--config", "Qwen3-8B", "--context", "32768", "--sequences", "16")
    assert found["bytes_total"] == 72 * 2**30
    assert found["bytes_per_token"] == 144 * 1024
    assert found["constant_bytes"] == 0
    assert [(layer["kind"], layer["count"]) for layer in found["layers"]] == [("full", 36)]
    assert sum(layer["bytes"] for layer in found["layers"]) == found["bytes_total"]


@pytest.mark.parametrize(
    "name", ["gpt-oss-20b", "Qwen3.5-27B", "DeepSeek-V4-Flash", "gemma-3-27b-it"]
)
def test_constant_and_slope_make_the_total(capsys, name):
    found = sizes(capsys, "--config", name, "--context", "12800", "--sequences", "3")
    line = found["constant_bytes"] + found["bytes_per_token"] * 12_800
    assert found["bytes_total"] == 3 * line == sum(layer["bytes"] for layer in found["layers"])


def test_types_of_keys_and_values(capsys):
    arguments = ("--config", LLAMA, "--context", "1", "--k-dtype", "q8_0", "--v-dtype", "q4_0")
    assert sizes(capsys, *arguments)["bytes_total"] == 32 * 8 * (136 + 72)


def test_vllm(capsys):
    arguments = ("--config", "Qwen3.5-27B", "--context", "32768", "--engine", "vllm")
    found = sizes(capsys, *arguments, "--pool-bytes", str(20 * 2**30))
    assert found["num_blocks"] == found["max_num_seqs_limit"] == 417
    assert (found["block_size"], found["bytes_per_block"]) == (784, 51_380_224)
    assert found["blocks_per_request"] == 48
    assert found["max_concurrency"] == 417 / 48
    assert found["bytes_per_token_per_gpu"] == 65_536
    assert found["k_bytes"] == found["v_bytes"] == 2**30
    assert found["largest_max_model_len"] >= 32_768
    without = sizes(capsys, *arguments)
    assert without["num_blocks"] is None
    assert without["blocks_per_request"] == 48
    lean = sizes(capsys, *arguments, "--no-prefix-caching", "--tp", "2", "--pp", "2")
    assert lean["blocks_per_request"] == 45


def test_vllm_in_flight_tokens(capsys):
    arguments = ("--config", "gemma-3-27b-it", "--context", "32768", "--engine", "vllm")
    eager = sizes(capsys, *arguments, "--no-async-scheduling", "--max-num-batched-tokens", "2048")
    assert eager["blocks_per_request"] == 2_048 + 6 * (-(-(1_023 + 2_048) // 16) + 1)


def test_llamacpp(capsys):
    arguments = ("--config", "gpt-oss-20b", "--context", "32768", "--engine", "llamacpp")
    found = sizes(capsys, *arguments, "--parallel", "1", "--kv-dtype", "q8_0")
    assert (found["kv_bytes"], found["recurrent_bytes"]) == (437_846_016, 0)
    assert (found["cells"], found["window_cells"]) == (32_768, 768)
    shared = sizes(capsys, *arguments, "--parallel", "2", "--kv-unified")
    apart = sizes(capsys, *arguments, "--parallel", "2", "--no-kv-unified")
    assert shared["kv_unified"]
    assert not apart["kv_unified"]
    assert (shared["window_cells"], apart["window_cells"]) == (768, 1_536)


def test_sglang(capsys):
    arguments = ("--config", "Qwen3-235B-A22B", "--context", "367404", "--engine", "sglang")
    found = sizes(capsys, *arguments, "--tp", "4")
    assert found["k_bytes"] == found["v_bytes"] == 8_841_209_856
    assert found["bytes_per_token_per_gpu"] == 48_128
    pool = sizes(capsys, *arguments, "--tp", "4", "--pool-bytes", "48128000")
    assert pool["tokens"] == 1_000


def test_a_gpu_gives_the_pool(capsys):
    arguments = ("--config", LLAMA, "--context", "8192", "--engine", "vllm", "--gpu", "h100 sxm")
    found = sizes(capsys, *arguments)
    room = found["budget"]
    assert room["weight_bytes"] == 2 * preset(LLAMA).parameters
    assert room["pool_bytes_high"] == room["usable_bytes"] - room["weight_bytes"] - 2**29
    assert found["pool_bytes"] == room["pool_bytes_low"] == room["pool_bytes_high"] - 9 * 2**29
    four = sizes(capsys, *arguments, "--tp", "4", "--weight-dtype", "fp8")
    assert four["budget"]["weight_bytes"] == -(-preset(LLAMA).parameters // 4)


def test_a_file_and_a_folder_with_weights(capsys, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(dict(preset(LLAMA).config)))
    header = b'{"__metadata__":{"a":"b"},"w":{"dtype":"F16","shape":[3],"data_offsets":[0,6]}}'
    content = len(header).to_bytes(8, "little") + header + bytes(6)
    (tmp_path / "model.safetensors").write_bytes(content)
    by_file = sizes(capsys, "--config", str(tmp_path / "config.json"), "--context", "9")
    assert by_file["bytes_total"] == 9 * 131_072
    by_folder = sizes(capsys, "--config", str(tmp_path), "--context", "9", "--gpu", "L4")
    assert by_folder["budget"]["weight_bytes"] == 6


def test_text_shows_both_units_and_where_numbers_come_from(capsys):
    assert main(["memory", "--config", "Qwen3-8B", "--context", "32768", "--engine", "vllm"]) == 0
    printed = capsys.readouterr().out
    assert "4,831,838,208 bytes (4.500 GiB, 4.832 GB)" in printed
    assert "8 KV heads (num_key_value_heads), head_dim 128; every token" in printed
    assert "vLLM 0.32" in printed
    assert "num blocks" not in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--config", "nothing"], "no preset 'nothing'"),
        (["--config", LLAMA, "--context", "-1"], "tokens must be a whole number from 0"),
        (["--config", LLAMA, "--sequences", "-1"], "sequences must be"),
        (["--config", LLAMA, "--kv-dtype", "int3"], "unknown cache type 'int3'"),
        (["--config", LLAMA, "--gpu", "H100"], "no GPU 'H100': choose H100 SXM 80GB, H100 PCIe"),
        (["--config", "Hunyuan-Large", "--gpu", "L4"], "--parameters is missing"),
        (["--config", LLAMA, "--gpu", "L4", "--parameters", "0"], "parameters must be"),
        (["--config", LLAMA, "--gpu", "L4", "--gpus", "0"], "gpus must be"),
        (["--config", LLAMA, "--engine", "vllm", "--tp", "0"], "tensor_parallel must be"),
        (["--config", LLAMA, "--engine", "sglang", "--kv-dtype", "q8_0"], "SGLang has no cache"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(capsys, arguments, message):
    context = [] if "--context" in arguments else ["--context", "8"]
    assert main(["memory", *arguments, *context]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert message in printed.err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a JSON file"),
        (b"[]", "must be an object"),
        (b"\xff\xfe\x00", "not a JSON file"),
        (b"[" * 100_000, "not a JSON file"),
        (b" " * (4 * 2**20 + 1), "at most 4,194,304 bytes"),
    ],
)
def test_a_damaged_file_is_refused(capsys, tmp_path, content, message):
    path = tmp_path / "config.json"
    path.write_bytes(content)
    assert main(["memory", "--config", str(path), "--context", "8"]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "content", [b"", b"\x05\x00\x00\x00\x00\x00\x00\x00[1,2]", bytes(8), b"\xff" * 20]
)
def test_damaged_weights_are_refused(capsys, tmp_path, content):
    (tmp_path / "config.json").write_text(json.dumps(dict(preset(LLAMA).config)))
    (tmp_path / "model.safetensors").write_bytes(content)
    assert main(["memory", "--config", str(tmp_path), "--context", "8"]) == 2
    assert "safetensors" in capsys.readouterr().err


def test_requests_of_real_lengths(capsys):
    arguments = ("--config", LLAMA, "--context", "8192", "--engine", "vllm")
    pool = ("--pool-bytes", str(2**34))
    lengths = ("--prompts", "fixed:1000", "--outputs", "fixed:24", "--max-num-seqs", "50")
    found = sizes(capsys, *arguments, *pool, *lengths)["concurrency"]
    assert found["closed_form"] == found["mean"] == 50
    assert found["at_full_length"] == 16
    free = sizes(capsys, *arguments, *pool, "--prompts", "fixed:1000", "--outputs", "fixed:24")
    assert free["concurrency"]["closed_form"] == (8192 - 1) // 64


def test_lengths_from_a_file(capsys, tmp_path):
    (tmp_path / "lengths.csv").write_text("prompt,output\n1000,24\n")
    arguments = ("--config", LLAMA, "--context", "8192", "--engine", "vllm")
    csv = ("--pool-bytes", str(2**34), "--lengths", str(tmp_path / "lengths.csv"))
    assert sizes(capsys, *arguments, *csv)["concurrency"]["closed_form"] == (8192 - 1) // 64


def test_a_log_explained(capsys, tmp_path):
    log = tmp_path / "server.log"
    log.write_text(
        "the models's max seq len (131072), (16.00 GiB KV cache is needed, which is larger than "
        "the available KV cache memory (7.02 GiB). Based on the available memory, the estimated "
        "maximum model length is 57504."
    )
    assert main(["memory", "--explain", str(log), "--config", LLAMA, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [line["kind"] for line in found["lines"]] == ["vllm_refusal"]
    assert [verdict["agrees"] for verdict in found["verdicts"]] == [True]
    assert main(["memory", "--explain", str(log), "--config", "Qwen3-8B"]) == 0
    assert "DIFFERS (line 1): by the plan one request reserves 18.00 GiB" in capsys.readouterr().out


def test_conformance(capsys):
    assert main(["memory", "--conformance"]) == 0
    printed = capsys.readouterr().out
    assert "vllm: 1,568 of 1,568 right" in printed
    assert "Qwen/Qwen3-8B" in printed
    assert main(["memory", "--conformance", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["models"]) == 4 * 58


def test_the_command_of_a_server(capsys):
    arguments = ("--config", LLAMA, "--context", "8192", "--sequences", "4", "--gpu", "L40S")
    for engine, program in (("vllm", "vllm serve"), ("llamacpp", "llama-server -m")):
        found = sizes(capsys, *arguments, "--engine", engine, "--command")["command"]
        assert program in found["text"]
        assert found["warnings"] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--config is missing"),
        (["--config", LLAMA], "--context is missing"),
        (["--explain", "/nowhere/log"], "No such file"),
        (["--config", LLAMA, "--context", "9", "--command"], "--command needs --gpu"),
        (["--config", LLAMA, "--context", "9", "--prompts", "fixed:1"], "go together"),
        (
            ["--config", LLAMA, "--context", "9", "--prompts", "1", "--outputs", "fixed:1"],
            "--prompts must be fixed:tokens",
        ),
        (
            ["--config", LLAMA, "--context", "9", "--prompts", "fixed:1", "--outputs", "fixed:1"],
            "need --engine vllm",
        ),
    ],
)
def test_what_is_missing_is_said(capsys, arguments, message):
    assert main(["memory", *arguments]) == 2
    assert message in capsys.readouterr().err
