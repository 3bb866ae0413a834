// Handles that follow the pointer or the arrow keys.

const STEP = 0.01;

/** Follow the pointer after `event`: `onMove` gets its position in a figure `width` wide. Returns its handler of moves. */
export function follow(event, place, width, onMove, onEnd = () => {}) {
  const box = place.getBoundingClientRect();
  const move = (one) => onMove((one.clientX - box.left) * (width / box.width));
  const end = () => {
    removeEventListener("pointermove", move);
    onEnd();
  };
  addEventListener("pointermove", move);
  addEventListener("pointerup", end, { once: true });
  addEventListener("pointercancel", end, { once: true });
  return move;
}

/** The value to which a key moves a bar of this value; undefined for other keys. */
export const keyValue = (key, value) =>
  ({ ArrowRight: value + STEP, ArrowLeft: value - STEP, PageUp: value + 5 * STEP, PageDown: value - 5 * STEP, Home: 0, End: 1 })[key];

/** The position to which a key moves the focus from bar `at` of `count` bars; undefined for other keys. */
export function neighbor(key, at, count) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[key];
  return step && Math.min(count - 1, Math.max(0, at + step));
}

/** Of the bars in a column, Tab reaches only the one that was last moved. */
export function moveFocus(place, from, to) {
  const bar = place.querySelector(`[data-key="${to}"]`);
  place.querySelector(`[data-key="${from}"]`).setAttribute("tabindex", "-1");
  bar.setAttribute("tabindex", "0");
  bar.focus();
}
