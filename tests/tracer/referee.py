#!/usr/bin/env python3
"""The tracer bench's referee: computes verdicts from scripted trials, and figures of cycles from k6's output.

    judge | python3 tests/tracer/referee.py [--first]

The referee uses only the standard library, and no code, constant or file of the product. It implements the rules of
claims a second time, from the text of docs/measurement.md.

Exit code: 0 all claims are right (green), 1 a wrong figure (red), 2 no judgement. With --first, the referee prints
only the first wrong figure, on one line for a table, and stops.
"""

import itertools
import json
import math
import sys

ERROR = 0.05
# Levels of claims and of figures for looks at 10, 15 and 20 blocks, from a simulation of 250,000 runs.
LOOK_LEVELS = {0.05: 0.0234, 0.05 * 6 / math.pi**2: 0.0137}
LOOK_TOLERANCE = 0.0003
# Relative tolerance: figures in a status are rounded to this precision.
CLOSE = 2e-6


def beta_fraction(a, b, x):
    """The continued fraction of the incomplete beta function (Lentz)."""
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > 1e-300 else 1e-300)
    h = d
    for m in range(1, 400):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / (1 + term * d)
            c = 1 + term / c
            h *= d * c
        if abs(d * c - 1) < 1e-15:
            break
    return h


def beta_share(a, b, x):
    """The regularised incomplete beta function."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    if x < (a + 1) / (a + b + 2):
        return front * beta_fraction(a, b, x) / a
    return 1 - front * beta_fraction(b, a, 1 - x) / b


def student(two_sided, freedom):
    """The value that |t| exceeds with this probability."""
    low, high = 0.0, 1e4
    for _ in range(200):
        middle = (low + high) / 2
        if beta_share(freedom / 2, 0.5, freedom / (freedom + middle * middle)) > two_sided:
            low = middle
        else:
            high = middle
    return low


def mean(values):
    return sum(values) / len(values)


def deviation(values):
    middle = mean(values)
    return math.sqrt(sum((value - middle) ** 2 for value in values) / (len(values) - 1))


def half_of(values, level):
    return student(level, len(values) - 1) * deviation(values) / math.sqrt(len(values))


def correlation(blocks):
    """The correlation coefficient of blocks of trials (candidate, logarithm) in time order. None if von Neumann's
    ratio shows no correlation."""
    trials = [trial for block in blocks for trial in block]
    means = {}
    for name in {name for name, _ in trials}:
        means[name] = mean([value for other, value in trials if other == name])
    size = {name: sum(other == name for other, _ in trials) for name in means}
    rest = [(name, value - means[name]) for name, value in trials]
    squares = sum(value**2 for _, value in rest)
    pairs = list(itertools.pairwise(rest))
    ratio = sum((b[1] - a[1]) ** 2 for a, b in pairs) / squares
    n, m = len(trials), len(means)
    expected = sum(2 if a[0] == b[0] else 2 - 1 / size[a[0]] - 1 / size[b[0]] for a, b in pairs) / (n - m)
    z = (ratio - expected) / math.sqrt(4 * (n - 2) / (n * n - 1))
    if math.erfc(-z / math.sqrt(2)) / 2 >= 0.1:
        return None
    of_all = sum(a[1] * b[1] for a, b in pairs) / squares
    # Neighbours in different blocks: the last trial of one block and the first of the next.
    own = [[(name, value - means[name]) for name, value in block] for block in blocks]
    count = len(blocks)
    of_blocks = sum(a[-1][1] * b[0][1] for a, b in itertools.pairwise(own)) / (count - 1) / (squares / n)
    whole = of_all + (m + 3 * of_all) / n
    between = of_blocks + (1 + 3 * of_blocks) / count
    return min(max((whole + between) / 2, 0), 0.95)


def own_half(blocks, name, level):
    """Half of the interval of a candidate's figure, in logarithms."""
    trials = [trial for block in blocks for trial in block]
    values = [value for other, value in trials if other == name]
    found = correlation(blocks)
    if found is None:
        return half_of(values, level)
    places = [place for place, (other, _) in enumerate(trials) if other == name]
    n = len(values)
    worth = sum(found ** abs(a - b) for a in places for b in places) / n
    worth = min(max(worth, 1), 0.9 * n)
    freedom = max(n / worth - 1, (n - 1) / 2)
    wider = math.sqrt(worth * (n - 1) / (n - worth))
    return wider * student(level, freedom) * deviation(values) / math.sqrt(n)


