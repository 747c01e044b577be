// Runs spec files without jest: test, it, describe, hooks, and the matchers that exercises use. Usage: run_tests.mjs FOLDER
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isDeepStrictEqual, inspect } from 'node:util';

const root = resolve(process.argv[2] || '.');
let ran = 0, failed = 0;
const queue = [];
let scope = { name: '', before: [], after: [], beforeAll: [], parent: null };

const group = (name, body) => {
  const outer = scope;
  scope = { name: outer.name + name + ' ', before: [], after: [], beforeAll: [], parent: outer };
  body();
  scope = outer;
};
const test = (name, body) => { queue.push({ name: scope.name + name, body, scope }); };
const each = (run) => (rows) => (name, body) => rows.forEach((row, i) =>
  run(`${name} ${i}`, () => body(...(Array.isArray(row) ? row : [row]))));
test.each = each(test); test.only = test; test.todo = () => {};
group.each = each(group); group.only = group;

const clean = (v) => {
  if (Array.isArray(v)) return v.map(clean);
  if (v && typeof v === 'object' && Object.getPrototypeOf(v) === Object.prototype)
    return Object.fromEntries(Object.entries(v).filter(([, x]) => x !== undefined).map(([k, x]) => [k, clean(x)]));
  return v;
};
const loosely = (a, b) => {
  if (b && b.matches) return b.matches(a);
  if (a && b && typeof a === 'object' && typeof b === 'object' && !Array.isArray(a) && !(a instanceof Map) && !(a instanceof Set) && !(a instanceof Date) && !(a instanceof Error))
    return isDeepStrictEqual(clean({ ...a }), clean({ ...b })) || subset(a, b) && subset(b, a);
  if (a instanceof Error && b instanceof Error) return a.message === b.message;
  return isDeepStrictEqual(clean(a), clean(b));
};
const subset = (a, b) => Object.keys(b).every((k) => a != null && (b[k] && typeof b[k] === 'object' ? loosely(a[k], b[k]) : Object.is(a[k], b[k])));
const threw = (f, want) => {
  if (typeof f !== 'function') throw new Error('toThrow needs a function');
  try { f(); } catch (e) {
    if (want === undefined) return true;
    if (want instanceof RegExp) return want.test(e.message);
    if (typeof want === 'function') return e instanceof want;
    if (want instanceof Error) return e.message === want.message;
    return String(e.message).includes(want);
  }
  return false;
};
const matchers = {
  toBe: (a, b) => Object.is(a, b), toEqual: loosely, toStrictEqual: (a, b) => isDeepStrictEqual(a, b),
  toBeTruthy: (a) => !!a, toBeFalsy: (a) => !a, toBeNull: (a) => a === null, toBeUndefined: (a) => a === undefined, toBeDefined: (a) => a !== undefined, toBeNaN: (a) => Number.isNaN(a),
  toThrow: threw, toThrowError: threw, toContain: (a, b) => typeof a === 'string' ? a.includes(b) : [...a].includes(b), toContainEqual: (a, b) => [...a].some((x) => loosely(x, b)),
  toHaveLength: (a, n) => a.length === n, toMatch: (a, b) => b instanceof RegExp ? b.test(a) : a.includes(b), toMatchObject: subset,
  toBeGreaterThan: (a, b) => a > b, toBeGreaterThanOrEqual: (a, b) => a >= b, toBeLessThan: (a, b) => a < b, toBeLessThanOrEqual: (a, b) => a <= b,
  toBeCloseTo: (a, b, d = 2) => Math.abs(a - b) < 10 ** -d / 2, toBeInstanceOf: (a, b) => a instanceof b,
  toHaveProperty: (a, k, ...v) => { const x = String(k).split('.').reduce((o, p) => o?.[p], a); return v.length ? loosely(x, v[0]) : x !== undefined; },
  toHaveBeenCalled: (f) => f.mock.calls.length > 0, toHaveBeenCalledTimes: (f, n) => f.mock.calls.length === n,
  toHaveBeenCalledWith: (f, ...w) => f.mock.calls.some((c) => loosely(c, w)),
};
const expect = (got) => {
  const make = (not) => Object.fromEntries(Object.entries(matchers).map(([name, ok]) => [name, (...want) => {
    if (ok(got, ...want) === not) throw new Error(`${not ? 'not.' : ''}${name}: got ${inspect(got)}, want ${inspect(want[0])}`);
  }]));
  const settled = (kind) => new Proxy({}, { get: (_, name) => name === 'not' ? undefined : async (...want) => {
    let value, error, bad = false;
    try { value = await (typeof got === 'function' ? got() : got); } catch (e) { bad = true; error = e; }
    if (kind === 'rejects' !== bad) throw new Error(`${kind}: it did not`);
    return name.startsWith('toThrow') ? expect(() => { throw error; })[name](...want) : expect(bad ? error : value)[name](...want);
  } });
  return { ...make(false), not: make(true), resolves: settled('resolves'), rejects: settled('rejects') };
};
expect.assertions = () => {}; expect.any = (type) => ({ matches: (v) => v != null && (Object(v) instanceof type) }); expect.anything = () => ({ matches: (v) => v != null });
expect.objectContaining = (o) => ({ matches: (v) => subset(v, o) }); expect.arrayContaining = (l) => ({ matches: (v) => l.every((x) => v.some((y) => loosely(y, x))) });
expect.stringContaining = (s) => ({ matches: (v) => String(v).includes(s) });
const fn = (body = () => {}) => { const f = (...args) => { f.mock.calls.push(args); return body(...args); }; f.mock = { calls: [] }; f.mockReturnValue = (v) => { body = () => v; return f; }; f.mockImplementation = (b) => { body = b; return f; }; return f; };
const jest = { fn, spyOn: (o, k) => { const was = o[k].bind(o); o[k] = fn(was); return o[k]; }, useFakeTimers() {}, useRealTimers() {}, setTimeout() {} };
Object.assign(globalThis, {
  test, it: test, xtest: test, xit: test, describe: group, xdescribe: group, expect, jest,
  beforeEach: (f) => scope.before.push(f), afterEach: (f) => scope.after.push(f), beforeAll: (f) => scope.beforeAll.push(f), afterAll: () => {},
});

