// Run in the page: what axe-core would look for first. Returns what is wrong.
() => {
  const wrong = [];
  const named = (e) => (e.getAttribute('aria-label') || e.textContent || '').trim()
    || [...(e.labels ?? [])].map((l) => l.textContent.trim()).join('');
  for (const e of document.querySelectorAll('button, input, select, a, [role=grid], [role=listbox], [role=tablist]')) {
    const by = e.getAttribute('aria-labelledby');
    if (!named(e) && !(by && document.getElementById(by))) wrong.push(`no name: ${e.outerHTML.slice(0, 80)}`);
  }
  const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
  if (new Set(ids).size !== ids.length) wrong.push('an id twice');
  for (const name of ['aria-labelledby', 'aria-describedby', 'aria-controls', 'aria-activedescendant', 'for']) {
    for (const e of document.querySelectorAll(`[${name}]`)) {
      for (const id of e.getAttribute(name).split(' ')) if (!document.getElementById(id)) wrong.push(`${name}=${id} leads nowhere`);
    }
  }
  for (const e of document.querySelectorAll('[tabindex]')) if (e.tabIndex > 0) wrong.push('a positive tabindex');
  if (document.querySelectorAll('h1').length !== 1 || document.querySelectorAll('main').length !== 1) wrong.push('one h1, one main');
  for (const row of document.querySelectorAll('#grid tr')) {
    if (!row.querySelector('th[scope]')) wrong.push('a row without a header');
  }
  const rgb = (text) => { const m = text.match(/[\d.]+/g).map(Number); return m.length > 3 && m[3] === 0 ? null : m.slice(0, 3); };
  const light = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const seen = new Set();
  let looked = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const e = node.parentElement;
    if (!node.textContent.trim() || e.closest('script, noscript, .hidden, .skip') || !e.getClientRects().length) continue;
    let ground = null;
    for (let up = e; up && !ground; up = up.parentElement) ground = rgb(getComputedStyle(up).backgroundColor);
    const ink = rgb(getComputedStyle(e).color);
    const [high, low] = [light(ink), light(ground ?? [255, 255, 255])].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (low + 0.05);
    looked += 1;
    if (ratio < 4.5) seen.add(`${ratio.toFixed(2)}: ${e.tagName}.${e.className} ${ink} on ${ground}`);
  }
  if (looked < 50) wrong.push(`only ${looked} texts looked at`);
  return [...wrong, ...seen];
}
