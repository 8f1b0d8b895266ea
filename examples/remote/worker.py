#!/usr/bin/env python3
"""A Holdfast worker in Python that uses only the standard library. Start your own worker from it.

    HOLDFAST_SERVER=http://127.0.0.1:7420 HOLDFAST_KEY=… python3 worker.py

It holds one session, whose lease covers everything it runs. This is safe because:
- a thread renews the lease. It aborts what the server reports as lost, and everything before the lease could run out;
- every write carries the attempt number, so writes of a worker that lost its job are refused;
- a request without an answer is sent again, and the server gives the same answer.
"""
import json
import os
import queue
import signal
import socket
import sys
import threading
import time
import urllib.error
import urllib.request

SERVER = os.environ.get("HOLDFAST_SERVER", "http://127.0.0.1:7420")
KEY = os.environ.get("HOLDFAST_KEY")
CONCURRENCY = int(os.environ.get("CONCURRENCY", "4"))
LEASE_MS = int(os.environ.get("LEASE_MS", "15000"))
DRAIN_SECONDS = float(os.environ.get("DRAIN_SECONDS", "10"))


# What this worker can do. Put your own handlers here.


class PermanentError(Exception):
    """Raise this from a handler when a retry cannot help."""


def shout(attempt):
    if not isinstance(attempt.input, dict) or not isinstance(attempt.input.get("text"), str):
        raise PermanentError("The input must be an object with a text property.")
    return {"text": attempt.input["text"].upper(), "by": "python"}


def count(attempt):
    """Long work, in pieces: it reports its progress, and stops when it is aborted."""
    total = attempt.input["to"]
    for done in range(1, total + 1):
        if attempt.aborted.wait(attempt.input.get("pieceSeconds", 0.1)):
            return None  # discarded
        attempt.progress(done, total)
    attempt.log("counted", to=total)
    return {"counted": total, "by": "python"}


def exclaim(attempt):
    """A second stage: it reads what the first one returned."""
    return attempt.outputs["count"] | {"mark": "!"}


HANDLERS = {"shout": {"run": shout}, "count": {"count": count, "exclaim": exclaim}}

KINDS = [
    {"name": "shout"},
    {"name": "count", "stages": [{"name": "count", "timeoutMs": 60_000}, {"name": "exclaim", "optional": True}]},
]


class Unreachable(Exception):
    """It is unknown whether the request was carried out; send it again."""


