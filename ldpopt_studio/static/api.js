// Requests to the studio on this machine: the token, views of the newest state, and jobs that can be cancelled.

const KEY = "ldpopt-studio-token";

/** Remove the token from the address, where it would be copied, and store it for this tab. */
export function takeToken() {
  const query = new URLSearchParams(location.search);
  const token = query.get("token");
  if (token) {
    sessionStorage.setItem(KEY, token);
    query.delete("token");
    const rest = query.toString();
    history.replaceState(null, "", location.pathname + (rest ? `?${rest}` : "") + location.hash);
  }
  return sessionStorage.getItem(KEY);
}

export const keepToken = (token) => sessionStorage.setItem(KEY, token);

/** The errors of a state: `errors` by field; the field "" stands for the whole state. */
export class StateError extends Error {
  constructor(errors) {
    super(Object.values(errors).join(" "));
    this.errors = errors;
  }
}

/** The studio does not answer, or rejects this page. */
export class Unreachable extends Error {}

export async function call(method, path, body) {
  const headers = { "x-studio-token": sessionStorage.getItem(KEY) ?? "" };
  if (body !== undefined) headers["content-type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    throw new Unreachable("The studio does not answer. Was it stopped in the terminal?");
  }
  const content = await answer.json();
  if (answer.status === 422) throw new StateError(content.errors);
  if (answer.status === 401) throw new Unreachable(content.error);
  if (!answer.ok) throw new StateError({ "": content.error });
  return content;
}

const lanes = new Map();

/**
 * The document of a view for a state. For each path one request runs at a time. Meanwhile only the newest state
 * waits; the promises of states that it replaced resolve to undefined.
 */
export function ask(path, state) {
  const lane = lanes.get(path) ?? { busy: false, next: null };
  lanes.set(path, lane);
  return new Promise((resolve, reject) => {
    lane.next?.resolve(undefined);
    lane.next = { state, resolve, reject };
    if (!lane.busy) run(path, lane);
  });
}

async function run(path, lane) {
  lane.busy = true;
  while (lane.next) {
    const { state, resolve, reject } = lane.next;
    lane.next = null;
    try {
      resolve(await call("POST", `api/${path}`, state));
    } catch (error) {
      reject(error);
    }
  }
  lane.busy = false;
}

/**
 * A job: `done` is a promise of its result, which rejects with StateError; `cancel()` kills it, and `done` resolves to
 * undefined. `onProgress` is called with a number from 0 to 1.
 */
export function job(name, state, onProgress = () => {}) {
  let id, cancelled = false;
  const remove = () => id && call("DELETE", `api/jobs/${id}`).catch(() => {});
  const cancel = () => {
    if (!cancelled) remove();
    cancelled = true;
  };
  const follow = async () => {
    ({ job: id } = await call("POST", `api/jobs/${name}`, state));
    if (cancelled) remove();
    for (let wait = 40; ; wait = Math.min(250, wait * 1.4)) {
      if (cancelled) return undefined;
      let status;
      try {
        status = await call("GET", `api/jobs/${id}`);
      } catch (error) {
        if (cancelled) return undefined;
        throw error;
      }
      if (cancelled) return undefined;
      onProgress(status.progress);
      if (status.done) {
        if (status.result !== undefined) return status.result;
        throw new StateError(status.errors ?? { "": status.error });
      }
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  };
  return { done: follow(), cancel };
}
