// A table of any length of which only what is in sight is in the document. The element that scrolls
// is the grid itself; one row is the active one, moved by the arrow keys (ARIA grid pattern).

/** Browsers cap how tall an element may be; beyond this the scroll position is scaled. */
const HEIGHT_MAX = 12_000_000;
const ROWS_BEYOND = 8;

let grids = 0;

function make(tag, className, role) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (role) element.setAttribute("role", role);
  return element;
}

/**
 * `columns`: `{id, title, hint, numeric, sortable, fill(cell, row)}`; cells are used again, so that
 * `fill` sets all that differs between rows. `on.sort(id)`, `on.open(row)`
 * for Enter, a click and a touch; `on.mark(element, row)` for what differs of a whole row. `rowAt(place)` and
 * `count()` say what there is.
 */
export class Grid {
  constructor(parent, { label, className, columns, rowAt, count, on }) {
    grids += 1;
    Object.assign(this, { columns, rowAt, count, on, name: `grid${grids}` });
    this.active = 0;
    this.nodes = new Map();
    this.root = make("div", `grid ${className}`, "grid");
    this.root.tabIndex = 0;
    this.root.setAttribute("aria-label", label);
    this.root.setAttribute("aria-colcount", columns.length);
    this.root.append(this.head(), (this.body = make("div", "grid-body", "rowgroup")));
    this.empty = make("p", "grid-empty");
    // Above the grid, which takes all the room there is.
    parent.append(this.empty, this.root);
    this.root.addEventListener("scroll", () => this.render(), { passive: true });
    this.root.addEventListener("keydown", (event) => this.key(event));
    this.body.addEventListener("mousedown", (event) => this.point(event));
    this.body.addEventListener("click", (event) => this.click(event));
    new ResizeObserver(() => this.measure()).observe(this.root);
  }

  head() {
    const group = make("div", "grid-head", "rowgroup");
    const row = make("div", "grid-row", "row");
    row.setAttribute("aria-rowindex", 1);
    this.headers = new Map();
    this.columns.forEach((column, at) => {
      const cell = make("div", `c-${column.id}${column.numeric ? " num" : ""}`, "columnheader");
      cell.setAttribute("aria-colindex", at + 1);
      if (column.sortable) {
        const button = make("button");
        button.type = "button";
        button.textContent = column.title;
        button.addEventListener("click", () => this.on.sort(column.id));
        cell.append(button);
      } else {
        cell.textContent = column.title;
      }
      if (column.hint) cell.title = column.hint;
      this.headers.set(column.id, cell);
      row.append(cell);
    });
    group.append(row);
    return group;
  }

  setTitle(id, title) {
    const cell = this.headers.get(id);
    (cell.firstElementChild ?? cell).textContent = title;
    for (const node of this.nodes.values()) node.cells.get(id).dataset.label = title;
    this.columns.find((column) => column.id === id).title = title;
  }

