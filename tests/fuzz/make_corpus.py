#!/usr/bin/env python3
"""Writes the seeds of the binary fuzz targets below tests/fuzz/corpus: small, valid, and of every kind.
Standard library alone; the same bytes every time."""

import json
import pathlib
import random
import struct

CORPUS = pathlib.Path(__file__).parent / "corpus"
U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
# name: (elements, bytes) of a block, in the order of DType
BLOCKS = {"q8_0": (32, 34), "q4_0": (32, 18), "q4_1": (32, 20), "q5_0": (32, 22), "q5_1": (32, 24), "q2_k": (256, 84),
          "q3_k": (256, 110), "q4_k": (256, 144), "q5_k": (256, 176), "q6_k": (256, 210), "iq4_nl": (32, 18), "iq4_xs": (256, 136)}


def text(s):
    s = s.encode() if isinstance(s, str) else s
    return struct.pack("<Q", len(s)) + s


def value(kind, v):
    return text(v) if kind == STRING else struct.pack("<" + SCALARS[kind], v)


def key(name, kind, v):
    if isinstance(v, list):
        return text(name) + struct.pack("<IIQ", ARRAY, kind, len(v)) + b"".join(value(kind, x) for x in v)
    return text(name) + struct.pack("<I", kind) + value(kind, v)


def gguf(keys, tensors, version=3, alignment=32):
    """tensors: (name, dims innermost first, type id, bytes)"""
    out = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(keys)) + b"".join(key(*k) for k in keys)
    offset = 0
    for name, dims, kind, n_bytes in tensors:
        out += text(name) + struct.pack("<I", len(dims)) + b"".join(struct.pack("<Q", d) for d in dims)
        out += struct.pack("<IQ", kind, offset)
        offset += -(-n_bytes // alignment) * alignment
    out += b"\0" * (-len(out) % alignment)
    return out + b"\x33" * offset


def model_keys(arch, extra=()):
    return [("general.architecture", STRING, arch), (f"{arch}.block_count", U32, 1), (f"{arch}.embedding_length", U32, 32),
            (f"{arch}.context_length", U32, 64), (f"{arch}.feed_forward_length", U32, 32),
            (f"{arch}.attention.head_count", U32, 2), (f"{arch}.attention.layer_norm_rms_epsilon", F32, 1e-5), *extra]


def write(target, name, data):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def gguf_corpus():
    embd = ("token_embd.weight", (32, 4), 0, 512)
    write("gguf", "empty", gguf([], []))
    write("gguf", "version2", gguf([("k", U32, 1)], [("t", (4,), 0, 16)], version=2))
    write("gguf", "every_type", gguf([(f"t{k}", k, 1) for k in SCALARS] + [("s", STRING, "text")] +
                                     [(f"a{k}", k, [0, 1]) for k in SCALARS] + [("as", STRING, ["a", b"\xff", "c"])], []))
    write("gguf", "llama", gguf(model_keys("llama", [("llama.rope.scaling.type", STRING, "linear"),
                                                     ("llama.rope.scaling.factor", F32, 2.0)]), [embd]))
    write("gguf", "qwen3moe", gguf(model_keys("qwen3moe", [("qwen3moe.expert_count", U32, 4), ("qwen3moe.expert_used_count", U32, 2),
                                                           ("qwen3moe.expert_feed_forward_length", U32, 32),
                                                           ("qwen3moe.rope.scaling.type", STRING, "yarn"),
                                                           ("qwen3moe.rope.scaling.factor", F32, 4.0)]),
                                   [embd, ("b", (256, 2), 12, 288), ("u", (3,), 99, 0)]))
    write("gguf", "aligned", gguf([("general.alignment", U32, 64)], [("a", (5,), 0, 20), ("b", (32,), 8, 34)], alignment=64))


def blocks_corpus():
    rng = random.Random(1)
    for i, (name, (_, n_bytes)) in enumerate(BLOCKS.items()):
        write("blocks", name, bytes([i]) + bytes(rng.randrange(256) for _ in range(2 * n_bytes)))


def safetensors(tensors, metadata=None):
    """tensors: (name, dtype, shape, bytes)"""
    header, at = ({"__metadata__": metadata} if metadata else {}), 0
    for name, dtype, shape, n_bytes in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + n_bytes]}
        at += n_bytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"\x33" * at


def safetensors_corpus():
    write("safetensors", "empty", safetensors([]))
    write("safetensors", "llama", safetensors([("model.embed_tokens.weight", "F32", [2, 4], 32), ("model.norm.weight", "BF16", [4], 8),
                                               ("model.layers.0.self_attn.q_proj.weight", "F16", [2, 4], 16)], {"format": "pt"}))
    write("safetensors", "experts", safetensors([("model.layers.1.mlp.experts.3.up_proj.weight", "BF16", [2, 2], 8),
                                                 ("model.layers.1.mlp.experts.gate_up_proj", "BF16", [2, 4, 2], 32), ("x", "I64", [], 8)]))


