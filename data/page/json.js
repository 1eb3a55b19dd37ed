// Reads JSON and keeps every number as the text that stands there: a double cannot hold what the
// server writes. Numbers and strings both come back as strings; who reads a field knows which it is.

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORDS = new Map([["n", ["null", null]], ["t", ["true", true]], ["f", ["false", false]]]);
const DEPTH_MAX = 32;
const [TAB, LINE_FEED, RETURN, BLANK] = [9, 10, 13, 32];
const [QUOTE, COMMA, COLON, BACKSLASH] = [0x22, 0x2c, 0x3a, 0x5c];
const [ARRAY, ARRAY_END, OBJECT, OBJECT_END] = [0x5b, 0x5d, 0x7b, 0x7d];

class Reader {
  constructor(text) {
    this.text = text;
    this.at = 0;
    // Where the next backslash is, so that a line without any is searched for one only once.
    this.escape = text.indexOf("\\");
  }

  fail(what) {
    throw new SyntaxError(`${what} at character ${this.at}`);
  }

  /** The next character that is no space; NaN at the end. */
  next() {
    for (;;) {
      const code = this.text.charCodeAt(this.at);
      if (code !== BLANK && code !== LINE_FEED && code !== RETURN && code !== TAB) return code;
      this.at += 1;
    }
  }

  value(depth) {
    if (depth > DEPTH_MAX) this.fail("too deep");
    const first = this.next();
    if (first === QUOTE) return this.string();
    if (first === OBJECT) return this.object(depth);
    if (first === ARRAY) return this.array(depth);
    const word = WORDS.get(this.text[this.at]);
    return word ? this.word(word) : this.number();
  }

  word([word, meaning]) {
    if (!this.text.startsWith(word, this.at)) this.fail("not a value");
    this.at += word.length;
    return meaning;
  }

  number() {
    NUMBER.lastIndex = this.at;
    const found = NUMBER.exec(this.text);
    if (!found) this.fail("not a value");
    this.at = NUMBER.lastIndex;
    return found[0];
  }

  string() {
    const start = this.at;
    let end = this.text.indexOf('"', start + 1);
    if (end < 0) this.fail("a string without end");
    if (this.escape >= 0 && this.escape < start) this.escape = this.text.indexOf("\\", start);
    if (this.escape < 0 || this.escape > end) {
      this.at = end + 1;
      return this.text.slice(start + 1, end);
    }
    end = start + 1;
    while (this.text.charCodeAt(end) !== QUOTE) {
      if (end >= this.text.length) this.fail("a string without end");
      end += this.text.charCodeAt(end) === BACKSLASH ? 2 : 1;
    }
    this.at = end + 1;
    return JSON.parse(this.text.slice(start, end + 1));
  }

  object(depth) {
    const out = {};
    this.list(OBJECT_END, () => {
      if (this.next() !== QUOTE) this.fail("a name is missing");
      const name = this.string();
      if (this.next() !== COLON) this.fail("a colon is missing");
      this.at += 1;
      out[name] = this.value(depth + 1);
    });
    return out;
  }

  array(depth) {
    const out = [];
    this.list(ARRAY_END, () => out.push(this.value(depth + 1)));
    return out;
  }

  list(close, member) {
    this.at += 1;
    if (this.next() === close) {
      this.at += 1;
      return;
    }
    for (;;) {
      member();
      const next = this.next();
      this.at += 1;
      if (next === close) return;
      if (next !== COMMA) this.fail("a comma is missing");
    }
  }
}

export function readJson(text) {
  const reader = new Reader(text);
  const value = reader.value(0);
  if (!Number.isNaN(reader.next())) reader.fail("more than one value");
  return value;
}
