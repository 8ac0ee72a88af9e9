#!/usr/bin/python3
"""Opens the report of a run in headless Chromium, cut off from every host, and looks for what is wrong with it.

A small run is trained on drawn images in folders whose names are hostile: markup, quotes, umlauts, from right to left,
very long, with controls. Its report is opened at 400 and 1400 pixels, in light and dark, with all details open. At each
  no request leaves the page, no message is in the console, no dialog opens, no script, link or frame is in the page
  nothing is wider than the window, unless it scrolls by itself; no text of a chart is outside of it or over another;
  no name is broken into letters; legends have their size
  every image is there; every image and chart has a name for screen readers
  the contrast of every text with what is behind it is at least 4.5 (WCAG 2.1, 1.4.3)
and every class name stands in the text as it was written, but for controls. A page with each of these faults is opened
first, and all must be found.

  apt-get install chromium fonts-dejavu-core
  tests/compare/report_in_chromium.py [--program build/release/bin/dogs_vs_cats] [--report FILE] [--screenshots DIR]
"""
import argparse
import itertools
import os
import shutil
import subprocess
import sys
import tempfile

from browser import Browser

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WIDTHS, SCHEMES = (400, 1400), ('light', 'dark')
# Folders that are classes. The names of the images in them begin with the same.
CLASSES = ['<img src=x onerror=alert(1)>', '"quoted" & \'both\' --> ]]>', 'Hündchen, süß', 'חתול שחור', 'قطة',
           'W' * 120 + 'ithout_a_blank', '\u202egpj.exe\u202c', '猫', 'tab\tand\nnewline', "javascript:alert('2')"]
IMAGES = 12  # of each class

LOOK = """(() => {
  document.querySelectorAll('details').forEach(d => { d.open = true; });
  const faults = [], wide = document.documentElement;
  const say = (what, of) => faults.push(what + ': ' + of);
  const path = e => { const t = e.textContent.trim().slice(0, 50);
    return e.tagName.toLowerCase() + (e.className.baseVal ?? e.className ? '.' + (e.className.baseVal ?? e.className) : '') + ' ' + t; };
  if (wide.scrollWidth > wide.clientWidth) say('wider than the window', wide.scrollWidth + ' of ' + wide.clientWidth);
  for (const e of document.querySelectorAll('script,link,iframe,object,embed,form,base,meta[http-equiv=refresh]')) say('does not belong here', path(e));
  for (const e of document.querySelectorAll('*')) for (const a of e.attributes)
    if (/^on/i.test(a.name) || /^\\s*javascript:/i.test(a.value) && a.name !== 'alt') say('acts', e.tagName + ' ' + a.name);
  const scrolls = e => { for (let p = e; p; p = p.parentElement) if (['auto', 'scroll'].includes(getComputedStyle(p).overflowX)) return true; return false; };
  for (const e of document.body.querySelectorAll('*')) {
    const box = e.getBoundingClientRect();
    if (box.width > 0 && (box.right > wide.clientWidth + 1 || box.left < -1) && !scrolls(e)) say('outside of the window', path(e));
  }
  for (const e of document.querySelectorAll('td,th,dd,dt,li,p,figcaption,h1,h2,h3,caption,summary'))
    if (e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 && !scrolls(e)) say('wider than its box', path(e));
  for (const e of document.querySelectorAll('th,.name')) {  // a word of this length in a column of few letters
    const size = parseFloat(getComputedStyle(e).fontSize), box = e.getBoundingClientRect();
    if (e.textContent.trim().length > 9 && box.width < 4 * size && box.height > 4 * size) say('broken into letters', path(e));
  }
  for (const e of document.querySelectorAll('.legend svg')) if (e.getBoundingClientRect().width > 40) say('a legend out of size', path(e.parentElement));
  for (const e of document.images) {
    if (!e.src.startsWith('data:image/jpeg;base64,')) say('an image from elsewhere', e.src);
    if (!e.complete || e.naturalWidth === 0) say('an image that does not show', path(e));
    const shown = e.getBoundingClientRect();
    if (Math.abs(shown.width / shown.height - e.naturalWidth / e.naturalHeight) > 0.02) say('an image out of shape', shown.width + ' x ' + shown.height + ' ' + e.alt);
  }
  for (const svg of document.querySelectorAll('figure.chart > svg')) {
    const frame = svg.getBoundingClientRect(), boxes = [...svg.querySelectorAll('text')].map(t => [t, t.getBoundingClientRect()]);
    for (const [t, b] of boxes) if (b.left < frame.left - 1 || b.right > frame.right + 1 || b.top < frame.top - 1 || b.bottom > frame.bottom + 1) say('outside of its chart', path(t));
    for (const [t, b] of boxes) for (const [u, c] of boxes)
      if (t !== u && b.left < c.right - 1 && c.left < b.right - 1 && b.top < c.bottom - 3 && c.top < b.bottom - 3) say('over another text', path(t) + ' / ' + path(u));
  }
  const parse = c => { const n = c.match(/[\\d.]+/g).map(Number); return n.length === 3 ? [...n, 1] : n; };
  const over = (a, b) => [0, 1, 2].map(i => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
  const luminance = c => { const l = c.slice(0, 3).map(v => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * l[0] + 0.7152 * l[1] + 0.0722 * l[2]; };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let least = 21;
  while (texts.nextNode()) {
    const e = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || ['TITLE', 'DESC', 'STYLE'].includes(e.tagName.toUpperCase())) continue;
    const style = getComputedStyle(e), layers = [];
    for (let p = e; p; p = p.parentElement) layers.unshift(parse(getComputedStyle(p).backgroundColor));
    let back = [255, 255, 255, 1];
    for (const layer of layers) back = over(layer, back);
    const front = luminance(over(parse(e instanceof SVGElement ? style.fill : style.color), back)), behind = luminance(back);
    const contrast = (Math.max(front, behind) + 0.05) / (Math.min(front, behind) + 0.05);
    least = Math.min(least, contrast);
    if (contrast < 4.5) say('contrast ' + contrast.toFixed(2), path(e));
  }
  return {faults, least, text: document.body.innerText, images: document.images.length, height: wide.scrollHeight};
})()"""

