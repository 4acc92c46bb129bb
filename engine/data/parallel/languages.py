"""Names by which files and columns say which language they hold: ISO 639-1 and 639-3 codes, and English names."""

CODES = """
af ar bg bn ca cs cy da de el en es et eu fa fi fr ga gl he hi hr hu hy id is it ja ka kk ko la lt lv mk ms mt nb ne nl
nn no pl pt ro ru sk sl sq sr sv sw ta te th tr uk ur uz vi zh
ara bul cat ces cmn cym dan deu ell eng epo est eus fas fin fra gle heb hin hrv hun ind isl ita jpn kor lat lit mkd nld
nob pol por ron rus slk slv spa srp swe tur ukr vie zho
"""
NAMES = """
arabic bulgarian catalan chinese croatian czech danish dutch english estonian finnish french german greek hebrew hindi
hungarian italian japanese korean latin norwegian persian polish portuguese romanian russian slovak slovene spanish
swedish turkish ukrainian vietnamese welsh
"""
LANGUAGES = frozenset((CODES + NAMES).split())