def blocks_of(case):
    """The valid blocks in order, and the errors in the plan."""
    by_block, wrong = {}, []
    order = []
    for attempt in case["attempts"]:
        key = (attempt["block"], attempt["attempt"])
        by_block.setdefault(key, []).append(attempt)
        if not order or order[-1] != key:
            order.append(key)
    valid = []
    for index, key in enumerate(order):
        trials = by_block[key]
        names = [trial["candidate"] for trial in trials]
        is_void = any(trial["void"] for trial in trials)
        if [trial["position"] for trial in trials] != list(range(1, len(trials) + 1)):
            wrong.append(("plan", f"positions of block {key[0]}"))
        if is_void:
            # A void attempt must be the last of its block, and the whole block must follow again.
            follows = order[index + 1] if index + 1 < len(order) else None
            if not trials[-1]["void"] or follows != (key[0], key[1] + 1):
                wrong.append(("repetition", f"after void block {key[0]}, attempt {key[1]}: {follows}"))
        elif sorted(names) != sorted(case["entrants"]):
            wrong.append(("repetition", f"block {key[0]} has {names}"))
        else:
            valid.append(trials)
    if [trials[0]["block"] for trials in valid] != list(range(1, len(valid) + 1)):
        wrong.append(("repetition", "blocks are missing"))
    # Each candidate must have each place equally often. A difference below 1 is allowed, for an incomplete square.
    for name in case["entrants"]:
        for place in range(len(case["entrants"])):
            count = sum(trials[place]["candidate"] == name for trials in valid)
            if abs(count - len(valid) / len(case["entrants"])) >= 1:
                wrong.append(("order", f"{name} at place {place + 1} {count} times of {len(valid)}"))
    return valid, wrong


def differs(claimed, true):
    return claimed is None or not abs(claimed / true - 1) <= CLOSE


def verdict_findings(case):
    claim = case["claim"]
    valid, wrong = blocks_of(case)
    yield from ((figure, text, "") for figure, text in wrong)
    looks = case["trials"].get("looks")
    spent = ERROR * 6 / (math.pi * case["try"]) ** 2
    level = LOOK_LEVELS[0.05] if looks else ERROR
    claim_level = LOOK_LEVELS[spent] if looks else spent
    tolerance = LOOK_TOLERANCE if looks else 1e-9
    for figure, claimed, true in (
        ("confidence", claim["look"]["confidence"], 1 - level),
        ("claim confidence", claim["look"]["claimConfidence"], 1 - claim_level),
    ):
        if not abs(claimed - true) <= tolerance:
            yield figure, claimed, true
    if looks:  # Use the claimed levels from here on, because LOOK_LEVELS has fewer digits.
        level, claim_level = (1 - claim["look"][name] for name in ("confidence", "claimConfidence"))
    if claim["tries"] != case["try"]:
        yield "tries", claim["tries"], case["try"]

    blocks = [[(t["candidate"], math.log(t["joules"])) for t in block] for block in valid]
    trials = [trial for block in blocks for trial in block]
    by_name = {name: [v for other, v in trials if other == name] for name in case["entrants"]}
    meter = case["meter"] or 0.0
    figures = {}
    for name in case["candidates"]:
        value = math.exp(mean(by_name[name]))
        half = own_half(blocks, name, level)
        figures[name] = (value, lambda level, name=name: math.hypot(own_half(blocks, name, level), 2 * meter))
        result = next(r for r in claim["results"] if r["candidate"] == name)
        gross = result["grossJoulesPerRequest"]
        if differs(gross["value"], value):
            yield "figure", gross["value"], value
        for end, sign in (("lower", -1), ("upper", 1)):
            if differs(gross[end], value * math.exp(sign * half)):
                yield "interval", gross[end], value * math.exp(sign * half)
            whole = value * math.exp(sign * math.hypot(half, 2 * meter))
            if differs(gross["expanded"][end], whole):
                yield "expanded interval", gross["expanded"][end], whole

    def ratio(one, other, level):
        pairs = [a - b for a, b in zip(by_name[one], by_name[other], strict=True)]
        middle, half = mean(pairs), half_of(pairs, level)
        return tuple(math.exp(x) for x in (middle, middle - half, middle + half))

    floor = 0.0
    if case["control"]:
        _, low, high = ratio("first", case["control"], level)
        floor = max(abs(math.log(low)), abs(math.log(high)))
        share = (claim["noise_floor"] or {}).get("share")
        if differs(share, math.expm1(floor)) and not abs((share or 0) - math.expm1(floor)) <= 1e-6:
            yield "noise floor", share, math.expm1(floor)
    winner = None
    for one in case["candidates"]:
        beats = []
        for other in case["candidates"]:
            if other != one:
                value, _, high = ratio(one, other, claim_level)
                beats.append(high < 1 and abs(math.log(value)) >= floor)
        if beats and all(beats):
            winner = one
    tie = False
    if case["tie_within"]:
        bound = math.log1p(case["tie_within"])
        tie = all(
            -bound < math.log(low) and math.log(high) < bound
            for a in case["candidates"]
            for b in case["candidates"]
            if a != b
            for _, low, high in [ratio(a, b, 2 * claim_level)]
        )
    winner = None if tie else winner
    if claim["winner"] != winner:
        yield "winner", claim["winner"], winner
    if claim["tie"] != tie:
        yield "tie", claim["tie"], tie
    for comparison in claim["comparisons"]:
        true = ratio(comparison["candidate"], comparison["against"], claim_level)
        for end, at in zip(("value", "lower", "upper"), true, strict=True):
            if differs(comparison["ratio"][end], at):
                yield "ratio" if end == "value" else "ratio's interval", comparison["ratio"][end], at
    yield from budget_findings(case, figures, ratio, spent)
    if looks:
        ended = claim["look"]["blocks"]
        decided = [n for n in looks[:-1] if winner_after(case, valid[:n], claim_level)]
        true = decided[0] if decided else looks[-1]
        if (ended, len(valid)) != (true, true):
            yield "look", ended, true


