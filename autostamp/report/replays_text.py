# SPDX-License-Identifier: Apache-2.0
"""What a joined run says of itself: its sets, what each cost, how well they fit, and which sites are missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final

from autostamp.model.manifest import Manifest
from autostamp.model.placement import MARKS, Form
from autostamp.model.replay import Bound, Fit, ReplayedSet, Replays, SetTimes, Uncovered
from autostamp.report.bounds_text import bound_line, bound_object, text_at
from autostamp.report.verdict_words import count_of, kernel_name

_MOST_MISSING: Final = 12

_MEANING: Final = {
    Form.ENTER: "waits stamped before the call alone, no stall",
    Form.EXIT: "waits stamped after the call alone, no stall",
    Form.CARRIED: "waits whose clock after the call was written later",
    Form.CARRIED_EXIT: "waits stamped after the call alone, written later, no stall",
    Form.BEFORE: "signals stamped before the call, which come no later than the warp's next record",
}

_SPLIT: Final = (
    "waits with the stamp before the call of one set and that after it of another: stalls with the errors of both"
)


def replay_lines(replays: Replays, manifest: Manifest, bounds: Sequence[Bound] = ()) -> tuple[str, ...]:
    """Lines for the face of a report: a headline, one for each set, the sites that are missing, and what else was noted.

    `bounds` say between which records each of these lies.
    """
    return tuple(_lines(replays, manifest, bounds))


def replays_object(replays: Replays, manifest: Manifest, bounds: Sequence[Bound] = ()) -> dict[str, Any]:
    """Everything as an object that JSON can hold. Times of a set that was not timed are null."""
    found: dict[str, Any] = asdict(replays)
    del found["schema_version"]
    for made, row in zip(replays.sets, found["sets"], strict=True):
        row["sites"] = [{"key": key, "form": str(form)} for key, form in made.sites]
        row["anchors"] = list(made.anchors)
        row["times"] = asdict(made.times) if made.times.rounds else None
    for name in ("sets", "fits", "dropped", "uncovered", "notes"):
        found[name] = list(found[name])
    found["forms"] = [{"meaning": meaning, "sites": list(places)} for meaning, places in _other_forms(replays)]
    found["bounds"] = [bound_object(each, manifest) for each in bounds]
    return found


def worst_ratio(replays: Replays) -> float | None:
    """The largest stamped ÷ clean time of the joined sets; None where one was not timed."""
    if not replays.sets or any(not made.times.rounds for made in replays.sets):
        return None
    return max(made.times.ratio for made in replays.sets)


def _lines(replays: Replays, manifest: Manifest, bounds: Sequence[Bound]) -> Iterator[str]:
    worst = worst_ratio(replays)
    cost = f"each at most {worst:.3f} of the clean time" if worst is not None else "their cost was not measured"
    count = len(replays.sets)
    yield f"joined from {count} replay{'s' * (count != 1)}, {cost}; the bar was {replays.bar:.3f}"
    fits: dict[int, list[Fit]] = {}
    for fit in replays.fits:
        fits.setdefault(fit.number, []).append(fit)
    for made in replays.sets:
        yield f"  set {made.number}: {_set(made, replays.reference, fits.get(made.number, []))}"
    for each in replays.dropped:
        yield f"  set {each.number} is not part of it ({each.code}): {each.detail}"
    for meaning, places in _other_forms(replays):
        yield f"  {meaning}: {', '.join(places)}"
    yield from _missing(replays.uncovered, manifest, bounds)
    yield from _halves(manifest, bounds)
    for note in replays.notes:
        yield f"  note: {note}"


def _other_forms(replays: Replays) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What was measured of sites whose stamps are not in the usual places, and which sites these are."""
    forms: dict[str, set[Form]] = {}
    for made in replays.sets:
        for key, form in made.sites:
            forms.setdefault(key, set()).add(form)
    places: dict[str, dict[str, None]] = {}
    for meaning in (*_MEANING.values(), _SPLIT):
        for key, of_key in forms.items():
            if meaning in _meanings(of_key):
                places.setdefault(meaning, {})[key.rpartition("@")[0].rpartition(":")[0]] = None
    for meaning, lines in places.items():
        yield meaning, tuple(lines)


