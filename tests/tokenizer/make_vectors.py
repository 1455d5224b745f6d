#!/usr/bin/env python3
"""Writes vectors/*.json beside it: texts, tokenizers with vocabularies of our own, and the ids that Hugging
Face's `tokenizers` and Google's `sentencepiece` give. tests/clients/requirements.txt lists both packages.

texts.json      the texts, in hex
byte_level.json the vocabulary and merges that the byte-level families share
NAME.json       a tokenizer.json (without those, where shared), and the ids of each text, control tokens counting
spm.json        what a GGUF file would say of a SentencePiece model, and ids"""

import json
import pathlib

import corpus
import families
import oracle

OUT = pathlib.Path(__file__).parent / "vectors"
WITH_CONTROL = [
    b"<|im_start|>user\nhi<|im_end|>\n", b"a <s> b", b"<tool_call>x", b"no<tool_call> <|im_end|>  <pad>z", b"<|im_end", b"<|im_end|><|im_end|>",
    b"<s>", b" <s> ", b"  <pad>", b"x  <pad><s>y",
]


def write(name, value):
    (OUT / f"{name}.json").write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")


def main():
    OUT.mkdir(exist_ok=True)
    texts = corpus.texts()
    write("texts", {"texts": [t.hex() for t in texts], "with_control": [t.hex() for t in WITH_CONTROL]})
    model = families.byte_level_model()
    write("byte_level", {"vocab": model[0], "merges": [list(m) for m in model[1]]})
    for name in families.FAMILIES:
        full, plain = families.family(name, model), families.family(name, model, control=False)
        json_, shared = oracle.parts(full)
        assert shared["vocab"] == model[0] and [tuple(m) for m in shared["merges"]] == model[1]
        write(name, {
            "tokenizer": json_,
            "ids": [oracle.byte_level_ids(full, t) for t in texts],
            "control_ids": [full.encode(t.decode(), add_special_tokens=False).ids for t in WITH_CONTROL],
            "plain_ids": [plain.encode(t.decode(), add_special_tokens=False).ids for t in WITH_CONTROL],
            "wrapped": full.encode("a b").ids,
        })
    model = families.character_model()
    for name, metaspace in (("characters", False), ("metaspace", True)):
        full, plain = families.characters(model, True, metaspace), families.characters(model, False, metaspace)
        write(name, {
            "tokenizer": json.loads(full.to_str()),
            "ids": [oracle.hf_character_ids(full, t) for t in texts],
            "control_ids": [full.encode(t.decode(), add_special_tokens=False).ids for t in WITH_CONTROL],
            "plain_ids": [plain.encode(t.decode(), add_special_tokens=False).ids for t in WITH_CONTROL],
            "wrapped": full.encode("a b").ids,
        })
    processor = families.sentence_pieces()
    write("spm", oracle.spm_metadata(processor) | {"ids": [oracle.spm_ids(processor, t) for t in texts]})


if __name__ == "__main__":
    main()