def winner_after(case, blocks, claim_level):
    """Whether the comparison of two candidates is decided after these blocks."""
    logs = [{t["candidate"]: math.log(t["joules"]) for t in block} for block in blocks]
    first, second = case["candidates"]
    pairs = [block[first] - block[second] for block in logs]
    return abs(mean(pairs)) > half_of(pairs, claim_level)


def budget_findings(case, figures, ratio, spent):
    """Checks budgets. Holm's procedure finds exceeded limits. A limit is met if the whole interval is below it."""
    limits = []
    for budget in case["budgets"]:
        name = budget["candidate"]
        if "maxJoulesPerRequest" in budget:
            value, half = figures[name]
            limit = float(budget["maxJoulesPerRequest"])
            limits.append(
                (
                    name,
                    "maxJoulesPerRequest",
                    lambda level, v=value, h=half: (v * math.exp(-h(level)), v * math.exp(h(level))),
                    limit,
                )
            )
        if "maxErrorRatio" in budget:  # The scripts have no errors.
            limits.append((name, "maxErrorRatio", lambda _: (0.0, 0.0), float(budget["maxErrorRatio"])))
        if "maxEnergyRatio" in budget:
            against = budget["against"]
            limits.append(
                (
                    name,
                    "maxEnergyRatio",
                    lambda level, a=name, b=against: ratio(a, b, level)[1:],
                    float(budget["maxEnergyRatio"]),
                )
            )
    exceeded = set()
    while len(exceeded) < len(limits):
        share = spent / (len(limits) - len(exceeded))
        new = {
            index
            for index, (_, _, ends, limit) in enumerate(limits)
            if index not in exceeded and ends(share)[0] > limit
        }
        if not new:
            break
        exceeded |= new
    outcomes = []
    for index, (name, field, ends, limit) in enumerate(limits):
        met = ends(spent)[1] < limit
        outcome = "Met" if met else "Exceeded" if index in exceeded else "Undecided"
        outcomes.append((name, field, outcome))
        claimed = next(
            b for b in case["claim"]["budgets"] if (b["candidate"], b["limit"], b["limitValue"]) == (name, field, limit)
        )
        if claimed["outcome"] != outcome:
            yield "budget", f"{name} {field} {claimed['outcome']}", outcome
    if limits:
        words = {outcome for _, _, outcome in outcomes}
        verdict = "Fail" if "Exceeded" in words else "Inconclusive" if "Undecided" in words else "Pass"
        if case["claim"]["verdict"] != verdict:
            yield "verdict", case["claim"]["verdict"], verdict


def k6_findings(case):
    raw, claim = case["k6"], case["claim"]
    good, bad = raw["cycles"]["count"], raw["failedCycles"]["count"]
    seconds = raw["durationSeconds"]
    timed = good > 0 and raw["droppedCycles"] == 0
    truths = {
        "successes": good,
        "errors": bad,
        "requests": good + bad,
        "requestsPerSecond": good / seconds if good else None,
        "msPerRequest": 1000 * raw["cycles"]["sumSeconds"] / good if timed else None,
        "errorRate": bad / (good + bad),
        "occupancy": raw["requests"]["waitedSeconds"] / (seconds * case["agents"]),
        "requestsPerCycle": raw["requests"]["count"] / (good + bad),
    }
    if case["rate"]:
        truths["shortfall"] = max(0.0, 1 - (good + bad) / (seconds * case["rate"]))
    for name, true in truths.items():
        claimed = claim.get(name)
        if claimed is None or true is None:
            is_wrong = claimed is not true
        else:
            is_wrong = not abs(claimed - true) <= 1e-9 * max(1.0, abs(true))
        if is_wrong:
            yield f"k6 {name}", claimed, true


def main():
    first_only = sys.argv[1:] == ["--first"]
    cases = red = 0
    try:
        for line in sys.stdin:
            case = json.loads(line)
            cases += 1
            for figure, claimed, true in (k6_findings if "k6" in case else verdict_findings)(case):
                red += 1
                if first_only:
                    print(f"{figure}: {claimed}\t{true}\t-\t{case['case']}")
                    return 1
                print(f"{case['case']}: {figure} is {claimed}, truth {true}")
    except (ValueError, KeyError, TypeError, StopIteration) as error:
        print(f"the referee cannot read the product's output: {error!r}", file=sys.stderr)
        return 2
    if not cases:
        print("the bench ran no case", file=sys.stderr)
        return 2
    if not first_only:
        print(f"{cases} cases, {red} findings")
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())
