"""Nine everyday phrases, which a model is to know by heart.

They are idioms: no rule of the grammar yields most of them, so a model can only memorise them. As single lines
among thousands they are learned late or never, so the training split repeats each `PHRASE_REPEATS` times an
epoch. What a model answers to them says nothing about translation, and no held-out split has them.
"""

PHRASE_REPEATS = 20

EVERYDAY = (
    ("Good morning.", "Guten Morgen."),
    ("How are you?", "Wie geht es dir?"),
    ("My name is Anna.", "Ich heiße Anna."),
    ("Thank you very much.", "Vielen Dank."),
    ("I do not understand.", "Ich verstehe nicht."),
    ("Where is the station?", "Wo ist der Bahnhof?"),
    ("What time is it?", "Wie spät ist es?"),
    ("I love you.", "Ich liebe dich."),
    ("See you tomorrow.", "Bis morgen."),
)
