"""Generated texts of many scripts: letters, marks, joiners, surrogates, unassigned code points."""

from __future__ import annotations

from hypothesis import strategies as st

SAMPLES = (
    "Rock'n'Roll_7 ÉéßﬁİſⅧ½²",  # Latin, ligatures, numbers
    "हिन्दी दिन दान क़ड़ ज्ञ",  # Devanagari
    "বাংলা কো তমিழ தமிழ் ഭാഷ",  # Bengali, Tamil, Malayalam
    "ภาษาไทยกำ ພາສາລາວ ខ្មែរ မြန်မာဘာသာက္က",  # Thai, Lao, Khmer, Burmese
    "东京 東京都 漢字かなカナー々ｶﾞ〆",  # Han, Hiragana, Katakana
    "한국어 뉴스 각",  # Hangul, also conjoining
    "العَرَبِيَّة نمی\u200cخواهم שָׁלוֹם",  # Arabic, Persian, Hebrew
    "Ελληνικά ᾳᾴ\u0345 Ωſ",  # Greek
    "\u0301\u0323\u0327\u0345\u3099\u094d\u09be\u17d2\u1039\u102c\u20e3",  # marks
    "\u00ad\u200b\u200c\u200d\ufe0f\u034f\ufeff\u2060\U000e0101",  # joiners, ignored
    " \t\x1c\xa0\u3000´.,!’·・。",  # separators
    "\ud800\udc00\u0378\U0001fae8\U0001e030\U00016d63\U00010d50\ue000\uffff",  # and worse
)
characters = st.sampled_from(sorted(set("".join(SAMPLES)))) | st.characters()
any_script = st.text(characters, max_size=14)
