"""Writes small workbooks of Excel, without a library."""

from __future__ import annotations

import datetime
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
# The formats of numbers, by the number of their style.
FORMATS = ["General", "yyyy\\-mm\\-dd", "hh:mm:ss", "m/d/yy h:mm", "[h]:mm", '"day" 0']


class Error(str):
    """An error in a cell."""


class Styled:
    """A number with a format."""

    def __init__(self, number: float, style: int) -> None:
        self.number, self.style = number, style


def days(moment: datetime.datetime) -> float:
    """The number that stands for a moment."""
    return (moment - datetime.datetime(1899, 12, 30)) / datetime.timedelta(days=1)


def place(row: int, column: int) -> str:
    """The name of a cell, both from 0."""
    name, left = "", column + 1
    while left:
        left, letter = divmod(left - 1, 26)
        name = chr(65 + letter) + name
    return f"{name}{row + 1}"


def cell(at: str, value: object, shared: list[str]) -> str:
    """A cell as XML; none for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return f'<c r="{at}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, Error):
        return f'<c r="{at}" t="e"><f>1/0</f><v>{value}</v></c>'
    if isinstance(value, str):
        if len(value) % 2:
            return f'<c r="{at}" t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>'
        shared.append(value)
        return f'<c r="{at}" t="s"><v>{len(shared) - 1}</v></c>'
    if isinstance(value, datetime.datetime):
        value = Styled(days(value), 3)
    elif isinstance(value, datetime.date):
        value = Styled(days(datetime.datetime.combine(value, datetime.time())), 1)
    elif isinstance(value, datetime.time):
        value = Styled(days(datetime.datetime.combine(datetime.date(1899, 12, 30), value)), 2)
    if isinstance(value, Styled):
        return f'<c r="{at}" s="{value.style}"><v>{value.number!r}</v></c>'
    return f'<c r="{at}"><v>{value!r}</v></c>'


def write(path: Path, sheets: dict[str, object], compression: int = zipfile.ZIP_DEFLATED) -> None:
    """Writes a workbook. A sheet is a list of rows, or cells by row and column from 0."""
    shared: list[str] = []
    parts: dict[str, str] = {}
    names = relations = ""
    for number, (name, cells) in enumerate(sheets.items(), 1):
        if isinstance(cells, list):
            cells = {(r, c): value for r, row in enumerate(cells) for c, value in enumerate(row)}
        rows: dict[int, str] = {}
        for (row, column), value in sorted(cells.items()):
            rows[row] = rows.get(row, "") + cell(place(row, column), value, shared)
        body = "".join(f'<row r="{row + 1}">{text}</row>' for row, text in rows.items())
        parts[f"xl/worksheets/sheet{number}.xml"] = f'<worksheet xmlns="{MAIN}"><sheetData>{body}</sheetData></worksheet>'
        names += f'<sheet name="{escape(name)}" sheetId="{number}" r:id="rId{number}"/>'
        relations += f'<Relationship Id="rId{number}" Type="{RELATIONS}/worksheet" Target="worksheets/sheet{number}.xml"/>'
    for part, kind in (("styles", "styles"), ("sharedStrings", "sharedStrings")):
        relations += f'<Relationship Id="{part}" Type="{RELATIONS}/{kind}" Target="{part}.xml"/>'
    formats = "".join(f'<numFmt numFmtId="{164 + at}" formatCode="{escape(code, {chr(34): "&quot;"})}"/>' for at, code in enumerate(FORMATS))
    styles = "".join(f'<xf numFmtId="{164 + at if at else 0}"/>' for at in range(len(FORMATS)))
    texts = "".join(f"<si><r><t xml:space=\"preserve\">{escape(text[:1])}</t></r><r><t xml:space=\"preserve\">{escape(text[1:])}</t></r></si>" for text in shared)
    parts |= {
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}"><Relationship Id="r" Type="{RELATIONS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{RELATIONS}"><sheets>{names}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}">{relations}</Relationships>',
        "xl/styles.xml": f'<styleSheet xmlns="{MAIN}"><numFmts>{formats}</numFmts><cellXfs>{styles}</cellXfs></styleSheet>',
        "xl/sharedStrings.xml": f'<sst xmlns="{MAIN}">{texts}</sst>',
        "[Content_Types].xml": CONTENT_TYPES.format("".join(
            f'<Override PartName="/{part}" ContentType="{SHEET}"/>' for part in parts if part.startswith("xl/worksheets")
        )),
    }
    with zipfile.ZipFile(path, "w", compression) as archive:
        for part, text in parts.items():
            archive.writestr(part, '<?xml version="1.0" encoding="UTF-8"?>' + text)


SPREADSHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml"
SHEET = f"{SPREADSHEET}.worksheet+xml"
CONTENT_TYPES = f"""<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels"
 ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override
 PartName="/xl/workbook.xml" ContentType="{SPREADSHEET}.sheet.main+xml"/><Override PartName="/xl/styles.xml"
 ContentType="{SPREADSHEET}.styles+xml"/><Override PartName="/xl/sharedStrings.xml"
 ContentType="{SPREADSHEET}.sharedStrings+xml"/>{{}}</Types>"""
