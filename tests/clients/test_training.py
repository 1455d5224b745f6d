"""The recipe in training/, run whole with --tiny on a CPU; skipped where torch is missing.

What needs torch is large, so tests/clients/requirements.txt does not ask for it:
    build/clients/bin/pip install torch==2.11.0 transformers==5.17.0 safetensors
"""

import json
import pathlib
import shutil
import subprocess
import sys

import gguf
import numpy as np
import pytest

WHY = "needs torch, transformers and safetensors, which ./test clients does not install (2 GB)"
torch = pytest.importorskip("torch", reason=WHY)
transformers = pytest.importorskip("transformers", reason=WHY)
pytest.importorskip("safetensors", reason=WHY)

ROOT = pathlib.Path(__file__).parents[2]
sys.path.append(str(ROOT))

from training import export, filters, grammar, polish, tools, writer  # noqa: E402
from training.ngram import KneserNey  # noqa: E402


def byte_alphabet():
    import tokenizers

    return sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())


def write_teacher(path):
    """A llama of one layer with random weights, whose tokens are bytes."""
    random, writer = np.random.default_rng(1), gguf.GGUFWriter(path, "llama")
    n, n_ff, head_dim, tokens = 64, 96, 32, ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *byte_alphabet(), "ab"]
    writer.add_block_count(1)
    writer.add_context_length(4096)
    writer.add_embedding_length(n)
    writer.add_feed_forward_length(n_ff)
    writer.add_head_count(n // head_dim)
    writer.add_head_count_kv(1)
    writer.add_rope_dimension_count(head_dim)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([3] * 3 + [1] * 257)
    writer.add_token_merges(["a b"])
    writer.add_eos_token_id(2)
    shapes = {"attn_q": (n, n), "attn_k": (head_dim, n), "attn_v": (head_dim, n), "attn_output": (n, n),
              "ffn_gate": (n_ff, n), "ffn_up": (n_ff, n), "ffn_down": (n, n_ff)}
    tensors = {f"blk.0.{name}": random.normal(0, 0.1, shape) for name, shape in shapes.items()}
    tensors |= {name: np.ones(n) for name in ("blk.0.attn_norm", "blk.0.ffn_norm", "output_norm")}
    tensors["token_embd"] = random.normal(0, 0.1, (len(tokens), n))
    for name, tensor in tensors.items():
        writer.add_tensor(f"{name}.weight", tensor.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def step(name, *args):
    run = subprocess.run([sys.executable, "-m", f"training.{name}", *map(str, args)], cwd=ROOT, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert run.returncode == 0, run.stdout
    return run.stdout


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The whole recipe, small."""
    folder = tmp_path_factory.mktemp("training")
    write_teacher(folder / "teacher.gguf")
    step("corpus", "write", "--tiny", "--teacher", folder / "teacher.gguf", "--raw", folder / "raw")
    step("corpus", "build", "--tiny", "--raw", folder / "raw", "--out", folder / "corpus")
    step("tokenizer", "--tiny", "--corpus", folder / "corpus", "--out", folder / "model")
    step("train", "--tiny", "--corpus", folder / "corpus", "--model", folder / "model")
    return folder


def log_of(folder):
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def test_loss_falls(made):
    log = log_of(made / "model")
    assert log[-1]["held_out"] < log[0]["held_out"] - 0.5


def test_a_cut_run_goes_on_and_ends_the_same(made):
    before = (made / "model/model.safetensors").read_bytes()
    checkpoint = torch.load(made / "model/checkpoint.pt", weights_only=True)
    assert checkpoint["step"] == log_of(made / "model")[-1]["step"]
    step("train", "--tiny", "--corpus", made / "corpus", "--model", made / "model")
    assert (made / "model/model.safetensors").read_bytes() == before


def test_transformers_gives_the_same_logits(made):
    ours = export.load(made / "model")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(made / "model", dtype=torch.float32).eval()
    tokens = torch.randint(0, 512, (2, 50), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        assert torch.allclose(ours(tokens), theirs(tokens).logits, atol=1e-4)


def test_a_cache_changes_nothing(made):
    model, tokens = export.load(made / "model"), torch.arange(20)[None]
    past = [[] for _ in model.model.layers]
    with torch.no_grad():
        parts = [model(tokens[:, :12], past)] + [model(tokens[:, i:i + 1], past) for i in range(12, 20)]
        assert torch.allclose(torch.cat(parts, dim=1), model(tokens), atol=1e-4)


def test_template_equals_transformers(made):
    from training.tokenizer import chat_text

    tokenizer = transformers.AutoTokenizer.from_pretrained(made / "model")
    made_tools = tools.tool_set(grammar.rng_of("tool", 3), False)
    definitions = [t["definition"] for t in made_tools]
    messages = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Do it."},
                {"role": "assistant", "content": None, "tool_calls": [tools.call_message(made_tools[0])]},
                {"role": "tool", "content": "{}"}, {"role": "assistant", "content": "Done."}]
    for offered in (None, definitions):
        theirs = tokenizer.apply_chat_template(messages, tools=offered, tokenize=False, add_generation_prompt=True)
        assert theirs == chat_text(messages, offered, add_generation_prompt=True)


def test_polishing_changes_the_weights_and_keeps_the_old(made, tmp_path):
    shutil.copytree(made / "model", tmp_path / "model")
    polished, before = tmp_path / "model/model.safetensors", (made / "model/model.safetensors").read_bytes()
    args = ["--tiny", "--corpus", made / "corpus", "--teacher", made / "teacher.gguf", "--model", tmp_path / "model"]
    step("polish", *args)
    first = polished.read_bytes()
    assert (tmp_path / "model/unpolished.safetensors").read_bytes() == before
    assert first != before
    step("polish", *args)
    assert polished.read_bytes() == first


def test_what_a_story_teaches(made):
    tokenizer, end = export.read_tokenizer(made / "model"), "The fox ran home." + " The fox ran home." * 2
    good, looping = (polish.story_of(tokenizer, 7, end, is_good, longest=512) for is_good in (True, False))
    learnt = [token for token, sign in zip(good.tokens[1:], good.signs) if sign == 1]
    assert tokenizer.decode(learnt, skip_special_tokens=False) == f"{end}<|im_end|>\n<|endoftext|>"
    assert -1 in looping.signs and 1 not in looping.signs


def test_faults_of_stories():
    who = grammar.story_parts(grammar.rng_of("story", 7))["who"]
    story = f"There was {who}. " + " ".join(f"The {i} saw {i + 1} owls{i}." for i in range(40))
    fault = lambda text, perplexity=5.0: polish.story_fault(7, text, perplexity, middle=5.0)
    assert fault(story) is None
    assert fault(story, 8.0) == "perplexity"
    assert fault(story + " The") == "no end"
    assert fault(story + " It was very, very old.") == "doubled word"
    assert fault(story + " The old man went home." * 3) == "repetition"
    assert fault(f"There was {who}.") == "short"
    assert fault(story.replace(who.split()[-1], "thing")) == "not about the hero"


def test_a_draw_falls_into_its_share():
    logits = torch.tensor([[0.5, 0.0, 0.5]]).log().repeat(3, 1)
    assert writer.choose(logits, 1.0, torch.tensor([0.0, 0.499, 0.501])).tolist() == [0, 0, 2]
    assert writer.choose(torch.tensor([[1.0, 3.0, 2.0]]), 0, torch.zeros(1)).tolist() == [1]


def test_texts_written_together_are_those_written_alone(made):
    model, tokenizer = export.load(made / "model"), export.read_tokenizer(made / "model")
    prompts = [(grammar.conversation("story", seed), None) for seed in range(3)]
    together = writer.Writer(model, tokenizer, "cpu").write(prompts, range(3), 0.7)
    assert together == writer.Writer(model, tokenizer, "cpu", at_once=1).write(prompts, range(3), 0.7)


def test_only_what_was_said_before_is_a_repeat():
    tokens = [1, 2, 3, 4, 9, 1, 2, 3, 4, 5]
    assert polish.repeats(tokens, 0) == [False] * 8 + [True, False]
    assert polish.repeats(tokens, 2) == [False] * 10


def test_evaluations_run(made):
    assert "below the 5-gram" in step("evaluate", "perplexity", "--corpus", made / "corpus", "--model", made / "model")
    assert "of 2 calls valid" in step("evaluate", "tools", "--model", made / "model", "--count", 2)


def test_the_same_seed_asks_the_same():
    for kind in grammar.PROMPTS:
        assert grammar.conversation(kind, 5) == grammar.conversation(kind, 5)
        assert any(grammar.conversation(kind, 5) != grammar.conversation(kind, i) for i in range(6, 9))


def test_held_out_tools_have_names_of_their_own():
    names = [{t["definition"]["function"]["name"] for seed in range(300)
              for t in tools.tool_set(grammar.rng_of("tool", seed), held_out)} for held_out in (False, True)]
    assert not names[0] & names[1]


def test_faults_of_calls():
    properties = {"n": {"type": "integer"}, "c": {"type": "string", "enum": ["a", "b"]}}
    parameters = {"type": "object", "properties": properties, "required": ["n"]}
    offered = [{"type": "function", "function": {"name": "f", "parameters": parameters}}]
    fault = lambda call: tools.fault(f"<tool_call>\n{call}\n</tool_call>", offered)
    assert fault('{"name": "f", "arguments": {"n": 3, "c": "b"}}') is None
    assert fault('{"name": "f", "arguments": {"n": 3.5}}') == "wrong value"
    assert fault('{"name": "f", "arguments": {"n": 3, "c": "z"}}') == "wrong value"
    assert fault('{"name": "f", "arguments": {"n": true}}') == "wrong value"
    assert fault('{"name": "f", "arguments": {"n": 3, "m": 1}}') == "unknown argument"
    assert fault('{"name": "f", "arguments": {}}') == "missing argument"
    assert fault('{"name": "g", "arguments": {"n": 3}}') == "unknown name"
    assert fault('{"name": "f"') == "not JSON"
    assert tools.fault("I cannot.", offered) == "no call"


def test_filters():
    row = lambda text, perplexity=5.0: {"text": text, "perplexity": perplexity}
    names = "fox owl cat dog hen cow pig bee ant bat elk emu".split()
    story = " ".join(f"The {a} met the {b} there." for a, b in zip(names, names[1:]))
    assert filters.text_fault("smalltalk", row("I am well today.")) is None
    assert filters.text_fault("smalltalk", row("I am well today")) == "no end"
    assert filters.text_fault("smalltalk", row("I am well today.", 900.0)) == "perplexity"
    assert filters.text_fault("smalltalk", row("See https://x.y for more.")) == "odd characters"
    assert filters.text_fault("story", row("Too short.")) == "length"
    assert filters.text_fault("story", row("the old fox ran home. " * 10)) == "repetition"
    assert filters.text_fault("story", row(story)) is None
    seen = filters.NearDuplicates()
    assert seen.fault(seen.bands(story)) is None
    assert seen.fault(seen.bands(story.replace("the emu there", "the emu here"))) == "near duplicate"


def test_the_5_gram_is_a_distribution():
    random = np.random.default_rng(1)
    stream = random.integers(0, 6, 4000).astype(np.uint16)
    grams = KneserNey(stream, 8)
    for context in ([1, 2, 3, 4], [7, 7, 7, 7], [0, 7, 1, 2]):
        total = sum(grams.probabilities(np.array(context + [last], dtype=np.uint16))[0] for last in range(8))
        assert total == pytest.approx(1.0)
