"""What the ids of any bytes should be, by the families' own libraries. Neither takes broken UTF-8; what is
meant is: each broken byte is cut like U+FFFD, and encoded as itself."""

import codecs
import json

from tokenizers import pre_tokenizers

STAND_IN = 0xE000  # a private-use character per byte


def _keep_length(error):
    return "\ufffd" * (error.end - error.start), error.end


def _stand_in(error):
    return "".join(chr(STAND_IN + byte) for byte in error.object[error.start:error.end]), error.end


codecs.register_error("millrace-keep-length", _keep_length)
codecs.register_error("millrace-stand-in", _stand_in)


def is_broken(data):
    try:
        data.decode()
    except UnicodeDecodeError:
        return True
    return False


def _alphabet():
    """byte -> the character that stands for it."""
    visible = [b for b in range(256) if 0x21 <= b <= 0x7E or 0xA1 <= b <= 0xAC or b >= 0xAE]
    hidden = [b for b in range(256) if b not in visible]
    return {b: chr(b) for b in visible} | {b: chr(0x100 + i) for i, b in enumerate(hidden)}


ALPHABET = _alphabet()
BYTES = {char: byte for byte, char in ALPHABET.items()}


def _pieces(data):
    """(text with U+FFFD, the byte of each U+FFFD or None)."""
    raw, at = [], 0
    text = data.decode(errors="millrace-keep-length")
    for char in text:
        width = len(char.encode())
        if char != "\ufffd":
            at += width
        elif data[at:at + 3] == b"\xef\xbf\xbd":
            raw.append(None)
            at += 3
        else:
            raw.append(data[at])
            at += 1
    assert at == len(data)
    return text, raw


def byte_level_ids(tokenizer, data):
    if not is_broken(data):
        return tokenizer.encode(data.decode(), add_special_tokens=False).ids
    text, raw = _pieces(data)
    if tokenizer.normalizer is not None:
        text = tokenizer.normalizer.normalize_str(text)
    ids, raw = [], iter(raw)
    for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text):
        out = b""
        for char in bytes(BYTES[c] for c in word).decode():
            byte = next(raw) if char == "\ufffd" else None
            out += char.encode() if byte is None else bytes([byte])
        ids += [token.id for token in tokenizer.model.tokenize("".join(ALPHABET[b] for b in out))]
    return ids


def holds_stand_ins(data):
    """Characters of its own that look like stand-ins: what they become cannot be told."""
    return any(STAND_IN <= ord(char) < STAND_IN + 256 for char in data.decode(errors="ignore"))


def _without_stand_ins(ids, byte_ids):
    """Byte tokens of a stand-in's three bytes become the one of the byte it stands for."""
    values = {id: byte for byte, id in byte_ids.items()}
    out, at = [], 0
    while at < len(ids):
        three = [values.get(id) for id in ids[at:at + 3]]
        is_private = len(three) == 3 and None not in three and three[0] == 0xEE
        stands_for = ord(bytes(three).decode()) - STAND_IN if is_private else None
        if stands_for in byte_ids:
            out.append(byte_ids[stands_for])
            at += 3
        else:
            out.append(ids[at])
            at += 1
    return out


def character_ids(encode, byte_ids, data):
    """`encode` takes a string; byte_ids: byte -> id."""
    ids = encode(data.decode(errors="millrace-stand-in"))
    return _without_stand_ins(ids, byte_ids) if is_broken(data) else ids


def hf_character_ids(tokenizer, data):
    byte_ids = {byte: tokenizer.token_to_id(f"<0x{byte:02X}>") for byte in range(256)}
    return character_ids(lambda text: tokenizer.encode(text, add_special_tokens=False).ids, byte_ids, data)


def spm_ids(processor, data):
    byte_ids = {byte: processor.piece_to_id(f"<0x{byte:02X}>") for byte in range(256)}
    return character_ids(lambda text: processor.encode(text), byte_ids, data)


def spm_metadata(processor):
    """What a GGUF file says of a SentencePiece model."""
    types = []
    for id in range(processor.get_piece_size()):
        types.append(2 if processor.is_unknown(id) else 3 if processor.is_control(id) else 6 if processor.is_byte(id) else 1)
    ids = range(processor.get_piece_size())
    return {"tokens": [processor.id_to_piece(id) for id in ids], "scores": [processor.get_score(id) for id in ids], "types": types,
            "bos": processor.bos_id(), "eos": processor.eos_id(), "unknown": processor.unk_id()}


def parts(tokenizer):
    """tokenizer.json without the vocabulary and the merges, which families share."""
    json_ = json.loads(tokenizer.to_str())
    model = json_["model"]
    return json_, {"vocab": model.pop("vocab"), "merges": model.pop("merges")}
