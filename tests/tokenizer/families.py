"""Small tokenizers with the rules of real families and a vocabulary of our own, as Hugging Face's and
SentencePiece's objects. The vocabulary joins every kind of character with every other, so that a cut in
the wrong place, or a missing one, changes the ids."""

import collections
import io
import json

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import corpus

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
BLANKS = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + BLANKS
QWEN2 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*" + BLANKS
HEAD = r"[^\r\n\p{L}\p{N}]?"
GPT4O = (HEAD + UPPER + "*" + LOWER + "+" + CONTRACTIONS + "?|" + HEAD + UPPER + "+" + LOWER + "*" + CONTRACTIONS + "?"
         + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + BLANKS)
TEKKEN = (HEAD + UPPER + "*" + LOWER + "+|" + HEAD + UPPER + "+" + LOWER + "*"
          + r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + BLANKS)
LETTERS = (
    "A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗ"
    "ὙὛὝὟ-\u1f7dᾀ-ᾴᾶ-ᾼ\u1fbeῂ-ῄῆ-ῌῐ-\u1fd3ῖ-\u1fdbῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\u2126ℨ\u212a-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭ"
    "Ꚁ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃")
CJK = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
DEEPSEEK3 = (r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
             r"| ?[\p{P}\p{S}]+[\r\n]*" + BLANKS)
DEFAULT = [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"]

# By the name GGUF gives the rule: what cuts the text, and the normalizer.
FAMILIES = {
    "default": (DEFAULT, None),
    "gpt-2": (None, None),
    "smollm": ("digits", None),
    "llama-bpe": ([LLAMA3], None),
    "qwen2": ([QWEN2], normalizers.NFC()),
    "deepseek-llm": ([r"[\r\n]", r"\s?[" + LETTERS + "]+", "\\s?[!-/:-~！-／：-～\u2018-\u201f\u3000-\u3002]+", r"\s+$", CJK,
                      r"\p{N}+"], None),
    "deepseek-coder": ([r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", CJK, r"\p{N}"], None),
    "deepseek-v3": ([r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+", DEEPSEEK3], None),
    "gpt-4o": ([GPT4O], None),
    "tekken": ([TEKKEN], None),
}
CONTROL = ["<|im_start|>", "<|im_end|>", "<s>"]
ADDED = ["<tool_call>", "  <pad>"]


def byte_level(text):
    return "".join(piece for piece, _ in pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(text))


def byte_level_model():
    """(vocab, merges): trained on the corpus without any cutting, then every kind beside every other."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=640, initial_alphabet=alphabet, special_tokens=[], show_progress=False)
    tokenizer.train_from_iterator(corpus.SENTENCES + corpus.CODE, trainer)
    trained = json.loads(tokenizer.to_str())["model"]
    vocab = dict(trained["vocab"])
    merges = [tuple(m) for m in trained["merges"]]

    def join(left, right):
        if left + right not in vocab:
            vocab[left + right] = len(vocab)
        if (left, right) not in merges:
            merges.append((left, right))

    kinds = [byte_level(kind) for kind in corpus.KINDS]
    for kind in kinds:
        for n in range(1, len(kind)):
            join(kind[:n], kind[n])
    for left in kinds[:40]:
        for right in kinds[:40]:
            join(left, right)
    for kind in kinds[40:]:
        join(kind, kinds[0])
        join(kinds[7], kind)
    for digits in ("11", "111", "1111"):
        join(digits[:-1], "1")
    return vocab, merges


def pre_tokenizer(cuts):
    if cuts is None:
        return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    if cuts == "digits":
        return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    steps = [pre_tokenizers.Split(Regex(cut), "isolated") for cut in cuts]
    return pre_tokenizers.Sequence(steps + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def add_tokens(tokenizer, control):
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in ADDED])
    if control:
        tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in CONTROL])


def family(name, model, control=True):
    """`name` of FAMILIES over a (vocab, merges)."""
    cuts, normalizer = FAMILIES[name]
    vocab, merges = model
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges, ignore_merges=name in ("llama-bpe", "tekken")))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer(cuts)
    tokenizer.decoder = decoders.ByteLevel()
    add_tokens(tokenizer, control)
    if control:
        bos = tokenizer.token_to_id("<s>")
        tokenizer.post_processor = processors.Sequence([
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", bos)])])
    return tokenizer


def character_model():
    """(vocab, merges): a token for each byte, the 200 characters the corpus uses most, and their merges."""
    texts = corpus.SENTENCES + corpus.CODE
    counts = collections.Counter("".join(texts).replace(" ", "▁"))
    alphabet = sorted(counts, key=lambda char: (-counts[char], char))[:200]
    special = ["<unk>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    trainer = trainers.BpeTrainer(vocab_size=900, special_tokens=special, show_progress=False, limit_alphabet=200,
                                  initial_alphabet=alphabet)
    tokenizer.train_from_iterator(texts, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], [tuple(merge) for merge in model["merges"]]


def characters(model, control=True, metaspace=False):
    """As Llama 2's tokenizer.json, over a (vocab, merges); spaces marked in the older way (a normalizer) or the
    newer (Metaspace)."""
    vocab, merges = model
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    if metaspace:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first", split=True)
    else:
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    add_tokens(tokenizer, control)
    if control:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))])
    return tokenizer


def sentence_pieces():
    """A SentencePiece BPE model as Llama 2's is made."""
    out = io.BytesIO()
    texts = 20 * (corpus.SENTENCES[:9] + corpus.CODE) + corpus.SENTENCES
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=out, model_type="bpe", vocab_size=800,
        byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False, add_dummy_prefix=True,
        split_digits=True, allow_whitespace_only_pieces=True, character_coverage=0.98, minloglevel=2)
    return sentencepiece.SentencePieceProcessor(model_proto=out.getvalue())
