// Handles that follow the pointer or the arrow keys.

const STEP = 0.01;

/** Follow the pointer from `event` on: `told` gets its place in a picture that is `width` wide. Gives how to read a move. */
export function followed(event, place, width, told, ended = () => {}) {
  const box = place.getBoundingClientRect();
  const move = (one) => told((one.clientX - box.left) * (width / box.width));
  const end = () => {
    removeEventListener("pointermove", move);
    ended();
  };
  addEventListener("pointermove", move);
  addEventListener("pointerup", end, { once: true });
  addEventListener("pointercancel", end, { once: true });
  return move;
}

/** Where a key moves a bar of this value; undefined for other keys. */
export const pressed = (key, value) =>
  ({ ArrowRight: value + STEP, ArrowLeft: value - STEP, PageUp: value + 5 * STEP, PageDown: value - 5 * STEP, Home: 0, End: 1 })[key];

/** Of `count` bars in a column, the one that a key goes to from `at`; undefined for other keys. */
export function beside(key, at, count) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[key];
  return step && Math.min(count - 1, Math.max(0, at + step));
}

/** Tab comes to one bar of a column alone, the one that was last moved. */
export function focused(place, from, to) {
  const bar = place.querySelector(`[data-key="${to}"]`);
  place.querySelector(`[data-key="${from}"]`).setAttribute("tabindex", "-1");
  bar.setAttribute("tabindex", "0");
  bar.focus();
}
