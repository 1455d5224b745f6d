"""Trains the tokenizer on the corpus, and turns the corpus into tokens.

    python3 -m training.tokenizer --corpus CORPUS --out MODEL

MODEL gets tokenizer.json and tokenizer_config.json (with the chat template); CORPUS gets train.bin and
held_out.bin, the tokens as 16-bit numbers, documents in a seeded order with <|endoftext|> after each.
"""
import argparse
import functools
import json
import lzma
import multiprocessing
import pathlib
import random

import jinja2.sandbox
import numpy as np
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

VOCABULARY = 8192
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MARKS = ["<tools>", "</tools>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"]
LEARN_FROM = 60_000  # documents
# The rule that GGUF calls qwen2.
SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")
TEMPLATE = (pathlib.Path(__file__).parent / "chat_template.jinja").read_text()


@functools.cache
def template():
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    return environment.from_string(TEMPLATE)


def chat_text(messages, tools=None, add_generation_prompt=False):
    return template().render(messages=messages, tools=tools, add_generation_prompt=add_generation_prompt)


def document(record):
    """A record as the model sees it."""
    if record.get("plain"):
        return record["messages"][0]["content"] + CONTROL[0]
    return chat_text(record["messages"], record.get("tools")) + CONTROL[0]


def read_records(path):
    with lzma.open(path, "rt") as file:
        return [json.loads(line) for line in file]


def learn(documents, size):
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(tokenizers.Regex(SPLIT), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    # Added beforehand, the control tokens are cut out of the texts and no merge crosses them.
    added = [tokenizers.AddedToken(t, special=True, normalized=False) for t in CONTROL]
    added += [tokenizers.AddedToken(t, special=False, normalized=False) for t in MARKS]
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=added, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(documents, trainer)
    return as_marks(tokenizer)


def as_marks(tokenizer):
    """The trainer takes every token it is given as a control token; the tool marks are text."""
    state = json.loads(tokenizer.to_str())
    for token in state["added_tokens"]:
        token["special"] = token["content"] in CONTROL
    return tokenizers.Tokenizer.from_str(json.dumps(state))


def save(tokenizer, out):
    out.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(out / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 65536, "bos_token": None,
              "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "unk_token": None, "add_bos_token": False,
              "clean_up_tokenization_spaces": False, "chat_template": TEMPLATE}
    (out / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")


def token_stream(tokenizer, documents, seed):
    random.Random(seed).shuffle(documents)
    encoded = tokenizer.encode_batch(documents)
    return np.concatenate([np.array(e.ids, dtype=np.uint16) for e in encoded])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--tiny", action="store_true", help="a small vocabulary, for a test on a CPU")
    args = parser.parse_args()
    with multiprocessing.Pool() as pool:
        documents = {split: pool.map(document, read_records(args.corpus / f"{split}.jsonl.xz"), chunksize=500)
                     for split in ("train", "held_out")}
    sample = random.Random(1).sample(documents["train"], min(LEARN_FROM, len(documents["train"])))
    tokenizer = learn(sample, 512 if args.tiny else VOCABULARY)
    save(tokenizer, args.out)
    for split, texts in documents.items():
        stream = token_stream(tokenizer, texts, seed=2)
        stream.tofile(args.corpus / f"{split}.bin")
        n_bytes = sum(len(t.encode()) for t in texts)
        print(f"{split}: {len(texts)} documents, {len(stream)} tokens, {n_bytes / len(stream):.2f} bytes a token")


if __name__ == "__main__":
    main()
