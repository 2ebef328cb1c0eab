"""Command lines: what may be a secret is gone, what explains a process stays."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.procfs.redact import LONGEST_LINE, plain, random_looking, redacted, secret_name

SECRETS = [
    (["x", "--token", "abc"], "x --token ***"),
    (["x", "--password=hunter2"], "x --password=***"),
    (["x", "--api-key", "k", "--port", "8000"], "x --api-key *** --port 8000"),
    (["x", "--hf_token=hf_x"], "x --hf_token=***"),
    (["x", "--wandb.apiKey=1"], "x --wandb.apiKey=***"),
    (["env", "HF_TOKEN=abc", "wandb.api_key=x"], "env HF_TOKEN=*** wandb.api_key=***"),
    (["env", "PLAIN=value"], "env PLAIN=***"),
    (["curl", "-u", "bob:pw", "http://a/"], "curl -u *** http://a/"),
    (["x", "https://bob:pw@host:1/x?a=1&token=t&sig=s"], "x https://***@host:1/x?a=1&token=***&sig=***"),
    (["x", "redis://:pw@host/0"], "x redis://***@host/0"),
    (["curl", "-H", "Authorization: Bearer zzz"], "curl -H Authorization:*** *** ***"),
    (["x", "X-Api-Key: abc"], "x X-Api-Key:*** ***"),
    (["mysql", "-pS3cr3t!"], "mysql -p***"),
    (["x", "-p", "letmein"], "x -p ***"),
    (["sh", "-c", "export TOKEN=abc; run --secret s3 --epochs 3"], "sh -c export TOKEN=*** run --secret *** --epochs 3"),
    (["x", '{"api_key":"abc","n":3}'], 'x {"api_key":"***","n":3}'),
    (["x", "sk-abcdef123456"], "x ***"),
    (["x", "--arg=ghp_0123456789abcdef"], "x --arg=***"),
    (["x", "0123456789abcdef0123456789abcdef"], "x ***"),
    (["x", "/run/AbC9dEf3GhI5jKl7MnO1pQr2StU4vWx6"], "x /run/***"),
    (["x", "-----BEGIN PRIVATE KEY-----\nabc"], "x ***"),
]
KEPT = [
    [
        "python",
        "-m",
        "vllm.serve",
        "--model",
        "Qwen/Qwen2.5-72B-Instruct-GPTQ-Int4",
        "--max-num-batched-tokens",
        "8192",
    ],
    ["torchrun", "--nproc_per_node=8", "--rdzv_endpoint=10.0.0.1:29500", "train.py", "--config=conf/a.yaml", "model.lr=0.1"],
    ["x", "/data/DeepSeek-R1-Distill-Qwen-32B-AWQ-Int4-Group128/tokenizer.json", "--tokenizer", "fast", "--sigma=0.1"],
    ["docker", "run", "-p", "8080:80", "--author", "me"],
    ["x", "--use-auth-token", "--model", "m"],
    ["x", "--trust-remote-code", "--monkey=1"],
]


@pytest.mark.parametrize(("arguments", "shown"), SECRETS, ids=[shown for _, shown in SECRETS])
def test_a_secret_is_masked(arguments: list[str], shown: str) -> None:
    assert redacted(arguments) == shown


@pytest.mark.parametrize("arguments", KEPT, ids=[" ".join(arguments)[:30] for arguments in KEPT])
def test_what_explains_the_process_is_kept(arguments: list[str]) -> None:
    assert redacted(arguments) == " ".join(arguments)


@pytest.mark.parametrize(
    "name", ["--token", "HF_TOKEN", "apiKey", "x-api-key", "db.password", "clientSecret", "authtoken", "AWS_SECRET_KEY"]
)
def test_names_of_secrets(name: str) -> None:
    assert secret_name(name)


@pytest.mark.parametrize("name", ["--max-tokens", "--tokenizer", "--author", "--design", "--monkey", "--keys-per-node", "--sigma", ""])
def test_names_of_other_things(name: str) -> None:
    assert not secret_name(name)


def test_a_line_is_one_line_and_bounded() -> None:
    assert redacted(["a\nb\x1b[31m", "c\0d"]) == "a b [31m c d"
    assert plain(["--token", "abc\nd"]) == "--token abc d"
    assert len(redacted(["x" * 300, *["y" * 200] * 50])) == LONGEST_LINE
    assert len(redacted(["x y" * 500])) <= LONGEST_LINE


secret = st.text(string.ascii_letters + string.digits, min_size=8, max_size=40).map(lambda s: "Zq9" + s)
before = st.sampled_from(["--token", "--password", "--api-key", "--hf-token", "--client-secret"])


@given(st.lists(st.text(max_size=20), max_size=3), before, secret, st.sampled_from(["{} {}", "{}={}"]))
def test_no_surroundings_let_a_secret_through(around: list[str], option: str, value: str, shape: str) -> None:
    line = redacted([*around, "--x", *shape.format(option, value).split(" "), *around])
    assert value not in line


@given(st.lists(st.text(max_size=60), max_size=8))
def test_no_arguments_break_it(arguments: list[str]) -> None:
    line = redacted(arguments)
    assert "\n" not in line
    assert len(line) <= LONGEST_LINE


@given(st.text(string.ascii_lowercase + "-_.", max_size=80))
def test_words_are_not_random(text: str) -> None:
    assert not random_looking("".join(c for c in text if c not in "abcdef"))
