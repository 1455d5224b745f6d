"""The trained model as files, and back.

    python3 -m training.export fixture --gguf millrace-tiny.gguf --model MODEL --out expected.json

`save_directory` writes what Hugging Face's loaders and `millrace quantize` read. `load` takes such a directory
or a GGUF file made of it, whose weights are then the rounded ones. `fixture` writes the logits that this
PyTorch model gives with the GGUF file's own weights in float32: the committed file alone defines them.
"""
import argparse
import json
import pathlib

import safetensors.torch
import tokenizers
import torch

from training.gguf import Gguf
from training.model import Model, Shape, config_json

# GGUF's name for each part of a layer
PARTS = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
         "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm",
         "attn_k_norm": "self_attn.k_norm", "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj",
         "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
UNPOLISHED = "unpolished.safetensors"  # what `train` made, where `polish` has replaced it
FIXTURE_COLUMNS = 1024  # tokens whose logits are kept, from the first
FIXTURE_TEXTS = ["Once upon a time, there was a little fox.",
                 "<|im_start|>user\nWho are you?<|im_end|>\n<|im_start|>assistant\n",
                 '<tools>\n{"type": "function", "function": {"name": "vrask_lamp"}}\n</tools> 12.5%, é']


def save_directory(model, folder):
    folder.mkdir(parents=True, exist_ok=True)
    state = {name: weight.detach().float().cpu().contiguous() for name, weight in model.state_dict().items()}
    safetensors.torch.save_file(state, str(folder / "model.safetensors"), metadata={"format": "pt"})
    tokenizer = read_tokenizer(folder)
    ends = [tokenizer.token_to_id("<|im_end|>"), tokenizer.token_to_id("<|endoftext|>")]
    write_json(folder / "config.json", config_json(model.shape, ends[0]))
    write_json(folder / "generation_config.json", {"eos_token_id": ends, "pad_token_id": ends[1], "do_sample": True,
                                                   "temperature": 0.7})


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1) + "\n")


def read_tokenizer(folder):
    return tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))


def shape_of(folder):
    config = json.loads((folder / "config.json").read_text())
    return Shape(**{name: config[name] for name in Shape.__dataclass_fields__})


def gguf_state(path, shape):
    gguf = Gguf(path)
    read = lambda name: torch.from_numpy(gguf.tensor(f"{name}.weight"))
    state = {"model.embed_tokens.weight": read("token_embd"), "model.norm.weight": read("output_norm")}
    for i in range(shape.num_hidden_layers):
        for theirs, ours in PARTS.items():
            state[f"model.layers.{i}.{ours}.weight"] = read(f"blk.{i}.{theirs}")
    return state


def load(folder, gguf=None):
    """The model of a directory; with `gguf`, with the weights of that file instead."""
    shape = shape_of(folder)
    model = Model(shape)
    state = gguf_state(gguf, shape) if gguf else safetensors.torch.load_file(str(folder / "model.safetensors"))
    model.load_state_dict(state)
    return model.eval()


@torch.no_grad()
def fixture(args):
    model, tokenizer = load(args.model, args.gguf), read_tokenizer(args.model)
    cases = []
    for text in FIXTURE_TEXTS:
        tokens = tokenizer.encode(text).ids
        logits = model(torch.tensor([tokens]))[0]
        rows = sorted({0, len(tokens) // 2, len(tokens) - 1})
        cases.append({"text": text, "tokens": tokens, "rows": rows,
                      "logits": [[float(f"{x:.6g}") for x in logits[row, :FIXTURE_COLUMNS].tolist()] for row in rows]})
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(cases, ensure_ascii=False, separators=(",", ":")) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["fixture"])
    parser.add_argument("--gguf", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    fixture(parser.parse_args())


if __name__ == "__main__":
    main()
