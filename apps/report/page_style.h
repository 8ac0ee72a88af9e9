// The style sheet of a report.
#ifndef RINGTAIL_APPS_REPORT_PAGE_STYLE_H_
#define RINGTAIL_APPS_REPORT_PAGE_STYLE_H_

namespace ringtail {

// Colours of series: Okabe and Ito 2008, "Color universal design", which people with any kind of
// colour vision can tell apart; in dark pages lighter ones. The bar is viridis (apps/grad_cam/overlay.h).
inline constexpr char kPageStyle[] = R"(
:root{color-scheme:light dark;--back:#fff;--text:#1b1b1b;--soft:#595959;--line:#d5d5d5;--heat:0,114,178;
--c0:#0072b2;--c1:#b34700;--c2:#007a5a;--c3:#a3477f;--c4:#7a6000;--c5:#333}
@media (prefers-color-scheme:dark){:root{--back:#16181b;--text:#e8e8e8;--soft:#a8a8a8;--line:#3c4046;--heat:86,180,233;
--c0:#56b4e9;--c1:#f0a050;--c2:#3cc89c;--c3:#e09ac4;--c4:#f0e442;--c5:#ddd}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1rem;max-width:75rem;background:var(--back);color:var(--text);font:1rem/1.5 system-ui,sans-serif}
h1,h2,h3,p,dd,li,figcaption,summary,caption{overflow-wrap:anywhere}
h1{font-size:1.6rem;margin:.5rem 0}h2{font-size:1.25rem;margin:2rem 0 .5rem}h3{font-size:1.05rem;margin:1.5rem 0 .3rem}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(22rem,100%),1fr));gap:1rem}
figure{margin:0}.chart>svg{width:100%;height:auto}.legend svg{vertical-align:middle}.chart text{font-size:11px;fill:var(--soft)}
figcaption{color:var(--soft);font-size:.9rem}
.grid{stroke:var(--line);stroke-width:1;fill:none}.diagonal{stroke:var(--soft);stroke-dasharray:2 4;fill:none}
.line{fill:none;stroke-width:2}
.c0{stroke:var(--c0)}.c1{stroke:var(--c1)}.c2{stroke:var(--c2)}.c3{stroke:var(--c3)}.c4{stroke:var(--c4)}.c5{stroke:var(--c5)}
.line.c1{stroke-dasharray:7 3}.line.c2{stroke-dasharray:2 2}.line.c3{stroke-dasharray:9 3 2 3}.line.c4{stroke-dasharray:12 4}
.line.c5{stroke-dasharray:4 4}
circle.c0{fill:var(--c0)}circle.c1{fill:var(--c1)}circle.c2{fill:var(--c2)}circle.c3{fill:var(--c3)}circle.c4{fill:var(--c4)}
circle.c5{fill:var(--c5)}
.legend{list-style:none;margin:0;padding:0;display:flex;flex-wrap:wrap;gap:0 1rem}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}caption{text-align:left;color:var(--soft);padding:.3rem 0}
caption span{display:inline-block;position:sticky;left:0;max-width:calc(100vw - 2rem)}
th,td{padding:.2rem .6rem;border-bottom:1px solid var(--line);text-align:right}
tbody th,tr :first-child{text-align:left}th{font-weight:600}
.name{display:inline-block;width:max-content;max-width:11rem;overflow-wrap:anywhere;vertical-align:bottom}
td.heat{background:rgba(var(--heat),var(--a));text-align:center}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem;margin:0}dt{color:var(--soft)}dd{margin:0}
@media (max-width:30rem){dl{grid-template-columns:1fr}dt{margin-top:.4rem}}
.gallery{display:grid;grid-template-columns:repeat(auto-fill,minmax(8.5rem,1fr));gap:.8rem;padding:0;margin:0;list-style:none}
.gallery img{width:128px;height:128px;max-width:100%;display:block;border-radius:4px}
.pairs{grid-template-columns:repeat(auto-fill,minmax(min(16.25rem,100%),1fr))}.images{display:flex;gap:4px}.images img{min-width:0}
.scale{white-space:nowrap}.bar{display:inline-block;width:6rem;height:.8em;border-radius:4px;vertical-align:-.1em;
background:linear-gradient(90deg,#440154,#3b528b,#21918c,#5ec962,#fde725)}
.gallery figcaption{font-size:.8rem;line-height:1.3;margin-top:.25rem}
pre{overflow-x:auto;padding:.8rem;border:1px solid var(--line);border-radius:4px;font-size:.85rem}
:focus-visible{outline:2px solid var(--c0);outline-offset:2px}
)";

}  // namespace ringtail

#endif  // RINGTAIL_APPS_REPORT_PAGE_STYLE_H_
