"""Texts of six scripts: words drawn by Zipf from a list of common ones, 40 to a text.

Thai and Chinese are written without spaces, with a sign between sentences of eight words. Hindi has
nuktas and conjuncts, Arabic is half vowelled, Latin is French, German and Vietnamese.
"""

from __future__ import annotations

import numpy as np

WORDS = {
    "ASCII": "the of and Minister said that rock concert in London on Monday after a new album for "
    "people with from government year News were which Europe has been about two more its first",
    "Latin": "le déjà été où naïve Genève française élève Müller für über Straße größte Städte "
    "tiếng Việt người không được năm một những của Hà Nội ministère événement après Île États",
    "Hindi": "और के में है की यह नहीं हिन्दी समाचार दिल्ली प्रधानमंत्री सरकार लड़का ज़रूर पढ़ना विद्यालय "
    "राष्ट्रीय संगीत कार्यक्रम मुंबई किया गया साथ विश्व शक्ति स्थान बड़े फ़िल्म उन्होंने क्रिकेट मैच",
    "Thai": "และ ที่ ใน ของ ประเทศไทย กรุงเทพ รัฐบาล นายกรัฐมนตรี ข่าว วันนี้ ดนตรี คอนเสิร์ต กำลัง "
    "ประชาชน ได้ ให้ เป็น มี ไม่ การ ความ ผู้ เมื่อ น้ำท่วม เศรษฐกิจ โรงเรียน ภาษา หนังสือ",
    "Chinese": "的 东京 北京 新闻 今天 政府 总理 音乐会 摇滚 发布 专辑 人民 经济 发展 国家 我们 "
    "世界 大学 公司 市场 技术 电影 比赛 上海 台灣 東京 發展 經濟 記者 報導",
    "Arabic": "في من على إلى الحكومة العَرَبِيَّة رئيس الوزراء اليوم أخبار مدينة القاهرة موسيقى حفلة "
    "كِتَابٌ مُحَمَّد السَّلَام عام جديد بعد قبل كان الذي هذه شركة دولة العالم اقتصاد لبنان",
}
ENDS = {"Thai": " ", "Chinese": "。"}


def script_texts(script: str, size: int, *, seed: int = 2026) -> list[str]:
    """Texts of this script, of about `size` bytes together."""
    words = WORDS[script].split()
    chance = np.random.default_rng([seed, len(words)])
    weight = 1 / np.arange(1, len(words) + 1)
    drawn = chance.choice(len(words), (64, 40), p=weight / weight.sum()).tolist()
    end = ENDS.get(script)
    some = [_text([words[number] for number in numbers], end) for numbers in drawn]
    length = sum(len(each.encode()) for each in some)
    return some * max(1, size // length)


def _text(words: list[str], end: str | None) -> str:
    if end is None:
        return " ".join(words) + "."
    return end.join("".join(words[at : at + 8]) for at in range(0, len(words), 8))
