"""llama.cpp through llama-cpp-python's low-level bindings, measured the way llama-bench does it: llama_decode
alone, no sampling, after a warm-up, weights repacked (its default), random tokens. One process measures one
setting and prints one JSON document:

    yardstick.py speed MODEL THREADS FLASH CONTEXT...   seconds of prefilling 512 tokens, of decoding 128 at each
    yardstick.py start MODEL THREADS FLASH              load to the first token of a short prompt, and memory
"""

import json
import random
import sys
import time

import llama_cpp as l
import numpy

N_PREFILL, N_DECODE, N_BATCH = 512, 128, 512
N_PROMPT, N_START_CONTEXT = 8, 512  # as `millrace bench MODEL` has them
N_REPEATS = 3


@l.llama_log_callback
def say_nothing(level, text, user_data):
    pass


def pss_bytes():
    with open("/proc/self/smaps_rollup") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))


class Engine:
    def __init__(self, path, n_context, n_threads, flash):
        l.llama_log_set(say_nothing, None)
        model = l.llama_model_default_params()
        model.n_gpu_layers = 0
        assert model.use_extra_bufts, "this llama.cpp does not repack by default"
        self.model = l.llama_model_load_from_file(path.encode(), model)
        assert self.model, f"llama.cpp cannot load {path}"
        self.vocab = l.llama_model_get_vocab(self.model)
        self.n_vocab = l.llama_vocab_n_tokens(self.vocab)
        context = l.llama_context_default_params()
        context.n_ctx, context.n_batch, context.n_ubatch = n_context, N_BATCH, N_BATCH
        context.n_threads = context.n_threads_batch = n_threads
        context.flash_attn_type = flash  # 0 off, 1 on
        self.context = l.llama_init_from_model(self.model, context)
        assert self.context, "llama.cpp cannot make a context"

    def decode(self, tokens):
        """One llama_decode a batch; logits are made for the last position alone."""
        for at in range(0, len(tokens), N_BATCH):
            part = tokens[at : at + N_BATCH]
            ids = (l.llama_token * len(part))(*part)  # the batch only points to it
            assert l.llama_decode(self.context, l.llama_batch_get_one(ids, len(part))) == 0
        l.llama_synchronize(self.context)

    def cut(self, n_kept):
        l.llama_memory_seq_rm(l.llama_get_memory(self.context), -1, n_kept, -1)

    def random_tokens(self, n):
        return [random.randrange(self.n_vocab) for _ in range(n)]

    def seconds_of_prefill(self):
        tokens = self.random_tokens(N_PREFILL)
        begin = time.perf_counter()
        self.decode(tokens)
        return time.perf_counter() - begin

    def seconds_of_decode(self, n=N_DECODE):
        tokens = self.random_tokens(n)
        begin = time.perf_counter()
        for token in tokens:
            self.decode([token])
        return time.perf_counter() - begin

    def tokens_of(self, text):
        """As the model has it: with a first token of its own if it wants one, none for control in the text."""
        out = (l.llama_token * (len(text) + 1))()
        return list(out[: l.llama_tokenize(self.vocab, text, len(text), out, len(out), True, False)])

    def logits(self, tokens):
        """Of every position of a fresh sequence, which must fit into a batch."""
        self.cut(0)
        batch = l.llama_batch_init(len(tokens), 0, 1)
        batch.n_tokens = len(tokens)
        for i, token in enumerate(tokens):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = token, i, 1, 1
            batch.seq_id[i][0] = 0
        assert l.llama_decode(self.context, batch) == 0
        l.llama_batch_free(batch)
        flat = numpy.ctypeslib.as_array(l.llama_get_logits(self.context), (len(tokens) * self.n_vocab,))
        return flat.reshape(len(tokens), self.n_vocab).astype(numpy.float64)


def speed(path, n_threads, flash, contexts):
    engine = Engine(path, max(contexts) + N_PREFILL + N_DECODE, n_threads, flash)
    engine.seconds_of_prefill()
    engine.seconds_of_decode(8)
    prefill, decode, n_filled = [], {}, 0
    for _ in range(N_REPEATS):
        engine.cut(0)
        prefill.append(engine.seconds_of_prefill())
    engine.cut(0)
    for context in sorted(contexts):
        engine.decode(engine.random_tokens(context - n_filled))
        n_filled, decode[context] = context, []
        for _ in range(N_REPEATS):
            decode[context].append(engine.seconds_of_decode())
            engine.cut(context)
    return {"prefill_s": prefill, "decode_s": decode}


def start(path, n_threads, flash):
    before = pss_bytes()  # the interpreter's own, which llama.cpp is not blamed for
    begin = time.perf_counter()
    engine = Engine(path, N_START_CONTEXT, n_threads, flash)
    engine.decode(engine.random_tokens(N_PROMPT))
    seconds = time.perf_counter() - begin
    return {"load_to_first_token_s": seconds, "pss_bytes": pss_bytes() - before}


def main():
    l.llama_backend_init()
    mode, path = sys.argv[1:3]
    n_threads, flash, *contexts = map(int, sys.argv[3:])
    print(json.dumps(speed(path, n_threads, flash, contexts) if mode == "speed" else start(path, n_threads, flash)))


if __name__ == "__main__":
    main()
