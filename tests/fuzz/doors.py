"""Every door, in one table."""

from tests.fuzz.door import Door
from tests.fuzz.file_doors import FILE_DOORS
from tests.fuzz.run_doors import RUN_DOORS
from tests.fuzz.word_doors import WORD_DOORS
from tests.fuzz.work_doors import WORK_DOORS

DOORS: dict[str, Door] = {**FILE_DOORS, **RUN_DOORS, **WORD_DOORS, **WORK_DOORS}
