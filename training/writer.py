"""The model as a writer: many texts at once, each drawn from a random stream of its own."""
import torch

from training.tokenizer import chat_text

MOST_NEW = 400
CHECK_EVERY = 16  # tokens between two looks at whether all texts have ended


def choose(logits, temperature, draws):
    """One token a row: the likeliest, or the one in whose share of [0, 1) the row's draw falls."""
    if temperature == 0:
        return logits.argmax(-1)
    sums = (logits.float() / temperature).softmax(-1).cumsum(-1)
    chosen = torch.searchsorted(sums, draws[:, None] * sums[:, -1:], right=True)
    return chosen.squeeze(1).clamp(max=logits.shape[-1] - 1)


class Writer:
    def __init__(self, model, tokenizer, device, at_once=64):
        self.model, self.tokenizer, self.device, self.at_once = model, tokenizer, device, at_once
        self.ends = [tokenizer.token_to_id(t) for t in ("<|im_end|>", "<|endoftext|>")]

    def write(self, prompts, seeds, temperature=0.0):
        """The answer to each prompt, a pair of messages and tools."""
        ids = [self.tokenizer.encode(chat_text(*prompt, add_generation_prompt=True)).ids for prompt in prompts]
        rows = [row for i in range(0, len(ids), self.at_once)
                for row in self._write(ids[i:i + self.at_once], seeds[i:i + self.at_once], temperature)]
        return [text.strip() for text in self.tokenizer.decode_batch(rows, skip_special_tokens=False)]

    @torch.no_grad()
    def _write(self, prompts, seeds, temperature):
        """All texts go on by one token at a time: a known one of a longer prompt, or a chosen one."""
        lengths = torch.tensor([len(p) for p in prompts])
        at, longest = int(lengths.min()), int(lengths.max())
        known = torch.zeros((len(prompts), longest + MOST_NEW), dtype=torch.long)
        for row, prompt in enumerate(prompts):
            known[row, :len(prompt)] = torch.tensor(prompt)
        draws = torch.stack([torch.rand(MOST_NEW, generator=torch.Generator().manual_seed(seed)) for seed in seeds])
        text, lengths, draws = (t.to(self.device) for t in (known, lengths, draws))
        ends = torch.tensor(self.ends, device=self.device)
        ended = torch.zeros(len(prompts), dtype=torch.bool, device=self.device)
        past, step = [[] for _ in self.model.model.layers], text[:, :at]
        while at < text.shape[1] and not (at % CHECK_EVERY == 0 and bool(ended.all())):
            count = (at - lengths).clamp(0, MOST_NEW - 1)
            chosen = choose(self.model(step, past)[:, -1], temperature, draws.gather(1, count[:, None])[:, 0])
            text[:, at] = torch.where(at < lengths, text[:, at], chosen)
            ended |= (at >= lengths) & torch.isin(chosen, ends)
            step, at = text[:, at:at + 1], at + 1
        return [self._answer(row[start:start + MOST_NEW]) for row, start in zip(text.tolist(), lengths.tolist())]

    def _answer(self, tokens):
        return tokens[:next((i for i, token in enumerate(tokens) if token in self.ends), len(tokens))]
