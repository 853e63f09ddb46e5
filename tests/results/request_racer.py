"""A process that takes requests at given times: `request_racer.py NAME START_S GAP_S ADDRESS...`.

It prints for each address whether it has got the request, or who has.
"""

import os
import sys
import time

from dqx_airflow.errors import DqxError
from dqx_airflow.results.stored_requests import RequestTakenError, take_request
from dqx_airflow.values.json_form import storage_options_of

_ROUND_S = 0.15


def main(name: str, start: float, gap_s: float, addresses: list[str]) -> None:
    options = storage_options_of(os.environ)
    for number, address in enumerate(addresses):
        time.sleep(max(0.0, start + number * _ROUND_S + gap_s - time.time()))
        try:
            taken = take_request(address, options, name)
            print("won", taken.taker.name, flush=True)
        except RequestTakenError as error:
            print("lost", error.problem.partition("another job: ")[2].partition(",")[0], flush=True)
        except DqxError as error:
            print("failed", error, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), sys.argv[4:])
