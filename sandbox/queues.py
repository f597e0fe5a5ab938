"""How waves that share a compute unit overlap: mean value analysis of a closed queueing network.

Each wave visits the unit's pipes in turn and, between visits, waits for memory. More waves fill one another's waits
until a pipe is always busy: the slower of latency and throughput, with the bend between them rounded, because waves do
not arrive in turn. (Reiser and Lavenberg, "Mean-value analysis of closed multichain queuing networks", 1980.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping


def residence(demands: Mapping[str, float], delay: float, customers: int) -> float:
    """Time each of `customers` waves needs, sharing pipes of which it asks `demands`, and waiting `delay` by itself.

    One unit of time throughout. With one wave it is the plain sum.
    """
    queued = dict.fromkeys(demands, 0.0)
    total = delay + sum(demands.values())
    for count in range(1, customers + 1):
        stays = {name: demand * (1 + queued[name]) for name, demand in demands.items()}
        total = delay + sum(stays.values())
        if total == 0:
            return 0.0
        queued = {name: count * stay / total for name, stay in stays.items()}
    return total


def waiting(channels: int, demand: float, delay: float, customers: int) -> float:
    """Time each of `customers` queues for one of many equal memory channels, in a round that takes `delay` otherwise.

    `demand` is a customer's bytes over the bandwidth of all channels together. Schweitzer's approximation of mean value
    analysis, which for equal channels is one quadratic: with r the stay at a channel,
    r = demand (1 + (customers - 1) r / (delay + channels r)). What is not queueing is part of the latency already.
    """
    b = demand * (channels + customers - 1) - delay
    stay = (b + math.sqrt(b * b + 4 * channels * demand * delay)) / (2 * channels)
    return max(0.0, channels * (stay - demand), customers * demand - delay)
