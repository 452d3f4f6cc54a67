// What the page does beyond standing there: it reads figures off the lines under
// the pointer, and fits axes to the contenders that are shown. The lines' paths
// hold steps and values; nothing else is needed.
(() => {
  'use strict';
  const svg = 'http://www.w3.org/2000/svg';
  const nbsp = '\u00a0';

  // Texts of figures, as in format.go.
  const upward = v => v * (1 + 1e-12);
  const trimmed = (v, decimals) => {
    let s = upward(v).toFixed(decimals);
    if (s.includes('.')) s = s.replace(/\.?0+$/, '');
    return s === '-0' ? '0' : s;
  };
  const grouped = v => {
    const s = Math.abs(upward(v)).toFixed(0).replace(/\B(?=(\d{3})+$)/g, ',');
    return v < 0 && s !== '0' ? '-' + s : s;
  };
  const three = v => trimmed(v, Math.abs(v) < 9.995 ? 2 : Math.abs(v) < 99.95 ? 1 : 0);
  const number = v => {
    const a = Math.abs(v);
    if (Number.isNaN(v)) return '–';
    if (a < 9.995) return trimmed(v, 2);
    if (a < 99.95) return trimmed(v, 1);
    if (a < 9999.5) return grouped(v);
    if (a < 999950) return trimmed(v / 1e3, 1) + nbsp + 'k';
    if (a < 999.95e6) return trimmed(v / 1e6, 1) + nbsp + 'M';
    return trimmed(v / 1e9, 1) + nbsp + 'G';
  };
  const pair = (v, per, large, small) => {
    const n = Math.floor(v + 0.5), rest = n % per;
    return Math.floor(n / per) + nbsp + large + (rest ? nbsp + rest + nbsp + small : '');
  };
  const seconds = v => {
    const a = Math.abs(v);
    if (Number.isNaN(v)) return '–';
    if (a === 0) return '0' + nbsp + 's';
    if (a < 0.9995e-3) return three(v * 1e6) + nbsp + 'µs';
    if (a < 0.9995) return three(v * 1e3) + nbsp + 'ms';
    if (a < 999.5) return three(v) + nbsp + 's';
    if (a < 7200) return pair(v, 60, 'min', 's');
    return pair(v / 60, 60, 'h', 'min');
  };
  const percent = v => {
    const p = v * 100;
    if (Number.isNaN(v)) return '–';
    if (v < 1 && p > 99.985) return '>' + nbsp + '99.98' + nbsp + '%';
    if (v > 0 && p < 0.005) return '<' + nbsp + '0.01' + nbsp + '%';
    return trimmed(p, p >= 99 || p < 1 ? 2 : 1) + nbsp + '%';
  };
  const texts = {number, count: number, time: v => seconds(10 ** v), share: percent};

  // Axes, as in axis.go.
  const round = k => {
    const e = Math.floor(k / 3);
    return +([1, 2, 5][k - 3 * e] + 'e' + e);
  };
  const atLeast = v => {
    let k = -36;
    while (k < 45 && round(k) < v * (1 - 1e-9)) k++;
    return k;
  };
  const linear = (high, counted, text) => {
    if (!(high > 0)) high = 1;
    let step = round(atLeast(high / 5));
    if (counted) step = Math.max(step, 1);
    const n = Math.ceil(high / step - 1e-9);
    const ticks = [];
    for (let i = 0; i <= n; i++) ticks.push({at: 1 - i / n, text: text(i * step)});
    return {lo: 0, hi: n * step, ticks};
  };
  const logarithmic = (low, high, text) => {
    let from = atLeast(10 ** low), to = atLeast(10 ** high);
    if (round(from) > 10 ** low * (1 + 1e-9)) from--;
    if (from >= to) to = from + 1;
    const lo = Math.log10(round(from)), hi = Math.log10(round(to)), ticks = [];
    for (let k = from; k <= to; k++) {
      if (to - from > 6 && k % 3 !== 0) continue;
      ticks.push({at: (hi - Math.log10(round(k))) / (hi - lo), text: text(round(k))});
    }
    return {lo, hi, ticks};
  };
  const place = share => trimmed(share * 100, 3) + '%';

  const element = (name, attributes, parent) => {
    const e = document.createElementNS(svg, name);
    for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
    parent.append(e);
    return e;
  };

  const boxes = [...document.querySelectorAll('.legend input')];
  const shown = () => boxes.map(b => b.checked);

  // pieces of a path between gaps: the steps, and the values there.
  const parse = d => d.split('M').slice(1).map(piece => {
    const n = piece.replace('h0', '').split(' ').map(Number);
    return {x: n.filter((_, i) => i % 2 === 0), y: n.filter((_, i) => i % 2 === 1)};
  });
  const valueAt = (pieces, x) => {
    for (const p of pieces) {
      if (x < p.x[0] || x > p.x.at(-1)) continue;
      let low = 0, high = p.x.length - 1;
      while (high - low > 1) {
        const mid = (low + high) >> 1;
        if (p.x[mid] <= x) low = mid; else high = mid;
      }
      if (x === p.x[high] || high === low) return p.y[high];
      return p.y[low] + (p.y[high] - p.y[low]) * (x - p.x[low]) / (p.x[high] - p.x[low]);
    }
    return NaN;
  };

  const charts = [...document.querySelectorAll('.chart')].map(figure => {
    const plot = figure.querySelector('.plot');
    const c = {
      figure, plot,
      axis: figure.dataset.axis, steps: +figure.dataset.steps, step: +figure.dataset.step, atEnd: figure.dataset.end === 'true',
      data: plot.querySelector('.data'), grid: plot.querySelector('.grid'), up: figure.querySelector('.up'),
      when: figure.querySelector('.when'), values: [...figure.querySelectorAll('.key .value')],
    };
    c.lines = [...c.data.querySelectorAll('.line')].map((path, i) => ({
      path, i, low: +path.dataset.low, high: +path.dataset.high, d: path.getAttribute('d'), color: path.classList[1], pieces: null,
    }));
    c.text = texts[c.axis];
    c.still = [c.when.textContent, ...c.values.map(v => v.textContent)];
    c.cursor = element('g', {class: 'cursor', display: 'none'}, plot);
    c.cursorLine = element('line', {y1: 0, y2: '100%'}, c.cursor);
    c.dots = c.lines.map(l => element('circle', {r: 3.5, class: l.color + ' c' + l.i}, c.cursor));
    return c;
  });

  // fit draws a chart's axis anew for the contenders that are shown.
  const fit = c => {
    const on = shown();
    const lines = c.lines.filter(l => on[l.i] && l.d !== '');
    const low = Math.min(...lines.map(l => l.low)), high = Math.max(...lines.map(l => l.high));
    if (c.axis === 'share') c.scale = linear(1, false, percent);
    else if (c.axis !== 'time') c.scale = linear(high, c.axis === 'count', number);
    else c.scale = lines.length ? logarithmic(low, high, seconds) : logarithmic(-3, 0, seconds);
    const x = 1000 / c.steps, y = 1000 / (c.scale.hi - c.scale.lo);
    c.data.setAttribute('transform', `matrix(${x} 0 0 ${-y} ${(c.atEnd ? 1 : 0.5) * x} ${c.scale.hi * y})`);
    c.grid.replaceChildren();
    c.up.replaceChildren();
    for (const t of c.scale.ticks) {
      element('line', {x1: 0, x2: '100%', y1: place(t.at), y2: place(t.at)}, c.grid);
      element('text', {x: '100%', y: place(t.at), dy: '.32em', 'text-anchor': 'end'}, c.up).textContent = t.text;
    }
    c.figure.dataset.drawn = lines.length;
  };

  // point at a step, on all charts; at none (null) the keys say what they said.
  let step = null;
  const point = to => {
    step = to;
    for (const c of charts) {
      c.cursor.setAttribute('display', step === null ? 'none' : 'inline');
      if (step === null) {
        c.when.textContent = c.still[0];
        c.values.forEach((v, i) => { v.textContent = c.still[i + 1]; });
        continue;
      }
      const x = place((step + (c.atEnd ? 1 : 0.5)) / c.steps);
      c.cursorLine.setAttribute('x1', x);
      c.cursorLine.setAttribute('x2', x);
      c.when.textContent = c.atEnd ? 'at ' + seconds((step + 1) * c.step)
        : 'from ' + seconds(step * c.step) + ' to ' + seconds((step + 1) * c.step);
      for (const l of c.lines) {
        l.pieces ??= parse(l.d);
        const v = valueAt(l.pieces, step);
        c.values[l.i].textContent = Number.isNaN(v) ? '–' : c.text(v);
        const dot = c.dots[l.i];
        dot.setAttribute('display', Number.isNaN(v) ? 'none' : 'inline');
        if (Number.isNaN(v)) continue;
        dot.setAttribute('cx', x);
        dot.setAttribute('cy', place((c.scale.hi - v) / (c.scale.hi - c.scale.lo)));
      }
    }
  };

  const refresh = () => {
    charts.forEach(fit);
    point(step);
  };
  for (const b of boxes) b.addEventListener('change', refresh);
  if (boxes.length > 2) {
    for (const [text, on] of [['show all', true], ['hide all', false]]) {
      const button = document.createElement('button');
      button.type = 'button';
      button.textContent = text;
      button.addEventListener('click', () => {
        for (const b of boxes) b.checked = on;
        refresh();
      });
      document.querySelector('.entries').append(button);
    }
  }

  for (const c of charts) {
    const follow = e => {
      const r = c.plot.getBoundingClientRect();
      const s = Math.floor((e.clientX - r.left) / r.width * c.steps);
      point(Math.max(0, Math.min(c.steps - 1, s)));
    };
    c.plot.addEventListener('pointermove', follow);
    c.plot.addEventListener('pointerdown', follow);
    c.plot.addEventListener('pointerleave', e => { if (e.pointerType === 'mouse') point(null); });
    c.plot.addEventListener('keydown', e => {
      const by = {ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10}[e.key];
      if (e.key === 'Escape') point(null);
      if (!by) return;
      e.preventDefault();
      point(Math.max(0, Math.min(c.steps - 1, (step ?? -1) + by)));
    });
  }
  addEventListener('beforeprint', () => point(null));

  refresh();
  window.lull = {number, seconds, percent, charts};
  document.documentElement.dataset.ready = charts.length;
})();
