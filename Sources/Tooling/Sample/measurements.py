"""Any number of small documents in the collection `measurements`, written as fast as it goes."""

import datetime
import itertools
import sys
import threading
import time

from connections import WRITES_MAX, timestamp

THREADS = 4
SECONDS_BETWEEN_LINES = 3
MINUTES_BETWEEN = 7  # of one measurement and the next
NOTES = ["", "after waking up", "after the run", "felt tired", "new scale", "with shoes on"]
# The kind, its lowest value, the number of values and the step between them.
KINDS = [("weight", 55.0, 400, 0.1), ("restingPulse", 48, 30, 1), ("steps", 1200, 14000, 1),
         ("sleepHours", 4.5, 9, 0.5), ("water", 0.5, 11, 0.25)]


def write(firestore, uids, count, now):
    """Writes the documents `m0000000`, `m0000001` …, and prints the progress."""
    batches = iter(range(0, count, WRITES_MAX))
    lock = threading.Lock()
    written, failure = [0], []
    began = time.monotonic()

    def work():
        while not failure:
            with lock:
                start = next(batches, None)
            if start is None:
                return
            end = min(start + WRITES_MAX, count)
            try:
                firestore.commit(
                    [measurement(firestore.root, uids, number, now) for number in range(start, end)])
            except Exception as error:  # whatever it is ends the others, too, and is raised below
                failure.append(error)
                return
            with lock:
                written[0] += end - start

    threads = [threading.Thread(target=work, daemon=True) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in itertools.cycle(threads):
        thread.join(SECONDS_BETWEEN_LINES / THREADS)
        if not any(each.is_alive() for each in threads):
            break
        if thread is threads[-1]:
            print_progress(written[0], count, began)
    if failure:
        raise failure[0]
    print_progress(written[0], count, began)


def print_progress(written, count, began):
    seconds = time.monotonic() - began
    rate = written / max(seconds, 0.001)
    left = f", {(count - written) / rate:.0f} s left" if 0 < written < count else ""
    print(f"  measurements: {written:,} of {count:,}, {rate:,.0f} per second{left}",
          file=sys.stderr, flush=True)


def measurement(root, uids, number, now):
    """One write as JSON; formatted by hand, because this is what the writing spends its time on."""
    kind, lowest, values, step = KINDS[number % len(KINDS)]
    value = lowest + (number * 7919) % values * step
    at = timestamp(now - datetime.timedelta(minutes=MINUTES_BETWEEN * number))
    number_json = (f'"integerValue":"{value}"' if isinstance(value, int)
                   else f'"doubleValue":{value:.2f}')
    return (
        f'{{"update":{{"name":"{root}/measurements/m{number:07}","fields":{{'
        f'"uid":{{"stringValue":"{uids[number // 5 % len(uids)]}"}},'
        f'"kind":{{"stringValue":"{kind}"}},"value":{{{number_json}}},'
        f'"at":{{"timestampValue":"{at}"}},'
        f'"note":{{"stringValue":"{NOTES[number // 3 % len(NOTES)]}"}}}}}}}}')
