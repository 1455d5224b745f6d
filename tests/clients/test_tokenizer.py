"""Our tokenizers against Hugging Face's `tokenizers` and Google's `sentencepiece`, on random texts: what the
committed vectors hold still, this tries anew."""

import os
import pathlib
import random
import subprocess
import sys

import pytest
from gguf import GGUFWriter

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tokenizer"))
import corpus
import families
import oracle

SEED = int(os.environ.get("MILLRACE_SEED", random.SystemRandom().randrange(1 << 30)))
N_TEXTS = 400


def texts():
    rng = random.Random(SEED)
    out = []
    for _ in range(N_TEXTS):
        n = rng.randrange(1, 60)
        kind = rng.randrange(4)
        if kind == 0:
            out.append(corpus.random_broken(rng, n))
        elif kind == 1:
            words = " ".join(rng.choice(corpus.SENTENCES).split()[: rng.randrange(1, 9)] + ["<|im_end|>", "<tool_call>"][: rng.randrange(3)])
            out.append(words.encode())
        else:
            out.append(corpus.random_text(rng, n).encode())
    return [text for text in out if not oracle.holds_stand_ins(text)]


def ours(path, inputs):
    lines = "".join(text.hex() + "\n" for text in inputs)
    ran = subprocess.run([os.environ["MILLRACE_TOKENIZER_DUMP"], str(path)], input=lines, stdout=subprocess.PIPE, check=True, text=True)
    return [[int(id) for id in line.split()] for line in ran.stdout.split("\n")[:-1]]


def check(path, want):
    inputs = texts()
    for text, ids in zip(inputs, ours(path, inputs), strict=True):
        assert ids == want(text), f"MILLRACE_SEED={SEED}, text {text!r}"


@pytest.fixture(scope="module")
def byte_level_model():
    return families.byte_level_model()


@pytest.mark.parametrize("name", families.FAMILIES)
def test_byte_level(name, byte_level_model, tmp_path):
    tokenizer = families.family(name, byte_level_model)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    check(tmp_path / "tokenizer.json", lambda text: oracle.byte_level_ids(tokenizer, text))


@pytest.mark.parametrize("metaspace", [False, True])
def test_characters(metaspace, tmp_path):
    tokenizer = families.characters(families.character_model(), True, metaspace)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    check(tmp_path / "tokenizer.json", lambda text: oracle.hf_character_ids(tokenizer, text))


def test_sentence_pieces(tmp_path):
    processor = families.sentence_pieces()
    metadata = oracle.spm_metadata(processor)
    writer = GGUFWriter(str(tmp_path / "spm.gguf"), "llama")
    writer.add_tokenizer_model("llama")
    writer.add_token_list(metadata["tokens"])
    writer.add_token_scores(metadata["scores"])
    writer.add_token_types(metadata["types"])
    writer.add_bos_token_id(metadata["bos"])
    writer.add_eos_token_id(metadata["eos"])
    writer.add_unk_token_id(metadata["unknown"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    check(tmp_path / "spm.gguf", lambda text: oracle.spm_ids(processor, text))
