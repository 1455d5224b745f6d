"""Texts to tokenize: many scripts, code, emoji, blanks, broken UTF-8, random bytes. Written for this purpose."""

import random

SENTENCES = """
The mill stands by the river, and the water never asks who built it. It's what we'd call "good enough"; they'll see.
I'M SURE YOU'VE SEEN IT: HE'D SAY WE'RE LATE, IT'LL RAIN. Don't! Can't? o'clock 'tis rock'n'roll
Das Mühlrad dreht sich langsam; größer als früher, sagt der Müller: „Ja, natürlich!“
Où est passé l'été ? Le garçon n'a rien vu, çà et là, peut-être déjà à Noël.
El niño comió piñas ayer. ¿Quién lo sabía? ¡Nadie!
O coração não se explica; pão, mãe, avô e avó.
Zażółć gęślą jaźń. Příliš žluťoučký kůň. Árvíztűrő tükörfúrógép.
Vatnið rennur hratt þar sem áin þrengist. İstanbul'da ığdır güneşi.
Мельница стоит у реки, и вода никогда не спрашивает, кто её построил.
Вода тече, а млин стоїть; їжак п'є ґанок. Здраво, шта има ново?
Ο μύλος στέκει δίπλα στο ποτάμι· ποιος τον έχτισε; Ἐν ἀρχῇ ἦν ὁ λόγος.
הטחנה עומדת ליד הנהר, והמים אינם שואלים. שָׁלוֹם
الطاحونة تقف قرب النهر، والماء لا يسأل أحدًا. ١٢٣٤٥ ﻻ
آب می‌رود و آسیاب می‌ماند. ۱۲۳
नदी के किनारे चक्की खड़ी है। १२३ क्षत्रिय
নদীর ধারে কল দাঁড়িয়ে আছে। ১২৩
ஆற்றங்கரையில் ஆலை நிற்கிறது. తెలుగు లిపి ಕನ್ನಡ ലിപി
โรงสีอยู่ริมแม่น้ำ น้ำไม่เคยถาม ๑๒๓
ເຮືອນຢູ່ແຄມນໍ້າ မြန်မာစာ ភាសាខ្មែរ བོད་ཡིག
水车立在河边，水从不问是谁建的。一二三四五，上山打老虎！繁體中文測試
川のそばに水車がある。水は誰が作ったかを問わない。カタカナ、ﾊﾝｶｸ、ー々〆
강가에 물레방아가 서 있다. 물은 누가 지었는지 묻지 않는다. 한글
წისქვილი მდინარესთან დგას. Ջրաղացը կանգնած է գետի մոտ։ ᎠᏂᏣᎳᎩ ꭰꮒ
አማርኛ ፊደል ᚠᚢᚦᚨᚱᚲ 𐍈𐌰𐌿 𝔐𝔦𝔩𝔩 𝟙𝟚𝟛 ⅧⅨ ²³¹ ½¾ ①②
ǅungla ǈubav ʰpʰa ªº ﬁnal ﬀ Å Å Å ﷺ ſ K Ω
e\u0301 a\u0308\u0323 o\u0323\u0308 \u0041\u030a \u1112\u1161\u11ab q\u0307\u0323 \u0958 \u2126
emoji 😀😃 👍🏽 👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪🇫🇷 ❤️ ☃︎ ✅ 🦙.cpp
₤ € $100 ¥5,000.00 50% #tag @user a+b=c x² ≠ ∞ → ⇒ ∀∃ √2 ± ≤≥ ~`^_|\\
1 12 123 1234 12345 123456 1234567 3.14159 1e-9 0xFF 1,234,567.89 192.168.0.1 2026-11-15T06:00:00Z
ABC ABc AbC abC aBC ABCdef XMLHttpRequest getURLForID iPhone7s McDonald's O'NEILL'S camelCase snake_case kebab-case SCREAMING_CASE
!!! ?! ... -- --- ... () [] {} <> /* */ // ## "quotes" 'single' `code` <tag attr="x"/> </tag> &amp; a/b/c c:\\dir\\file
https://example.org/path?query=value&other=1#frag mailto:someone@example.org user@host:~/src$ ls -la | grep -v '^d'
""".strip().split("\n")
SENTENCES = [s.encode().decode("unicode_escape").encode("latin-1").decode() if "\\u0" in s else s for s in SENTENCES]