def _meanings(forms: set[Form]) -> set[str]:
    """What is said of a site with these forms. One whose two stamps are of two sets has a stall."""
    is_split = any(form.has_enter for form in forms) and any(form.has_exit for form in forms)
    if forms <= set(MARKS) and is_split:
        return {_SPLIT}
    return {_MEANING[form] for form in forms if form in _MEANING and not (form in MARKS and is_split)}


def _set(made: ReplayedSet, reference: int, fits: list[Fit]) -> str:
    enters = sum(form in MARKS for _, form in made.sites)
    halves = f", {enters} with one stamp" if enters else ""
    parts = [f"{count_of(len(made.sites), 'site')} ({count_of(len(made.anchors), 'anchor')}{halves})"]
    parts.append(f"{made.launches:,} launch{'es' * (made.launches != 1)}")
    parts.append(_ratio(made.times))
    if made.results_equal:
        parts.append("results bit-equal")
    if made.number == reference:
        parts.append("the reference: its records are where they were")
    for fit in fits:
        stated = f"stated {fit.error_median:,} (90 %: {fit.error_p90:,})"
        off = f"typically {fit.typical:,} cycles off (95 %: {fit.typical_p95:,}), {stated}"
        where = f" of {kernel_name(fit.kernel)}" if len(fits) > 1 else ""
        parts.append(f"{fit.events:,} of its records{where} placed by {fit.anchors:,} anchors, {off}")
        if fit.guided:
            most = f"by up to {fit.error_most:,} cycles"
            parts.append(
                f"{fit.guided:,} warps have no anchor and lie where another warp's put them, {most}; stalls keep their length"
            )
        if fit.shortened:
            parts.append(f"{fit.shortened:,} waits drawn shorter than they were, as the reference had no room")
        if fit.moved:
            parts.append(f"{fit.moved:,} moved beside a wait of another set")
    return "; ".join(parts)


def _ratio(times: SetTimes) -> str:
    if not times.rounds:
        return "cost not measured"
    spread = f"p10-p90 {times.p10:.3f}-{times.p90:.3f}, clean against itself ± {times.control / 2:.3f}"
    return f"{times.ratio:.3f} of the clean time ({spread}; {times.method})"


def _missing(uncovered: tuple[Uncovered, ...], manifest: Manifest, bounds: Sequence[Bound]) -> Iterator[str]:
    if not uncovered:
        yield "  every site of the placement is covered"
        return
    yield f"  {count_of(len(uncovered), 'site')} {'is' if len(uncovered) == 1 else 'are'} not covered:"
    for each in uncovered[:_MOST_MISSING]:
        text = text_at(manifest, each.key)
        yield f"    {each.key.rpartition('@')[0]}{f' {text}' if text else ''}: {each.cost} ({each.code})"
        for bound in bounds:
            if bound.key == each.key:
                yield f"      {bound_line(bound, manifest)}"
    if len(uncovered) > _MOST_MISSING:
        yield f"    and {len(uncovered) - _MOST_MISSING} more"


def _halves(manifest: Manifest, bounds: Sequence[Bound]) -> Iterator[str]:
    halves = [each for each in bounds if each.stamp in (Form.ENTER, Form.EXIT)]
    if halves:
        have = "wait has" if len(halves) == 1 else "waits have"
        yield f"  {len(halves)} {have} one of two stamps; of the other it is known where it lies:"
    for each in halves:
        text = text_at(manifest, each.key)
        yield f"    {each.stamp} of {each.key.rpartition('@')[0]} {text}".rstrip()
        yield f"      {bound_line(each, manifest)}"
