"""Tasks in a peer's own environment: ``python peer_tasks.py TASK SIZE`` prints the processor seconds of one unit."""

import json
import math
import sys
import time

import numpy as np

N = 20_000


def seconds(work, repeat=3):
    """The least processor time of `repeat` runs, after one to warm up."""
    work()
    times = []
    for _ in range(repeat):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def answers(k, n=N):
    return np.random.default_rng(0).integers(k, size=n).tolist()


def pure_ldp_direct_encoding(k):
    from pure_ldp.frequency_oracles.direct_encoding import DEClient

    client, given = DEClient(1.0, k, index_mapper=lambda x: x), answers(k)
    return seconds(lambda: [client.privatise(x) for x in given]) / N


def pure_ldp_oue(k):
    from pure_ldp.frequency_oracles.unary_encoding import UEClient

    client, given = UEClient(1.0, k, use_oue=True, index_mapper=lambda x: x), answers(k)
    return seconds(lambda: [client.privatise(x) for x in given]) / N


def pure_ldp_olh(k):
    from pure_ldp.frequency_oracles.local_hashing import LHClient

    client, given = LHClient(1.0, k, use_olh=True, index_mapper=lambda x: x), answers(k)
    return seconds(lambda: [client.privatise(x) for x in given]) / N


def pure_ldp_olh_server(k):
    from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer

    client = LHClient(1.0, k, use_olh=True, index_mapper=lambda x: x)
    reports = [client.privatise(x) for x in answers(k, 2000)]

    def work():
        server = LHServer(1.0, k, use_olh=True, index_mapper=lambda x: x)
        for report in reports:
            server.aggregate(report)

    return seconds(work) / 2000


def pure_ldp_rr(k):
    from pure_ldp.frequency_oracles.direct_encoding import DEClient

    client, given = DEClient(1.0, k, index_mapper=lambda x: x), answers(k)
    return seconds(lambda: [client.privatise(x) for x in given]) / N


def pure_ldp_rr_server(k):
    from pure_ldp.frequency_oracles.direct_encoding import DEServer

    given = answers(k)

    def work():
        server = DEServer(1.0, k, index_mapper=lambda x: x)
        for report in given:
            server.aggregate(report)

    return seconds(work) / N


def pure_ldp_oue_server(k):
    from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer

    client = UEClient(1.0, k, use_oue=True, index_mapper=lambda x: x)
    reports = [client.privatise(x) for x in answers(k)]

    def work():
        server = UEServer(1.0, k, use_oue=True, index_mapper=lambda x: x)
        for report in reports:
            server.aggregate(report)

    return seconds(work) / N


def multi_freq_rr_server(k):
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI

    given = answers(k, 10**5)
    return seconds(lambda: GRR_Aggregator_MI(given, k, 1.0)) / 10**5


def multi_freq_oue_server(k):
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client

    reports = [UE_Client(x, k, 1.0, True) for x in answers(k)]
    return seconds(lambda: UE_Aggregator_MI(reports, 1.0, True)) / N


def opendp_counts(k):
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    count = dp.t.make_count_by_categories(*space, categories=list(range(k)), TOA=int)
    given = answers(k, 10**5)
    return seconds(lambda: count(given)) / 10**5


def multi_freq_grr(k):
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client

    given = answers(k)
    return seconds(lambda: [GRR_Client(x, k, 1.0) for x in given]) / N


def multi_freq_grr_numba(k):
    import numba
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client

    @numba.njit
    def loop(given, k, epsilon):
        out = np.empty(len(given), np.int64)
        for i in range(len(given)):
            out[i] = GRR_Client(given[i], k, epsilon)
        return out

    given = np.array(answers(k, 10**6))
    return seconds(lambda: loop(given, k, 1.0)) / 10**6


def multi_freq_oue(k):
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client

    given = answers(k)
    return seconds(lambda: [UE_Client(x, k, 1.0, True) for x in given]) / N


def multi_freq_subset(k):
    from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Client

    given = answers(k)
    return seconds(lambda: [SS_Client(x, k, 1.0) for x in given]) / N


def multi_freq_olh(k):
    from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Client

    given = answers(k)
    return seconds(lambda: [LH_Client(x, k, 1.0, True) for x in given]) / N


def multi_freq_olh_server(k):
    from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client

    reports = [LH_Client(x, k, 1.0, True) for x in answers(k, 2000)]
    return seconds(lambda: LH_Aggregator_MI(reports, k, 1.0, True)) / 2000


def opendp_rr(k):
    import opendp.prelude as dp

    dp.enable_features("contrib")
    measure = dp.m.make_randomized_response(categories=list(range(k)), prob=math.e / (math.e + k - 1))
    given = answers(k, 2000)
    return seconds(lambda: [measure(x) for x in given]) / 2000


def dp_accounting_composition(count):
    from dp_accounting.pld import privacy_loss_distribution as pld

    e, eta = math.exp(0.1), 0.7 * math.tanh(0.05)
    kept = eta * (1 + e) / (e - 1)
    p = [kept * e / (1 + e), 1 - kept, kept / (1 + e)]
    upper, lower = (dict(enumerate(np.log(masses))) for masses in (p, p[::-1]))

    def work():
        made = pld.from_two_probability_mass_functions(lower, upper)  # the default grid
        return float(made.self_compose(count).get_epsilon_for_delta(1e-6))

    return seconds(work), work()


def prv_composition(count):
    from prv_accountant import PRVAccountant
    from prv_accountant.privacy_random_variables import PureDPMechanism

    variable = PureDPMechanism(0.1)

    def work():
        accountant = PRVAccountant(prvs=[variable], eps_error=0.01, delta_error=1e-10, max_self_compositions=[count])
        return accountant.compute_epsilon(delta=1e-6, num_self_compositions=[count])

    return seconds(work, 1), [float(value) for value in work()]


def qif_loss(k):
    import qif

    prior = qif.probab.uniform(k)

    def unequal(x, y):
        return float(x != y)

    return seconds(lambda: qif.mechanism.d_privacy.min_loss_given_d(prior, k, unequal, unequal), 1)


if __name__ == "__main__":
    task, argument = sys.argv[1], int(sys.argv[2])
    found = globals()[task](argument)
    print(json.dumps(list(found) if isinstance(found, tuple) else [found]))