CODE = [
    "int main(int argc, char** argv) {\n  for (int i = 0; i < 10; ++i) printf(\"%d\\n\", i);\n\treturn 0;\n}\n",
    "def f(x):\n    if x is None:\n        return [i**2 for i in range(10)]\n\n    return {'a': 1, \"b\": 2}\n\n\n",
    "SELECT id, COUNT(*) FROM t WHERE name LIKE '%x%' GROUP BY id;\r\n-- done\r\n",
    "<html>\n\t<body class=\"x\">\n\t\t<p>Hi &amp; bye</p>\n\t</body>\n</html>\n",
    '{"key": [1, 2.5, null, true], "nested": {"a": "\\u00e9"}}',
    "#!/bin/bash\nset -euo pipefail\nfor f in *.txt; do echo \"$f\"; done   \n",
]

BLANKS = [
    "", " ", "  ", "   ", "\t", "\n", "\n\n", "\n\n\n", "\r\n", "\r\n\r\n", "\t\n", " \n", "\n ", " \n \n", "  a", "a  ", "a   b",
    " a b ", "a \n b", "a\n\n  b", "\n a", "a\r\rb", "x \t y", "\u00a0", "a\u00a0b", "\u3000全角\u3000", "a\u2003\u2003b", "\u2028x\u2029",
    "\u0085", "\u180e", "a\u180eb", "\u200b", "\ufeffbom", "\x00", "a\x00b", "\x01\x02\x7f", "\v\f", " \v \f x",
]

# One or two of every kind of character that some rule tells apart.
KINDS = list("aBszD1290 \n\t\r.,'!-_/(\"$+<~`") + [
    "é", "É", "ß", "ж", "Ж", "語", "的", "の", "カ", "한", "ا", "ि", "\u0301", "\u0308", "ǅ", "ʰ", "ª", "²", "½", "Ⅷ", "٣", "€", "→",
    "😀", "\u200d", "\ufe0f", "\u00a0", "\u3000", "\u2028", "\u0085", "\u180e", "\u200b", "。", "！", "“", "’", "\ufffd", "ſ", "K", "Å", "\x00",
    "ࠀ", "ﬁ", "ｱ", "\u2581",
]


def random_text(rng, n):
    return "".join(rng.choice(KINDS) for _ in range(n))


def random_broken(rng, n):
    """Text with bytes knocked out of it, and bytes of no text at all."""
    data = bytearray(random_text(rng, n).encode())
    for _ in range(max(1, n // 6)):
        at = rng.randrange(len(data))
        change = rng.randrange(3)
        if change == 0:
            del data[at]
        elif change == 1:
            data[at] = rng.randrange(256)
        else:
            data[at:at] = rng.randbytes(rng.randrange(1, 4))
        if not data:
            data = bytearray(b"\xff")
    return bytes(data)


def texts(seed=20261115):
    """All of it, as bytes."""
    rng = random.Random(seed)
    out = [s.encode() for s in SENTENCES + CODE + BLANKS]
    out += [(" " + s.swapcase()).encode() for s in SENTENCES[:8]]
    out += [random_text(rng, rng.randrange(2, 40)).encode() for _ in range(60)]
    out += [b"\xff", b"a\xffb", b"\xc3", b"\xc3\x28", b"\xe2\x82", b"x\xe2\x82 y", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xc0\x80", b"1\x801 \x80a"]
    out += [random_broken(rng, rng.randrange(2, 30)) for _ in range(30)]
    out += [rng.randbytes(rng.randrange(1, 40)) for _ in range(20)]
    return out
