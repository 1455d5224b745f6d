"""The model: qwen3 as Hugging Face names its parts, so that its state is a checkpoint of transformers."""
import dataclasses

import torch
import torch.nn.functional as F
from torch import nn


@dataclasses.dataclass
class Shape:
    vocab_size: int = 8192
    hidden_size: int = 256
    intermediate_size: int = 576
    num_hidden_layers: int = 10
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    head_dim: int = 64
    rms_norm_eps: float = 1e-6
    rope_theta: float = 1_000_000.0
    max_position_embeddings: int = 65536


TINY = Shape(vocab_size=512, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=2,
             num_key_value_heads=1, head_dim=32)


def config_json(shape, end_tokens):
    """config.json of the Hugging Face directory."""
    fields = dataclasses.asdict(shape)
    theta = fields.pop("rope_theta")
    return {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_act": "silu", **fields,
            "rope_theta": theta, "rope_parameters": {"rope_type": "default", "rope_theta": theta},
            "tie_word_embeddings": True, "attention_bias": False, "attention_dropout": 0.0, "use_sliding_window": False,
            "bos_token_id": None, "eos_token_id": end_tokens, "dtype": "float32"}


class Norm(nn.Module):
    def __init__(self, size, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(size)), eps

    def forward(self, x):
        return F.rms_norm(x, (x.shape[-1],), self.weight.to(x.dtype), self.eps)


def rotate(x, cos, sin):
    """Rotary embedding of halves. x: (B, H, T, D)."""
    low, high = x.chunk(2, dim=-1)
    return torch.cat([low * cos - high * sin, high * cos + low * sin], dim=-1)


class Attention(nn.Module):
    def __init__(self, shape):
        super().__init__()
        linear = lambda heads: nn.Linear(shape.hidden_size, heads * shape.head_dim, bias=False)
        self.head_dim = shape.head_dim
        self.q_proj, self.k_proj = linear(shape.num_attention_heads), linear(shape.num_key_value_heads)
        self.v_proj = linear(shape.num_key_value_heads)
        self.o_proj = nn.Linear(shape.num_attention_heads * shape.head_dim, shape.hidden_size, bias=False)
        self.q_norm, self.k_norm = (Norm(shape.head_dim, shape.rms_norm_eps) for _ in range(2))

    def forward(self, x, cos, sin, past):
        """`past` is None, or a list that holds earlier keys and values and takes the new ones."""
        heads = lambda y: y.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
        q = rotate(self.q_norm(heads(self.q_proj(x))), cos, sin)
        k = rotate(self.k_norm(heads(self.k_proj(x))), cos, sin)
        v = heads(self.v_proj(x))
        if past is not None:
            if past:
                k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
            past[:] = [k, v]
        causal = q.shape[2] == k.shape[2]
        if not causal and q.shape[2] != 1:
            raise ValueError("after the prompt, one token at a time")
        y = F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)
        return self.o_proj(y.transpose(1, 2).flatten(-2))


class Mlp(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.gate_proj = nn.Linear(shape.hidden_size, shape.intermediate_size, bias=False)
        self.up_proj = nn.Linear(shape.hidden_size, shape.intermediate_size, bias=False)
        self.down_proj = nn.Linear(shape.intermediate_size, shape.hidden_size, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.self_attn, self.mlp = Attention(shape), Mlp(shape)
        self.input_layernorm = Norm(shape.hidden_size, shape.rms_norm_eps)
        self.post_attention_layernorm = Norm(shape.hidden_size, shape.rms_norm_eps)

    def forward(self, x, cos, sin, past):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, past)
        return x + self.mlp(self.post_attention_layernorm(x))


class Body(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocab_size, shape.hidden_size)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.num_hidden_layers))
        self.norm = Norm(shape.hidden_size, shape.rms_norm_eps)


class Model(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape, self.model = shape, Body(shape)
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                nn.init.normal_(weight, std=self._first_scale(name))

    def _first_scale(self, name):
        if "embed" in name:
            return 0.02
        # What is added to the stream starts smaller, the more layers add to it.
        last = name.endswith(("o_proj.weight", "down_proj.weight"))
        return 0.5 * self.shape.hidden_size ** -0.5 * ((2 * self.shape.num_hidden_layers) ** -0.5 if last else 1.0)

    def _angles(self, start, count, device):
        half = self.shape.head_dim // 2
        frequency = self.shape.rope_theta ** -(torch.arange(half, device=device, dtype=torch.float32) / half)
        angle = torch.arange(start, start + count, device=device, dtype=torch.float32)[:, None] * frequency
        return angle.cos(), angle.sin()

    def hidden(self, tokens, past=None):
        """tokens: (B, T). `past` is a list of one list a layer, all empty at first."""
        start = past[0][0].shape[2] if past and past[0] else 0
        x = self.model.embed_tokens(tokens)
        cos, sin = (t.to(x.dtype) for t in self._angles(start, tokens.shape[1], tokens.device))
        for i, layer in enumerate(self.model.layers):
            x = layer(x, cos, sin, past[i] if past is not None else None)
        return self.model.norm(x)

    def forward(self, tokens, past=None):
        return F.linear(self.hidden(tokens, past), self.model.embed_tokens.weight)

    def loss(self, tokens):
        """Mean over (B, T + 1) tokens of the loss of each after the first."""
        logits = self(tokens[:, :-1]).float()
        return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
