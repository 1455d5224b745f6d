"""The teacher: a llama model read from a GGUF file, made to write many texts at once and to score them.

Nothing of it is trained. On a GPU one step of a whole batch is a CUDA graph, one for each rounded length of
the context, so that 2,048 texts grow by a token in a few milliseconds.
"""
import math

import tokenizers
import torch
import torch.nn.functional as F

from training.gguf import Gguf

LENGTH_STEP = 64  # contexts are rounded up to this, one CUDA graph each
CHECK_EVERY = 16  # steps between two looks at how many texts have ended
HEAD_ROWS = 16384  # rows of logits held at once while scoring


def read_tokenizer(metadata):
    """SmolLM2's: single digits, then GPT-2's rule, byte-level merges."""
    tokens = metadata["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in metadata["tokenizer.ggml.merges"]]
    model = tokenizers.models.BPE(vocab={text: i for i, text in enumerate(tokens)}, merges=merges)
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([
        tokenizers.pre_tokenizers.Digits(individual_digits=True),
        tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False),
    ])
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    types = metadata["tokenizer.ggml.token_type"]
    tokenizer.add_special_tokens([text for text, kind in zip(tokens, types) if kind == 3])
    return tokenizer


def chat_text(messages):
    """The teacher's own template, with its default system message left out when there is another."""
    if messages[0]["role"] != "system":
        messages = [{"role": "system", "content": "You are a helpful AI assistant named SmolLM, trained by "
                                                  "Hugging Face"}] + messages
    turns = [f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in messages]
    return "".join(turns) + "<|im_start|>assistant\n"


def rotate(x, cos, sin):
    """Rotary embedding of neighbouring pairs, the order llama has in GGUF files. x: (B, H, T, D)."""
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)


