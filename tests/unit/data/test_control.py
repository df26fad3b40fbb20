"""Environments and what is remembered of them."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgrad import data
from pocketgrad.base.errors import DataError, SettingError, UnknownNameError


def shortest(states):
    """The best action on the grid: first along the rows, then along the columns."""
    walker, goal = (np.array(divmod(p, 5)) for p in states.reshape(2, 25).argmax(1))
    row, column = goal - walker
    return np.array([(0 if row < 0 else 1) if row else (2 if column < 0 else 3)])


def test_the_grid_is_solved_by_the_shortest_way() -> None:
    world = data.environment("grid")
    returns = []
    for seed in range(40):
        state, total, over = world.reset(seed), 0.0, False
        while not over:
            state, reward, over, late = world.step(int(shortest(state)[0]))
            assert not late
            total += reward
        returns.append(total)
    assert np.mean(returns) > world.solved
    assert np.array_equal(world.reset(3), data.environment("grid").reset(3))


@pytest.mark.parametrize("name", ["cartpole", "grid", "pong"])
def test_an_environment_keeps_what_it_says(name) -> None:
    if name != "grid":
        pytest.importorskip("gymnasium")
    world = data.environment(name)
    first = world.reset(2)
    assert first.shape == world.shape
    assert first.dtype == world.dtype
    for action in range(world.actions):
        state, reward, over, late = world.step(action)
        assert state.shape == world.shape
        assert isinstance(reward, float)
        assert not over
        assert not late
    np.testing.assert_array_equal(data.environment(name).reset(2), first)


def lived(**options):
    return data.Experience(data.environment("grid"), 8, warm=20, updates=5, **options)


def test_batches_hold_what_happened() -> None:
    """The state after an action is the one before, moved by it; nothing goes on after the goal."""
    made = lived(every=3)
    made.policy = shortest
    batches = [*made, *made]
    assert len(batches) == 10
    assert made.steps == 20 + 10 * 3
    for batch in batches:
        for (before, after), (action, reward, goes_on) in zip(batch.x, batch.y, strict=True):
            walker = np.array(divmod(int(before[:25].argmax()), 5)) + made.world.MOVES[int(action)]
            assert divmod(int(after[:25].argmax()), 5) == tuple(np.clip(walker, 0, 4))
            np.testing.assert_array_equal(before[25:], after[25:])
            assert goes_on == (after[:25].argmax() != after[25:].argmax())
            assert reward == pytest.approx(-0.02 if goes_on else 0.98)


def test_equal_seeds_live_equal_lives() -> None:
    one, two, other = lived(), lived(), lived(seed=1)
    for made in (one, two, other):
        made.policy = shortest
    pairs = list(zip(one, two, other, strict=True))
    assert all(np.array_equal(a.x, b.x) for a, b, _ in pairs)
    assert not all(np.array_equal(a.x, c.x) for a, _, c in pairs)


def test_the_share_of_random_actions_falls_to_the_last_one() -> None:
    made = lived(explore_over=10, explore_last=0.1)
    made.policy = shortest
    assert made.explore == 1.0
    list(made)
    list(made)
    list(made)
    assert made.explore == pytest.approx(0.1)


def test_play_gives_the_return_of_each_episode() -> None:
    def policy(states):
        return np.array([int(shortest(s)[0]) for s in states])

    returns = data.play("grid", policy, 30, together=7)
    assert len(returns) == 30
    assert min(returns) >= 1 - 8 * 0.02 - 1e-6


def test_what_cannot_be_lived_is_told() -> None:
    with pytest.raises(DataError, match="has no policy"):
        list(lived(explore_over=1, explore_last=0.0))
    with pytest.raises(SettingError, match="each must be at most the next"):
        data.Experience(data.environment("grid"), 64, warm=10)
    with pytest.raises(UnknownNameError, match="did you mean cartpole"):
        data.environment("cart-pole")
    with pytest.raises(UnknownNameError, match="known: "):
        data.play("chess", lambda s: s)