def config_corpus():
    base = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64,
            "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": 100,
            "max_position_embeddings": 512, "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "tie_word_embeddings": True}
    llama3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 128}
    yarn = {"rope_type": "yarn", "rope_theta": 1e6, "factor": 4.0, "original_max_position_embeddings": 128, "attention_factor": 1.1}
    moe = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "norm_topk_prob": True, "mlp_only_layers": []}
    for name, more in {"llama": {"rope_scaling": llama3}, "qwen2": {"sliding_window": 64, "use_sliding_window": True},
                       "qwen3": {"head_dim": 32, "rope_parameters": yarn}, "qwen3_moe": moe}.items():
        write("config_json", name, json.dumps({**base, "model_type": name, **more}).encode())


def http_corpus():
    """The first byte is how the rest is cut."""
    host = b"Host: localhost:8080\r\n"
    for name, data in {
        "get": b"GET /v1/models?limit=2 HTTP/1.1\r\n" + host + b"Accept: */*\r\n\r\n",
        "post": b"POST /v1/chat/completions HTTP/1.1\r\n" + host + b"Authorization: Bearer k\r\nContent-Type: application/json\r\n"
                b"Content-Length: 14\r\nExpect: 100-continue\r\n\r\n{\"messages\":1}",
        "chunked": b"POST /v1/messages HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\n5;a=\"b\"\r\nhello\r\n"
                   b"6\r\n world\r\n0\r\nX-Trailer: 1\r\n\r\n",
        "pipelined": b"\r\nGET /a%20b HTTP/1.1\r\n" + host + b"X-Folded: 1\r\n 2\r\n\r\nGET /c HTTP/1.1\r\n" + host + b"\r\n",
        "absolute": b"OPTIONS http://a.example/x HTTP/1.1\r\n" + host + b"Origin: https://a.example\r\n"
                    b"Access-Control-Request-Method: POST\r\nConnection: close\r\n\r\n",
        "old": b"HEAD / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        "two_lengths": b"POST / HTTP/1.1\r\n" + host + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\na",
    }.items():
        write("http_request", name, bytes([len(name)]) + data)


def tokenizer_corpus():
    tokens = ["a", "b", "ab", "\u0120", "\u0120a", "<s>", "<tool>", "\u2581", "\u2581a", "<0x41>", "<unk>"]
    vocab = {token: i for i, token in enumerate(tokens)}
    model = {"type": "BPE", "unk_token": None, "byte_fallback": False, "ignore_merges": False, "vocab": vocab, "merges": ["a b", "\u0120 a"]}
    added = [{"id": 5, "content": "<s>", "special": True, "normalized": False, "lstrip": True, "rstrip": True, "single_word": False},
             {"id": 6, "content": "<tool>", "special": False, "normalized": True, "single_word": True}]
    bos = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
           "special_tokens": {"<s>": {"id": "<s>", "ids": [5], "tokens": ["<s>"]}}}
    split = {"type": "Split", "pattern": {"Regex": "(?i:'s|'t)|\\p{N}{1,3}|[^\\s\\p{L}]+|\\s+(?!\\S)|\\s+"}, "behavior": "Isolated", "invert": False}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
    space = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": True}
    marks = {"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Prepend", "prepend": "\u2581"},
                                                 {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]}
    fallback = {**model, "byte_fallback": True, "fuse_unk": True, "unk_token": "<unk>", "merges": [["\u2581", "a"], ["a", "b"]]}
    strip = {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
    metaspace = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": True}
    for name, parts in {
            "gpt2": {"model": model, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True, "use_regex": True}},
            "llama3": {"model": {**model, "ignore_merges": True}, "normalizer": {"type": "NFC"}, "post_processor": bos,
                       "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, {"type": "Digits", "individual_digits": True}, byte_level]}},
            "split": {"model": model, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [space, byte_level]}},
            "llama2": {"model": fallback, "normalizer": marks, "decoder": strip},
            "metaspace": {"model": fallback, "pre_tokenizer": metaspace, "decoder": metaspace}}.items():
        write("tokenizer_json", name, json.dumps({"version": "1.0", "added_tokens": added, **parts}).encode())
    # Small files that ask for much memory: a template that multiplies, lists of nothing, growing tokens.
    many = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "s"}}] * 200, "special_tokens": {"s": {"ids": [5] * 9000}}}
    steps = {"type": "Sequence", "normalizers": [{"type": "NFKC"}] * 500}
    longer = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 60}
    grown = [{"id": 20 + i, "content": "a" * 200 + str(i), "normalized": True} for i in range(99)]
    for name, parts in {"bomb_template": {"post_processor": many}, "bomb_lists": {"x": [[], {}, ""] * 3000}, "bomb_steps": {"normalizer": steps},
                        "bomb_added": {"normalizer": longer, "added_tokens": grown},
                        "bomb_gaps": {"model": {**model, "vocab": {**vocab, "far": 65000}}}}.items():
        write("tokenizer_json", name, json.dumps({"model": model, "added_tokens": added, **parts}, separators=(",", ":")).encode())
    deep = "[" * 5000
    write("tokenizer_json", "bomb_deep", f'{{"model": {{}}, "x": {deep}'.encode())
    keys = [("tokenizer.ggml.tokens", STRING, tokens), ("tokenizer.ggml.token_type", I32, [1, 1, 1, 1, 1, 3, 4, 1, 1, 6, 2]),
            ("tokenizer.ggml.bos_token_id", U32, 5), ("tokenizer.ggml.add_bos_token", BOOL, True)]
    write("tokenizer_json", "gguf_gpt2", gguf([("tokenizer.ggml.model", STRING, "gpt2"), ("tokenizer.ggml.pre", STRING, "deepseek-v3"),
                                               ("tokenizer.ggml.merges", STRING, ["a b", "\u0120 a"]), *keys], []))
    llama3 = [*tokens, "<|begin_of_text|>", "<|start_header_id|>", "<|eot_id|>"]
    write("tokenizer_json", "gguf_no_pre", gguf([("tokenizer.ggml.model", STRING, "gpt2"), ("tokenizer.ggml.tokens", STRING, llama3),
                                                 ("tokenizer.ggml.merges", STRING, ["a b"])], []))
    write("tokenizer_json", "gguf_llama", gguf([("tokenizer.ggml.model", STRING, "llama"),
                                                ("tokenizer.ggml.scores", F32, [-1.0 * i for i in range(len(tokens))]), *keys], []))