class Teacher:
    def __init__(self, path, device, batch=2048, max_length=1024):
        gguf = Gguf(path)
        self.device, self.batch, self.max_length = device, batch, max_length
        self.dtype = torch.bfloat16 if device == "cuda" else torch.float32
        self.tokenizer = read_tokenizer(gguf.metadata)
        self.end = gguf.metadata["tokenizer.ggml.eos_token_id"]
        self._read_shape(gguf.metadata)
        self._read_weights(gguf)
        self.cache = None

    def _read_shape(self, metadata):
        self.n_layers = metadata["llama.block_count"]
        self.n_heads = metadata["llama.attention.head_count"]
        self.n_kv_heads = metadata["llama.attention.head_count_kv"]
        self.eps = metadata["llama.attention.layer_norm_rms_epsilon"]
        width = metadata["llama.rope.dimension_count"]
        frequency = metadata["llama.rope.freq_base"] ** -(torch.arange(0, width, 2) / width)
        angle = torch.arange(metadata["llama.context_length"])[:, None] * frequency
        self.cos = angle.cos().to(self.device, self.dtype)
        self.sin = angle.sin().to(self.device, self.dtype)

    def _read_weights(self, gguf):
        read = lambda name: torch.from_numpy(gguf.tensor(name)).to(self.device, self.dtype)
        self.embedding, self.last_norm = read("token_embd.weight"), read("output_norm.weight")
        self.layers = []
        for i in range(self.n_layers):
            part = lambda name: read(f"blk.{i}.{name}.weight")
            self.layers.append({
                "attn_norm": part("attn_norm"), "ffn_norm": part("ffn_norm"),
                "qkv": torch.cat([part("attn_q"), part("attn_k"), part("attn_v")]), "out": part("attn_output"),
                "gate_up": torch.cat([part("ffn_gate"), part("ffn_up")]), "down": part("ffn_down")})

    def _norm(self, x, weight):
        return F.rms_norm(x, (x.shape[-1],), weight, self.eps)

    def _hidden(self, tokens, positions, attend):
        """tokens, positions: (B, T). attend(i, q, k, v) gives (B, H, T, D)."""
        cos, sin = self.cos[positions][:, None], self.sin[positions][:, None]
        x = self.embedding[tokens]
        head_dim = self.cos.shape[1] * 2
        sizes = [self.n_heads, self.n_kv_heads, self.n_kv_heads]
        for i, layer in enumerate(self.layers):
            qkv = F.linear(self._norm(x, layer["attn_norm"]), layer["qkv"])
            q, k, v = qkv.unflatten(-1, (-1, head_dim)).transpose(1, 2).split(sizes, dim=1)
            y = attend(i, rotate(q, cos, sin), rotate(k, cos, sin), v)
            x = x + F.linear(y.transpose(1, 2).flatten(-2), layer["out"])
            gate, up = F.linear(self._norm(x, layer["ffn_norm"]), layer["gate_up"]).chunk(2, dim=-1)
            x = x + F.linear(F.silu(gate) * up, layer["down"])
        return self._norm(x, self.last_norm)

    def _causal(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)

    # Writing.

    def _allocate(self):
        shape = (self.n_layers, self.batch, self.n_kv_heads, self.max_length, self.cos.shape[1] * 2)
        self.cache = torch.zeros((2, *shape), device=self.device, dtype=self.dtype)
        whole = lambda dtype: torch.zeros(self.batch, device=self.device, dtype=dtype)
        self.current, self.position, self.ended = whole(torch.long), whole(torch.long), whole(torch.bool)
        self.rows = torch.arange(self.batch, device=self.device)
        self.written = torch.zeros((self.batch, self.max_length), device=self.device, dtype=torch.long)
        self.graphs = {}
        self.pool = torch.cuda.graph_pool_handle() if self.device == "cuda" else None

    def _prefill(self, tokens, lengths):
        """Fills the cache from right-padded prompts but for their last tokens, which the first step takes."""
        def attend(i, q, k, v):
            self.cache[0, i, :, :, :k.shape[2]] = k
            self.cache[1, i, :, :, :v.shape[2]] = v
            return self._causal(q, k, v)

        positions = torch.arange(tokens.shape[1], device=self.device).expand_as(tokens)
        self._hidden(tokens, positions, attend)
        self.position.copy_(lengths - 1)
        self.current.copy_(tokens[self.rows, lengths - 1])
        self.ended.zero_()

    def _step(self, length):
        """One token more for every row; `length` bounds all positions."""
        mask = torch.arange(length, device=self.device) > self.position[:, None]

        def attend(i, q, k, v):
            keys, values = self.cache[0, i], self.cache[1, i]
            keys[self.rows, :, self.position] = k[:, :, 0]
            values[self.rows, :, self.position] = v[:, :, 0]
            q = q.reshape(q.shape[0], self.n_kv_heads, -1, q.shape[-1])
            scores = q @ keys[:, :, :length].transpose(-1, -2) * q.shape[-1] ** -0.5
            scores = scores.float().masked_fill(mask[:, None, None], -math.inf)
            return (scores.softmax(-1).to(v.dtype) @ values[:, :, :length]).flatten(1, 2)[:, :, None]

        hidden = self._hidden(self.current[:, None], self.position[:, None], attend)
        chosen = self._sample(F.linear(hidden[:, 0], self.embedding).float())
        chosen = torch.where(self.ended, self.end, chosen)
        self.position += 1
        self.written[self.rows, self.position] = chosen
        self.ended |= chosen == self.end
        self.current.copy_(chosen)

    def _sample(self, logits):
        """Tokens less likely than `min_p` times the likeliest are left out; the rest by temperature."""
        floor = logits.amax(-1, keepdim=True) + math.log(self.min_p)
        weights = (logits / self.temperature).masked_fill(logits < floor, -math.inf).softmax(-1)
        return (weights / torch.empty_like(weights).exponential_()).argmax(-1)

    def _run_step(self, length):
        if self.device != "cuda":
            return self._step(length)
        key = (length, self.temperature, self.min_p)
        if key not in self.graphs:
            state = [t.clone() for t in (self.current, self.position, self.ended)]
            self._step(length)  # warms up what must not be first used inside a capture
            for t, kept in zip((self.current, self.position, self.ended), state):
                t.copy_(kept)
            torch.cuda.synchronize()
            self.graphs[key] = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graphs[key], pool=self.pool):
                self._step(length)
        self.graphs[key].replay()

    @torch.no_grad()
    def write(self, conversations, starts, max_new, temperature, min_p, seed):
        """How the teacher goes on after each start of an answer, to its end or for max_new tokens."""
        self.temperature, self.min_p = temperature, min_p
        torch.manual_seed(seed)
        if self.cache is None:
            self._allocate()
        texts = [chat_text(c) + start for c, start in zip(conversations, starts)]
        prompts = [e.ids for e in self.tokenizer.encode_batch(texts)]
        lengths = [len(p) for p in prompts] + [1] * (self.batch - len(prompts))
        longest = max(lengths)
        if longest + max_new > self.max_length:
            raise ValueError(f"a prompt of {longest} and {max_new} new tokens need more than {self.max_length}")
        tokens = torch.zeros((self.batch, -(-longest // LENGTH_STEP) * LENGTH_STEP), dtype=torch.long)
        for row, prompt in enumerate(prompts):
            tokens[row, :len(prompt)] = torch.tensor(prompt)
        self._prefill(tokens.to(self.device), torch.tensor(lengths, device=self.device))
        self.ended[len(prompts):] = True
        for step in range(max_new):
            self._run_step(-(-(longest + step) // LENGTH_STEP) * LENGTH_STEP)
            if step % CHECK_EVERY == 0 and bool(self.ended.all()):
                break
        return self._texts(lengths[:len(prompts)], step + 1)

    def _texts(self, lengths, count):
        written = self.written.cpu().numpy()
        ids = [written[row, length:length + count].tolist() for row, length in enumerate(lengths)]
        return self.tokenizer.decode_batch([i[:i.index(self.end)] if self.end in i else i for i in ids])

    # Scoring.

    @torch.no_grad()
    def perplexity(self, texts, tokens_at_once=131072):
        """Each text's perplexity by itself, after the token that starts a document."""
        ids = [[0] + e.ids for e in self.tokenizer.encode_batch(texts)]
        order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
        result = [0.0] * len(ids)
        while order:
            width = len(ids[order[-1]])
            count = max(1, tokens_at_once // width)
            chosen, order = order[-count:], order[:-count]
            tokens = torch.zeros((len(chosen), width), dtype=torch.long)
            for row, i in enumerate(chosen):
                tokens[row, :len(ids[i])] = torch.tensor(ids[i])
            losses = self._losses(tokens.to(self.device)).cpu()
            for row, i in enumerate(chosen):
                result[i] = float(losses[row, :len(ids[i]) - 1].mean().exp())
        return result

    def _losses(self, tokens):
        positions = torch.arange(tokens.shape[1], device=self.device).expand_as(tokens)
        hidden = self._hidden(tokens, positions, lambda i, q, k, v: self._causal(q, k, v))
        rows, targets = hidden[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()
        losses = [F.cross_entropy(F.linear(r, self.embedding).float(), t, reduction="none")
                  for r, t in zip(rows.split(HEAD_ROWS), targets.split(HEAD_ROWS))]
        return torch.cat(losses).view(tokens.shape[0], -1)
