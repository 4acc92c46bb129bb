"""What surrounds a report's HTML: its head and its styles, for screens of any width and for paper."""

HEAD = """<!DOCTYPE html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="generator" content="tui-transformer">
<title>{title}</title>
<style>{style}</style>
</head>
<body><main>"""

STYLE = """
:root { --ink: #22262e; --faint: #5d6470; --line: #d9dce1; --paper: #fff; --soft: #f5f6f8; --blue: #0b5394; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 "Source Serif 4", "Noto Serif", Charter, "Songti SC", "Noto Serif CJK SC", Georgia, serif; }
main { max-width: 56rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1, h2, h3, th, figcaption, nav, .note, .title, summary, header p {
  font-family: system-ui, -apple-system, "Segoe UI", "Noto Sans", "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC",
  sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .3rem; }
header p { color: var(--faint); margin: 0 0 1.4rem; }
h2 { font-size: 1.3rem; margin: 2.6rem 0 .8rem; padding-bottom: .25rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 1.8rem 0 .5rem; }
.verdict { border-left: 4px solid var(--blue); background: #eef4fb; padding: .9rem 1.1rem; margin: 0 0 1.2rem; }
.verdict.alarm { border-color: #b3261e; background: #fdf0ef; }
nav ol { columns: 2; margin: 0 0 1rem; padding: .7rem 1rem .7rem 2.2rem; background: var(--soft); font-size: .88rem; }
a { color: var(--blue); text-decoration: none; }
a:hover { text-decoration: underline; }
code, pre { font: .84em/1.5 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", "Noto Sans Mono CJK SC",
  monospace; }
code { overflow-wrap: anywhere; }
pre { background: var(--soft); border: 1px solid var(--line); padding: .8rem 1rem; margin: .3rem 0 1.2rem;
  white-space: pre-wrap; overflow-wrap: anywhere; }
.title { font-size: .88rem; color: var(--faint); margin: 1rem 0 0; }
summary { font-size: .88rem; color: var(--blue); cursor: pointer; margin: .6rem 0; }
.table { overflow-x: auto; margin: .4rem 0 .3rem; }
:lang(zh) td, :lang(zh) th { word-break: keep-all; }
table { border-collapse: collapse; font-size: .84rem; line-height: 1.4; min-width: 60%;
  border-top: 1.5px solid var(--ink); border-bottom: 1.5px solid var(--ink); font-variant-numeric: tabular-nums; }
th { text-align: left; font-size: .78rem; border-bottom: 1px solid var(--ink); padding: .35rem .7rem .35rem 0;
  vertical-align: bottom; }
td { padding: .3rem .7rem .3rem 0; vertical-align: top; border-bottom: 1px solid #eceef1; }
tr:last-child td { border-bottom: 0; }
td:first-child { white-space: nowrap; }
td.w:first-child { white-space: normal; }
th.r, td.r { text-align: right; white-space: nowrap; }
td.b { font-weight: 650; }
td.w { min-width: 14rem; }
.note { font-size: .78rem; color: var(--faint); margin: .2rem 0 0; }
figure { margin: 1.4rem 0; }
figure svg { display: block; width: 100%; height: auto; }
figure.narrow svg { margin: 0 auto; }
figcaption { font-size: .84rem; color: var(--ink); margin-top: .5rem; }
.formula { margin: .7rem 0; overflow-x: auto; }
.formula p { margin: 0; }
.source { color: var(--faint); }
math[display="block"] { font-size: 1.08em; padding: .25rem 0; }
@media (max-width: 40rem) {
  body { font-size: 15px; }
  main { padding: 1.1rem .8rem 3rem; }
  nav ol { columns: 1; }
  figure.wide { overflow-x: auto; }
  figure.wide svg { min-width: 34rem; }
}
@media print {
  @page { size: A4; margin: 18mm 16mm; }
  body { font-size: 10.5pt; }
  main { max-width: none; padding: 0; }
  nav { display: none; }
  h2, h3 { break-after: avoid; }
  figure:not(.tab), .formula, tr { break-inside: avoid; }
  figcaption { break-after: avoid; }
  .table { overflow: visible; }
  details > * { display: block; }
  .verdict { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
""".strip()
