"""The frame of the report: its style, light or dark, for a laptop and for a phone."""

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{title}}</title>
<style>
:root { color-scheme: light dark; --ink: #1d2330; --soft: #667085; --paper: #f6f7f9; --card: #ffffff; --rule: #e3e6ec;
  --bad: #c0362c; --left: #d63c32; --right: #325ad6; --c0: #325ad6; --c1: #d63c32; --c2: #1f9d6b; --c3: #b7791f;
  --c4: #8a4fd3; --c5: #0f8ea3; --c6: #6b7280; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7eaf0; --soft: #9aa3b2; --paper: #14171d; --card: #1c2028;
  --rule: #303643; --bad: #ff7b6e; --left: #ff7468; --right: #7fa0ff; --c0: #7fa0ff; --c1: #ff7468; --c2: #4fd39b;
  --c3: #e5b04f; --c4: #b98cff; --c5: #4cc9dd; --c6: #a3acba; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.2rem 1rem 3rem; max-width: 76rem; color: var(--ink); background: var(--paper);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
h1 { margin: 0 0 .2rem; font-size: 1.6rem; overflow-wrap: anywhere; }
h2 { margin: 0 0 .6rem; font-size: 1.05rem; }
p { margin: .2rem 0 .6rem; color: var(--soft); }
.prompt { font-size: 1.15rem; color: var(--ink); overflow-wrap: anywhere; }
.chips { display: flex; flex-wrap: wrap; gap: .4rem; margin: .6rem 0 1rem; padding: 0; list-style: none; }
.chips li { padding: .15rem .6rem; border: 1px solid var(--rule); border-radius: 1rem; background: var(--card);
  font-size: .85rem; overflow-wrap: anywhere; }
.chips b { color: var(--soft); font-weight: 500; }
main { display: grid; gap: 1rem; grid-template-columns: minmax(0, 1fr); align-items: start; }
header { grid-column: 1 / -1; }
section { padding: 1rem; border: 1px solid var(--rule); border-radius: .7rem; background: var(--card); min-width: 0; }
.stack { display: grid; gap: 1rem; grid-template-columns: minmax(0, 1fr); min-width: 0; }
.films { display: grid; gap: 1rem; grid-template-columns: minmax(0, 1fr); align-items: start; }
video, img { display: block; width: 100%; height: auto; border-radius: .4rem; background: #eef0f4; }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; }
th, td { padding: .22rem .6rem .22rem 0; text-align: left; border-bottom: 1px solid var(--rule); }
thead th { font-weight: 600; white-space: normal; overflow-wrap: anywhere; }
small { color: var(--soft); font-weight: 400; }
tr.group th { padding-top: .7rem; color: var(--soft); font-size: .8rem; font-weight: 600; letter-spacing: .04em;
  text-transform: uppercase; }
td.worse { color: var(--bad); font-weight: 600; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: 0; }
dt { font-weight: 600; }
dd { margin: 0; color: var(--soft); }
figure { margin: 0 0 .8rem; min-width: 0; }
figcaption { font-size: .9rem; overflow-wrap: anywhere; }
.charts { display: grid; gap: .4rem 1.2rem; grid-template-columns: minmax(0, 1fr); }
svg { display: block; width: 100%; height: auto; }
svg .axis { stroke: var(--soft); stroke-width: 1; }
svg .grid { stroke: var(--rule); stroke-width: 1; }
svg .tick { fill: var(--soft); font-size: 11.5px; }
svg .curve { fill: none; stroke-width: 2; stroke-linejoin: round; }
svg .pale { fill: var(--soft); opacity: .55; }
details > summary { cursor: pointer; }
summary h2 { display: inline; }
details[open] > summary { margin-bottom: .6rem; }
@media (min-width: 900px) {
  main { grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); }
  .wide { grid-column: 1 / -1; }
  td { white-space: nowrap; }
  .films { grid-template-columns: minmax(0, 4fr) minmax(0, 5fr); }
  .charts { grid-template-columns: repeat(2, minmax(0, 1fr)); }
}
</style>
</head>
<body>
<main>
{{body}}
</main>
</body>
</html>
"""
