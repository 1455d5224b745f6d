// Talks to the server: requests with the API key, errors as one type, and answers as they stream.

const kKeyItem = "millrace.key";
let askForKey = async () => null;  // resolves to a key, or null where the user gave none
let asking = null;                 // the one question that all requests wait for

export function onKeyNeeded(ask) { askForKey = ask; }

export class ApiError extends Error {
  constructor(message, status = 0) {
    super(message);
    this.status = status;
  }
}

// Keys are kept until the tab is closed, and by this page alone.
let memoryKey = null;
function readKey() {
  try {
    return sessionStorage.getItem(kKeyItem) ?? memoryKey;
  } catch {
    return memoryKey;
  }
}

function keepKey(key) {
  memoryKey = key;
  try {
    sessionStorage.setItem(kKeyItem, key);
  } catch {
    // Storage is blocked: it lasts until the page is closed.
  }
}

// Asks once however many requests need it. False: the user closed the question.
export async function renewKey() {
  asking ??= askForKey(readKey() !== null).finally(() => (asking = null));
  const key = await asking;
  if (key) keepKey(key);
  return Boolean(key);
}

async function errorOf(response) {
  let message = "";
  try {
    const body = await response.json();
    message = body.error?.message ?? body.message ?? "";
  } catch {
    // No JSON: the status says what there is to say.
  }
  const retry = response.headers.get("retry-after");
  if (!message) message = `The server answered ${response.status} ${response.statusText}`.trim();
  if (retry && /^\d+$/.test(retry)) message += ` Try again in ${retry} s.`;
  return new ApiError(message, response.status);
}

// A response that is OK, or an ApiError. `ask`: whether a 401 asks for the key.
export async function request(path, {ask = true, headers = {}, ...options} = {}) {
  for (;;) {
    const key = readKey();
    const sent = key ? {...headers, Authorization: `Bearer ${key}`} : headers;
    let response;
    try {
      response = await fetch(path, {...options, headers: sent, cache: "no-store"});
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ApiError("Cannot reach the server. Is it still running?");
    }
    if (response.ok) return response;
    // Another request may have asked meanwhile, and got a new key.
    const retry = response.status === 401 && ask && (readKey() !== key || (await renewKey()));
    if (!retry) throw await errorOf(response);
  }
}

// The data of server-sent events. Comments, which keep a silent connection alive, and other fields
// are skipped.
export async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "", data = [];
  try {
    for (;;) {
      const {done, value} = await reader.read();
      // A carriage return at the end may be half of a line's end, unless nothing follows.
      const lines = (done ? rest.replace(/\r$/, "\n") : rest + value).split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop();
      for (const line of lines) {
        if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
        if (line !== "" || data.length === 0) continue;
        yield data.join("\n");
        data = [];
      }
      if (done) return;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

// The chunks of one streamed chat completion.
export async function* complete(body, signal) {
  const response = await request("/v1/chat/completions", {
    method: "POST",
    headers: {"Content-Type": "application/json"},
    body: JSON.stringify({...body, stream: true, stream_options: {include_usage: true}}),
    signal,
  });
  try {
    for await (const data of events(response.body)) {
      if (data === "[DONE]") return;
      const chunk = parseChunk(data);
      if (chunk.error) throw new ApiError(chunk.error.message ?? String(chunk.error));
      yield chunk;
    }
  } catch (error) {
    if (error.name === "AbortError" || error instanceof ApiError) throw error;
    throw new ApiError("The connection broke before the answer ended.");
  }
  throw new ApiError("The connection closed before the answer ended.");
}

function parseChunk(data) {
  try {
    return JSON.parse(data);
  } catch {
    throw new ApiError("The server sent an event that is not JSON.");
  }
}
