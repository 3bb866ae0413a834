"""Optimal-loss channels beside qif's: python experiments/benchmarks/bench_loss.py [K ...] [--qif-up-to K].

Prints a line a case: processor seconds of ours (certified, measured) and of `qif.mechanism.d_privacy.min_loss_given_d`,
which gives a channel alone, the two losses, and the epsilon of qif's channel as `LocalDP` measures it. qif is left out
where it is not installed, and above the size asked for: at k = 64 it takes minutes.
"""

import argparse
import importlib.util
import time

import networkx as nx
import numpy as np

from ldpopt import Channel
from ldpopt.design import ExpectedLoss, LocalDP, optimal_channel

EPSILON = 1.0


def cases(k):
    line = np.abs(np.subtract.outer(np.arange(k), np.arange(k))).astype(float)
    plain, metric = LocalDP(EPSILON), LocalDP(EPSILON, nx.path_graph(k))
    yield "0/1 loss, plain", 1 - np.eye(k), plain, lambda x, y: EPSILON * (x != y)
    yield "|x-y|, plain", line, plain, lambda x, y: EPSILON * (x != y)
    yield "0/1 loss, metric", 1 - np.eye(k), metric, lambda x, y: EPSILON * abs(x - y)
    yield "|x-y|, metric", line, metric, lambda x, y: EPSILON * abs(x - y)


def qif_channel(prior, loss, distance):
    import qif

    k = len(prior)
    return qif.mechanism.d_privacy.min_loss_given_d(
        prior, k, lambda x, y: float(distance(x, y)), lambda x, y: float(loss[x, y])
    )


def best_of(count, make):
    seconds = []
    for _ in range(count):
        start = time.process_time()
        made = make()
        seconds.append(time.process_time() - start)
    return min(seconds), made


def main(sizes, largest):
    known = importlib.util.find_spec("qif") is not None
    optimal_channel(ExpectedLoss(np.full(2, 0.5), 1 - np.eye(2)), LocalDP(1.0))  # imports are not timed
    for k in sizes:
        prior = np.random.default_rng(k).dirichlet(np.ones(k))
        for name, loss, constraint, distance in cases(k):
            utility = ExpectedLoss(prior, loss)
            ours, design = best_of(3, lambda u=utility, c=constraint: optimal_channel(u, c))
            text = f"k={k:3d} {name:17s} ours {ours:7.3f} s  loss {-design.value:.9f}  certified {design.certified}"
            if known and k <= largest:
                try:
                    theirs, made = best_of(1, lambda p=prior, lo=loss, d=distance: np.asarray(qif_channel(p, lo, d)))
                except RuntimeError as error:
                    print(f"{text}  qif: {str(error).split(' (')[0]}", flush=True)
                    continue
                lost = float(prior @ (made * loss).sum(axis=1))
                epsilon = float(constraint.measure(Channel(made / made.sum(axis=1, keepdims=True))))
                text += f"  qif {theirs:7.3f} s  loss {lost:.9f}  epsilon {epsilon:.6g}"
            print(text, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("sizes", nargs="*", type=int, default=[8, 16, 32, 64])
    parser.add_argument("--qif-up-to", type=int, default=64)
    given = parser.parse_args()
    main(given.sizes, given.qif_up_to)