  setOrder(by, down) {
    for (const [id, cell] of this.headers) {
      if (id === by) cell.setAttribute("aria-sort", down ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    }
  }

  /** What is shown changed: all rows in sight are filled anew. */
  refresh(emptyText = "") {
    const count = this.count();
    this.root.setAttribute("aria-rowcount", count + 1);
    this.empty.textContent = count === 0 ? emptyText : "";
    this.root.classList.toggle("is-empty", count === 0);
    this.active = Math.min(this.active, Math.max(count - 1, 0));
    this.size();
    for (const [place, node] of this.nodes) {
      if (place < count) this.fill(node, place);
      else this.drop(place, node);
    }
    this.render();
  }

  /** Rows were added below. */
  grow() {
    const count = this.count();
    this.root.setAttribute("aria-rowcount", count + 1);
    if (count > 0) this.empty.textContent = "";
    this.root.classList.toggle("is-empty", count === 0);
    this.size();
    this.render();
  }

  toTop() {
    this.active = 0;
    this.root.scrollTop = 0;
  }

  measure() {
    const height = Number.parseFloat(getComputedStyle(this.root).getPropertyValue("--row-height"));
    this.rowHeight = height || 28;
    this.headHeight = this.root.firstElementChild.offsetHeight;
    this.size();
    this.render();
  }

  size() {
    this.all = this.count() * this.rowHeight;
    this.tall = Math.min(this.all, HEIGHT_MAX);
    this.body.style.height = `${this.tall}px`;
  }

  /** How many pixels of all rows are above the sight, and how tall the sight is. */
  sight() {
    const view = Math.max(this.root.clientHeight - this.headHeight, 0);
    const scroll = this.root.scrollTop;
    const scale = this.tall > view ? (this.all - view) / (this.tall - view) : 1;
    return { view, scroll, above: scroll * scale };
  }

  render() {
    if (!this.rowHeight || this.root.clientHeight === 0) return;
    const { view, scroll, above } = this.sight();
    const count = this.count();
    const first = Math.max(Math.floor(above / this.rowHeight) - ROWS_BEYOND, 0);
    const last = Math.min(Math.ceil((above + view) / this.rowHeight) + ROWS_BEYOND, count);
    const free = [];
    for (const [place, node] of this.nodes) {
      if (place >= first && place < last) continue;
      this.nodes.delete(place);
      free.push(node);
    }
    for (let place = first; place < last; place += 1) {
      let node = this.nodes.get(place);
      if (!node) {
        node = free.pop() ?? this.row();
        this.nodes.set(place, node);
        this.fill(node, place);
      }
      const top = place * this.rowHeight - above + scroll;
      if (node.top !== top) node.row.style.transform = `translateY(${top}px)`;
      node.top = top;
    }
    for (const node of free) node.row.remove();
    this.mark();
  }

  row() {
    const row = make("div", "grid-row", "row");
    const cells = new Map();
    this.columns.forEach((column, at) => {
      const cell = make("div", `c-${column.id}${column.numeric ? " num" : ""}`, "gridcell");
      cell.setAttribute("aria-colindex", at + 1);
      cell.dataset.label = column.title;
      cells.set(column.id, cell);
      row.append(cell);
    });
    this.body.append(row);
    return { row, cells, top: null };
  }

  fill(node, place) {
    const row = this.rowAt(place);
    node.row.id = `${this.name}-${place}`;
    node.row.setAttribute("aria-rowindex", place + 2);
    for (const column of this.columns) column.fill(node.cells.get(column.id), row);
    this.on.mark?.(node.row, row);
  }

  drop(place, node) {
    this.nodes.delete(place);
    node.row.remove();
  }

  mark() {
    for (const [place, { row }] of this.nodes) {
      if (place === this.active) row.setAttribute("aria-selected", "true");
      else row.removeAttribute("aria-selected");
    }
    if (this.nodes.has(this.active)) {
      this.root.setAttribute("aria-activedescendant", `${this.name}-${this.active}`);
    } else {
      this.root.removeAttribute("aria-activedescendant");
    }
  }

  point(event) {
    const row = event.target.closest("[role=row]");
    for (const [place, node] of this.nodes) {
      if (node.row === row) this.active = place;
    }
    this.mark();
  }

  /** Links and selected text keep their own meaning. */
  click(event) {
    if (event.target.closest("a") || !getSelection().isCollapsed) return;
    if (event.target.closest("[role=row]")) this.open();
  }

  open() {
    if (this.active < this.count()) this.on.open(this.rowAt(this.active));
  }

  key(event) {
    if (event.target !== this.root || event.altKey || event.ctrlKey || event.metaKey) return;
    const page = Math.max(Math.floor(this.sight().view / this.rowHeight) - 1, 1);
    const last = this.count() - 1;
    const to = {
      ArrowDown: this.active + 1,
      ArrowUp: this.active - 1,
      PageDown: this.active + page,
      PageUp: this.active - page,
      Home: 0,
      End: last,
    }[event.key];
    if (event.key === "Enter") this.open();
    else if (to === undefined || last < 0) return;
    else this.goTo(Math.min(Math.max(to, 0), last));
    event.preventDefault();
  }

  goTo(place) {
    this.active = place;
    const { view, above } = this.sight();
    const top = place * this.rowHeight;
    let wanted = above;
    if (top < above) wanted = top;
    else if (top + this.rowHeight > above + view) wanted = top + this.rowHeight - view;
    const scale = this.all > view ? (this.tall - view) / (this.all - view) : 1;
    if (wanted !== above) this.root.scrollTop = Math.ceil(wanted * scale);
    this.render();
  }
}