# Has each of the faults once, in the order of EXPECTED.
FAULTY = """<!DOCTYPE html><html lang="en"><title>x</title><body>
<script>console.log('a message'); alert('a dialog')</script><p style="width:3000px">wide</p><a onclick="x()" href="#">acts</a>
<div style="width:300px"><p style="width:100px">{}</p></div><img src="https://example.org/a.png" width="10" height="90">
<figure class="chart"><svg viewBox="0 0 100 100" width="100" role="img"><text x="95" y="50">far out</text><text x="90" y="52">over</text></svg></figure>
<table><tr><th style="display:block;width:20px;overflow-wrap:anywhere">brokenintoletters</th></tr></table>
<ul class="legend"><li><svg viewBox="0 0 30 8" width="100" height="20"></svg> x</li></ul><p style="color:#aaa;background:#fff">pale</p></body></html>""".replace('{}', 'W' * 90)
EXPECTED = ['a request', 'the console', 'a dialog', 'wider than the window', 'does not belong here', 'acts',
            'outside of the window', 'wider than its box', 'broken into letters', 'a legend out of size', 'an image from elsewhere', 'an image that does not show',
            'outside of its chart', 'over another text', 'contrast', 'without a name']


def events_as_faults(events):
    for method, values in events:
        if method == 'Network.requestWillBeSent':
            url = values['request']['url']
            if values.get('type') != 'Document' and not url.startswith('data:'):
                yield f'a request: {url}'
        elif method == 'Runtime.consoleAPICalled':
            yield f'the console: {[argument.get("value") for argument in values["args"]]}'
        elif method == 'Log.entryAdded':
            yield f'the console: {values["entry"]["text"]}'
        elif method == 'Runtime.exceptionThrown':
            yield f'the console: {values["exceptionDetails"]["text"]}'
        elif method == 'Page.javascriptDialogOpening':
            yield f'a dialog: {values["message"]}'