class Refused(Exception):
    """The server refused the request."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code

    @property
    def session_is_over(self):
        return self.code in ("session_ended", "session_not_found")


def call(method, path, body=None, timeout=10.0):
    headers = {"content-type": "application/json"}
    if KEY:
        headers["authorization"] = f"Bearer {KEY}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(SERVER + path, data=data, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            text = response.read()
            return json.loads(text) if text else None
    except urllib.error.HTTPError as error:
        if error.code in (429, 500, 502, 503, 504):
            raise Unreachable(f"the server responded with {error.code}") from error
        raise refusal(error) from error
    except (OSError, ValueError) as error:
        raise Unreachable(str(error)) from error


def refusal(error):
    try:
        problem = json.loads(error.read())
        return Refused(problem.get("code"), problem.get("detail") or problem.get("title"))
    except (OSError, ValueError):
        return Refused(None, f"the server responded with {error.code}")


def until_answered(ask, is_over=lambda: False):
    """Repeats a request, with growing pauses, until there is an answer."""
    pause = 0.1
    while True:
        try:
            return ask()
        except Unreachable as trouble:
            if is_over():
                raise
            say(f"{trouble}; retrying")
            time.sleep(pause)
            pause = min(5.0, pause * 2)


def say(line):
    print(line, flush=True)


class Attempt:
    """What a handler receives."""

    def __init__(self, session, given):
        self.session = session
        self.id, self.number = given["id"], given["attempt"]
        self.kind, self.stage, self.tenant = given["kind"], given["stage"], given["tenant"]
        self.input, self.outputs = given["input"], given["outputs"]
        self.ends_at = time.monotonic() + given["timeoutMs"] / 1000
        self.aborted = threading.Event()
        self.reason = None

    @property
    def fence(self):
        return {"id": self.id, "attempt": self.number}

    def abort(self, reason):
        self.reason = self.reason or reason
        self.aborted.set()

    def progress(self, done, total=None, note=None):
        words = {"done": done, "total": total, "note": note}
        self.session.report(self.fence | {name: word for name, word in words.items() if word is not None})

    def log(self, message, **data):
        self.session.report(self.fence | {"log": [{"message": message, "data": data}]})

    def run(self):
        """Runs the handler and returns its outcome."""
        try:
            output = HANDLERS[self.kind][self.stage](self)
            if self.reason is None:
                return self.fence | {"outcome": "succeeded", "output": output}
        except Exception as error:  # anything that a handler raises is an outcome
            if self.reason is None:
                told = {"message": f"{type(error).__name__}: {error}", "isPermanent": isinstance(error, PermanentError)}
                return self.fence | {"outcome": "failed", "error": told}
        if self.reason == "timeout":
            return self.fence | {"outcome": "failed", "error": {"message": "The handler timed out.", "code": "timeout"}}
        return self.fence | {"outcome": "released"}


class Session:
    """A lease over all attempts of this worker, until it is closed or the server ends it."""

    def __init__(self):
        asked_at = time.monotonic()
        me = {"kinds": KINDS, "host": socket.gethostname(), "pid": os.getpid(), "concurrency": CONCURRENCY}
        opened = until_answered(lambda: call("POST", "/v1/sessions", me | {"leaseMs": LEASE_MS}))
        self.path = f"/v1/sessions/{opened['id']}"
        self.lease = opened["leaseMs"] / 1000
        self.beat_every = opened["heartbeatMs"] / 1000
        self.confirmed_at = asked_at
        self.held = {}
        self.room = threading.Condition()
        self.over = threading.Event()
        self.outcomes = queue.Queue()
        self.reports = queue.Queue(maxsize=1000)
        self.telling = threading.Lock()
        for work in (self.keep, self.settle, self.tell):
            threading.Thread(target=work, daemon=True).start()
        say(f"session {opened['id']} opened")

    def left(self):
        """How long this worker can rely on its lease. A fifth of the lease is a safety margin."""
        return self.confirmed_at + self.lease * 0.8 - time.monotonic()

    def patience(self):
        """How long a request may take without delaying an abort."""
        left = self.left()
        return max(0.05, min(self.beat_every, left)) if left > 0 else self.beat_every

    def keep(self):
        """Renews the lease, and aborts what was lost. If it cannot be renewed in time, everything is aborted."""
        while not self.over.is_set():
            asked_at = time.monotonic()
            try:
                held = {"held": [attempt.fence for attempt in self.attempts()]}
                answer = call("POST", self.path + "/heartbeat", held, timeout=self.patience())
                self.confirmed_at = asked_at
                for lost in answer["lost"]:
                    self.abort([(lost["id"], lost["attempt"])], lost["reason"])
            except Unreachable as trouble:
                say(f"heartbeat: {trouble}")
            except Refused as refused:
                say(f"heartbeat: {refused}")
                if refused.session_is_over:
                    self.end()
            if self.left() <= 0:
                self.abort(list(self.held), "lease_lost")
            now = time.monotonic()
            self.abort([key for key, attempt in list(self.held.items()) if attempt.ends_at <= now], "timeout")
            self.over.wait(self.patience())

    def attempts(self):
        return list(self.held.values())

    def abort(self, keys, reason):
        for key in keys:
            attempt = self.held.get(key)
            if attempt:
                attempt.abort(reason)

    def end(self):
        self.over.set()
        self.abort(list(self.held), "lease_lost")
        with self.room:
            self.room.notify_all()

    def claim(self):
        """Waits for room, then for jobs, and starts them."""
        with self.room:
            while len(self.held) >= CONCURRENCY and not self.over.is_set():
                self.room.wait(1)
        if self.over.is_set():
            return
        wish = {"most": CONCURRENCY - len(self.held), "waitMs": 20_000}
        for given in call("POST", self.path + "/claim", wish, timeout=40)["attempts"]:
            attempt = Attempt(self, given)
            self.held[(attempt.id, attempt.number)] = attempt
            threading.Thread(target=self.carry, args=(attempt,), daemon=True).start()

    def carry(self, attempt):
        say(f"{attempt.kind} {attempt.id}: attempt {attempt.number}, stage {attempt.stage}")
        # without a lease, nothing may start: another worker may already have the job
        self.outcomes.put(attempt.run() if self.left() > 0 else attempt.fence | {"outcome": "released"})

    def settle(self):
        """Sends outcomes, in batches."""
        while True:
            first = self.outcomes.get()
            batch = [first, *taken_from(self.outcomes, 99)]
            self.tell_now()  # the reports of a handler are stored before its outcome
            try:
                answer = until_answered(
                    lambda: call("POST", self.path + "/settle", {"outcomes": batch}, timeout=30), self.over.is_set
                )
                for result in answer["results"]:
                    say(f"{result['id']}: {result['result']}")
            except (Refused, Unreachable) as trouble:
                say(f"outcomes lost: {trouble}")  # the server gives these jobs to another worker
            with self.room:
                for outcome in batch:
                    self.held.pop((outcome["id"], outcome["attempt"]), None)
                self.room.notify_all()

    def report(self, report):
        try:
            self.reports.put_nowait(report)
        except queue.Full:
            pass  # a lost report matters less than a handler that has to wait

    def tell(self):
        while not self.over.wait(0.2):  # batches small reports
            self.tell_now()

    def tell_now(self):
        with self.telling:
            while reports := taken_from(self.reports, 100):
                try:
                    call("POST", self.path + "/progress", {"reports": reports})
                except (Refused, Unreachable) as trouble:
                    say(f"progress: {trouble}")

    def close(self):
        """Gives handlers some time to finish, then releases the rest."""
        until = time.monotonic() + DRAIN_SECONDS
        with self.room:
            while self.held and time.monotonic() < until and not self.over.is_set():
                self.room.wait(0.1)
        self.abort(list(self.held), "shutdown")
        self.over.set()
        call("DELETE", self.path)
        say("session closed")


def taken_from(waiting, most):
    batch = []
    while len(batch) < most:
        try:
            batch.append(waiting.get_nowait())
        except queue.Empty:
            break
    return batch


class Stop(Exception):
    """This process was told to stop."""


def main():
    def stop(_signal, _frame):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise Stop

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    session = None
    try:
        while True:
            session = Session()
            while not session.over.is_set():
                try:
                    session.claim()
                except Unreachable as trouble:
                    say(f"claim: {trouble}")
                    time.sleep(1)
                except Refused as refused:
                    if not refused.session_is_over:
                        raise
                    session.end()
            say("session ended; opening another")
    except Stop:
        if session:
            session.close()
    except Refused as refused:
        say(f"the server rejected this worker: {refused}")
        sys.exit(1)


if __name__ == "__main__":
    main()