const find = (dir) => readdirSync(dir, { withFileTypes: true }).flatMap((e) => e.isDirectory() ? (e.name === 'node_modules' ? [] : find(join(dir, e.name))) : [join(dir, e.name)]);
const files = find(root);
// Imports of jest's own globals, and without an extension, are what a bundler would have read.
for (const file of files.filter((f) => /\.(m?js)$/.test(f))) {
  const was = readFileSync(file, 'utf8');
  const now = was.replace(/^import\s*\{[^}]*\}\s*from\s*['"]@jest\/globals['"];?/gm, '')
    .replace(/(from\s*['"])(\.{1,2}\/[^'"]*?)(['"])/g, (all, a, path, c) => /\.(m?js|json)$/.test(path) ? all : a + path + '.js' + c);
  if (now !== was) writeFileSync(file, now);
}
try { if (!JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).type) throw 0; } catch { writeFileSync(join(root, 'package.json'), '{"type":"module"}'); }
for (const file of files.filter((f) => /\.(spec|test)\.m?js$/.test(f)).sort()) {
  try { await import(pathToFileURL(file).href); } catch (e) { console.log('cannot be loaded: ' + file, e); ran++; failed++; }
}
const chain = (s) => s ? [...chain(s.parent), s] : [];
const once = new Set();
for (const { name, body, scope: s } of queue) {
  ran++;
  try {
    for (const level of chain(s)) for (const f of level.beforeAll) if (!once.has(f)) { once.add(f); await f(); }
    for (const level of chain(s)) for (const f of level.before) await f();
    await (body.length > 0 ? new Promise((done, fail) => { const r = body((e) => e ? fail(e) : done()); if (r?.then) r.then(done, fail); }) : body());
    for (const level of chain(s).reverse()) for (const f of level.after) await f();
  } catch (e) { failed++; console.log('FAILED ' + name + '\n  ' + (e?.stack ?? e)); }
}
console.log(`${ran} tests, ${failed} failed`);
process.exit(ran > 0 && failed === 0 ? 0 : 1);