def dialects_corpus():
    """Bodies that every dialect takes, and some that none may."""
    schema = {"type": "object", "properties": {"b": {}, "a": {"enum": [1, None]}}}
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1"}}
    blocks = [{"type": "text", "text": "x-anthropic-billing-header: cch=1;"}, {"type": "thinking", "thinking": "hm", "signature": "s"},
              {"type": "tool_use", "id": "c", "name": "f", "input": {"z": [1, 2.5, None]}}, {"type": "redacted_thinking", "data": "x"}]
    results = [{"type": "tool_result", "tool_use_id": "c", "is_error": True, "content": [{"type": "text", "text": "1"}]},
               {"type": "image", "source": {"type": "base64", "data": "!"}},
               {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "\ud83d"}]}}]
    chat = {"model": "m", "messages": [{"role": "system", "content": "S"}, {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
                                       {"role": "assistant", "content": None, "tool_calls": [call]},
                                       {"role": "tool", "tool_call_id": "c", "content": "1"}],
            "tools": [{"type": "function", "function": {"name": "f", "parameters": schema}}], "tool_choice": "required",
            "n": 2, "stop": ["a", "b"], "logit_bias": {"5": -100}, "logprobs": True, "top_logprobs": 2, "seed": -7,
            "response_format": {"type": "json_schema", "json_schema": {"schema": schema, "strict": True}},
            "stream_options": {"include_usage": True}, "chat_template_kwargs": {"enable_thinking": False}}
    claude = {"model": "m", "max_tokens": 9, "system": blocks[:1], "messages": [
        {"role": "user", "content": "Hi"}, {"role": "assistant", "content": blocks}, {"role": "user", "content": results},
        {"role": "assistant", "content": "{"}], "tools": [{"name": "f", "input_schema": schema, "strict": True}],
        "tool_choice": {"type": "tool", "name": "f"}, "thinking": {"type": "enabled", "budget_tokens": 5},
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": schema}}, "stop_sequences": ["x"]}
    items = [{"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "D"}]}, {"role": "user", "content": "Hi"},
             {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}, {"type": "web_search_call"},
             {"type": "function_call", "call_id": "c", "name": "f", "namespace": "n", "arguments": "broken"},
             {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_image", "image_url": "x"}]},
             {"type": "custom_tool_call", "call_id": "d", "name": "p", "input": "***"}, {"type": "custom_tool_call_output", "output": "1"},
             {"type": "local_shell_call", "call_id": "e", "action": {"command": ["ls"]}}, {"type": "additional_tools", "tools": []}]
    codex = {"model": "m", "instructions": "I", "input": items, "reasoning": {"effort": "high", "summary": "auto"}, "store": False,
             "tools": [{"type": "custom", "name": "p", "format": {"type": "grammar", "syntax": "lark", "definition": "start: x"}},
                       {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "f", "parameters": schema}]}, {"type": "x"}],
             "text": {"format": {"type": "json_object"}}, "include": ["reasoning.encrypted_content"], "metadata": {"user_id": "u"}}
    for name, body in {"chat": chat, "claude": claude, "codex": codex, "tokens": {"prompt": [[1, 2], [3]], "logprobs": 2, "max_tokens": 5},
                       "all": {"messages": [{"role": "user", "content": "Hi"}], "input": "Hi", "max_tokens": 5},
                       "bomb_lists": {"messages": [[], {}, ""] * 3000}, "bomb_keys": {f"k{i}": i for i in range(5000)},
                       "bomb_stops": {"messages": [], "stop": ["a"] * 9000}}.items():
        write("dialects", name, json.dumps(body, separators=(",", ":")).encode())
    write("dialects", "bomb_deep", b'{"messages":' + b"[" * 5000)


if __name__ == "__main__":
    gguf_corpus()
    blocks_corpus()
    safetensors_corpus()
    config_corpus()
    http_corpus()
    tokenizer_corpus()
    dialects_corpus()