def nameless(browser):
    """Images and charts as screen readers meet them."""
    for node in browser.call('Accessibility.getFullAXTree')['nodes']:
        role = node.get('role', {}).get('value')
        if not node['ignored'] and role in ('image', 'img', 'graphics-document', 'SvgRoot') and not node.get(
                'name', {}).get('value', '').strip():
            yield f'without a name: {role}'


def look(browser, path, width, scheme):
    browser.open(path, width, scheme)
    seen = browser.evaluate(LOOK)
    faults = list(events_as_faults(browser.events)) + seen['faults'] + list(nameless(browser))
    return faults, seen


def finds_all_faults(browser, folder):
    path = os.path.join(folder, 'faulty.html')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(FAULTY)
    faults, _ = look(browser, path, 400, 'light')
    missing = [fault for fault in EXPECTED if not any(found.startswith(fault) for found in faults)]
    for fault in missing:
        print(f'the page that has every fault: not found: {fault}; found: {faults}')
    return not missing


def run(program, *arguments):
    result = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if result.returncode:
        sys.exit(f'{program} {" ".join(arguments)}: exit code {result.returncode}\n{result.stderr}')


def hostile_run(program, folder):
    """A run's folder; its name is hostile, too."""
    drawn, data = os.path.join(folder, 'drawn'), os.path.join(folder, 'data')
    run(program, 'synthesize', '--out', drawn, '--images', str(IMAGES * len(CLASSES)))
    images = sorted(os.path.join(base, name) for base, _, names in os.walk(drawn) for name in names
                    if name.endswith('.jpg'))[:IMAGES * len(CLASSES)]
    for i, image in enumerate(images):
        name = CLASSES[i % len(CLASSES)]
        os.makedirs(os.path.join(data, name), exist_ok=True)
        shutil.copy(image, os.path.join(data, name, f'{name[:60]} {i}.jpg'))
    output = os.path.join(folder, "<b>run & 'co'")
    run(program, 'train', '--config', 'quickstart', '--data', data, '--output', output, '--set', 'train.epochs=2',
        '--set', 'train.batch=16', '--set', 'data.split.validation_fraction=0.4')
    return os.path.join(output, 'report.html')


def shown_as(name):
    """Controls are shown as bytes (core/text/printable.h)."""
    return ''.join(c if c not in '\u202e\u202c\t\n' else ''.join(f'\\x{byte:02X}' for byte in c.encode()) for c in name)


def check_report(browser, path, names, screenshots):
    bad = 0
    for width, scheme in itertools.product(WIDTHS, SCHEMES):
        faults, seen = look(browser, path, width, scheme)
        text = ' '.join(seen['text'].split())
        faults += [f'not in the text: {name}' for name in names if shown_as(name) not in text]
        print(f'{width} pixels, {scheme}: {len(faults)} faults, {seen["images"]} images, {seen["height"]} pixels high, '
              f'least contrast {seen["least"]:.2f}')
        for fault in dict.fromkeys(faults):
            print(f'  {fault}')
        bad += len(faults)
        if screenshots:
            os.makedirs(screenshots, exist_ok=True)
            browser.screenshot(os.path.join(screenshots, f'report-{width}-{scheme}.png'))
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', default=os.path.join(ROOT, 'build/release/bin/dogs_vs_cats'))
    parser.add_argument('--report', help='check this one instead of that of a small run')
    parser.add_argument('--screenshots', help='a folder for what was seen')
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Browser() as browser:
        if not finds_all_faults(browser, folder):
            sys.exit(1)
        path = flags.report or hostile_run(os.path.abspath(flags.program), folder)
        sys.exit(1 if check_report(browser, path, [] if flags.report else CLASSES, flags.screenshots) else 0)


if __name__ == '__main__':
    main()
